"""All tests; a package so that its harnesses run as modules: python -m tests.fuzz."""
