"""Real Apache Kafka from Maven Central: brokers, command-line tools, and the data that they wrote."""
