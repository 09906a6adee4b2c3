"""The C extensions of kwire, an internal package: import kwire instead.

Python loads each extension in one interpreter of a process. One is loaded here, before any other can be, so that all of
them belong to the same interpreter: another one that tries gets its ImportError before it has taken any.
"""

try:  # noqa: SIM105 (contextlib takes longer to import)
    import kwire_c.crc32c  # noqa: F401
except ModuleNotFoundError:  # not compiled: kwire.lazy says so where one is needed
    pass
