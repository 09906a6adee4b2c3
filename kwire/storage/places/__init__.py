"""Where a log lies: paths and patterns, local files and object stores, which files there are."""
