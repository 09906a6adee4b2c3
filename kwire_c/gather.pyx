"""Reading batches of many inputs into columns, and which transactions were aborted."""

from kwire_c.failure import KwireError, LimitError, MissingCodecError
from kwire_c.batches import BadBatch

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, SIZE_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

from kwire_c.batch cimport (
    KW_ATTR_CONTROL,
    KW_ATTR_TRANSACTIONAL,
    KW_BATCH_CRC,
    KW_BATCH_OK,
    KW_BATCH_TAIL,
    KW_HEADER_V2,
    kw_batch,
    kw_batch_read,
    kw_batch_status,
    kw_batch_trusted_size,
    kw_control_type,
    kw_heads,
    kw_record,
)
from kwire_c.block cimport Block, pin
from kwire_c.columns cimport (
    KW_APPEND_BAD,
    KW_APPEND_FULL,
    KW_APPEND_OK,
    KW_RUN_BAD,
    KW_RUN_END,
    KW_RUN_FULL,
    KW_RUN_SLOW,
    KW_RUN_TRANSACTION,
    Chunk,
    kw_append_status,
    columns_append,
    columns_append_batch,
    columns_run,
    make_columns,
    kw_place,
    kw_run,
    kw_run_status,
    kw_window,
    window_apply,
)
from kwire_c.crc32c cimport crc32c_update
from kwire_c.heads cimport check_heads, checksum_holds, corrupt, partial_batch, read_heads, unpack
from kwire_c.integers cimport clipped


cdef class Markers:
    """Which transactions in some inputs, read in order, were aborted, by the markers in them (KIP-98)."""

    cdef dict of_producer  # producer id -> list of (source, position, aborted), in order
    cdef dict next_of

    def __cinit__(self, list blocks not None, bint verify_crc, Py_ssize_t limit):
        cdef int32_t source
        self.of_producer = {}
        self.next_of = {}
        for source in range(len(blocks)):
            self.scan(blocks[source], source, verify_crc, limit)

    cdef int scan(self, Block block, int32_t source, bint verify_crc, Py_ssize_t limit) except -1:
        cdef kw_batch head
        cdef kw_batch_status status
        cdef kw_record marker
        cdef kw_heads heads
        cdef Py_ssize_t at = 0, size
        cdef Block payload
        cdef const uint8_t *data
        while at < block.size:
            data = block.data + at
            status = kw_batch_read(data, block.size - at, &head)
            if status == KW_BATCH_TAIL:
                break
            size = head.size
            if status != KW_BATCH_OK:
                size = kw_batch_trusted_size(data, block.size - at)
                if not size:
                    break
            elif head.magic == 2 and head.attributes & KW_ATTR_CONTROL and head.attributes & KW_ATTR_TRANSACTIONAL:
                try:
                    payload = unpack(block, data, &head, limit, at) if head.codec else None
                    if not verify_crc or checksum_holds(data, &head):
                        check_heads(&heads, data, &head, payload, &marker, 1, at)
                        kind = kw_control_type(heads.block, &marker) if heads.left else -1
                        if kind == 0 or kind == 1:
                            self.of_producer.setdefault(head.producer_id, []).append((source, at, kind == 0))
                except KwireError:
                    pass  # the pass over all batches reports it
            at += size
        return 0

    def keep(self, producer_id, base_offset, source, position):
        """Is this batch's transaction committed, as far as the data says? Call in order of the data."""
        marks = self.of_producer.get(producer_id, ())
        at = self.next_of.get(producer_id, 0)
        while at < len(marks) and marks[at][:2] < (source, position):
            at += 1
        self.next_of[producer_id] = at
        return at == len(marks) or not marks[at][2]


