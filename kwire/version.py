"""The version of kwire."""

__version__ = "0.1.0"
