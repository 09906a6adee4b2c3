"""Makes the facts in kwire/schema, and the stub of messages, from Kafka's published jars."""