cdef class Gatherer:
    """One reading of inputs into chunks of columns."""

    cdef list chunks, bad, blocks
    cdef object fields, decide, tail
    cdef bint views, verify_crc, keep, strict_tail, control
    cdef Py_ssize_t limit
    cdef int64_t max_bytes, budget, unpacked
    cdef uint64_t left_bytes  # of the inputs, when the chunk is begun
    cdef kw_window window
    cdef bint windowed
    cdef kw_run run
    cdef kw_record *records  # of entries of magic 0 and 1
    cdef Py_ssize_t room
    cdef Chunk chunk
    cdef Block block

    def __dealloc__(self):
        free(self.records)

    cdef int begin_chunk(self) except -1:
        self.chunk = Chunk(self.fields, self.views, self.max_bytes)
        self.chunk.c.input_bytes = self.left_bytes
        self.chunks.append(self.chunk)
        if self.views and self.block is not None:
            self.run.view_buffer = self.chunk.add_views(self.block, self.block.data, self.block.size)
        return 0

    cdef int read_one(self, Block block, int32_t source, int32_t number, int64_t origin) except -1:
        """All batches of one input, whose number an error tells."""
        try:
            return self.read(block, source, number, origin)
        except KwireError as error:
            error.source = number
            raise

    cdef int read(self, Block block, int32_t source, int32_t number, int64_t origin) except -1:
        """All batches of one input."""
        cdef kw_run_status status
        cdef kw_run *run = &self.run
        self.block = block
        run.data = block.data
        run.size = block.size
        run.verify_crc = self.verify_crc
        run.control = self.control
        run.ask = self.decide is not None
        run.window = &self.window if self.windowed else NULL
        run.source = number
        run.origin = origin
        run.crc32c = crc32c_update
        run.at = 0
        run.keep_at = SIZE_MAX
        if self.views:
            run.view_buffer = self.chunk.add_views(block, block.data, block.size)
        while True:
            with nogil:
                status = columns_run(&self.chunk.c, run)
            if status == KW_RUN_END:
                if run.status == KW_BATCH_TAIL:
                    self.partial()
                return 0
            elif status == KW_RUN_BAD:
                self.spoil(corrupt(run.status, run.origin + run.at, &run.batch, run.where or None),
                           self.verify_crc and run.status > KW_BATCH_CRC)
            elif status == KW_RUN_TRANSACTION:
                if self.decide(run.batch.producer_id, run.batch.base_offset, source, run.at):
                    run.keep_at = run.at
                else:
                    run.at += run.batch.size
            elif status == KW_RUN_SLOW:
                try:
                    self.slow()
                    run.at += run.batch.size
                    if self.unpacked > self.budget:
                        return 0
                except MissingCodecError:
                    raise
                except KwireError as error:
                    self.spoil(error, self.verify_crc and run.status != KW_BATCH_CRC)
            elif status == KW_RUN_FULL:
                self.next_chunk()
            else:
                raise MemoryError

    cdef int next_chunk(self) except -1:
        if self.chunk.c.rows == 0:
            raise LimitError("one batch fills more than an Arrow chunk", limit=self.max_bytes,
                             offset=self.run.origin + self.run.at)
        self.left_bytes -= min(self.left_bytes, self.chunk.c.seen_bytes)
        return self.begin_chunk()

    cdef int slow(self) except -1:
        """A compressed batch, or an entry of magic 0 or 1."""
        cdef kw_run *run = &self.run
        cdef const uint8_t *data = run.data + run.at
        cdef Block payload = None
        cdef Py_ssize_t count = 0
        cdef kw_place place
        cdef kw_append_status status
        if run.batch.magic < 2:
            if self.verify_crc and not checksum_holds(data, &run.batch):
                run.status = KW_BATCH_CRC
                raise corrupt(KW_BATCH_CRC, run.origin + run.at, &run.batch)
            if self.windowed and run.batch.last_offset < self.window.offset_from:
                return 0
        if run.batch.codec and run.batch.count != 0:
            payload = unpack(self.block, data, &run.batch, self.limit, run.origin + run.at)
            self.unpacked += payload.size
        if run.batch.magic < 2:
            count = read_heads(data, &run.batch, payload, &self.records, &self.room, run.origin + run.at)
            if self.windowed:
                count = window_apply(&self.window, &run.batch, self.records, <uint32_t> count)
        place.position = run.origin + run.at
        place.source = run.source
        while True:
            if payload is None:
                place.block = data
                place.block_size = run.batch.size
                place.view_buffer = run.view_buffer
                place.view_at = run.at
            else:
                place.block = payload.data
                place.block_size = <uint32_t> payload.size
                place.view_at = 0
                if self.views:
                    place.view_buffer = self.chunk.add_views(payload, payload.data, payload.size)
            with nogil:
                if run.batch.magic < 2:
                    status = columns_append(&self.chunk.c, &run.batch, self.records, <uint32_t> count, &place)
                else:
                    status = columns_append_batch(
                        &self.chunk.c, &run.batch, &place, 0 if place.block != data else KW_HEADER_V2, run.window, NULL,
                        &run.status, &run.where)
            if status == KW_APPEND_OK:
                return 0
            if status == KW_APPEND_FULL:
                self.next_chunk()
            elif status == KW_APPEND_BAD:
                raise corrupt(run.status, run.origin + run.at, &run.batch, run.where)
            else:
                raise MemoryError

    cdef int partial(self) except -1:
        cdef kw_run *run = &self.run
        cdef Py_ssize_t left = run.size - run.at
        self.tail = (<Py_ssize_t> (run.origin + run.at), left)
        if self.strict_tail:
            error = partial_batch(run.data + run.at, left, run.origin + run.at)
            if not self.keep:
                raise error
            self.bad.append(BadBatch(
                <Py_ssize_t> (run.origin + run.at), PyBytes_FromStringAndSize(<const char *> run.data + run.at, left),
                error, run.source))
        return 0

    cdef int spoil(self, object error, bint sound_length) except -1:
        """Raise, or keep the bad bytes and go on behind them where their length can be trusted."""
        cdef kw_run *run = &self.run
        cdef const uint8_t *data = run.data + run.at
        cdef Py_ssize_t left = run.size - run.at, size
        if not self.keep:
            raise error
        error.__traceback__ = None  # there may be as many as entries of 26 bytes
        size = run.batch.size if sound_length else kw_batch_trusted_size(data, left) or left
        self.bad.append(BadBatch(<Py_ssize_t> (run.origin + run.at),
                                 PyBytes_FromStringAndSize(<const char *> data, size), error, run.source))
        run.at += size
        return 0


