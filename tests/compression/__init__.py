"""Compression of batches: verdicts, limits, libraries, levels."""
