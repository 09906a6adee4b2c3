"""A fleet's data in a folder: Kafka log directories, from which a broker, or a fleet, starts."""
