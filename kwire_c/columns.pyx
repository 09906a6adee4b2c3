"""Records and messages as Arrow columns: the buffers, the readers that fill them, and the tables made from them."""

import sys
from datetime import datetime, timedelta, timezone
from operator import attrgetter
from struct import calcsize
from struct import unpack as unpack_number

from kwire_c.arrow import export_array, export_schema, export_stream
from kwire_c.decode import decode
from kwire_c.errors import KwireError, LimitError, MissingCodecError
from kwire_c.record_batch import BadBatch
from kwire_c.tables import html_table, text_table, to_pandas, to_polars, to_pylist

from cpython.buffer cimport PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from libc.stdint cimport (
    INT32_MAX, INT64_MAX, INT64_MIN, SIZE_MAX, int32_t, int64_t, int8_t, uint32_t, uint64_t, uint8_t, uintptr_t,
)
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

cimport cython

from kwire_c.arrow cimport Node, make_node
from kwire_c.buffers cimport fill_buffer, take_buffer, take_view
from kwire_c.core cimport (
    KW_APPEND_BAD, KW_APPEND_FULL, KW_APPEND_OK, KW_ARRAY, KW_ARRAY_STRUCT, KW_ARRAY_UUID, KW_ATTR_CONTROL,
    KW_ATTR_TRANSACTIONAL, KW_BATCH_CRC, KW_BATCH_OK, KW_BATCH_TAIL, KW_BOOL, KW_BYTES, KW_BY_OBJECT,
    KW_COL_BATCH_POSITION, KW_COL_CODEC, KW_COL_FIXED, KW_COL_HEADERS, KW_COL_IS_CONTROL, KW_COL_KEY,
    KW_COL_LEADER_EPOCH, KW_COL_OFFSET, KW_COL_PRODUCER_EPOCH, KW_COL_PRODUCER_ID, KW_COL_SEQUENCE, KW_COL_SOURCE,
    KW_COL_TIMESTAMP, KW_COL_TIMESTAMP_TYPE, KW_COL_VALUE, KW_COMPACT, KW_DONE, KW_NO_MEMORY, KW_PLACE, KW_RECORDS,
    KW_RECORD_BATCH_OVERHEAD, KW_RUN, KW_RUN_BAD, KW_RUN_END, KW_RUN_FULL, KW_RUN_SLOW, KW_RUN_TRANSACTION, KW_SLOT,
    KW_STRING, KW_STRUCT, KW_TOO_LARGE, KW_TOO_WIDE, KW_UUID, kw_append_status, kw_batch, kw_batch_read,
    kw_batch_status, kw_batch_trusted_size, kw_binary, kw_buffer_free, kw_buffer_grow, kw_columns_append,
    kw_columns_append_batch, kw_columns_free, kw_columns_run, kw_control_type, kw_cursor, kw_cursor_set, kw_field,
    kw_heads, kw_op, kw_pick, kw_place, kw_plan, kw_record, kw_route, kw_route_walk, kw_run, kw_run_status, kw_sink,
    kw_sink_bytes, kw_sink_empty, kw_sink_fixed, kw_sink_free, kw_sink_list, kw_sink_null, kw_sink_repeat,
    kw_sink_start, kw_sink_struct, kw_step, kw_width, kw_window, kw_window_apply, seal,
)
from kwire_c.crc32c cimport crc32c_update
from kwire_c.integers cimport brief, clipped
from kwire_c.message_class cimport Span, fallback, take_uuid
from kwire_c.plan cimport Message, find
from kwire_c.record_batch cimport Block, check_heads, checksum_holds, corrupt, partial_batch, pin, read_heads, unpack

# name -> (its bit in columns.h, Arrow format, struct format of the buffer protocol)
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
cdef int64_t VIEW_BYTES = 1 << 30  # at which the next buffer of views begins, as in columns.c
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


cdef class PooledBytes:
    """Bytes in memory from the pool, to which it returns when freed: for readers of files in chunks."""

    def __getbuffer__(self, Py_buffer *view, int flags):
        fill_buffer(view, self, self.buffer.data + self.skipped, self.buffer.size - self.skipped, 1, flags)

    def __dealloc__(self):
        kw_buffer_free(&self.buffer)


cdef PooledBytes pooled_bytes(size_t room):
    """An empty PooledBytes with room for this many bytes."""
    cdef PooledBytes made = PooledBytes.__new__(PooledBytes)
    if room and not kw_buffer_grow(&made.buffer, room, room):
        raise MemoryError
    return made


seal(PooledBytes)


@cython.no_gc  # it holds no object that could refer to it, and what it points into must not go before it
cdef class Chunk:
    """The buffers of as many rows as 32-bit offsets can address."""

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
        """Register block as a buffer of views, split every 2^30 bytes as view offsets are 32-bit; return its index."""
        cdef int32_t index = <int32_t> len(self.view_buffers)
        cdef Py_ssize_t at = 0
        self.kept.append(block)
        while True:
            self.view_buffers.append((<uintptr_t> (data + at), size - at))
            at += VIEW_BYTES
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
        headers = []
        lists = <const int32_t *> self.c.header_lists.data
        for i in range(self.c.rows):
            headers.append(tuple([
                (self.item(&self.c.header_key, row, False).decode(), self.item(&self.c.header_value, row, False))
                for row in range(lists[i], lists[i + 1])
            ]))
        return headers

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


cdef int drop_views(Chunk chunk, int32_t index) except -1:
    """Undo add_views for the last block, of which no row was made: nothing would read it, and it may be large."""
    del chunk.view_buffers[index:]
    chunk.kept.pop()
    return 0


