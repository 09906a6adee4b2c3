"""Checksums, varints and other primitives against the vectors of Kafka's own classes."""
