"""Varints of Kafka's ByteUtils, one at a time, for tests and tools; the fast paths use cursor.h directly."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
