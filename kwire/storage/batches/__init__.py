"""Batches found in bytes: their headers, hopped over from one to the next."""
