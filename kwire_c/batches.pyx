"""The batches of one input in order, and the bytes that are none."""

from kwire_c.failure import CorruptBatchError, DecodeError, KwireError, MissingCodecError

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, uint8_t

cimport cython

from kwire_c.batch cimport (
    KW_BATCH_OK,
    KW_BATCH_TAIL,
    kw_batch,
    kw_batch_length_trusted,
    kw_batch_read,
    kw_batch_reason,
    kw_batch_status,
)
from kwire_c.block cimport Block, pin
from kwire_c.heads cimport checksum_holds, corrupt
from kwire_c.integers cimport clipped
from kwire_c.records cimport RecordBatch


@cython.final
cdef class BadBatch:
    """Bytes that are no sound batch, found with errors="keep".

    position: byte of the input; raw: the bytes; error: the KwireError that says what is wrong; source: number of the
    input, where there are several.
    """

    cdef readonly Py_ssize_t position
    cdef readonly bytes raw
    cdef readonly object error
    cdef readonly int source

    def __init__(self, position, raw, error, source=0):
        self.position = position
        self.raw = raw
        self.error = error
        self.source = source

    def __repr__(self):
        return f"<BadBatch position={self.position} size={len(self.raw)}: {self.error}>"

    def __reduce__(self):
        return BadBatch, (self.position, self.raw, self.error, self.source)


@cython.final
cdef class BatchIterator:
    """The batches of one input in order. After its end, tail is (position, bytes left) of a partial last batch."""

    cdef Block block
    cdef Py_ssize_t at, limit, origin
    cdef bint verify_crc, keep, strict_tail, ended
    cdef readonly object tail

    def __init__(self, data, verify_crc, errors, limit, strict_tail, position=0):
        if errors not in ("raise", "keep"):
            raise ValueError(f"errors is 'raise' or 'keep', not {errors!r}")
        self.block = pin(data)
        self.verify_crc = verify_crc
        self.keep = errors == "keep"
        self.limit = clipped(limit)
        self.origin = clipped(position)
        if not 0 <= self.origin <= INT64_MAX - self.block.size:
            raise DecodeError(f"position {self.origin} is no byte of a file", offset=self.origin)
        self.strict_tail = strict_tail

    def __iter__(self):
        return self

    def __next__(self):
        cdef RecordBatch batch
        cdef const uint8_t *data = self.block.data + self.at
        cdef Py_ssize_t left = self.block.size - self.at
        cdef kw_batch_status status
        if self.ended or left == 0:
            raise StopIteration
        batch = RecordBatch.__new__(RecordBatch)
        status = kw_batch_read(data, left, &batch.head)
        if status == KW_BATCH_TAIL:
            self.ended = True
            self.tail = (self.origin + self.at, left)
            if not self.strict_tail:
                raise StopIteration
            error = CorruptBatchError(
                f"{kw_batch_reason(status).decode()}: {left} bytes left, {batch.head.size or 'more'} needed",
                position=self.origin + self.at, offset=batch.head.base_offset if left >= 12 else -1)
            if not self.keep:
                raise error
            return BadBatch(self.origin + self.at, PyBytes_FromStringAndSize(<const char *> data, left), error)
        if status != KW_BATCH_OK:
            return self.bad(corrupt(status, self.origin + self.at, &batch.head), False)
        batch.block = self.block
        batch.data = data
        batch.at = self.origin + self.at
        batch.limit = self.limit
        if self.verify_crc and not checksum_holds(data, &batch.head):
            return self.bad(CorruptBatchError("checksum does not match", position=self.origin + self.at,
                                              offset=batch.head.base_offset), False)
        if self.keep:
            try:
                batch.load()
            except MissingCodecError:
                raise
            except KwireError as error:
                return self.bad(error, self.verify_crc)
        self.at += batch.head.size
        return batch

    cdef object bad(self, object error, bint sound_length):
        """Raise, or give back the bad bytes and go on behind them where their length can be trusted."""
        cdef const uint8_t *data = self.block.data + self.at
        cdef Py_ssize_t left = self.block.size - self.at, size = left, position = self.origin + self.at
        cdef kw_batch head
        if not self.keep:
            self.ended = True
            raise error
        if sound_length or kw_batch_length_trusted(data, left):
            kw_batch_read(data, left, &head)
            size = head.size
        self.at += size
        return BadBatch(position, PyBytes_FromStringAndSize(<const char *> data, size), error)