cdef bytes _sizes(list sizes):
    """64-bit integers as bytes, at least one."""
    cdef bytes out = PyBytes_FromStringAndSize(NULL, 8 * (len(sizes) + 1))
    cdef Py_ssize_t i
    for i in range(len(sizes)):
        (<int64_t *> PyBytes_AS_STRING(out))[i] = sizes[i]
    return out


# Arrow format of message columns -> struct format of the buffer protocol
cdef dict _STRUCT_FORMATS = {b"c": "b", b"s": "h", b"S": "H", b"i": "i", b"I": "I", b"l": "q", b"g": "d"}


@cython.no_gc  # as Chunk
cdef class Column:
    """One column of RecordColumns or MessageColumns: an Arrow array in one chunk or more.

    pyarrow.array(column), pyarrow.chunked_array(column) (from pyarrow 16 on), numpy.asarray(column) and the Series of
    polars and pandas accept it; a fixed-width column without nulls in one chunk also supports the buffer protocol.
    """

    cdef readonly str name
    cdef list chunks   # of records; None for a column of messages
    cdef list arrays   # its Nodes, one per chunk, from their first use on
    cdef bytes struct_format
    cdef Py_ssize_t width
    cdef Py_ssize_t shape[2]  # of the buffer protocol: rows, bytes per row

    cdef list nodes(self):
        cdef Chunk chunk
        if self.arrays is None:
            self.arrays = [chunk.node(self.name) for chunk in self.chunks]
        return self.arrays

    def __len__(self):
        cdef Chunk chunk
        cdef Node node
        cdef Py_ssize_t rows = 0
        if self.chunks is None:
            for node in self.arrays:
                rows += node.length
        else:
            for chunk in self.chunks:
                rows += chunk.c.rows
        return rows

    @property
    def null_count(self):
        """The number of null rows."""
        cdef Node node
        cdef Py_ssize_t nulls = 0
        for node in self.nodes():
            nulls += node.null_count
        return nulls

    def __arrow_c_schema__(self):
        return export_schema(self.nodes()[0])

    def __arrow_c_array__(self, requested_schema=None):
        nodes = self.nodes()
        if len(nodes) != 1:
            raise ValueError(f"column {self.name!r} has {len(nodes)} chunks: use __arrow_c_stream__")
        return export_array(nodes[0])

    def __arrow_c_stream__(self, requested_schema=None):
        nodes = self.nodes()
        return export_stream(nodes[0], nodes)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef Chunk chunk
        cdef Node node
        cdef const uint8_t *data
        if self.struct_format is None or len(self.arrays if self.chunks is None else self.chunks) != 1:
            raise BufferError(f"column {self.name!r} is not a single fixed-width buffer")
        if self.chunks is None:
            node = self.arrays[0]
            self.shape[0] = node.length
            data = <const uint8_t *> node.buffers[1] + node.offset * self.width
        else:
            chunk = self.chunks[0]
            self.shape[0] = chunk.c.rows
            data = chunk.c.fixed[<int> FIELDS[self.name][0]].data if chunk.c.rows else <uint8_t *> _EMPTY
        self.shape[1] = self.width
        fill_buffer(buffer, self, <void *> data, self.shape[0] * self.width, 1, flags)
        buffer.itemsize = self.width
        if buffer.format != NULL:
            buffer.format = PyBytes_AS_STRING(self.struct_format)
        if buffer.shape != NULL:
            buffer.shape = &self.shape[0]
        if buffer.strides != NULL:
            buffer.strides = &self.shape[1]

    cdef list values(self):
        """The Python values of a column that is not fixed-width or has nulls."""
        cdef Chunk chunk
        cdef Node node
        cdef int64_t row
        if self.chunks is not None:
            return [value for chunk in self.chunks for value in chunk.values(self.name)]
        return [node_value(node, row) for node in self.arrays for row in range(node.length)]

    def to_numpy(self):
        """The column as a numpy array, without a copy (read-only) if it is fixed-width, without nulls and in one chunk.

        Of records, timestamp is datetime64[ms] (UTC), is_control bool; key and value are objects (bytes or None),
        headers tuples, codec numbers 0 to 4. Of messages, other columns are objects: str, bytes, int, list, dict, None.
        """
        try:
            import numpy
        except ModuleNotFoundError as missing:
            raise ImportError("to_numpy needs numpy: pip install numpy") from missing

        if self.struct_format is None:
            listed = self.values()
            array = numpy.empty(len(listed), dtype=object)
            for i, value in enumerate(listed):
                array[i] = value
            return array
        if self.chunks is None:
            parts = [numpy.asarray(message_column(self.name, [node])) for node in self.arrays]
        else:
            parts = [numpy.asarray(record_column(self.name, [chunk])) for chunk in self.chunks]
        array = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
        return array.view("datetime64[ms]") if self.chunks is not None and self.name == "timestamp" else array

    def __array__(self, dtype=None, copy=None):
        """What numpy.asarray(column) gives where there is no buffer, as the buffer has it; else it were one object."""
        import numpy

        array = self.to_numpy()
        if self.struct_format is not None:
            array = array.view(self.struct_format.decode())
        if copy is None:  # as needed, which numpy.array of numpy 1 does not know
            return numpy.asarray(array, dtype=dtype)
        return numpy.array(array, dtype=dtype, copy=copy)

    def to_pylist(self):
        """The values as a list, as pyarrow's to_pylist gives them: bytes, str, int, aware datetime, dict, list, None.

        A timestamp that no datetime holds (years below 1 or above 9999) is its number of milliseconds.
        """
        return column_cells(self, 0, len(self), INT32_MAX)

    def __iter__(self):
        """The values of to_pylist. pandas.Series takes what is not iterable for one value."""
        return iter(self.to_pylist())

    def __repr__(self):
        return f"<Column {self.name!r}: {len(self)} rows in {len(self.nodes())} chunks>"


