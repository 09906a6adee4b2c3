"""Record batches of magic 0, 1 and 2, built from objects or Arrow arrays as Kafka's MemoryRecordsBuilder does."""


from kwire_c import codecs
from kwire_c.errors import EncodeError
from kwire_c.hooks import handed
from kwire_c.printable import brief, printable

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.bytes cimport _PyBytes_Resize
from cpython.exc cimport PyErr_CheckSignals, PyErr_Clear, PyErr_ExceptionMatches
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.number cimport PyIndex_Check
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.errno cimport ENOMEM
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset, strcmp

cimport cython

from kwire_c.core cimport (
    KW_ATTRIBUTES_OFFSET, KW_ATTR_CONTROL, KW_ATTR_DELETE_HORIZON, KW_ATTR_LOG_APPEND, KW_ATTR_TRANSACTIONAL,
    KW_BASE_SEQUENCE_OFFSET, KW_BASE_TIMESTAMP_OFFSET, KW_BATCH_OK, KW_CRC_OFFSET, KW_FILL_FULL, KW_FILL_OK,
    KW_FILL_ROOM, KW_LAST_OFFSET_DELTA_OFFSET, KW_LAYOUT_32, KW_LAYOUT_64, KW_LAYOUT_FIXED, KW_LAYOUT_NULL,
    KW_LAYOUT_VIEW, KW_LEGACY_ATTRIBUTES_OFFSET, KW_LEGACY_CRC_OFFSET, KW_LEGACY_KEY_OFFSET, KW_LEGACY_TIMESTAMP_OFFSET,
    KW_LENGTH_OFFSET, KW_LOG_OVERHEAD, KW_MAGIC_OFFSET, KW_MAX_TIMESTAMP_OFFSET, KW_PARTITION_LEADER_EPOCH_OFFSET,
    KW_PRODUCER_EPOCH_OFFSET, KW_PRODUCER_ID_OFFSET, KW_RECORDS_COUNT_OFFSET, KW_RECORD_BATCH_OVERHEAD, ArrowArray,
    ArrowArrayStream, ArrowSchema, kw_arrow_bytes, kw_arrow_headers, kw_arrow_numbers, kw_arrow_offset, kw_arrow_row,
    kw_arrow_rows, kw_body_size, kw_copy, kw_fill, kw_fill_batch, kw_fill_reason, kw_fill_status, kw_header_read,
    kw_heads, kw_offset_fits, kw_plain_row, kw_row, kw_smallest_batch, kw_store16, kw_store32, kw_store64,
    kw_uvarint_size, kw_write_plain_rows, kw_write_record, kw_write_uvarint, kw_zigzag32, kw_zigzag64, raise_set,
    raw_bytes_check, raw_bytes_data, raw_bytes_new, raw_bytes_size, raw_int_check, raw_list_check, raw_list_item,
    raw_list_size, raw_none, raw_str_utf8, raw_tuple_check, raw_tuple_item, raw_tuple_size, raw_xdecref, seal,
)
from kwire_c.crc32c cimport crc32_update, crc32c_update
from kwire_c.integers cimport bounded, brief
from kwire_c.record_batch cimport Block, Record, header_list, header_pair, is_iterable, pin


cdef int raise_occurred() except -1:
    """Raise what is set."""
    return -1


