"""All tests; a package so that its tools run as modules: python -m tests.upstream.broker."""