cdef Column new_column(str name, list chunks, list arrays, str struct_format):
    cdef Column column = Column.__new__(Column)
    column.name, column.chunks, column.arrays = name, chunks, arrays
    if struct_format is not None:
        column.struct_format = struct_format.encode()
        column.width = calcsize(struct_format)
    return column


cdef Column record_column(str name, list chunks):
    """A column of records, from at least one chunk."""
    return new_column(name, chunks, None, FIELDS[name][2])


def message_column(str name not None, list nodes not None):
    """A column of messages, from at least one Node, all of the same type."""
    cdef Node node
    if not nodes:
        raise ValueError("no arrays")
    cdef str struct_format = _STRUCT_FORMATS.get((<Node?> nodes[0]).format)
    for node in nodes:
        if node.null_count:
            struct_format = None
    return new_column(name, None, nodes, struct_format)


cdef object _EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


cdef object node_value(Node node, int64_t row, Py_ssize_t most=INT32_MAX):
    """One row of a column as a Python value, as pyarrow's to_pylist gives it; at most that many bytes or items of it.

    A timestamp that no datetime holds is its number of milliseconds.
    """
    cdef Node child
    cdef const uint8_t *valid = <const uint8_t *> node.buffers[0]
    cdef const uint8_t *data = <const uint8_t *> node.buffers[1] if node.n_buffers > 1 else NULL
    cdef const int32_t *ends = <const int32_t *> data
    row += node.offset
    if node.null_count and not valid[row >> 3] >> (row & 7) & 1:
        return None
    if node.dictionary is not None:
        return node_value(node.dictionary, (<const int8_t *> data)[row], most)
    if node.format == b"+s":
        return {child.name: node_value(child, row, most) for child in node.children}
    if node.format == b"+l":
        return [node_value(node.children[0], at, most)
                for at in range(ends[row], min(<int64_t> ends[row + 1], <int64_t> ends[row] + most))]
    if node.format == b"vz":
        return view_value(node, row, most)
    if node.format == b"tsm:UTC":
        try:
            return _EPOCH + timedelta(milliseconds=(<const int64_t *> data)[row])
        except OverflowError:
            return (<const int64_t *> data)[row]
    if node.format == b"b":
        return data[row >> 3] >> (row & 7) & 1 == 1
    if node.format == b"w:16":
        return (<const char *> data)[16 * row:16 * row + 16]
    if node.format in _STRUCT_FORMATS:
        struct_format = _STRUCT_FORMATS[node.format]
        width = calcsize(struct_format)
        return unpack_number(struct_format, (<const char *> data)[width * row:width * (row + 1)])[0]
    value = (<const char *> node.buffers[2])[ends[row]:min(<int64_t> ends[row + 1], <int64_t> ends[row] + most)]
    return value.decode(errors="ignore") if node.format == b"u" else value


cdef bytes view_value(Node node, int64_t row, Py_ssize_t most):
    """One row of a binary view: its bytes are in the view up to 12 of them, else in a buffer that the view names."""
    cdef const int32_t *view = <const int32_t *> node.buffers[1] + 4 * row
    cdef const char *data = <const char *> (view + 1)
    if view[0] > 12:
        data = <const char *> node.buffers[2 + view[2]] + view[3]
    return data[:min(view[0], most)]


def column_cells(Column column not None, int64_t first, int64_t last, Py_ssize_t most):
    """The values of rows first to last of a column; of a value at most that many bytes or items."""
    cdef Node node
    cdef int64_t start = 0, row
    cells = []
    for node in column.nodes():
        for row in range(max(first - start, 0), min(last - start, node.length)):
            cells.append(node_value(node, row, most))
        start += node.length
    return cells


cdef Py_ssize_t _bytes_of(const kw_binary *binary):
    return binary.spans.size + binary.data.size + binary.validity.size


cdef class RecordColumns:
    """Records as Arrow columns, in the order of the fields asked for.

    pyarrow.table(columns) and polars.DataFrame(columns) accept it (Arrow PyCapsule interface); len() is the number of
    rows, columns["value"] one Column. bad: the BadBatches that gave no rows (errors="keep"); tail: (position, bytes
    left) of the partial last batch of the last input that has one, else None; stopped: where reading ended because
    the budget of decompressed bytes was used up, else None.
    """

    @property
    def tail(self):
        """(position, bytes left) of the partial last batch of the last input that has one, else None."""
        return self.known_tail

    @tail.setter
    def tail(self, value):  # set by readers of files, which know the position in the file
        _before = self.known_tail  # dropped last: its finalizer must not see it here
        self.known_tail = value

    def __len__(self):
        cdef Chunk chunk
        cdef Py_ssize_t rows = 0
        for chunk in self.chunks:
            rows += chunk.c.rows
        return rows

    def __getitem__(self, name):
        known = str.__str__(name) if isinstance(name, str) else None  # a str of the caller's class may equal any
        if known not in self.names:
            raise KeyError(f"no column {brief(name)}: expected one of {', '.join(self.names)}")
        return record_column(known, self.chunks)

    def __contains__(self, name):
        return name in self.names

    def __iter__(self):
        return iter(self.names)

    @property
    def nbytes(self):
        """Bytes of the buffers, including those that views point into."""
        cdef Chunk chunk
        cdef int i
        cdef Py_ssize_t total = 0
        for chunk in self.chunks:
            for i in range(KW_COL_FIXED):
                total += chunk.c.fixed[i].size
            total += _bytes_of(&chunk.c.key) + _bytes_of(&chunk.c.value) + chunk.c.header_lists.size
            total += _bytes_of(&chunk.c.header_key) + _bytes_of(&chunk.c.header_value)
            for _, size in chunk.view_buffers:
                total += min(size, VIEW_BYTES)  # the rest is that of the buffers after it
        return total

    cdef list nodes(self):
        cdef Chunk chunk
        cdef Node node
        cdef const void *buffers[1]
        buffers[0] = NULL
        nodes = []
        for chunk in self.chunks:
            node = make_node("", b"+s", chunk.c.rows, 0, chunk, [chunk.node(name) for name in self.names])
            node.set_buffers(buffers, 1)
            nodes.append(node)
        return nodes

    def __arrow_c_schema__(self):
        return export_schema(self.nodes()[0])

    def __arrow_c_stream__(self, requested_schema=None):
        nodes = self.nodes()
        return export_stream(nodes[0], nodes)

    def to_pandas(self):
        """The columns as a pandas.DataFrame. Raises ImportError, which names what to install."""
        return to_pandas(self)

    def to_polars(self):
        """The columns as a polars.DataFrame. Raises ImportError, which names what to install."""
        return to_polars(self)

    def to_pylist(self):
        """The rows as a list of dicts {name: value}; the values are those of Column.to_pylist."""
        return to_pylist(self)

    def __repr__(self):
        return text_table(self, column_cells)

    def _repr_html_(self):
        """The first and last rows as an HTML table, for notebooks."""
        return html_table(self, column_cells)


