"""The files beside a segment: indexes, checkpoints, producer snapshots."""