@cython.final
cdef class Rows:
    """The records of one batch, read in order."""

    cdef list records       # the caller's list, or a copy
    cdef bint is_copy
    cdef PyObject *current  # the row being read
    cdef object held        # the same, once records is a copy
    cdef list kept          # objects that the spans of the last row point into
    cdef uint8_t *scratch   # its headers in wire format
    cdef Py_ssize_t room
    cdef int64_t offset     # of the next row without one
    cdef int64_t max_stamp  # of the rows so far

    def __cinit__(self, list records, int64_t base_offset):
        self.records = records
        self.kept = []
        self.offset = base_offset
        self.max_stamp = INT64_MIN
        self.reserve(256)

    def __dealloc__(self):
        free(self.scratch)

    cdef int read(self, Py_ssize_t index, kw_row *row) except -1:
        """Read the row at index; rows are read in order. Its spans are valid until the next one is read."""
        cdef PyObject *item
        if index >= raw_list_size(<PyObject *> self.records):
            raise EncodeError("records changed while they were read", path="records")
        if self.is_copy:
            self.kept.clear()
        self.current = item = raw_list_item(<PyObject *> self.records, index)
        if index and self.offset == INT64_MIN:
            raise EncodeError("no offset is left after 2^63 - 1", path=f"records[{index}].offset")
        row.offset = self.offset
        if kw_plain_row(item, row, self.scratch, self.room):
            self.offset = <int64_t> (<uint64_t> row.offset + 1)
            self.max_stamp = max(self.max_stamp, row.stamp)
            return 0
        row.headers = 0
        row.headers_size = 0
        row.attributes = 0
        if raw_tuple_check(item):
            self.read_tuple(index, item, row)
        elif isinstance(<object> item, Record):
            self.read_record(<Record> item, row)
            if row.offset == -1:  # created without an offset
                row.offset = self.offset
            if index and row.offset < self.offset:
                raise EncodeError(f"illegal offset {row.offset} following previous offset {self.offset - 1}",
                                  path=f"records[{index}].offset")
        else:
            self.copy()
            self.kept.append(as_row(index, <object> item))
            self.read_tuple(index, raw_list_item(<PyObject *> self.kept, 0), row)
        self.offset = <int64_t> (<uint64_t> row.offset + 1)
        self.max_stamp = max(self.max_stamp, row.stamp)
        return 0

    cdef int copy(self) except -1:
        """Copy the caller's list before other Python code, which could change it, runs. (A finalizer can run here.)"""
        if not self.is_copy:
            self.held = <object> self.current if self.current != NULL else None
            self.records = list(self.records)
            self.is_copy = True
        return 0

    cdef int read_tuple(self, Py_ssize_t index, PyObject *item, kw_row *row) except -1:
        """(timestamp, key, value[, headers])"""
        cdef Py_ssize_t width = raw_tuple_size(item)
        cdef PyObject *field
        cdef int overflow = 0
        if width != 3 and width != 4:
            raise EncodeError(f"expected (timestamp, key, value[, headers]), got {width} values",
                              path=f"records[{index}]")
        field = raw_tuple_item(item, 0)
        if not raw_int_check(field):
            self.copy()
            if not PyIndex_Check(<object> field):
                raise TypeError(f"record {index}: timestamp must be an int (milliseconds), "
                                f"not {type(<object> field).__name__}")
        try:
            row.stamp = PyLong_AsLongLongAndOverflow(<object> field, &overflow)
        except TypeError:  # of an array
            raise TypeError(f"record {index}: timestamp must be an int (milliseconds), "
                            f"not {type(<object> field).__name__}") from None
        if overflow:
            raise EncodeError("timestamp does not fit 64 bits", path=f"records[{index}].timestamp")
        row.key_size = self.span(raw_tuple_item(item, 1), &row.key, index, -1, "key")
        row.value_size = self.span(raw_tuple_item(item, 2), &row.value, index, -1, "value")
        if width == 4:
            field = raw_tuple_item(item, 3)
            if field != raw_none and (not raw_list_check(field) or raw_list_size(field)):
                self.read_headers(index, <object> field, row)
        return 0

    cdef int read_record(self, Record record, kw_row *row) except -1:
        cdef const kw_heads *home = &record.batch.heads
        cdef uint32_t at = record.head.headers_at, key_at = 0, value_at = 0
        cdef int32_t key_size = 0, value_size = 0
        row.offset = record.head.offset
        row.stamp = record.head.stamp
        row.attributes = <uint8_t> record.head.attributes
        row.key = home.block + record.head.key_at
        row.key_size = record.head.key_size
        row.value = home.block + record.head.value_at
        row.value_size = record.head.value_size
        row.headers = record.head.headers
        for _ in range(record.head.headers):
            if kw_header_read(home.block, home.size, &at, &key_at, &key_size, &value_at, &value_size) != KW_BATCH_OK:
                raise EncodeError("headers changed under the record", path="records.headers")
        row.headers_size = at - record.head.headers_at
        if row.headers_size:
            self.reserve(row.headers_size)
            memcpy(self.scratch, home.block + record.head.headers_at, row.headers_size)
        return 0

    cdef int read_headers(self, Py_ssize_t index, object headers, kw_row *row) except -1:
        """Write headers, pairs of (str, buffer or None), to scratch."""
        cdef const char *text
        cdef const uint8_t *content = NULL
        cdef Py_ssize_t text_size = 0, used = 0
        cdef int32_t size
        cdef uint8_t *end
        if not raw_list_check(<PyObject *> headers):
            self.copy()
            headers = header_list(headers, f"record {index}: ")
        for pair in headers:
            if not raw_tuple_check(<PyObject *> pair):
                self.copy()
            if raw_tuple_check(<PyObject *> pair) and raw_tuple_size(<PyObject *> pair) == 2:
                name, value = <tuple> pair
            else:
                name, value = header_pair(pair, f"record {index}: header {row.headers}")
            if not isinstance(name, str):
                raise TypeError(f"record {index}: header {row.headers}: key must be str, not {type(name).__name__}")
            text = raw_str_utf8(<PyObject *> name, &text_size)
            if text == NULL and PyErr_ExceptionMatches(UnicodeEncodeError):
                PyErr_Clear()
                raise EncodeError("header key with a lone surrogate cannot be encoded as UTF-8",
                                  path=f"records[{index}].headers")
            if text == NULL:
                raise_occurred()
            size = self.span(<PyObject *> value, &content, index, row.headers, "value")
            if used + text_size + max(size, 0) > INT32_MAX - 10:
                raise EncodeError("headers exceed 2 GiB", path=f"records[{index}].headers")
            self.reserve(used + 10 + text_size + max(size, 0))
            end = kw_write_uvarint(self.scratch + used, kw_zigzag32(<int32_t> text_size))
            kw_copy(end, <const uint8_t *> text, text_size)
            end = kw_write_uvarint(end + text_size, kw_zigzag32(size))
            if size > 0:
                kw_copy(end, content, size)
                end += size
            used = end - self.scratch
            row.headers += 1
        row.headers_size = <int32_t> used
        return 0

    cdef int reserve(self, Py_ssize_t size) except -1:
        """Grow scratch to this many bytes."""
        cdef void *grown
        if size > self.room:
            grown = realloc(self.scratch, 2 * size + 256)
            if grown == NULL:
                raise MemoryError
            self.scratch = <uint8_t *> grown
            self.room = 2 * size + 256
        return 0

    cdef inline int32_t span(self, PyObject *value, const uint8_t **data, Py_ssize_t index, Py_ssize_t header,
                             str name) except -2:
        """The address and size of a key or value, of a record or (header >= 0) of a header; size -1 for None (null)."""
        cdef Py_ssize_t size
        cdef Block block
        if raw_bytes_check(value):
            data[0] = <const uint8_t *> raw_bytes_data(value)
            size = raw_bytes_size(value)
        elif value == raw_none:
            data[0] = NULL
            size = -1
        else:
            self.copy()
            if not PyObject_CheckBuffer(<object> value):
                place = f"record {index}" if header < 0 else f"record {index}: header {header}"
                raise TypeError(f"{place}: {name} must be bytes, not {type(<object> value).__name__}")
            block = pin(<object> value, name)
            self.kept.append(block)
            data[0] = block.data
            size = block.size
        if size > INT32_MAX:
            raise EncodeError("key, value or header exceeds 2 GiB", path=f"records[{index}]")
        return <int32_t> size


cdef tuple as_row(Py_ssize_t index, object row):
    """A row that is no tuple, as one. Raises TypeError for what is no row."""
    if isinstance(row, (str, bytes, bytearray, memoryview, dict, set, frozenset)) or not is_iterable(row):
        raise TypeError(f"record {index} must be a Record or a tuple (timestamp, key, value[, headers]), "
                        f"not {type(row).__name__}")
    return tuple(row)


# Arrow type -> (layout of the bytes, number of buffers)
cdef dict _BYTES = {b"n": (KW_LAYOUT_NULL, 0), b"z": (KW_LAYOUT_32, 3), b"u": (KW_LAYOUT_32, 3),
                    b"Z": (KW_LAYOUT_64, 3), b"U": (KW_LAYOUT_64, 3), b"vz": (KW_LAYOUT_VIEW, 3),
                    b"vu": (KW_LAYOUT_VIEW, 3)}
# unit of an Arrow timestamp -> (multiplier, divisor) to milliseconds
cdef dict _UNITS = {b"s": (1000, 1), b"m": (1, 1), b"u": (1, 1000), b"n": (1, 1_000_000)}


