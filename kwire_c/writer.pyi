"""The walker that writes: nothing of it is for Python."""
