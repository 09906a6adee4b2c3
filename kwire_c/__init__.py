"""The C half of kwire: cursor, record batches, plans and columns over raw bytes. Import kwire, not this."""