cdef bytes _format(const ArrowSchema *schema):
    """The format string of a type; NULL is one that no type has."""
    return b"" if schema.format == NULL else schema.format


cdef object _refuse(str name, const ArrowSchema *schema, str wanted):
    cdef str arrow_type = _format(schema).decode("utf-8", "replace")
    if schema.dictionary != NULL:
        arrow_type = "dictionary (decode it first)"
    return EncodeError(f"expected {wanted}, got Arrow type {brief(arrow_type)}", path=name)


cdef int _has_buffers(str name, const ArrowArray *array, int64_t first, int64_t rows, int64_t least) except -1:
    """Check that an array has these rows from first on, and the buffers of its type. Raises EncodeError."""
    cdef int64_t i
    if array.release == NULL:
        raise EncodeError("the Arrow array was released", path=name)
    if array.offset < 0 or array.length < 0 or array.offset > INT64_MAX - array.length or array.n_buffers < least or \
            rows > array.length or first > array.length - rows:
        raise EncodeError(f"the Arrow array has {array.length} rows from {array.offset} on and {array.n_buffers} "
                          f"buffers, expected {rows} rows from {first} on and {least} buffers", path=name)
    if least and array.buffers == NULL:
        raise EncodeError("the Arrow array lacks its buffers", path=name)
    if least and array.null_count > 0 and array.buffers[0] == NULL:
        raise EncodeError(f"the Arrow array has {array.null_count} nulls, but no validity buffer", path=name)
    if rows:
        for i in range(1, least):
            if array.buffers[i] == NULL and i != 2:  # a data buffer of no bytes may be NULL
                raise EncodeError(f"the Arrow array lacks buffer {i}", path=name)
    return 0


cdef int _has_children(str name, const ArrowSchema *schema, const ArrowArray *array) except -1:
    """Check that a type and its array (NULL: only the type) lack none of its children. Raises EncodeError."""
    cdef int64_t i
    cdef bint are_there = array == NULL or array.n_children == schema.n_children
    if are_there and schema.n_children > 0:
        are_there = schema.children != NULL and (array == NULL or array.children != NULL)
        for i in range(schema.n_children if are_there else 0):
            are_there = are_there and schema.children[i] != NULL and (array == NULL or array.children[i] != NULL)
    if not are_there:
        raise EncodeError("the Arrow array has children that do not match its schema", path=name)
    return 0


cdef const ArrowArray *_child(const ArrowArray *array, int64_t number) noexcept:
    return NULL if array == NULL else array.children[number]


cdef const uint8_t *_valid(const ArrowArray *array) noexcept:
    return <const uint8_t *> array.buffers[0] if array.null_count else NULL


cdef int _bytes(str name, const ArrowSchema *schema, const ArrowArray *array, int64_t first, int64_t rows,
                kw_arrow_bytes *out) except -1:
    """Set up a column of keys or values: the rows of its array from first on. array NULL: check its type."""
    cdef bytes format = _format(schema)
    memset(out, 0, sizeof(kw_arrow_bytes))
    if schema.dictionary == NULL and format.startswith(b"w:") and format[2:].isdigit() and len(format) < 12:
        layout, buffers = KW_LAYOUT_FIXED, 2
        out.width = int(format[2:])
    elif schema.dictionary == NULL and format in _BYTES:
        layout, buffers = _BYTES[format]
    else:
        raise _refuse(name, schema, "binary or string")
    if array == NULL:
        return 0
    _has_buffers(name, array, first, rows, buffers)
    if layout == KW_LAYOUT_NULL:
        return 0
    out.layout = layout
    out.valid = _valid(array)
    out.first = array.offset + first
    if layout == KW_LAYOUT_FIXED:
        out.data = <const uint8_t *> array.buffers[1]
        return 0
    out.spans = array.buffers[1]
    if layout == KW_LAYOUT_VIEW:  # validity, views, the buffers of bytes, their sizes
        out.buffers = <const uint8_t **> &array.buffers[2]
        out.n_buffers = array.n_buffers - 3
        out.sizes = <const int64_t *> array.buffers[array.n_buffers - 1]
    else:
        out.data = <const uint8_t *> array.buffers[2]
    return 0


cdef int _numbers(str name, const ArrowSchema *schema, const ArrowArray *array, int64_t first, int64_t rows,
                  bint is_time, kw_arrow_numbers *out) except -1:
    """Set up a column of 64-bit integers or timestamps. array NULL: check its type."""
    cdef bytes format = _format(schema)
    multiply, divide = 1, 1
    if schema.dictionary == NULL and format == b"n" and (is_time or not rows):
        return 0
    if schema.dictionary == NULL and is_time and format[:2] == b"ts" and format[2:3] in _UNITS and format[3:4] == b":":
        multiply, divide = _UNITS[format[2:3]]
    elif schema.dictionary != NULL or format != b"l":
        raise _refuse(name, schema, "int64 (milliseconds) or a timestamp" if is_time else "int64")
    if array == NULL:
        return 0
    _has_buffers(name, array, first, rows, 2)
    out.valid = _valid(array)
    out.values = <const int64_t *> array.buffers[1]
    out.first = array.offset + first
    out.multiply, out.divide = multiply, divide
    return 0


