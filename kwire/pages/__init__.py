"""Protocol pages: the schema as static HTML, to be read without a server."""