cdef object make_columns(tuple names, list chunks, list bad, object tail, object stopped):
    """RecordColumns of at least one chunk."""
    cdef RecordColumns made = RecordColumns.__new__(RecordColumns)
    made.names = names
    made.chunks = chunks
    made.bad = bad
    made.known_tail = tail
    made.stopped = stopped
    return made


seal(Column)
seal(RecordColumns)


cdef class Markers:
    """Which transactions in the inputs were aborted, by the control markers in them, in order (KIP-98)."""

    cdef dict of_producer  # producer id -> list of (source, position, aborted), in order
    cdef dict next_of

    cdef list bad  # unreadable markers, as BadBatches; None: the first one is raised

    def __cinit__(self, list blocks not None, bint verify_crc, Py_ssize_t limit, list bad):
        cdef int32_t source
        self.of_producer = {}
        self.next_of = {}
        self.bad = bad
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
                    if not verify_crc or checksum_holds(data, &head):  # else it is reported when it is read
                        payload = unpack(block, data, &head, limit, at) if head.codec and head.count != 0 else None
                        check_heads(&heads, data, &head, payload, &marker, 1, at)
                        kind = kw_control_type(heads.block, &marker) if heads.left else -1
                        if kind == 0 or kind == 1:
                            self.of_producer.setdefault(head.producer_id, []).append((source, at, kind == 0))
                except KwireError as error:
                    error.source = source
                    if self.bad is None or isinstance(error, MissingCodecError):
                        raise
                    error.__traceback__ = None
                    self.bad.append(BadBatch(at, PyBytes_FromStringAndSize(<const char *> data, size), error, source))
            at += size
        return 0

    def keep(self, producer_id, base_offset, source, position):
        """Whether this batch is kept: its transaction is not aborted in the data. Call in the order of the data."""
        marks = self.of_producer.get(producer_id, ())
        at = self.next_of.get(producer_id, 0)
        while at < len(marks) and marks[at][:2] < (source, position):
            at += 1
        self.next_of[producer_id] = at
        return at == len(marks) or not marks[at][2]


cdef class RecordGatherer:
    """One read of inputs into chunks of columns."""

    cdef list chunks, bad, blocks
    cdef object fields, decide, tail
    cdef bint views, verify_crc, keep, strict_tail, control
    cdef Py_ssize_t limit
    cdef int64_t max_bytes, budget, unpacked
    cdef uint64_t left_bytes  # of the inputs, when the chunk begins
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
        """Read all batches of one input. An error has .source, the index of the input."""
        try:
            return self.read(block, source, number, origin)
        except KwireError as error:
            error.source = number
            raise

    cdef int read(self, Block block, int32_t source, int32_t number, int64_t origin) except -1:
        """Read all batches of one input."""
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
                status = kw_columns_run(&self.chunk.c, run)
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
                try:
                    self.next_chunk()
                except LimitError as error:
                    self.spoil(error, self.verify_crc)
            else:
                raise MemoryError

    cdef int next_chunk(self) except -1:
        if self.chunk.c.rows == 0:
            raise LimitError("one batch exceeds the maximum size of an Arrow chunk", limit=self.max_bytes,
                             offset=self.run.origin + self.run.at)
        self.left_bytes -= min(self.left_bytes, self.chunk.c.seen_bytes)
        return self.begin_chunk()

    cdef int slow(self) except -1:
        """Read a compressed batch, or an entry of magic 0 or 1."""
        cdef kw_run *run = &self.run
        cdef const uint8_t *data = run.data + run.at
        cdef Block payload = None
        cdef Py_ssize_t count = 0
        cdef int64_t rows
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
                count = kw_window_apply(&self.window, &run.batch, self.records, <uint32_t> count)
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
            rows = self.chunk.c.rows
            with nogil:
                if run.batch.magic < 2:
                    status = kw_columns_append(&self.chunk.c, &run.batch, self.records, <uint32_t> count, &place)
                else:
                    status = kw_columns_append_batch(
                        &self.chunk.c, &run.batch, &place, 0 if place.block != data else KW_RECORD_BATCH_OVERHEAD,
                        run.window, NULL, &run.status, &run.where)
            if payload is not None and self.views and self.chunk.c.rows == rows:
                drop_views(self.chunk, place.view_buffer)
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
        """Raise the error, or keep the bad bytes and continue after them if their length can be trusted."""
        cdef kw_run *run = &self.run
        cdef const uint8_t *data = run.data + run.at
        cdef Py_ssize_t left = run.size - run.at, size
        if not self.keep:
            raise error
        error.__traceback__ = None  # there may be one for every 26 bytes
        size = run.batch.size if sound_length else kw_batch_trusted_size(data, left) or left
        self.bad.append(BadBatch(<Py_ssize_t> (run.origin + run.at),
                                 PyBytes_FromStringAndSize(<const char *> data, size), error, run.source))
        run.at += size
        return 0


