"""Segments as a broker writes them, and what a restart makes of them."""