cdef int _headers(const ArrowSchema *schema, const ArrowArray *array, int64_t first, int64_t rows,
                  kw_arrow_headers *out) except -1:
    """Set up a column of lists of (key, value) structs, or of maps. array NULL: check its type."""
    cdef bytes format = _format(schema)
    cdef const ArrowSchema *pair
    cdef const ArrowArray *pairs
    cdef int64_t i, key = -1, value = -1
    wanted = "a list of structs of key (string) and value (binary), or a map of these"
    if schema.dictionary == NULL and format == b"n":
        return 0
    if schema.dictionary != NULL or format not in (b"+l", b"+L", b"+m") or schema.n_children != 1:
        raise _refuse("headers", schema, wanted)
    if array != NULL:
        _has_buffers("headers", array, first, rows, 2)
    _has_children("headers", schema, array)
    pair, pairs = schema.children[0], _child(array, 0)
    if _format(pair) == b"n" and pair.dictionary == NULL and (pairs == NULL or pairs.length == 0):
        return 0  # lists that are all empty, from Python objects
    if _format(pair) != b"+s" or pair.dictionary != NULL:
        raise _refuse("headers", pair, wanted)
    if pairs != NULL:
        _has_buffers("headers", pairs, 0, 0, 1)
    _has_children("headers", pair, pairs)
    for i in range(pair.n_children):
        if format == b"+m":
            key, value = 0, 1
        elif pair.children[i].name != NULL and strcmp(pair.children[i].name, "key") == 0:
            key = i
        elif pair.children[i].name != NULL and strcmp(pair.children[i].name, "value") == 0:
            value = i
    if key < 0 or value < 0 or pair.n_children < 2:
        raise EncodeError(f"expected {wanted}, got structs without key or value", path="headers")
    if array == NULL:
        _bytes("headers.key", pair.children[key], NULL, 0, 0, &out.key)
        _bytes("headers.value", pair.children[value], NULL, 0, 0, &out.value)
        return 0
    out.layout = KW_LAYOUT_64 if format == b"+L" else KW_LAYOUT_32
    out.valid = _valid(array)
    out.spans = array.buffers[1]
    out.first = array.offset + first
    out.items = pairs.length
    out.pair_valid = _valid(pairs)
    out.pair_first = pairs.offset
    _bytes("headers.key", pair.children[key], pairs.children[key], pairs.offset, pairs.length, &out.key)
    _bytes("headers.value", pair.children[value], pairs.children[value], pairs.offset, pairs.length, &out.value)
    return 0


cdef void *_content(object capsule, const char *name) except NULL:
    if not PyCapsule_IsValid(capsule, name):
        raise TypeError(f"expected an Arrow capsule {name.decode()!r}, got {type(capsule).__name__}")
    return PyCapsule_GetPointer(capsule, name)


cdef void _no_stream(ArrowArrayStream *stream) noexcept:
    if stream.release != NULL:
        stream.release(stream)
        stream.release = NULL


cdef void _no_array(ArrowArray *array) noexcept:
    if array.release != NULL:
        array.release(array)
        array.release = NULL


cdef bint is_interrupt(str text):
    """Is it the traceback of a KeyboardInterrupt of the caller's generator? pyarrow keeps the text alone."""
    trace = text.rpartition("Traceback (most recent call last):\n")[2]  # of a chain the one that was raised is the last
    error = next((line for line in trace.split("\n") if not line.startswith(" ")), "")
    return error == "KeyboardInterrupt" or error.startswith("KeyboardInterrupt: ")


@cython.final
cdef class ArrowRows:
    """The rows of anything that has __arrow_c_stream__ or __arrow_c_array__, one chunk of arrays at a time."""

    cdef ArrowArrayStream stream
    cdef ArrowSchema schema
    cdef ArrowArray array
    cdef kw_arrow_rows c
    cdef int64_t first       # the row of the whole input at which the arrays begin
    cdef bint has_array      # a single array, not a stream
    cdef bint has_offsets    # a column of offsets, which the first arrays may have no rows of
    cdef bint was_given

    def __cinit__(self, columns):
        cdef ArrowArrayStream *stream
        cdef ArrowSchema *schema
        cdef ArrowArray *array
        if hasattr(columns, "__arrow_c_stream__"):
            capsule = columns.__arrow_c_stream__()
            stream = <ArrowArrayStream *> _content(capsule, "arrow_array_stream")
            if stream.release == NULL:
                raise EncodeError("the Arrow stream was already read", path="columns")
            self.stream = stream[0]  # moved, as the C stream interface specifies
            stream.release = NULL
            if self.stream.get_schema == NULL or self.stream.get_next == NULL or self.stream.get_last_error == NULL:
                raise EncodeError("the Arrow stream lacks a function", path="columns")
            self.check(self.stream.get_schema(&self.stream, &self.schema))
        elif hasattr(columns, "__arrow_c_array__"):
            pair = columns.__arrow_c_array__()
            capsules = tuple(pair) if isinstance(pair, tuple) else ()  # those that are used are held
            if len(capsules) != 2:
                raise TypeError(f"expected two Arrow capsules, got {brief(pair)}")
            schema = <ArrowSchema *> _content(capsules[0], "arrow_schema")
            array = <ArrowArray *> _content(capsules[1], "arrow_array")
            if schema.release == NULL or array.release == NULL:
                raise EncodeError("the Arrow array was already read", path="columns")
            self.schema, self.array = schema[0], array[0]
            schema.release = NULL
            array.release = NULL
            self.has_array = True
        else:
            raise TypeError("columns must have __arrow_c_stream__ or __arrow_c_array__ (a table of pyarrow, polars, "
                            f"pandas or kwire.columns), not be of type {type(columns).__name__}")
        if _format(&self.schema) != b"+s":
            raise _refuse("columns", &self.schema, "a table or a struct")
        self.place(NULL)

    def __dealloc__(self):
        _no_array(&self.array)
        if self.schema.release != NULL:
            self.schema.release(&self.schema)
        _no_stream(&self.stream)

    cdef int check(self, int status) except -1:
        cdef const char *words
        if status == ENOMEM:
            raise MemoryError
        if status:
            words = self.stream.get_last_error(&self.stream)
            text = words.decode("utf-8", "replace") if words != NULL else f"error {status}"
            if is_interrupt(text):
                raise KeyboardInterrupt
            raise EncodeError(f"the Arrow stream failed: {printable(text[:1000])}", path="columns")
        return 0

    cdef bint next(self) except -1:
        """Go to the next chunk of arrays; False after the last one."""
        cdef int status
        self.first += self.c.rows
        if self.has_array:
            if self.array.release == NULL or self.was_given:
                return False
            self.was_given = True
        elif self.stream.release == NULL:
            return False
        else:
            _no_array(&self.array)
            with nogil:
                status = self.stream.get_next(&self.stream, &self.array)
            PyErr_CheckSignals()
            self.check(status)
            if self.array.release == NULL:
                _no_stream(&self.stream)
                return False
        self.place(&self.array)
        return True

    cdef int place(self, const ArrowArray *array) except -1:
        """Find the columns in the arrays; NULL: check their types, as a stream may have no arrays."""
        cdef const ArrowSchema *field
        cdef int64_t i, first = 0 if array == NULL else array.offset, rows = 0 if array == NULL else array.length
        cdef bytes name
        memset(&self.c, 0, sizeof(kw_arrow_rows))
        if array != NULL:
            _has_buffers("columns", array, 0, rows, 1)
        _has_children("columns", &self.schema, array)
        seen = set()
        for i in range(self.schema.n_children):
            field = self.schema.children[i]
            name = field.name if field.name != NULL else b""
            if name in seen:
                raise EncodeError("duplicate column", path=name.decode())
            if name == b"key":
                _bytes("key", field, _child(array, i), first, rows, &self.c.key)
            elif name == b"value":
                _bytes("value", field, _child(array, i), first, rows, &self.c.value)
            elif name == b"timestamp":
                _numbers("timestamp", field, _child(array, i), first, rows, True, &self.c.stamp)
            elif name == b"offset":
                _numbers("offset", field, _child(array, i), first, rows, False, &self.c.offset)
            elif name == b"headers":
                _headers(field, _child(array, i), first, rows, &self.c.headers)
            else:
                continue
            seen.add(name)
        if b"value" not in seen:
            raise EncodeError("column is missing", path="value")
        self.has_offsets = b"offset" in seen
        self.c.rows = rows
        self.c.first = first
        if array != NULL:
            self.c.valid = _valid(array)
        return 0

    cdef kw_fill_status fill(self, kw_fill *fill) noexcept:
        """Call kw_fill_batch, without the GIL if much may be written."""
        cdef kw_fill_status status
        if fill.end - fill.out < 131072:
            return kw_fill_batch(&self.c, fill)
        with nogil:
            status = kw_fill_batch(&self.c, fill)
        return status

    cdef int read(self, kw_fill *fill, kw_row *row) except -1:
        """Read the row at fill.at, without headers (magic 0 and 1)."""
        cdef int64_t start, stop
        cdef kw_fill_status status = kw_arrow_offset(&self.c, fill, &row.offset)
        if status == KW_FILL_OK:
            status = kw_arrow_row(&self.c, fill.at, row, &start, &stop)
        if status != KW_FILL_OK:
            raise self.error(status, fill)
        return 0

    cdef object error(self, kw_fill_status status, kw_fill *fill):
        cdef const char *column = NULL
        reason = kw_fill_reason(status, &column).decode()
        return EncodeError(reason, path=f"{column.decode() or 'columns'}[{self.first + fill.at}]")


