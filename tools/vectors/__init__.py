"""Test vectors as Apache Kafka's own classes of a release write and judge them: python -m tools.vectors."""
