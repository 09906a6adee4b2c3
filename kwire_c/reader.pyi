"""The walker that reads: nothing of it is for Python."""
