"""The C extensions of kwire, an internal package: import kwire instead."""
