"""Protocol pages: the facts as HTML that a browser shows without a server."""
