"""The positions of the blocks in lz4 frames, zstd frames and xerial's snappy streams."""

from kwire_c.errors import CorruptBatchError, LimitError

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, _PyBytes_Resize
from cpython.ref cimport PyObject, Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint8_t

cimport cython

from kwire_c.buffers cimport fill_buffer
from kwire_c.core cimport (
    KW_CONTAINER_DECLARED, KW_CONTAINER_END, KW_CONTAINER_OK, KW_CONTAINER_SHORT, kw_container_reason,
    kw_container_status, kw_cursor, kw_cursor_set, kw_lz4_block, kw_lz4_frame, kw_lz4_next, kw_lz4_open,
    kw_snappy_declared, kw_snappy_long_end, kw_xerial_is, kw_xerial_next, kw_xxh32, kw_zstd_frame, kw_zstd_next,
)
from kwire_c.record_batch cimport Block, pin

# ZSTD_DStreamInSize: what ZstdInputStream reads from its source at a time
cdef int64_t ZSTD_SOURCE = 128 * 1024 + 3


cdef int refuse(str codec, kw_container_status status) except -1:
    raise CorruptBatchError(f"{codec}: {kw_container_reason(status).decode()}")


@cython.final
@cython.no_gc
cdef class Lz4Blocks:
    """An iterator over the blocks of the first lz4 frame: (start, stop, stored).

    data: a buffer; magic: the format of the batch, with 0 the header checksum is not checked. count: the number of
    blocks; max_block: the largest block allowed, in bytes; most: the most bytes of output. Bytes after the end mark
    are ignored. The constructor raises CorruptBatchError where Kafka's Lz4BlockInputStream throws.
    """

    cdef Block held
    cdef kw_cursor cursor
    cdef kw_lz4_frame frame
    cdef readonly int64_t count, max_block, most

    def __cinit__(self, data, int magic):
        cdef kw_container_status status
        cdef kw_lz4_block block
        cdef kw_cursor first
        self.held = pin(data)
        kw_cursor_set(&self.cursor, self.held.data, self.held.size)
        status = kw_lz4_open(&self.cursor, magic == 0, &self.frame)
        first = self.cursor
        self.count = self.most = 0
        self.max_block = self.frame.max_block
        while status == KW_CONTAINER_OK:
            status = kw_lz4_next(&self.cursor, &self.frame, &block)
            if status == KW_CONTAINER_OK:
                self.count += 1
                self.most += block.size if block.stored else min(self.max_block, <int64_t> block.size * 255)
        if status != KW_CONTAINER_END:
            refuse("lz4", status)
        self.cursor = first

    def __iter__(self):
        return self

    def __next__(self):
        cdef kw_lz4_block block
        if kw_lz4_next(&self.cursor, &self.frame, &block) != KW_CONTAINER_OK:
            raise StopIteration
        cdef int64_t start = block.start - self.held.data
        return start, start + block.size, block.stored


@cython.final
@cython.no_gc
cdef class ZstdFrames:
    """An iterator over zstd frames except skippable ones: (start, stop, least, most, cut).

    least, most: bytes of output. cut: the last frame is truncated, and ZstdInputStream would take that for the end, as
    another frame ended in the same read of its source. Raises CorruptBatchError where ZstdInputStream throws.
    """

    cdef Block held
    cdef kw_cursor cursor

    def __cinit__(self, data):
        self.held = pin(data)
        kw_cursor_set(&self.cursor, self.held.data, self.held.size)

    def __iter__(self):
        return self

    def __next__(self):
        cdef kw_zstd_frame frame
        cdef kw_container_status status
        cdef int64_t start, size = self.held.size
        while True:
            start = self.cursor.at - self.held.data
            status = kw_zstd_next(&self.cursor, &frame)
            if status == KW_CONTAINER_OK:
                if not frame.skippable:
                    return start, self.cursor.at - self.held.data, frame.least, frame.most, False
            elif status == KW_CONTAINER_END:
                raise StopIteration
            elif status == KW_CONTAINER_SHORT and start > (size - 1) // ZSTD_SOURCE * ZSTD_SOURCE:
                self.cursor.at = self.cursor.end
                if frame.most == 0:
                    raise StopIteration
                return start, size, 0, frame.most, True
            else:
                refuse("zstd", status)


cdef object too_large(int64_t limit, int64_t needed):
    return LimitError("snappy: the batch decompresses to more than the limit", limit=limit, needed=needed)


