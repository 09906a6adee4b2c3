"""Kafka's own topics: committed offsets, transactions, metadata, remote segments."""
