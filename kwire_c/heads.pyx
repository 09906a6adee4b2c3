"""A batch opened: its checksum, its payload decompressed, its records checked."""

import zlib

from kwire_c.errors import CorruptBatchError, LimitError

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT32_MAX, uint8_t, uint32_t
from libc.stdlib cimport realloc

from kwire_c.batch cimport (
    KW_BATCH_CODEC,
    KW_BATCH_LEGACY_CODEC,
    KW_BATCH_OK,
    KW_BATCH_TAIL,
    KW_BATCH_WRAPPER_NULL,
    kw_batch,
    kw_batch_count,
    kw_batch_read,
    kw_batch_reason,
    kw_batch_status,
    kw_heads,
    kw_heads_check,
    kw_heads_next,
    kw_legacy_entry,
    kw_record,
)
from kwire_c.block cimport Block, pin
from kwire_c.crc32c cimport crc32c_update

cdef object _decompress = None


def set_decompressor(function):
    """Install decompress(codec id, data, *, limit, magic) -> buffer: kwire.codec hands it down."""
    global _decompress
    _decompress = function


cdef object corrupt(kw_batch_status status, Py_ssize_t position, const kw_batch *head, object where=None):
    reason = kw_batch_reason(status).decode()
    if where is not None:
        reason = f"{reason}, at byte {where} of the {'records' if head.codec else 'batch'}"
    return CorruptBatchError(reason, position=position, offset=head.base_offset if head != NULL else -1)


cdef object partial_batch(const uint8_t *data, Py_ssize_t left, Py_ssize_t position):
    """The error of an input that ends inside its last batch, of which left bytes are there."""
    cdef kw_batch head
    head.size = 0
    head.base_offset = -1
    kw_batch_read(data, left, &head)
    reason = kw_batch_reason(KW_BATCH_TAIL).decode()
    return CorruptBatchError(f"{reason}: {left} bytes left, {head.size or 'more'} needed",
                             position=position, offset=head.base_offset)


cdef bint checksum_holds(const uint8_t *data, const kw_batch *head):
    """Is the stored checksum that of the bytes? CRC-32C from the attributes on, CRC-32 from the magic on before v2."""
    if head.magic == 2:
        return crc32c_update(0, data + 21, head.size - 21) == head.crc
    return zlib.crc32(PyMemoryView_FromMemory(<char *> data + 16, head.size - 16, PyBUF_READ)) == head.crc


cdef Block unpack(Block block, const uint8_t *data, const kw_batch *head, Py_ssize_t limit, Py_ssize_t position):
    """The decompressed payload of the compressed batch at data, which is in block: at most limit bytes."""
    cdef kw_record wrapper
    cdef kw_batch_status status
    cdef const uint8_t *start = data + head.payload
    cdef Py_ssize_t at, size = <Py_ssize_t> head.size - head.payload
    limit = min(limit, INT32_MAX)  # positions in a block are of 32 bits, as in Kafka
    if head.codec > 4:
        raise corrupt(KW_BATCH_CODEC, position, head)
    if head.magic < 2:
        if head.codec == 4:
            raise corrupt(KW_BATCH_LEGACY_CODEC, position, head)
        status = kw_legacy_entry(data, head.size, &wrapper)
        if status != KW_BATCH_OK:
            raise corrupt(status, position, head)
        if wrapper.value_size < 0:
            raise corrupt(KW_BATCH_WRAPPER_NULL, position, head)
        start = data + wrapper.value_at
        size = wrapper.value_size
    at = start - block.data
    try:
        return pin(_decompress(head.codec, memoryview(block)[at:at + size], limit=limit, magic=head.magic))
    except CorruptBatchError as error:
        raise CorruptBatchError(error.reason, position=position, offset=head.base_offset) from None
    except LimitError as error:
        raise LimitError(error.reason, limit=error.limit, needed=error.needed, offset=position) from None


cdef int check_heads(kw_heads *heads, const uint8_t *data, const kw_batch *head, Block payload, kw_record *first,
                     uint32_t room, Py_ssize_t position) except -1:
    """Check every record of a batch. heads: then at the first of them; the first room heads stand in first.

    data: the batch; payload: what a compressed one unpacked to; position: of the batch, for errors.
    """
    cdef kw_batch_status status
    heads.batch = head
    if payload is None:
        heads.block = data
        heads.at = head.payload
        heads.size = head.size
    else:
        heads.block = payload.data
        heads.at = 0
        heads.size = <uint32_t> payload.size
    if head.magic == 2:
        status = kw_batch_count(head, heads.size - heads.at)
        if status != KW_BATCH_OK:
            raise corrupt(status, position, head)
    with nogil:
        status = kw_heads_check(heads, first, room)
    if status != KW_BATCH_OK:
        raise corrupt(status, position, head, heads.at)
    return 0


cdef Py_ssize_t read_heads(const uint8_t *data, const kw_batch *head, Block payload, kw_record **records,
                           Py_ssize_t *room, Py_ssize_t position) except -1:
    """The heads of all records at once into records (grown as needed); returns how many."""
    cdef kw_heads heads
    cdef kw_batch_status status
    cdef uint32_t count = 0
    cdef void *grown
    check_heads(&heads, data, head, payload, NULL, 0, position)
    if heads.left > room[0]:
        grown = realloc(records[0], heads.left * sizeof(kw_record))
        if grown == NULL:
            raise MemoryError
        records[0] = <kw_record *> grown
        room[0] = heads.left
    with nogil:
        status = kw_heads_next(&heads, records[0], heads.left, &count)
    if status != KW_BATCH_OK:
        raise corrupt(status, position, head, heads.at)
    return count
