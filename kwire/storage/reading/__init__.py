"""Segments and log directories as they are read, checked and counted."""
