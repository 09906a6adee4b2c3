"""Benchmarks: pytest-benchmark cases for kwire's own work, and python -m benchmarks.run to compare it with peers."""
