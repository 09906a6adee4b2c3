"""Messages: the engine against the vectors of Kafka's own classes."""