cdef enum:
    MOST = 2147483647 - 64  # the largest batch, in bytes
    STEP = 1 << 20          # rows that are written between two looks at signals
    STEP_BYTES = 32 << 20   # bytes, of Arrow arrays

cdef object _compress_records = None  # kwire.compression.compress, from its first use on
cdef dict _CODEC_NUMBERS = {name: number for number, name in enumerate(codecs.CODECS)}


@cython.final
@cython.no_gc
cdef class Output:
    """A growing buffer of output bytes."""

    cdef PyObject *content
    cdef uint8_t *start
    cdef uint8_t *at   # the next byte to write
    cdef uint8_t *end

    def __dealloc__(self):
        raw_xdecref(self.content)

    cdef inline int reserve(self, int64_t size, Py_ssize_t times, Py_ssize_t index) except -1:
        """Make room for size more bytes, of record `index`. times: how many records of about this size follow."""
        if size > self.end - self.at:
            if size > MOST - (self.at - self.start):
                raise EncodeError("batch exceeds 2 GiB", path=f"records[{index}]")
            self.grow(size, times * (size + 2))
        return 0

    cdef int grow(self, Py_ssize_t need, Py_ssize_t wish) except -1:
        cdef Py_ssize_t used = self.at - self.start
        cdef Py_ssize_t room = used + max(need, min(wish, used + (1 << 20)))
        if self.content == NULL:
            self.content = raw_bytes_new(NULL, room)
            if self.content == NULL:
                raise_set()
        else:
            _PyBytes_Resize(&self.content, room)
        self.start = <uint8_t *> raw_bytes_data(self.content)
        self.at = self.start + used
        self.end = self.start + room
        return 0

    cdef int skip(self, Py_ssize_t size) except -1:
        """Leave room for bytes that are written later."""
        self.reserve(size, 1, 0)
        self.at += size
        return 0

    cdef bytes finish(self):
        """The bytes written. Nothing can be written afterwards."""
        if self.content == NULL:
            return b""
        _PyBytes_Resize(&self.content, self.at - self.start)
        return <bytes> self.content


cdef int _write(Rows rows, Output out, Py_ssize_t count, int64_t base, int64_t *base_stamp,
                bint takes_stamp) except -1:
    """Write the records of magic 2. With takes_stamp the timestamp of the first one is the base timestamp."""
    cdef Py_ssize_t i = 0
    cdef kw_row row
    cdef int64_t body
    cdef int32_t delta = 0
    cdef uint64_t stamp
    while i < count:
        rows.read(i, &row)
        if i == 0 and takes_stamp:
            base_stamp[0] = row.stamp
        if not kw_offset_fits(row.offset, base, &delta):
            raise EncodeError(f"offset {row.offset} is too far from the base offset {base}",
                              path=f"records[{i}].offset")
        stamp = kw_zigzag64(<int64_t> (<uint64_t> row.stamp - <uint64_t> base_stamp[0]))
        body = kw_body_size(&row, stamp, delta)
        out.reserve(body + kw_uvarint_size(<uint64_t> body << 1), count - i, i)
        out.at = kw_write_record(out.at, &row, body, stamp, delta, rows.scratch)
        i = kw_write_plain_rows(<PyObject *> rows.records, i + 1, min(count, i + STEP), &out.at, out.end, base,
                                base_stamp[0], &rows.offset, &rows.max_stamp, rows.scratch, rows.room)
        PyErr_CheckSignals()
    return 0


ctypedef struct Form:
    # shared by all batches of a call
    int magic, codec
    bint log_append
    bint takes_stamp  # the timestamp of the first record is the base timestamp
    uint16_t attributes
    int64_t base_stamp, producer, epoch, sequence, leader