cdef int set_range(object start, object end, str what, int64_t *first, int64_t *last) except -1:
    """Set the first and the last of the numbers from start to before end, None for open. Raises TypeError."""
    first[0] = INT64_MIN if start is None else clipped(start, f"start_{what}")
    last[0] = INT64_MAX if end is None else clipped(end, f"end_{what}")
    if (first[0] == INT64_MAX and PyNumber_Index(start) > INT64_MAX) or (end is not None and last[0] == INT64_MIN):
        first[0], last[0] = INT64_MAX, INT64_MIN  # none: all 64 bits are before start, or none are before end
    elif end is not None and (last[0] < INT64_MAX or PyNumber_Index(end) == INT64_MAX):
        last[0] -= 1
    return 0


def gather(inputs, tuple fields, *, committed=False, control=False, views=False, verify_crc=True, errors="raise",
           max_batch_bytes, strict_tail=False, decide=None, offsets=None, timestamps=None, places=None,
           int64_t chunk_bytes=INT32_MAX - 64, int64_t budget=INT64_MAX, total=None):
    """Read inputs (a list of buffers) into RecordColumns; see kwire.columns.

    decide(producer id, base offset, source, position) -> bool: whether to keep a batch of a transaction; called in
    order, and replaces the markers in the data. offsets, timestamps: the range (from, to) of records to keep, the end
    exclusive, None for open. places: for each input its number (the column source) and the position of its first
    byte, on which batch_position, .bad and errors are based. An error has .source, the number of its input. budget:
    reading ends after the batch that exceeds this many decompressed bytes in all; .stopped is the end of that batch.
    total: inputs is an iterator of (buffer, number, position of its first byte), of about this many bytes in all; each
    buffer is released once it is read, and decide gets its number.
    """
    cdef RecordGatherer gatherer = RecordGatherer.__new__(RecordGatherer)
    cdef Py_ssize_t source
    if not isinstance(errors, str) or errors not in ("raise", "keep"):
        raise ValueError(f"errors must be 'raise' or 'keep', not {brief(errors)}")
    gatherer.chunks = []
    gatherer.bad = []
    gatherer.fields = fields
    gatherer.views = views and ("key" in fields or "value" in fields)  # else no view would need the blocks
    gatherer.verify_crc = verify_crc
    gatherer.keep = errors == "keep"
    gatherer.strict_tail = strict_tail
    gatherer.control = control
    gatherer.limit = clipped(max_batch_bytes, "max_batch_bytes")
    gatherer.max_bytes = chunk_bytes
    gatherer.windowed = offsets is not None or timestamps is not None
    low, high = offsets or (None, None)
    set_range(low, high, "offset", &gatherer.window.offset_from, &gatherer.window.offset_last)
    low, high = timestamps or (None, None)
    set_range(low, high, "timestamp", &gatherer.window.time_from, &gatherer.window.time_last)
    blocks = []
    if places is not None:
        places = tuple(places)
    if total is None:
        for data in inputs:
            block = pin(data, "data" if len(inputs) == 1 else f"data[{len(blocks)}]")
            blocks.append(block)
            gatherer.left_bytes += (<Block> block).size
        if places is not None and len(<tuple> places) != len(blocks):
            raise ValueError(f"expected a place for each of {len(blocks)} inputs, got {len(<tuple> places)}")
    else:
        gatherer.left_bytes = max(0, clipped(total))
    if decide is not None:
        gatherer.decide = decide
    elif committed:
        bad = [] if control else gatherer.bad  # as rows they are reported when they are read
        gatherer.decide = Markers(blocks, verify_crc, gatherer.limit, bad if gatherer.keep else None).keep
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
    if committed:
        gatherer.bad.sort(key=attrgetter("source", "position"))
    return make_columns(fields, gatherer.chunks, gatherer.bad, gatherer.tail, stopped)


cdef enum:
    REPEATED = 50  # times the bytes of the payloads

FORMATS = (b"b", b"c", b"s", b"S", b"i", b"I", b"l", b"g", b"w:16", b"u", b"z")  # by kind, up to bytes


cdef struct Mark:  # the state of a sink before the message that is being added
    kw_sink *sink
    int64_t rows, nulls
    size_t values, offsets


cdef int check(int status) except -1:
    if status == KW_NO_MEMORY:
        raise MemoryError
    if status == KW_TOO_LARGE:
        raise LimitError("a column of these messages exceeds 2 GiB", limit=0x7fffffff)
    if status == KW_TOO_WIDE:
        raise LimitError("outer values repeated in the rows exceed 50 times the size of the payloads", limit=REPEATED)
    return 0


cdef void *some_room(size_t count, size_t size) except NULL:
    """Cleared memory."""
    cdef void *made = calloc(count + 1, size)
    if made == NULL:
        raise MemoryError
    return made


