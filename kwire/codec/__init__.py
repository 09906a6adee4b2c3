"""Frames, records, columns and compression: what the names at the top of kwire do."""