def gather(inputs, tuple fields, *, committed=False, control=False, views=False, verify_crc=True, errors="raise",
           max_batch_bytes, strict_tail=False, decide=None, offsets=None, timestamps=None, places=None,
           int64_t chunk_bytes=INT32_MAX - 64, int64_t budget=INT64_MAX, total=None):
    """Read inputs (a list of buffers) into RecordColumns; see kwire.columns.

    decide(producer id, base offset, source, position) -> keep?: asked of every batch of a transaction, in order,
    in place of the markers in the data; offsets, timestamps: (from, to) that records must lie in, the end exclusive,
    None for open; places: for each input its number (the column source) and the position of its first byte, which
    batch_position, .bad and errors report. An error has .source, the number of its input. budget: reading ends behind
    the batch with which more bytes than that were decompressed; the .stopped of what is returned is its end. total:
    inputs is an iterator of (buffer, number, position of its first byte), of about so many bytes in all, each of which
    goes when it is read; decide is given the number then.
    """
    cdef Gatherer gatherer = Gatherer.__new__(Gatherer)
    cdef Py_ssize_t source
    if errors not in ("raise", "keep"):
        raise ValueError(f"errors is 'raise' or 'keep', not {errors!r}")
    gatherer.chunks = []
    gatherer.bad = []
    gatherer.fields = fields
    gatherer.views = views
    gatherer.verify_crc = verify_crc
    gatherer.keep = errors == "keep"
    gatherer.strict_tail = strict_tail
    gatherer.control = control
    gatherer.limit = clipped(max_batch_bytes)
    gatherer.max_bytes = chunk_bytes
    gatherer.windowed = offsets is not None or timestamps is not None
    low, high = offsets or (None, None)
    gatherer.window.offset_from = INT64_MIN if low is None else clipped(low)
    gatherer.window.offset_to = INT64_MAX if high is None else clipped(high)
    low, high = timestamps or (None, None)
    gatherer.window.time_from = INT64_MIN if low is None else clipped(low)
    gatherer.window.time_to = INT64_MAX if high is None else clipped(high)
    blocks = []
    if total is None:
        blocks = [pin(data) for data in inputs]
        for block in blocks:
            gatherer.left_bytes += (<Block> block).size
    else:
        gatherer.left_bytes = max(0, clipped(total))
    if decide is not None:
        gatherer.decide = decide
    elif committed:
        gatherer.decide = Markers(blocks, verify_crc, gatherer.limit).keep
    gatherer.budget = budget
    gatherer.begin_chunk()
    stopped = None
    if total is not None:
        for data, number, origin in inputs:
            gatherer.read_one(pin(data), number, number, origin)
            del data
            gatherer.block = None
            if gatherer.unpacked > budget:
                stopped = origin + <Py_ssize_t> gatherer.run.at
                break
    for source in range(len(blocks)):
        number, origin = places[source] if places is not None else (source, 0)
        gatherer.read_one(blocks[source], <int32_t> source, number, origin)
        if gatherer.unpacked > budget:
            stopped = origin + <Py_ssize_t> gatherer.run.at
            break
    return make_columns(fields, gatherer.chunks, gatherer.bad, gatherer.tail, stopped)