@cython.no_gc  # a Message stays as long as the process
cdef class MessageGatherer:
    """The sinks of one message and version, and the routes that fill them. Once a node is made, nothing can be added.

    Only one thread may use it at a time; another gets a ValueError.
    """
    cdef Message message
    cdef int version
    cdef kw_sink *top
    cdef kw_route *route
    cdef int64_t most, room  # room: bytes left for repeated outer values
    cdef Mark *marks       # one per sink
    cdef void **owned      # the memory of sinks and routes
    cdef size_t n_marks, n_owned
    cdef bint is_done, is_adding

    def __cinit__(self, message, version, wanted, int64_t most=INT32_MAX):
        """wanted: None for every field, else {name: None or a nested dict}; most: bytes at which a column is full."""
        cdef const kw_plan *plan
        self.message = find(message)
        plan = self.message.at(version)
        self.version, self.most = plan.version, most
        self.room = 1 << 20
        self.top = self.make_sink(NULL, KW_STRUCT, False)
        self.route = self.make_route(plan, self.top, wanted, "")
        check(kw_sink_start(self.top))

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.n_marks):
            kw_sink_empty(self.marks[i].sink)
        for i in range(self.n_owned):
            free(self.owned[i])
        free(self.owned)
        free(self.marks)

    cdef void *own(self, size_t count, size_t size) except NULL:
        """Cleared memory that is freed with this object."""
        cdef void **grown = <void **>realloc(self.owned, (self.n_owned + 1) * sizeof(void *))
        if grown == NULL:
            raise MemoryError
        self.owned = grown
        self.owned[self.n_owned] = some_room(count, size)
        self.n_owned += 1
        return self.owned[self.n_owned - 1]

    cdef kw_sink *make_sink(self, const kw_field *field, int kind, bint default_null) except NULL:
        cdef kw_sink *sink = <kw_sink *>self.own(1, sizeof(kw_sink))
        cdef Mark *grown = <Mark *>realloc(self.marks, (self.n_marks + 1) * sizeof(Mark))
        if grown == NULL:
            raise MemoryError
        sink.field, sink.kind, sink.default_null, sink.most = field, kind, default_null, self.most
        self.marks = grown
        self.marks[self.n_marks].sink = sink
        self.n_marks += 1
        return sink

    cdef kw_route *make_route(self, const kw_plan *plan, kw_sink *owner, object wanted, str path) except NULL:
        """wanted: None for every field, else {name: None or a nested dict}; owner: NULL for an unused column."""
        cdef kw_route *route = <kw_route *>self.own(1, sizeof(kw_route))
        cdef const kw_op *op
        cdef kw_step *step = NULL
        cdef kw_pick *pick
        cdef kw_sink *sink
        cdef int i
        route.plan = plan
        route.steps = <kw_step *>self.own(plan.n_ops, sizeof(kw_step))
        route.tag_sinks = <kw_sink **>self.own(plan.n_tags, sizeof(void *))
        made, names, at = [], set(), 0
        for i in range(plan.n_ops):
            op = &plan.ops[i]
            if op.code >= KW_STRING:
                step = &route.steps[route.n_steps]
                step.op, step.code = op, op.code
                route.n_steps += 1
            if op.code == KW_RUN:
                step.picks, at = <kw_pick *>self.own(op.count, sizeof(kw_pick)), 0
                continue
            name, sink = str(<object>op.field.name), NULL
            names.add(name)
            if owner != NULL and (wanted is None or name in wanted):
                sink = self.field_sink(op)
                made.append((<size_t>op.field, <size_t>sink))
            if op.code >= KW_STRING:
                step.sink = sink
                while op.code >= KW_ARRAY_UUID and <uint32_t>1 << step.shift < op.need:
                    step.shift += 1
                step.guesses = op.code >= KW_ARRAY_UUID and op.flags & KW_COMPACT
                step.last_length = step.last_size = 1  # an empty array
                if op.sub != NULL:
                    step.below = self.below(op, sink, None if wanted is None else wanted.get(name), f"{path}{name}.")
                continue
            if sink != NULL or op.code == KW_BOOL:
                pick = &step.picks[step.n_picks]
                pick.sink, pick.at, pick.kind, pick.width = sink, at, op.code, kw_width[op.code]
                step.n_picks += 1
            at += kw_width[op.code]
        for i in range(plan.n_tags):
            op = &plan.tags[i]
            name = str(<object>op.field.name)
            names.add(name)
            if owner != NULL and (wanted is None or name in wanted):
                route.tag_sinks[i] = self.field_sink(op)
                made.append((<size_t>op.field, <size_t>route.tag_sinks[i]))
                if op.sub != NULL:
                    self.below(op, route.tag_sinks[i], None if wanted is None else wanted.get(name), f"{path}{name}.")
        for name in wanted or ():
            if name not in names:
                raise ValueError(f"{self.message.name} v{self.version} has no field {brief(path + name)}")
        if owner != NULL:
            owner.children = <kw_sink **>self.own(len(made), sizeof(void *))
            for _, address in sorted(made):  # in the order of the schema
                owner.children[owner.n_children] = <kw_sink *><size_t>address
                owner.n_children += 1
        return route

    cdef kw_route *below(self, const kw_op *op, kw_sink *sink, object wanted, str path) except NULL:
        if sink != NULL and op.code == KW_ARRAY_STRUCT:
            sink = sink.children[0]
        return self.make_route(op.sub, sink, wanted, path)

    cdef kw_sink *field_sink(self, const kw_op *op) except NULL:
        cdef const kw_field *field = op.field
        cdef int kind = KW_BYTES if field.kind == KW_RECORDS else field.kind
        cdef kw_sink *sink = self.make_sink(field, kind, field.fallback == <void *>None)
        if kind == KW_ARRAY:
            sink.children = <kw_sink **>self.own(1, sizeof(void *))
            sink.children[0] = self.make_sink(field, field.elem, False)
            sink.n_children = 1
        return sink

    cdef void remember(self) noexcept:
        cdef Mark *mark
        cdef kw_sink *sink
        cdef size_t i
        for i in range(self.n_marks):
            mark, sink = &self.marks[i], self.marks[i].sink
            mark.rows, mark.nulls, mark.values = sink.rows, sink.nulls, sink.values.size
            mark.offsets = sink.offsets.size

    cdef void restore(self) noexcept:
        cdef Mark *mark
        cdef kw_sink *sink
        cdef size_t i
        for i in range(self.n_marks):
            mark, sink = &self.marks[i], self.marks[i].sink
            sink.rows, sink.nulls, sink.values.size = mark.rows, mark.nulls, mark.values
            sink.offsets.size = mark.offsets
            if sink.valid.size:  # kept once it was made: many bad messages with a first null take linear time
                sink.valid.size = mark.rows

    def add(self, payload, bint lenient):
        """Append the message in a payload. On DecodeError and LimitError (a column is full) nothing was appended."""
        if self.is_done:
            raise ValueError("the columns were already made: no message can be added")
        self.refuse_adding()
        self.is_adding = True
        try:
            self.add_alone(payload, lenient)
        finally:
            self.is_adding = False

    cdef int refuse_adding(self) except -1:
        if self.is_adding:
            raise ValueError("another thread is adding a message to these columns")
        return 0

    cdef int add_alone(self, object payload, bint lenient) except -1:
        cdef Py_buffer buffer
        cdef kw_cursor c
        cdef int status
        self.remember()
        if type(payload) is not bytes:
            payload = take_view(payload, "payload")  # taken once: an object may return other bytes the next time
        take_buffer(payload, &buffer, "payload")
        try:
            with nogil:
                kw_cursor_set(&c, <const uint8_t *>buffer.buf, buffer.len)
                status = kw_route_walk(&c, self.route)
                if status == KW_DONE:
                    status = kw_sink_struct(self.top) if c.at == c.end else KW_BY_OBJECT
            self.room += REPEATED * buffer.len
        finally:
            PyBuffer_Release(&buffer)
        if status != KW_DONE:
            self.restore()
            check(status)
            message = decode(self.message.name, self.version, payload, lenient=lenient)
            try:
                add_struct(self.top, <char *><PyObject *>message)
            except BaseException:
                self.restore()
                raise
        return 0

    @property
    def rows(self):
        """The number of messages so far."""
        return self.top.rows

    def node(self):
        """The whole messages as one struct column."""
        self.refuse_adding()
        self.is_done = True
        return sink_node("message", self.top, self)

    def flat(self, tuple paths, int64_t first, int64_t last):
        """[(rows, nodes)] of flattened paths, of messages first to last: one row per element of the innermost array.

        More than one part if a column would be too large otherwise.
        """
        if not 0 <= first <= last <= self.top.rows:
            raise ValueError(f"invalid rows {first} to {last}: there are {self.top.rows}")
        self.refuse_adding()
        self.is_done = True
        chains = [self.chain(path) for path in paths]
        longest = max([chain[0] for chain in chains], key=len)
        for path, (arrays, _) in zip(paths, chains):
            if longest[:len(arrays)] != arrays:
                raise ValueError(f"{path} is not inside, or on the way to, the innermost array of the other paths")
        cdef int64_t room = self.room
        try:
            return [flat_part(self, paths, chains, longest, first, last)]
        except LimitError:
            if last - first < 2 or self.room < 0:
                raise
            self.room = room  # a column was full: read the rows in two parts
        middle = (first + last) // 2
        return self.flat(paths, first, middle) + self.flat(paths, middle, last)

    cdef object chain(self, str path):
        """(addresses of the arrays on a path, address of its last sink)."""
        cdef kw_sink *sink = self.top
        cdef int i
        arrays = []
        for name in path.split("."):
            if sink.kind == KW_ARRAY:
                arrays.append(<size_t>sink)
                sink = sink.children[0]
            for i in range(sink.n_children):
                if <object>sink.children[i].field.name == name:
                    sink = sink.children[i]
                    break
            else:
                raise ValueError(f"{self.message.name} v{self.version} has no field {brief(path)}")
        return arrays, <size_t>sink


