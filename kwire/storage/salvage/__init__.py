"""A new log of the batches that are whole in a damaged one."""
