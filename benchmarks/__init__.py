"""Measurements: pytest-benchmark cases for kwire's own work, and python -m benchmarks.run beside its peers."""