cdef class Taken:
    """A column made by repeating rows of another; owns its sink."""
    cdef kw_sink *sink

    def __dealloc__(self):
        kw_sink_free(self.sink)


cdef int same_shape(const kw_sink *like, kw_sink **made, int64_t *room) except -1:
    """Make *made an empty sink of the same type as like; the caller owns it. room: bytes that it may still take."""
    cdef int i
    made[0] = <kw_sink *>some_room(1, sizeof(kw_sink))
    made[0].field, made[0].kind, made[0].most, made[0].room = like.field, like.kind, like.most, room
    made[0].children = <kw_sink **>some_room(like.n_children, sizeof(void *))
    made[0].n_children = like.n_children  # none of them allocated yet
    for i in range(like.n_children):
        same_shape(like.children[i], &made[0].children[i], room)
    return 0


cdef (int64_t, int64_t) below(list arrays, int64_t first, int64_t last) noexcept:
    """The range of elements of these rows in the innermost of the arrays."""
    cdef const int32_t *ends
    for address in arrays:
        ends = <const int32_t *>(<kw_sink *><size_t>address).offsets.data
        first, last = ends[first], ends[last]
    return first, last


cdef tuple flat_part(MessageGatherer self, tuple paths, list chains, list longest, int64_t first, int64_t last):
    cdef int64_t outer, end, least, most
    least, most = below(longest, first, last)
    nodes = []
    for path, (arrays, address) in zip(paths, chains):
        if len(arrays) == len(longest):
            nodes.append(sink_part(path, <kw_sink *><size_t>address, self, least, most))
        else:
            outer, end = below(arrays, first, last)
            nodes.append(repeated(self, path, <kw_sink *><size_t>address, longest[len(arrays):], outer, end))
    return most - least, nodes


