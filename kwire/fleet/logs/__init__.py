"""The logs of partitions: batches, producers, retention and compaction."""