@cython.final
@cython.no_gc
cdef class SnappyBlocks:
    """An iterator over the blocks of a snappy stream, in xerial's framing or one raw block: (start, stop, size).

    data: a buffer; limit: the most bytes of output. count: the number of blocks, -1 for one raw block without framing,
    which is all of data; total: bytes of output. The constructor raises CorruptBatchError where snappy-java's
    SnappyInputStream throws and for a declared size that the input cannot produce, LimitError if total exceeds limit.
    """

    cdef Block held
    cdef kw_cursor cursor
    cdef int64_t given
    cdef readonly int64_t count, total

    def __cinit__(self, data, int64_t limit):
        cdef kw_container_status status
        cdef const uint8_t *block
        cdef uint32_t size, declared
        cdef kw_cursor first
        self.held = pin(data)
        self.count = self.total = self.given = 0
        kw_cursor_set(&self.cursor, self.held.data, self.held.size)
        if not kw_xerial_is(self.held.data, self.held.size):
            status = kw_snappy_declared(self.held.data, self.held.size, &declared)
            self.count, self.total = -1, declared
            if self.total > limit:
                raise too_large(limit, self.total)
            if status != KW_CONTAINER_OK:
                refuse("snappy", status)
            return
        self.cursor.at += 16
        first = self.cursor
        status = kw_xerial_next(&self.cursor, self.given, &block, &size, &declared)
        while status == KW_CONTAINER_OK or status == KW_CONTAINER_DECLARED:
            self.count += 1
            self.total += declared
            self.given = self.total
            if self.total > limit:
                raise too_large(limit, self.total)
            if status != KW_CONTAINER_OK:
                refuse("snappy", status)
            status = kw_xerial_next(&self.cursor, self.given, &block, &size, &declared)
        if status != KW_CONTAINER_END:
            refuse("snappy", status)
        self.cursor = first
        self.given = 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef const uint8_t *block
        cdef uint32_t size, declared
        if self.count < 0:
            raise StopIteration
        if kw_xerial_next(&self.cursor, self.given, &block, &size, &declared) != KW_CONTAINER_OK:
            raise StopIteration
        cdef int64_t start = block - self.held.data
        self.given += declared
        return start, start + size, declared


def snappy_shortened(data):
    """A raw snappy block that ends in a literal with a needlessly long length, with a short one; None for any other.

    The library takes four bytes after such a tag for granted, and refuses the block; snappy-java reads it.
    """
    cdef Block held = pin(data)
    cdef size_t extra = 0, size = held.size
    cdef size_t at = kw_snappy_long_end(held.data, size, &extra)
    if at == size:
        return None
    literal = held.data[at + 1 + extra:size]
    return held.data[:at] + bytes(((len(literal) - 1) << 2,)) + literal


@cython.final
@cython.no_gc
cdef class Room:
    """An output buffer for libraries that decompress into one: not cleared, and shortened without a copy.

    part(start, stop) is a writable view. take(size) returns the first size bytes, once; where a view is left, as one is
    where a profiler or debugger keeps the frames of the functions that wrote, a copy, as often as it is called.
    """

    cdef object content
    cdef Py_ssize_t size, views

    def __cinit__(self, Py_ssize_t size):
        if size < 0:
            raise ValueError("negative size")
        self.content = PyBytes_FromStringAndSize(NULL, size)
        self.size = size

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        if self.content is None:
            raise BufferError("the bytes were already taken")
        fill_buffer(buffer, self, PyBytes_AS_STRING(self.content), self.size, 0, flags)
        self.views += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.views -= 1

    def part(self, Py_ssize_t start, Py_ssize_t stop):
        if self.content is None or start < 0 or stop < start or stop > self.size:
            raise ValueError("outside the buffer")
        return memoryview(self)[start:stop]

    def take(self, Py_ssize_t size):
        if self.content is None or size < 0 or size > self.size:
            raise ValueError("outside the buffer")
        if self.views:
            return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self.content), size)
        cdef PyObject *content = <PyObject *> self.content
        if size < self.size:
            Py_INCREF(self.content)
            self.content = None  # _PyBytes_Resize needs the only reference
            _PyBytes_Resize(&content, size)
            whole = <object> content
            Py_DECREF(whole)
            return whole
        whole, self.content = self.content, None
        return whole


def xxh32(data):
    """XXH32 with seed 0, the checksum in lz4's frames."""
    cdef Block held = pin(data)
    return kw_xxh32(held.data, held.size)
