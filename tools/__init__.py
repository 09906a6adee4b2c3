"""What makes the data that ships or is tested with: schemas from Kafka's jars, vectors, logs, frames, captures."""
