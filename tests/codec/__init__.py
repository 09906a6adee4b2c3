"""Messages, frames, records and columns, against the vectors of Kafka's own classes."""
