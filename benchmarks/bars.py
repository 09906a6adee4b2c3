"""The bars: how many times as fast as each peer kwire must be."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.messages import M
from benchmarks.workloads import W3


@dataclass(frozen=True)
class Bar:
    """ours must be at least `least` times as fast as theirs."""

    workload: str
    work: str
    ours: str
    theirs: str
    least: float


JAVA, AIOKAFKA = "Java kafka-clients", "aiokafka"
KIO, KAFKA_PYTHON, RUST, GO = "kio", "kafka-python", "Rust kafka-protocol", "Go franz-go"
COLUMNS, VIEWS, OBJECTS, BUILD = "kwire columns", "kwire columns, views", "kwire objects", "kwire build_batch"
ARROW = "kwire build_batches"

BARS = [
    Bar("W1", "decode", COLUMNS, JAVA, 2.2),
    Bar("W1", "decode", COLUMNS, AIOKAFKA, 12),
    Bar("W1", "decode", VIEWS, JAVA, 2.7),
    Bar("W1", "decode", VIEWS, AIOKAFKA, 16),
    Bar("W1", "decode", OBJECTS, AIOKAFKA, 1.7),
    Bar("W2", "decode", VIEWS, JAVA, 2),
    Bar("W2", "decode", OBJECTS, AIOKAFKA, 1.7),
    *(Bar(name, "encode", BUILD, AIOKAFKA, 5) for name in ("W1", "W2")),
    *(Bar(name, "encode", BUILD, JAVA, 1) for name in ("W1", "W2", "W2 8 MiB")),
    Bar("W2 8 MiB", "encode", BUILD, AIOKAFKA, 4),
    *(Bar(name, "encode", ARROW, JAVA, 2) for name in ("W1", "W2")),
    *(Bar(work.name, "decode", COLUMNS, JAVA, 1) for work in W3),
    *(Bar("W1", "crc32c-16k", COLUMNS, theirs, 0.9) for theirs in ("crc32c (PyPI)", "google-crc32c")),
    *(Bar("W1", "crc32c-1m", COLUMNS, theirs, 0.9)
      for theirs in ("crc32c (PyPI)", "google-crc32c", JAVA, RUST, GO)),
    *(Bar(work.name, "message-decode", "kwire", KIO, least)
      for work, least in zip(M, (4, 4, 2, 4, 2, 1.5), strict=True)),
    Bar("M1", "message-columns", "kwire columns_of", "kwire object loop", 5),
    Bar("M1", "message-columns", "kwire columns_of, whole", "kwire object loop", 4),
    *(Bar(name, "message-decode", "kwire", RUST, 0.5) for name in ("M1", "M2", "M4")),
    *(Bar(work.name, "message-encode", "kwire", theirs, least)
      for work, least in zip(M, (50, 50, 10, 10, 10, 10), strict=True) for theirs in (KIO, KAFKA_PYTHON)),
]  # fmt: skip
