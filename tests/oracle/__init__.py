"""Apache Kafka's own classes in a long-lived Java process, to compare with."""