cdef Node repeated(MessageGatherer self, str name, kw_sink *sink, list arrays, int64_t outer, int64_t end):
    """A column of an outer level, each value repeated for all rows inside it."""
    cdef int64_t first, last
    cdef Taken owner = Taken.__new__(Taken)
    same_shape(sink, &owner.sink, &self.room)
    check(kw_sink_start(owner.sink))
    for outer in range(outer, end):
        first, last = below(arrays, outer, outer + 1)
        check(kw_sink_repeat(sink, outer, owner.sink, last - first))
    return sink_node(name, owner.sink, owner)


cdef bytes packed(const uint8_t *flags, int64_t rows):
    """A bitmap from one byte per row."""
    cdef bytearray bits = bytearray((rows + 7) // 8)
    cdef uint8_t *to = bits
    cdef int64_t i
    for i in range(rows):
        if flags[i]:
            to[i >> 3] |= 1 << (i & 7)
    return bytes(bits)


cdef bytes _nothing = bytes(16)


cdef const void *some(const void *data) noexcept:
    return data if data != NULL else <const void *><const char *>_nothing


cdef Node sink_node(str name, kw_sink *sink, object owner):
    """The Arrow array of a sink."""
    return sink_part(name, sink, owner, 0, sink.rows)


cdef Node sink_part(str name, kw_sink *sink, object owner, int64_t first, int64_t last):
    """The Arrow array of some rows of a sink."""
    cdef const void *buffers[3]
    cdef Node node
    cdef int n = 2
    cdef int64_t nulls = sink.nulls, row
    cdef int i
    if nulls and last - first != sink.rows:
        nulls = 0
        for row in range(first, last):
            nulls += not sink.valid.data[row]
    children, format = [], None
    validity = packed(sink.valid.data, sink.rows) if sink.nulls else None
    if sink.kind == KW_STRUCT:
        format = b"+s"
        children = [sink_node(str(<object>sink.children[i].field.name), sink.children[i], owner)
                    for i in range(sink.n_children)]
        n = 1
    elif sink.kind == KW_ARRAY:
        format, children = b"+l", [sink_node("item", sink.children[0], owner)]
        buffers[1] = some(sink.offsets.data)
    elif sink.kind >= KW_STRING:
        format, n = FORMATS[sink.kind], 3
        buffers[1], buffers[2] = some(sink.offsets.data), some(sink.values.data)
    else:
        format = FORMATS[sink.kind]
        buffers[1] = some(sink.values.data)
    bools = packed(sink.values.data, sink.rows) if sink.kind == KW_BOOL else None
    if bools is not None:
        buffers[1] = <const void *><const char *>bools
    buffers[0] = NULL
    if validity is not None:
        buffers[0] = <const void *><const char *>validity
    node = make_node(name, format, last - first, nulls, (owner, validity, bools), children)
    node.offset = first
    node.set_buffers(buffers, n)
    return node


cdef int add_struct(kw_sink *sink, char *self) except -1:
    """Append an instance by its Python object, the slow path."""
    cdef int i
    for i in range(sink.n_children):
        add_field(sink.children[i], self)
    check(kw_sink_struct(sink))
    return 0


cdef int add_field(kw_sink *sink, char *self) except -1:
    cdef const kw_field *field = sink.field
    cdef PyObject *item
    if sink.kind < KW_STRING:
        return check(kw_sink_fixed(sink, KW_PLACE(self, field.at)))
    item = KW_SLOT(self, field.at)
    if item == NULL:
        item = fallback(field)
    if item == <PyObject *>None:
        return check(kw_sink_null(sink))
    if sink.kind == KW_STRUCT:
        return add_struct(sink, <char *>item)
    if sink.kind == KW_ARRAY:
        for element in <object>item:
            add_element(sink.children[0], element)
        return check(kw_sink_list(sink))
    return add_bytes(sink, <object>item)


cdef int add_element(kw_sink *sink, object element) except -1:
    if sink.kind == KW_STRUCT:
        return add_struct(sink, <char *><PyObject *>element)
    if sink.kind == KW_STRING:
        return add_bytes(sink, element)
    cdef uint8_t uuid[16]
    if sink.kind == KW_UUID:
        take_uuid(element, uuid)
        return check(kw_sink_fixed(sink, uuid))
    data = element.to_bytes(kw_width[sink.kind], sys.byteorder, signed=element < 0)
    return check(kw_sink_fixed(sink, <const uint8_t *><const char *>data))


cdef int add_bytes(kw_sink *sink, object value) except -1:
    if isinstance(value, Span):
        value = (<Span>value).seen()
    data = value.encode() if isinstance(value, str) else bytes(value)
    return check(kw_sink_bytes(sink, <const uint8_t *><const char *>data, len(data)))


def table_node(rows, list nodes):
    """The struct of columns that the stream of a table consists of."""
    cdef const void *buffers[1]
    buffers[0] = NULL
    cdef Node node = make_node("", b"+s", rows, 0, nodes, nodes)
    node.set_buffers(buffers, 1)
    return node
