"""The batches of one input in order, and the bytes that are none."""

from kwire_c.failure import DecodeError, KwireError, MissingCodecError

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, uint8_t

cimport cython

from kwire_c.batch cimport (
    KW_BATCH_CRC,
    KW_BATCH_OK,
    KW_BATCH_TAIL,
    kw_batch_read,
    kw_batch_status,
    kw_batch_trusted_size,
)
from kwire_c.block cimport Block, pin
from kwire_c.heads cimport checksum_holds, corrupt, partial_batch
from kwire_c.integers cimport clipped
from kwire_c.records cimport RecordBatch, new_batch


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

    def __cinit__(self, position, bytes raw not None, error, source=0):
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
    """The batches of one input in order. After its end, tail is (position, bytes left) of a partial last batch.

    Threads may share it: each batch is given once. Checksums and decompression run without the interpreter's lock, so a
    batch is looked at first and counts as given only if no other thread was quicker.
    """

    cdef Block block
    cdef Py_ssize_t at, limit, origin
    cdef bint verify_crc, keep, strict_tail, ended
    cdef readonly object tail

    def __cinit__(self, data, verify_crc, errors, limit, strict_tail, position=0):
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
        cdef Py_ssize_t at, end
        while True:
            at = end = self.at
            if self.ended or at >= self.block.size:
                raise StopIteration
            found = self.look(at, &end)
            if self.ended or self.at != at:
                continue  # meanwhile another thread took what begins here
            if type(found) is RecordBatch:
                self.at = end
                return found
            return self.strange(at, end, found)

    cdef object look(self, Py_ssize_t at, Py_ssize_t *end):
        """What begins at byte at, and where it ends: a RecordBatch, the error of what is none, None for a partial one.

        The iterator itself stays as it is.
        """
        cdef const uint8_t *data = self.block.data + at
        cdef Py_ssize_t left = self.block.size - at, position = self.origin + at, trusted
        cdef RecordBatch batch = new_batch()
        cdef kw_batch_status status = kw_batch_read(data, left, &batch.head)
        trusted = kw_batch_trusted_size(data, left)
        end[0] = at + (trusted or left)
        if status == KW_BATCH_TAIL:
            end[0] = self.block.size
            return None
        if status != KW_BATCH_OK:
            return corrupt(status, position, &batch.head)
        batch.block = self.block
        batch.data = data
        batch.at = position
        batch.limit = self.limit
        if self.verify_crc and not checksum_holds(data, &batch.head):
            return corrupt(KW_BATCH_CRC, position, &batch.head)
        if self.keep:
            try:
                batch.load()
            except MissingCodecError:
                raise
            except KwireError as error:
                if self.verify_crc:  # the checksum is of the length too
                    end[0] = at + batch.head.size
                error.__traceback__ = None  # there may be as many as entries of 26 bytes
                return error
        end[0] = at + batch.head.size
        return batch

    cdef object strange(self, Py_ssize_t at, Py_ssize_t end, object error):
        """The bytes from at to end as a BadBatch, or their error raised; None: they are a partial last batch."""
        cdef Py_ssize_t position = self.origin + at
        self.at = end
        if error is None:
            self.tail = (position, end - at)
            if not self.strict_tail:
                raise StopIteration
            error = partial_batch(self.block.data + at, end - at, position)
        if not self.keep:
            self.ended = True
            raise error
        return BadBatch(position, PyBytes_FromStringAndSize(<const char *> self.block.data + at, end - at), error)