cdef int _read_form(Form *form, magic, codec, timestamp_type, producer_id, producer_epoch, base_sequence, transactional,
                    control, partition_leader_epoch, delete_horizon, base_timestamp) except -1:
    memset(form, 0, sizeof(Form))
    number = _CODEC_NUMBERS.get(codec) if isinstance(codec, str) else None
    if number is None:
        raise EncodeError(f"unknown compression codec {brief(codec)}", path="codec")
    # an array would be compared item by item
    stamps = str.__str__(timestamp_type) if isinstance(timestamp_type, str) else None
    form.log_append = stamps == "log_append"
    try:
        form.magic = <int> bounded(magic, "magic", 0, 2)  # read once: an int of the caller's class may say another one
    except (EncodeError, TypeError):
        raise EncodeError(f"expected magic 0, 1 or 2, got {brief(magic)}", path="magic") from None
    if stamps != "create" and not form.log_append and (stamps != "none" or form.magic):
        raise EncodeError(f"magic {form.magic} does not support timestamp type {brief(timestamp_type)}",
                          path="timestamp_type")
    form.codec, form.base_stamp = number, -1
    form.producer = bounded(producer_id, "producer_id", INT64_MIN, INT64_MAX)
    form.epoch = bounded(producer_epoch, "producer_epoch", -32768, 32767)
    form.sequence = bounded(base_sequence, "base_sequence", -INT32_MAX - 1, INT32_MAX)
    form.leader = bounded(partition_leader_epoch, "partition_leader_epoch", -INT32_MAX - 1, INT32_MAX)
    if form.magic != 2:
        if form.producer != -1 or form.epoch != -1 or form.sequence != -1 or form.leader != -1 or (
            transactional or control or delete_horizon is not None
        ):
            raise EncodeError(f"magic {form.magic} does not support producer ids, transactions, control batches, "
                              "leader epochs or delete horizons")
        if form.codec == _CODEC_NUMBERS["zstd"]:
            raise EncodeError(f"magic {form.magic} does not support zstd", path="codec")
        return 0
    form.attributes = number
    form.takes_stamp = delete_horizon is None and base_timestamp is None
    if delete_horizon is not None:
        form.base_stamp = bounded(delete_horizon, "delete_horizon", INT64_MIN, INT64_MAX)
        if base_timestamp is not None and \
                bounded(base_timestamp, "base_timestamp", INT64_MIN, INT64_MAX) != form.base_stamp:
            raise EncodeError("base_timestamp differs from delete_horizon, which is stored in its place",
                              path="base_timestamp")
        form.attributes |= KW_ATTR_DELETE_HORIZON
    elif base_timestamp is not None:
        form.base_stamp = bounded(base_timestamp, "base_timestamp", INT64_MIN, INT64_MAX)
    if form.log_append:
        form.attributes |= KW_ATTR_LOG_APPEND
    if transactional:
        form.attributes |= KW_ATTR_TRANSACTIONAL
    if control:
        form.attributes |= KW_ATTR_CONTROL
    return 0


cdef bytes _compress(const Form *form, bytes content, level):
    global _compress_records
    if _compress_records is None:
        _compress_records = handed("compress")
    return _compress_records(form.codec, content, level=level, magic=form.magic)


cdef Output _body(const Form *form, Py_ssize_t count):
    """The output for the records: after the header, or a separate one if they are compressed."""
    cdef Output out = Output()
    if not form.codec or not count:
        out.skip(KW_RECORD_BATCH_OVERHEAD)
    return out


cdef bytes _finish(Output out, const Form *form, level, Py_ssize_t count, int64_t base, int64_t base_stamp,
                   int64_t newest, int32_t delta):
    """The batch of magic 2 with these records. delta: lastOffsetDelta."""
    cdef bytes payload
    if form.codec and count:
        payload = _compress(form, out.finish(), level)
        out = Output()
        out.skip(KW_RECORD_BATCH_OVERHEAD + len(payload))
        memcpy(out.start + KW_RECORD_BATCH_OVERHEAD, <const uint8_t *> payload, len(payload))
    kw_store64(out.start, base)
    kw_store32(out.start + KW_LENGTH_OFFSET, <uint32_t> (out.at - out.start - KW_LOG_OVERHEAD))
    kw_store32(out.start + KW_PARTITION_LEADER_EPOCH_OFFSET, <uint32_t> form.leader)
    out.start[<int> KW_MAGIC_OFFSET] = 2
    kw_store16(out.start + KW_ATTRIBUTES_OFFSET, form.attributes)
    kw_store32(out.start + KW_LAST_OFFSET_DELTA_OFFSET, <uint32_t> delta)
    kw_store64(out.start + KW_BASE_TIMESTAMP_OFFSET, base_stamp)
    kw_store64(out.start + KW_MAX_TIMESTAMP_OFFSET, newest)
    kw_store64(out.start + KW_PRODUCER_ID_OFFSET, form.producer)
    kw_store16(out.start + KW_PRODUCER_EPOCH_OFFSET, <uint16_t> form.epoch)
    kw_store32(out.start + KW_BASE_SEQUENCE_OFFSET, <uint32_t> form.sequence)
    kw_store32(out.start + KW_RECORDS_COUNT_OFFSET, <uint32_t> count)
    kw_store32(out.start + KW_CRC_OFFSET, crc32c_update(0, out.start + KW_ATTRIBUTES_OFFSET,
                                                        out.at - out.start - KW_ATTRIBUTES_OFFSET))
    return out.finish()


