"""The C half of kwire: varints, record batches, messages and columns over raw bytes. Import kwire, not this."""
