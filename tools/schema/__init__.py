"""Makes kwire/schema, and what follows from it, from Kafka's published jars."""