cdef bytes _build_v2(list records, Form *form, level, base_offset, max_timestamp, last_offset):
    """Build one batch of magic 2."""
    cdef int64_t base = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t newest = -1, last = base
    cdef int32_t delta = 0
    cdef Py_ssize_t count = len(records)
    cdef Rows rows = Rows(records, base)
    cdef Output out = _body(form, count)
    _write(rows, out, count, base, &form.base_stamp, form.takes_stamp)
    if max_timestamp is not None:
        newest = bounded(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    elif count:
        newest = rows.max_stamp
    if last_offset is not None:
        last = bounded(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    elif count:
        last = <int64_t> (<uint64_t> rows.offset - 1)
    if not kw_offset_fits(last, base, &delta):
        raise EncodeError(f"{last} is too far from the base offset {base}", path="last_offset")
    return _finish(out, form, level, count, base, form.base_stamp, newest, delta)


cdef uint8_t *_entry(uint8_t *p, int magic, int64_t offset, int64_t stamp, int attributes, const uint8_t *key,
                     Py_ssize_t key_size, const uint8_t *value, Py_ssize_t value_size) except NULL:
    """Write one entry of magic 0 or 1 to p; return one past its last byte."""
    cdef uint8_t *start = p
    cdef Py_ssize_t size = kw_smallest_batch(magic) + max(key_size, 0) + max(value_size, 0)
    kw_store64(p, offset)
    kw_store32(p + KW_LENGTH_OFFSET, <uint32_t> (size - KW_LOG_OVERHEAD))
    p[<int> KW_MAGIC_OFFSET] = <uint8_t> magic
    p[<int> KW_LEGACY_ATTRIBUTES_OFFSET] = <uint8_t> attributes
    if magic:
        kw_store64(p + KW_LEGACY_TIMESTAMP_OFFSET, stamp)
    p += KW_LEGACY_KEY_OFFSET(magic)
    kw_store32(p, <uint32_t> key_size)
    p += 4
    if key_size > 0:
        memcpy(p, key, key_size)
        p += key_size
    kw_store32(p, <uint32_t> value_size)
    p += 4
    if value_size > 0:
        memcpy(p, value, value_size)
        p += value_size
    kw_store32(start + KW_LEGACY_CRC_OFFSET, crc32_update(0, start + KW_MAGIC_OFFSET, p - start - KW_MAGIC_OFFSET))
    return p


cdef bytes _wrapped(bytes entries, const Form *form, level, int64_t base, int64_t last, int64_t stamp):
    """Entries of magic 0 or 1, compressed in a wrapper with the offset of the last one.

    In magic 1 their offsets are relative to base, and readers take a wrapper's offset of 0 for one of absolute offsets.
    """
    if form.magic and (base < 0 or (base and not last)):
        raise EncodeError(f"compressed batches of magic 1 cannot represent offsets from {base} to {last}",
                          path="records")
    cdef bytes payload = _compress(form, entries, level)
    cdef Output out = Output()
    out.reserve(kw_smallest_batch(form.magic) + len(payload), 1, 0)
    out.at = _entry(out.at, form.magic, last, stamp, (KW_ATTR_LOG_APPEND if form.log_append and form.magic else 0)
                    | form.codec, NULL, -1, <const uint8_t *> payload, <int32_t> len(payload))
    return out.finish()


cdef int64_t _entry_size(const Form *form, const kw_row *row) noexcept:
    return <int64_t> kw_smallest_batch(form.magic) + max(row.key_size, 0) + <int64_t> max(row.value_size, 0)


cdef int _add_entry(Output out, const Form *form, const kw_row *row, int64_t base, int64_t stamp, Py_ssize_t left,
                    Py_ssize_t index) except -1:
    """Write a record of magic 0 or 1, after which this many follow."""
    cdef int64_t offset = row.offset
    cdef int64_t size = _entry_size(form, row)
    if row.headers:
        raise EncodeError(f"magic {form.magic} does not support record headers", path=f"records[{index}].headers")
    out.reserve(size, left, index)
    if form.codec and form.magic:  # offsets in a wrapper are relative to its first entry (KIP-31)
        offset = <int64_t> (<uint64_t> row.offset - <uint64_t> base)
    out.at = _entry(out.at, form.magic, offset, stamp, KW_ATTR_LOG_APPEND if form.log_append and form.magic else 0,
                    row.key, row.key_size, row.value, row.value_size)
    return 0


cdef bytes _build_legacy(list records, const Form *form, level, base_offset, max_timestamp, last_offset):
    """Build entries of magic 0 or 1, in one wrapper if there is a codec."""
    cdef int64_t base = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    cdef int64_t newest, last
    cdef bint are_appended = form.log_append and max_timestamp is not None
    cdef Py_ssize_t i, count = len(records)
    cdef Rows rows = Rows(records, base)
    cdef Output out = Output()
    cdef kw_row row
    if not count:
        raise EncodeError("magic 0 and 1 do not support empty batches", path="records")
    newest = 0 if max_timestamp is None else bounded(max_timestamp, "max_timestamp", INT64_MIN, INT64_MAX)
    rows.copy()  # signal handlers run between rows
    for i in range(count):
        PyErr_CheckSignals()
        rows.read(i, &row)
        _add_entry(out, form, &row, base, newest if are_appended else row.stamp, count - i, i)
    if not form.codec:
        return out.finish()
    last = row.offset if last_offset is None else bounded(last_offset, "last_offset", INT64_MIN, INT64_MAX)
    return _wrapped(out.finish(), form, level, base, last, rows.max_stamp if max_timestamp is None else newest)


@cython.binding(True)
@cython.embedsignature(False)
def build_batch(
    records, *, magic=2, codec="none", level=None, base_offset=0, timestamp_type="create", producer_id=-1,
    producer_epoch=-1, base_sequence=-1, transactional=False, control=False, partition_leader_epoch=-1,
    delete_horizon=None, base_timestamp=None, max_timestamp=None, last_offset=None,
):
    """One record batch with these records (magic 0 and 1: entries, in one wrapper if there is a codec).

    records: Record objects, or tuples (timestamp in milliseconds, key, value[, headers]) that get ascending offsets
    from base_offset on; key and value are any buffer or None, headers pairs of (str, buffer or None). base_timestamp,
    max_timestamp and last_offset are needed to rebuild an existing batch, also a compacted or empty one. With
    timestamp_type="log_append", max_timestamp is the append time, and Records keep their own timestamps.
    Raises EncodeError for values that the format cannot represent. Source: Kafka's MemoryRecordsBuilder.
    """
    cdef list listed
    cdef Form form
    if type(records) is list:
        listed = records
    elif not is_iterable(records):
        raise TypeError("records must be an iterable of Records or tuples (timestamp, key, value[, headers]), "
                        f"not {type(records).__name__}")
    else:
        listed = list(records)
    _read_form(&form, magic, codec, timestamp_type, producer_id, producer_epoch, base_sequence, transactional, control,
               partition_leader_epoch, delete_horizon, base_timestamp)
    if form.magic == 2:
        return _build_v2(listed, &form, level, base_offset, max_timestamp, last_offset)
    return _build_legacy(listed, &form, level, base_offset, max_timestamp, last_offset)


cdef int64_t _next_sequence(int64_t sequence, int64_t records) noexcept:
    """Kafka's DefaultRecordBatch.incrementSequence: 2^31 - 1 is followed by 0."""
    return sequence if sequence < 0 else (sequence + records) & INT32_MAX


cdef bint _keeps_much = False


cdef void _keep_much() noexcept:
    """Make glibc keep 32 MiB of freed memory, instead of 128 KiB.

    The batches of a call are freed together, and getting their pages again would take longer than writing the next
    batches. (glibc adapts its thresholds to the size of a freed block: mallopt(3), M_MMAP_THRESHOLD.)
    """
    global _keeps_much
    cdef void *block
    if not _keeps_much:
        block = PyMem_RawMalloc(16 << 20)
        PyMem_RawFree(block)
        _keeps_much = True


@cython.final
cdef class Batches:
    """The batches of build_batches: those that are complete and the open one."""

    cdef ArrowRows rows
    cdef Form form
    cdef kw_fill fill
    cdef object level
    cdef Output out    # of the open batch
    cdef list made
    cdef int64_t first    # the open batch's first row
    cdef int64_t written  # bytes

    cdef int open(self) except -1:
        self.out = Output() if self.form.magic != 2 else _body(&self.form, 1)
        self.fill.head = KW_RECORD_BATCH_OVERHEAD if self.form.magic == 2 and self.form.codec else 0
        self.fill.count = 0
        self.first = self.rows.first + self.fill.at
        return 0

    cdef int close(self) except -1:
        """Complete the open batch, if it has records."""
        cdef bytes batch
        cdef int32_t delta = 0
        if not self.fill.count:
            return 0
        if self.form.magic == 2:
            kw_offset_fits(<int64_t> (<uint64_t> self.fill.next - 1), self.fill.base, &delta)
            batch = _finish(self.out, &self.form, self.level, self.fill.count, self.fill.base, self.fill.base_stamp,
                            self.fill.max_stamp, delta)
            self.form.sequence = _next_sequence(self.form.sequence, <int64_t> delta + 1)
        else:
            batch = self.out.finish()
            if self.form.codec:
                batch = _wrapped(batch, &self.form, self.level, self.fill.base,
                                 <int64_t> (<uint64_t> self.fill.next - 1), self.fill.max_stamp)
        self.made.append((batch, self.first, self.fill.count))
        self.written += len(batch)
        if self.written > 1 << 20:
            _keep_much()
        self.out = None
        return PyErr_CheckSignals()

    cdef int add(self) except -1:
        """Add the rows of the current arrays."""
        cdef kw_fill_status status = KW_FILL_ROOM
        while status != KW_FILL_OK:
            if self.out is None:
                self.open()
            self.fill.start, self.fill.out = self.out.start, self.out.at
            self.fill.end = self.out.at + min(self.out.end - self.out.at, max(STEP_BYTES, self.fill.need))
            self.fill.need = 0
            status = self.rows.fill(&self.fill)
            self.out.at = self.fill.out
            if status == KW_FILL_ROOM:
                PyErr_CheckSignals()
                if self.fill.need > self.out.end - self.out.at:
                    self.out.grow(self.fill.need, self.fill.most_bytes - (self.out.at - self.out.start))
            elif status == KW_FILL_FULL:
                self.close()
            elif status != KW_FILL_OK:
                raise self.rows.error(status, &self.fill)
        return 0

    cdef int add_legacy(self) except -1:
        """Add them in magic 0 or 1."""
        cdef kw_row row
        cdef int64_t size, left
        while self.fill.at < self.rows.c.rows:
            PyErr_CheckSignals()
            self.rows.read(&self.fill, &row)
            size = _entry_size(&self.form, &row)
            if self.out is not None and (size > self.fill.most_bytes - (self.out.at - self.out.start)
                                         or self.fill.count >= self.fill.most_rows):
                self.close()
            if self.out is None:
                self.open()
                self.fill.base = row.offset
            left = (self.fill.most_bytes - (self.out.at - self.out.start)) // size + 1  # that fit, of this size
            left = min(left, self.rows.c.rows - self.fill.at)
            _add_entry(self.out, &self.form, &row, self.fill.base, row.stamp, left, self.rows.first + self.fill.at)
            if self.fill.count == 0 or row.stamp > self.fill.max_stamp:
                self.fill.max_stamp = row.stamp
            self.fill.next = <int64_t> (<uint64_t> row.offset + 1)
            self.fill.has_next = True
            self.fill.count += 1
            self.fill.at += 1
        return 0


@cython.binding(True)
@cython.embedsignature(False)
def build_batches(
    columns, *, batch_bytes=16384, batch_records=None, magic=2, codec="none", level=None, base_offset=0,
    timestamp_type="create", producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False, control=False,
    partition_leader_epoch=-1, delete_horizon=None,
):
    """Record batches of the rows of a table: a list of (bytes of the batch, its first row, rows in it).

    columns: anything with __arrow_c_stream__ or __arrow_c_array__ (a table of pyarrow, polars, pandas, DuckDB or
    kwire.columns). Its columns by name: value (binary or string; null is a tombstone), and optionally key (the same),
    timestamp (int64 milliseconds, or a timestamp; -1, no timestamp, if it is null or missing), headers (a list of
    structs of key and value, or a map) and offset (int64, ascending; without it offsets ascend from base_offset).
    Other columns are ignored, and no Python object is created per record.

    batch_bytes: the size of a batch before compression, at which the next one begins; one row always fits.
    batch_records: the most rows in a batch. The other keywords are those of build_batch; base_sequence is that of the
    first batch. All batches are held in memory: pass a large table in parts.
    Raises EncodeError for values that the format cannot represent, TypeError for an object without an Arrow interface.
    Source: Kafka's MemoryRecordsBuilder, DefaultRecordBatch.incrementSequence.
    """
    cdef Batches batches = Batches.__new__(Batches)
    _read_form(&batches.form, magic, codec, timestamp_type, producer_id, producer_epoch, base_sequence, transactional,
               control, partition_leader_epoch, delete_horizon, None)
    batches.fill.most_bytes = bounded(batch_bytes, "batch_bytes", 1, MOST)
    batches.fill.most_rows = INT32_MAX
    if batch_records is not None:
        batches.fill.most_rows = bounded(batch_records, "batch_records", 1, INT32_MAX)
    batches.fill.next = bounded(base_offset, "base_offset", INT64_MIN, INT64_MAX)
    batches.fill.takes_stamp = batches.form.takes_stamp
    batches.fill.base_stamp = batches.form.base_stamp
    batches.level = level
    batches.made = []
    batches.rows = ArrowRows(columns)
    while batches.rows.next():
        batches.fill.at = 0
        if batches.rows.has_offsets and batches.fill.next and not batches.fill.has_next:
            raise EncodeError("base_offset cannot be given with a column of offsets", path="base_offset")
        if batches.form.magic == 2:
            batches.add()
        else:
            batches.add_legacy()
    batches.close()
    return batches.made


seal(Batches)
