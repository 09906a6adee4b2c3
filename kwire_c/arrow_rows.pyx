"""Records in Arrow arrays of any library, taken in through the Arrow C interfaces for build_batches."""

from kwire_c.failure import EncodeError
from kwire_c.printable import brief, printable

from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.errno cimport ENOMEM
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.string cimport memset, strcmp

cimport cython

from kwire_c.arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema
from kwire_c.rows cimport Row

# Arrow types -> (how the bytes lie, buffers)
cdef dict _BYTES = {b"n": (KW_LAYOUT_NULL, 0), b"z": (KW_LAYOUT_32, 3), b"u": (KW_LAYOUT_32, 3),
                    b"Z": (KW_LAYOUT_64, 3), b"U": (KW_LAYOUT_64, 3), b"vz": (KW_LAYOUT_VIEW, 3),
                    b"vu": (KW_LAYOUT_VIEW, 3)}
# units of Arrow's timestamps -> (times, divided by) to milliseconds
cdef dict _UNITS = {b"s": (1000, 1), b"m": (1, 1), b"u": (1, 1000), b"n": (1, 1_000_000)}

cdef dict _REASONS = {
    KW_FILL_NULL_ROW: ("", "the row is null"),
    KW_FILL_BAD_SPAN: ("", "the Arrow array's offsets fall or lie outside of it"),
    KW_FILL_LONG: ("", "key, value or headers are over 2 GiB"),
    KW_FILL_LONG_BATCH: ("", "the record is over 2 GiB"),
    KW_FILL_TIME: ("timestamp", "the timestamp in milliseconds does not fit 64 bits"),
    KW_FILL_NULL_OFFSET: ("offset", "the offset is null"),
    KW_FILL_FALLING_OFFSET: ("offset", "the offset does not rise"),
    KW_FILL_NO_OFFSET: ("offset", "no offset is left behind 2^63 - 1"),
    KW_FILL_NULL_PAIR: ("headers", "a header is null"),
    KW_FILL_NULL_HEADER_KEY: ("headers", "a header key is null"),
    KW_FILL_CHANGED: ("headers", "the headers changed while they were read"),
}


cdef object _refuse(str name, const ArrowSchema *schema, str wanted):
    cdef str found = schema.format.decode("utf-8", "replace")
    if schema.dictionary != NULL:
        found = "dictionary (decode it first)"
    return EncodeError(f"wanted {wanted}, found the Arrow type {brief(found)}", path=name)


cdef int _has_buffers(str name, const ArrowArray *array, int64_t first, int64_t rows, int64_t least) except -1:
    """Whether an array has rows from first on, and the buffers that its type says."""
    cdef int64_t i
    if array.release == NULL:
        raise EncodeError("the Arrow array was released", path=name)
    if array.offset < 0 or array.length < 0 or array.offset > INT64_MAX - array.length or array.n_buffers < least or \
            rows > array.length or first > array.length - rows:
        raise EncodeError(f"the Arrow array has {array.length} rows from {array.offset} on and {array.n_buffers} "
                          f"buffers, wanted {rows} rows from {first} on and {least} buffers", path=name)
    if rows:
        for i in range(1, least):
            if array.buffers[i] == NULL and i != 2:  # bytes of nothing may have none
                raise EncodeError(f"the Arrow array lacks buffer {i}", path=name)
    return 0


cdef const uint8_t *_valid(const ArrowArray *array) noexcept:
    return <const uint8_t *> array.buffers[0] if array.null_count else NULL


cdef int _bytes(str name, const ArrowSchema *schema, const ArrowArray *array, int64_t first, int64_t rows,
                kw_arrow_bytes *out) except -1:
    """A column of keys or values: rows of its array from first on."""
    cdef bytes format = schema.format
    memset(out, 0, sizeof(kw_arrow_bytes))
    if schema.dictionary == NULL and format.startswith(b"w:") and format[2:].isdigit() and len(format) < 12:
        layout, buffers = KW_LAYOUT_FIXED, 2
        out.width = int(format[2:])
    elif schema.dictionary == NULL and format in _BYTES:
        layout, buffers = _BYTES[format]
    else:
        raise _refuse(name, schema, "binary or string")
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
    """A column of 64-bit integers, or of timestamps."""
    cdef bytes format = schema.format
    multiply, divide = 1, 1
    if schema.dictionary == NULL and is_time and format == b"n":
        return 0
    if schema.dictionary == NULL and is_time and format[:2] == b"ts" and format[2:3] in _UNITS and format[3:4] == b":":
        multiply, divide = _UNITS[format[2:3]]
    elif schema.dictionary != NULL or format != b"l":
        raise _refuse(name, schema, "int64 (milliseconds) or a timestamp" if is_time else "int64")
    _has_buffers(name, array, first, rows, 2)
    out.valid = _valid(array)
    out.values = <const int64_t *> array.buffers[1]
    out.first = array.offset + first
    out.multiply, out.divide = multiply, divide
    return 0


