"""Compression of batches: accepted and refused input, limits, libraries, levels."""
