"""Records of many batches as Arrow columns: chunks of buffers, and the tables made of them."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kwire_c.arrow cimport make_node
from kwire_c.batch cimport kw_batch, kw_batch_status, kw_record
from kwire_c.sealed cimport seal

from kwire_c.arrow import export_array, export_schema, export_stream

# name -> (its number in columns.h, Arrow format, struct format of the buffer protocol)
FIELDS = {
    "offset": (KW_COL_OFFSET, b"l", "q"),
    "timestamp": (KW_COL_TIMESTAMP, b"tsm:UTC", "q"),
    "timestamp_type": (KW_COL_TIMESTAMP_TYPE, b"c", "b"),
    "key": (KW_COL_KEY, b"z", None),
    "value": (KW_COL_VALUE, b"z", None),
    "headers": (KW_COL_HEADERS, b"+l", None),
    "sequence": (KW_COL_SEQUENCE, b"i", "i"),
    "producer_id": (KW_COL_PRODUCER_ID, b"l", "q"),
    "producer_epoch": (KW_COL_PRODUCER_EPOCH, b"s", "h"),
    "partition_leader_epoch": (KW_COL_LEADER_EPOCH, b"i", "i"),
    "batch_position": (KW_COL_BATCH_POSITION, b"l", "q"),
    "source": (KW_COL_SOURCE, b"i", "i"),
    "codec": (KW_COL_CODEC, b"c", "b"),
    "is_control": (KW_COL_IS_CONTROL, b"b", "?"),
}
_CODEC_NAMES = b"nonegzipsnappylz4zstd"
cdef int32_t _CODEC_SPANS[6]
_CODEC_SPANS[:] = [0, 4, 8, 14, 17, 21]
cdef int64_t _EMPTY[2]  # offsets of an array without rows
_EMPTY[:] = [0, 0]


cdef Node _codec_names():
    cdef const void *buffers[3]
    buffers[0] = NULL
    buffers[1] = _CODEC_SPANS
    buffers[2] = PyBytes_AS_STRING(_CODEC_NAMES)
    cdef Node node = make_node("", b"u", 5, 0, _CODEC_NAMES)
    node.set_buffers(buffers, 3)
    return node


cdef uint32_t window_apply(const kw_window *window, const kw_batch *batch, kw_record *records,
                           uint32_t count) noexcept nogil:
    return kw_window_apply(window, batch, records, count)


cdef kw_append_status columns_append(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                     uint32_t count, const kw_place *place) noexcept nogil:
    return kw_columns_append(columns, batch, records, count, place)


cdef kw_append_status columns_append_batch(kw_columns *columns, const kw_batch *batch, const kw_place *place,
                                           uint32_t at, const kw_window *window, kw_checksum *crc32c,
                                           kw_batch_status *status, uint32_t *where) noexcept nogil:
    return kw_columns_append_batch(columns, batch, place, at, window, crc32c, status, where)


cdef kw_run_status columns_run(kw_columns *columns, kw_run *run) noexcept nogil:
    return kw_columns_run(columns, run)


cdef int buffer_grow(kw_buffer *buffer, size_t need, size_t wish) noexcept nogil:
    return kw_buffer_grow(buffer, need, wish)


cdef void buffer_free(kw_buffer *buffer) noexcept nogil:
    kw_buffer_free(buffer)


cdef class Chunk:
    """Buffers of as many rows as 32-bit offsets can address."""

    def __cinit__(self, fields, bint views, int64_t max_bytes):
        self.kept = []
        self.view_buffers = []
        for name in fields:
            self.c.fields |= 1u << FIELDS[name][0]
        self.c.views = views
        self.c.max_bytes = max_bytes

    def __dealloc__(self):
        kw_columns_free(&self.c)

    cdef int32_t add_views(self, object block, const uint8_t *data, Py_ssize_t size) except -1:
        """Make block a buffer of views; its index. Every 2^30 bytes another, as offsets are 32-bit."""
        cdef int32_t index = <int32_t> len(self.view_buffers)
        cdef Py_ssize_t at = 0
        self.kept.append(block)
        while True:
            self.view_buffers.append((<uintptr_t> (data + at), size - at))
            at += 1 << 30
            if at >= size:
                return index

    cdef Node binary(self, str name, kw_binary *binary, int64_t rows, bytes format):
        """The node of a binary (or text) column."""
        cdef const void **buffers
        cdef Py_ssize_t extra = len(self.view_buffers) if format == b"vz" else 0, i
        cdef bytes sizes = _sizes([size for _, size in self.view_buffers]) if extra else _sizes([])
        cdef Node node = make_node(name, format, rows, binary.nulls, (self, sizes))
        buffers = <const void **> malloc((4 + extra) * sizeof(void *))
        if buffers == NULL:
            raise MemoryError
        try:
            buffers[0] = binary.validity.data if binary.nulls else NULL
            buffers[1] = binary.spans.data if rows else <uint8_t *> _EMPTY
            buffers[2] = binary.data.data if binary.data.data != NULL else <uint8_t *> _EMPTY
            if format == b"vz":
                for i in range(extra):
                    buffers[2 + i] = <const void *> <uintptr_t> self.view_buffers[i][0]
                buffers[2 + extra] = <const void *> PyBytes_AS_STRING(sizes)
                node.set_buffers(buffers, 3 + extra)
            else:
                node.set_buffers(buffers, 3)
        finally:
            free(buffers)
        return node

    def node(self, str name):
        """The Arrow array of one column."""
        cdef const void *buffers[2]
        cdef Node node, key, value, item
        number, format, _ = FIELDS[name]
        buffers[0] = NULL
        if number == KW_COL_KEY:
            return self.binary(name, &self.c.key, self.c.rows, b"vz" if self.c.views else b"z")
        if number == KW_COL_VALUE:
            return self.binary(name, &self.c.value, self.c.rows, b"vz" if self.c.views else b"z")
        if number == KW_COL_HEADERS:
            key = self.binary("key", &self.c.header_key, self.c.header_rows, b"u")
            value = self.binary("value", &self.c.header_value, self.c.header_rows, b"z")
            item = make_node("item", b"+s", self.c.header_rows, 0, self, [key, value])
            item.set_buffers(buffers, 1)
            node = make_node(name, format, self.c.rows, 0, self, [item])
            buffers[1] = self.c.header_lists.data if self.c.rows else <uint8_t *> _EMPTY
            node.set_buffers(buffers, 2)
            return node
        buffers[1] = self.c.fixed[<int> number].data
        owner = self
        if number == KW_COL_IS_CONTROL:
            owner = self.control_bits()
            buffers[1] = PyBytes_AS_STRING(owner)
        node = make_node(name, format, self.c.rows, 0, owner, None,
                         _codec_names() if number == KW_COL_CODEC else None)
        node.set_buffers(buffers, 2)
        return node

    cdef bytes control_bits(self):
        """is_control as a bitmap."""
        cdef int64_t i
        cdef bytes made = PyBytes_FromStringAndSize(NULL, self.c.rows // 8 + 1)
        cdef uint8_t *bits = <uint8_t *> PyBytes_AS_STRING(made)
        cdef const uint8_t *column = self.c.fixed[<int> KW_COL_IS_CONTROL].data
        memset(bits, 0, self.c.rows // 8 + 1)
        for i in range(self.c.rows):
            bits[i >> 3] |= column[i] << (i & 7)
        return made

    def values(self, str name):
        """The Python values of a key, value or headers column."""
        cdef int number = FIELDS[name][0]
        cdef int64_t i, row
        cdef const int32_t *lists
        if number == KW_COL_KEY:
            return [self.item(&self.c.key, i, self.c.views) for i in range(self.c.rows)]
        if number == KW_COL_VALUE:
            return [self.item(&self.c.value, i, self.c.views) for i in range(self.c.rows)]
        found = []
        lists = <const int32_t *> self.c.header_lists.data
        for i in range(self.c.rows):
            found.append(tuple([
                (self.item(&self.c.header_key, row, False).decode(), self.item(&self.c.header_value, row, False))
                for row in range(lists[i], lists[i + 1])
            ]))
        return found

    cdef object item(self, kw_binary *binary, int64_t row, bint view):
        cdef const int32_t *span
        cdef const char *data
        if binary.nulls and not binary.validity.data[row >> 3] >> (row & 7) & 1:
            return None
        if not view:
            span = <const int32_t *> binary.spans.data + row
            return PyBytes_FromStringAndSize(<const char *> binary.data.data + span[0], span[1] - span[0])
        span = <const int32_t *> binary.spans.data + 4 * row
        data = <const char *> (span + 1)
        if span[0] > 12:
            data = <const char *> <uintptr_t> self.view_buffers[span[2]][0] + span[3]
        return PyBytes_FromStringAndSize(data, span[0])


cdef bytes _sizes(list sizes):
    """64-bit integers as bytes, at least one."""
    cdef bytes out = PyBytes_FromStringAndSize(NULL, 8 * (len(sizes) + 1))
    cdef Py_ssize_t i
    for i in range(len(sizes)):
        (<int64_t *> PyBytes_AS_STRING(out))[i] = sizes[i]
    return out


cdef class Column:
    """One column of RecordColumns: an Arrow array in one chunk or more.

    pyarrow.array(column), pyarrow.chunked_array(column) and polars.Series(column) take it as it is; fixed-width
    columns in one chunk also have the buffer protocol.
    """

    cdef readonly str name
    cdef list chunks
    cdef str struct_format
    cdef Py_ssize_t width
    cdef Py_ssize_t shape[2]  # of the buffer protocol: rows, bytes a row

    def __len__(self):
        cdef Chunk chunk
        cdef Py_ssize_t rows = 0
        for chunk in self.chunks:
            rows += chunk.c.rows
        return rows

    @property
    def null_count(self):
        """Rows that are null."""
        cdef Chunk chunk
        cdef Py_ssize_t nulls = 0
        for chunk in self.chunks:
            nulls += (<Node> chunk.node(self.name)).null_count
        return nulls

    def __arrow_c_schema__(self):
        return export_schema((<Chunk> self.chunks[0]).node(self.name))

    def __arrow_c_array__(self, requested_schema=None):
        if len(self.chunks) != 1:
            raise ValueError(f"column {self.name!r} has {len(self.chunks)} chunks: take its stream")
        return export_array((<Chunk> self.chunks[0]).node(self.name))

    def __arrow_c_stream__(self, requested_schema=None):
        cdef Chunk chunk
        nodes = [chunk.node(self.name) for chunk in self.chunks]
        return export_stream(nodes[0], nodes)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef Chunk chunk
        if self.struct_format is None or len(self.chunks) != 1:
            raise BufferError(f"column {self.name!r} is no single fixed-width buffer")
        chunk = self.chunks[0]
        self.shape[0] = chunk.c.rows
        self.shape[1] = self.width
        PyBuffer_FillInfo(buffer, self, <void *> (chunk.c.fixed[<int> FIELDS[self.name][0]].data if chunk.c.rows
                                                  else <uint8_t *> _EMPTY), chunk.c.rows * self.width, 1, flags)
        buffer.itemsize = self.width
        if buffer.format != NULL:
            buffer.format = self.format_text()
        if buffer.shape != NULL:
            buffer.shape = &self.shape[0]
        if buffer.strides != NULL:
            buffer.strides = &self.shape[1]

    cdef char *format_text(self):
        if self.struct_format == "q":
            return "q"
        if self.struct_format == "i":
            return "i"
        if self.struct_format == "h":
            return "h"
        if self.struct_format == "?":
            return "?"
        return "b"

    def to_numpy(self):
        """The column as a numpy array: zero copy (read-only) where it is fixed-width and in one chunk.

        timestamp is datetime64[ms] (UTC), is_control bool; key and value are objects (bytes or None), headers tuples,
        codec numbers 0 to 4.
        """
        import numpy

        cdef Chunk chunk
        if self.struct_format is None:
            listed = [value for chunk in self.chunks for value in chunk.values(self.name)]
            array = numpy.empty(len(listed), dtype=object)
            for i, value in enumerate(listed):
                array[i] = value
            return array
        parts = [numpy.asarray(column_of(self.name, [chunk])) for chunk in self.chunks]
        array = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
        return array.view("datetime64[ms]") if self.name == "timestamp" else array

    def __repr__(self):
        return f"<Column {self.name!r}: {len(self)} rows in {len(self.chunks)} chunks>"


cdef Column column_of(str name, list chunks):
    """A column of one chunk at least, all of which have it."""
    cdef Column column = Column.__new__(Column)
    column.name = name
    column.chunks = chunks
    column.struct_format = FIELDS[name][2]
    column.width = {"q": 8, "i": 4, "h": 2, "b": 1, "?": 1, None: 0}[column.struct_format]
    return column


cdef Py_ssize_t _bytes_of(const kw_binary *binary):
    return binary.spans.size + binary.data.size + binary.validity.size


cdef class RecordColumns:
    """Records as Arrow columns, in the order of the fields asked for.

    pyarrow.table(columns) and polars.DataFrame(columns) take it as it is (Arrow PyCapsule interface); len() is the
    number of rows, columns["value"] one Column. bad: list of BadBatch that gave no rows (errors="keep"); tail:
    (position, bytes left) of a partial last batch of the last input that has one, else None; stopped: where reading
    ended because it had decompressed enough, else None.
    """

    cdef readonly tuple names
    cdef readonly list bad
    cdef object known_tail
    cdef readonly object stopped
    cdef list chunks

    @property
    def tail(self):
        """(position, bytes left) of a partial last batch of the last input that has one, else None."""
        return self.known_tail

    @tail.setter
    def tail(self, value):  # a reader of files knows it better
        _before = self.known_tail  # a finalizer of it must not find it here
        self.known_tail = value

    def __len__(self):
        cdef Chunk chunk
        cdef Py_ssize_t rows = 0
        for chunk in self.chunks:
            rows += chunk.c.rows
        return rows

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(name)
        return column_of(name, self.chunks)

    def __contains__(self, name):
        return name in self.names

    def __iter__(self):
        return iter(self.names)

    @property
    def nbytes(self):
        """Bytes of the buffers, those that views point into included."""
        cdef Chunk chunk
        cdef int i
        cdef Py_ssize_t total = 0
        for chunk in self.chunks:
            for i in range(KW_COL_FIXED):
                total += chunk.c.fixed[i].size
            total += _bytes_of(&chunk.c.key) + _bytes_of(&chunk.c.value) + chunk.c.header_lists.size
            total += _bytes_of(&chunk.c.header_key) + _bytes_of(&chunk.c.header_value)
            for _, size in chunk.view_buffers:
                total += size
        return total

    cdef list nodes(self):
        cdef Chunk chunk
        cdef Node node
        cdef const void *buffers[1]
        buffers[0] = NULL
        found = []
        for chunk in self.chunks:
            node = make_node("", b"+s", chunk.c.rows, 0, chunk, [chunk.node(name) for name in self.names])
            node.set_buffers(buffers, 1)
            found.append(node)
        return found

    def __arrow_c_schema__(self):
        return export_schema(self.nodes()[0])

    def __arrow_c_stream__(self, requested_schema=None):
        nodes = self.nodes()
        return export_stream(nodes[0], nodes)

    def __repr__(self):
        return f"<RecordColumns {', '.join(self.names)}: {len(self)} rows in {len(self.chunks)} chunks>"


cdef object make_columns(tuple names, list chunks, list bad, object tail, object stopped):
    """RecordColumns of one chunk at least."""
    cdef RecordColumns made = RecordColumns.__new__(RecordColumns)
    made.names = names
    made.chunks = chunks
    made.bad = bad
    made.known_tail = tail
    made.stopped = stopped
    return made


seal(Column)
seal(RecordColumns)