cdef int _headers(const ArrowSchema *schema, const ArrowArray *array, int64_t first, int64_t rows,
                  kw_arrow_headers *out) except -1:
    """A column of lists of (key, value) structs, or of maps."""
    cdef bytes format = schema.format
    cdef const ArrowSchema *pair
    cdef const ArrowArray *pairs
    cdef int64_t i, key = -1, value = -1
    wanted = "a list of structs of key (string) and value (binary), or a map of these"
    if schema.dictionary == NULL and format == b"n":
        return 0
    if schema.dictionary != NULL or format not in (b"+l", b"+L", b"+m") or schema.n_children != 1:
        raise _refuse("headers", schema, wanted)
    pair = schema.children[0]
    if strcmp(pair.format, "+s") != 0 or pair.dictionary != NULL:
        raise _refuse("headers", pair, wanted)
    for i in range(pair.n_children):
        if format == b"+m":
            key, value = 0, 1
        elif pair.children[i].name != NULL and strcmp(pair.children[i].name, "key") == 0:
            key = i
        elif pair.children[i].name != NULL and strcmp(pair.children[i].name, "value") == 0:
            value = i
    if key < 0 or value < 0 or pair.n_children < 2:
        raise EncodeError(f"wanted {wanted}, found structs without key or value", path="headers")
    _has_buffers("headers", array, first, rows, 2)
    if array.n_children != 1 or array.children[0].n_children != pair.n_children:
        raise EncodeError("the Arrow array has other children than its schema", path="headers")
    pairs = array.children[0]
    _has_buffers("headers", pairs, 0, 0, 1)
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
        raise TypeError(f"wanted an Arrow capsule {name.decode()!r}, not {type(capsule).__name__}")
    return PyCapsule_GetPointer(capsule, name)


cdef void _no_stream(ArrowArrayStream *stream) noexcept:
    if stream.release != NULL:
        stream.release(stream)
        stream.release = NULL


cdef void _no_array(ArrowArray *array) noexcept:
    if array.release != NULL:
        array.release(array)
        array.release = NULL


@cython.final
cdef class ArrowRows:
    """Rows of a table, arrays after arrays: anything that has __arrow_c_stream__ or __arrow_c_array__."""

    def __cinit__(self, columns):
        cdef ArrowArrayStream *stream
        cdef ArrowSchema *schema
        cdef ArrowArray *array
        if hasattr(columns, "__arrow_c_stream__"):
            capsule = columns.__arrow_c_stream__()
            stream = <ArrowArrayStream *> _content(capsule, "arrow_array_stream")
            if stream.release == NULL:
                raise EncodeError("the Arrow stream was read before", path="columns")
            self.stream = stream[0]  # moved, as the interface says
            stream.release = NULL
            self.check(self.stream.get_schema(&self.stream, &self.schema))
        elif hasattr(columns, "__arrow_c_array__"):
            pair = columns.__arrow_c_array__()
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(f"wanted two Arrow capsules, not {brief(pair)}")
            schema = <ArrowSchema *> _content(pair[0], "arrow_schema")
            array = <ArrowArray *> _content(pair[1], "arrow_array")
            if schema.release == NULL or array.release == NULL:
                raise EncodeError("the Arrow array was taken before", path="columns")
            self.schema, self.array = schema[0], array[0]
            schema.release = NULL
            array.release = NULL
            self.has_array = True
        else:
            raise TypeError("columns come from an object with __arrow_c_stream__ or __arrow_c_array__ (a table of "
                            f"pyarrow, polars, pandas, kwire.columns), not {type(columns).__name__}")
        if self.schema.format == NULL or strcmp(self.schema.format, "+s") != 0:
            raise _refuse("columns", &self.schema, "a table or a struct")

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
            raise EncodeError(f"the Arrow stream failed: {printable(text[:1000])}", path="columns")
        return 0

    cdef bint next(self) except -1:
        """Goes to the next arrays; False where there are none."""
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
        self.place()
        return True

    cdef int place(self) except -1:
        """Finds the columns in the arrays."""
        cdef const ArrowArray *array = &self.array
        cdef const ArrowSchema *field
        cdef int64_t i, first = array.offset, rows = array.length
        cdef bytes name
        memset(&self.c, 0, sizeof(kw_arrow_rows))
        if array.n_children != self.schema.n_children or array.n_buffers < 1 or rows < 0 or first < 0 or \
                first > INT64_MAX - rows:
            raise EncodeError("the Arrow array has other children than its schema", path="columns")
        seen = set()
        for i in range(self.schema.n_children):
            field = self.schema.children[i]
            name = field.name if field.name != NULL else b""
            if name in seen:
                raise EncodeError("two columns have this name", path=name.decode())
            if name == b"key":
                _bytes("key", field, array.children[i], first, rows, &self.c.key)
            elif name == b"value":
                _bytes("value", field, array.children[i], first, rows, &self.c.value)
            elif name == b"timestamp":
                _numbers("timestamp", field, array.children[i], first, rows, True, &self.c.stamp)
            elif name == b"offset":
                _numbers("offset", field, array.children[i], first, rows, False, &self.c.offset)
            elif name == b"headers":
                _headers(field, array.children[i], first, rows, &self.c.headers)
            else:
                continue
            seen.add(name)
        if b"value" not in seen:
            raise EncodeError("there is no column of this name", path="value")
        self.c.rows = rows
        self.c.first = first
        self.c.valid = _valid(array)
        return 0

    cdef kw_fill_status fill(self, kw_fill *fill) noexcept:
        """kw_fill_batch; without the lock where much may be written."""
        cdef kw_fill_status status
        if fill.end - fill.out < 131072:
            return kw_fill_batch(&self.c, fill)
        with nogil:
            status = kw_fill_batch(&self.c, fill)
        return status

    cdef int read(self, kw_fill *fill, Row *row) except -1:
        """The row at fill.at, which has no headers (magic 0 and 1)."""
        cdef int64_t start, stop
        cdef kw_fill_status status = kw_arrow_offset(&self.c, fill, &row.offset)
        if status == KW_FILL_OK:
            status = kw_arrow_row(&self.c, fill.at, row, &start, &stop)
        if status != KW_FILL_OK:
            raise self.error(status, fill)
        return 0

    cdef object error(self, kw_fill_status status, kw_fill *fill):
        name, reason = _REASONS[status]
        return EncodeError(reason, path=f"{name or 'columns'}[{self.first + fill.at}]")
