"""Records in columns as text, row by row: C writes what is ASCII, Python functions all other text."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

cimport cython

from kwire_c.columns import FIELDS as _FIELDS

from kwire_c.columns cimport Chunk, RecordColumns
from kwire_c.core cimport (
    KW_COL_FIXED, KW_COL_HEADERS, KW_COL_IS_CONTROL, KW_COL_KEY, KW_COL_OFFSET,
    KW_COL_TIMESTAMP, KW_COL_VALUE, KW_TEXT_CALL, KW_TEXT_DONE, KW_TEXT_KINDS, KW_TEXT_MEMORY, kw_buffer, kw_columns,
    kw_text_bytes, kw_text_kind, kw_text_number, kw_text_piece, kw_text_reserve, kw_text_row, kw_text_status,
)

# the kinds of pieces, in the order of record_text.h
KINDS = ("literal", "number", "name", "time", "plain", "json", "raw", "size", "size_binary", "headers", "headers_raw",
         "headers_json", "call")
assert len(KINDS) == KW_TEXT_KINDS
_BLOCK_BYTES = 1 << 18  # of text, after which it is handed out

cdef bytes _ELLIPSIS = "…".encode()


@cython.no_gc_clear  # what it points into must not go before it
cdef class RecordText:
    """Writes rows of RecordColumns as text.

    pieces: (kind, column, options) each, in order; kind: one of KINDS; column: a field of columns(), "" for none.
    options: texts (bytes, up to three), width, limit, begin and end (of "time"), as record_text.h has them; call: a
    function of one argument that gives the bytes of the piece where C does not write them (text that is not ASCII, a
    time that no calendar has, kind "call"): of the bytes of key or value, of the list of (name, value) headers, of a
    number; of "call" of the position of the batch. A piece with decoded=N gets item N of what decode returns.
    decode: called with (offset, timestamp, key, value, is_control) of control records, and with every=True of all
    records: gives a tuple of bytes, or None for a record that is written as it is.
    cells: the most signs of a line, 0 for no limit; fit: cuts a line with text that is not ASCII (bytes) to them.
    """

    cdef kw_text_piece *pieces
    cdef int count
    cdef tuple kept     # the texts that pieces point to
    cdef list calls, decoded
    cdef object decode, fit
    cdef bint every
    cdef Py_ssize_t cells
    cdef kw_buffer out
    cdef uint32_t needed  # bits of the columns that are read

    def __cinit__(self, pieces, *, decode=None, bint every=False, Py_ssize_t cells=0, fit=None):
        cdef kw_text_piece *piece
        self.decode, self.every, self.cells, self.fit = decode, every, cells, fit
        self.calls, self.decoded = [], []
        self.pieces = <kw_text_piece *> calloc(len(pieces) + 1, sizeof(kw_text_piece))
        if self.pieces == NULL:
            raise MemoryError
        kept = []
        for kind, column, options in pieces:
            piece = &self.pieces[self.count]
            piece.kind = <kw_text_kind> <int> KINDS.index(kind)
            piece.column = _FIELDS[column][0] if column else KW_COL_FIXED
            if column:
                self.needed |= 1u << piece.column
            self.set_texts(piece, options.get("texts", ()), kept)
            piece.width, piece.limit = options.get("width", 0), options.get("limit", 0)
            piece.begin, piece.end = options.get("begin", 0), options.get("end", 23)
            piece.given = "decoded" in options
            self.calls.append(options.get("call"))
            self.decoded.append(options.get("decoded"))
            self.count += 1
        if decode is not None:
            self.needed |= 1u << KW_COL_OFFSET | 1u << KW_COL_TIMESTAMP | 1u << KW_COL_KEY | 1u << KW_COL_VALUE
            self.needed |= 1u << KW_COL_IS_CONTROL
        self.kept = tuple(kept)

    cdef int set_texts(self, kw_text_piece *piece, texts, list kept) except -1:
        cdef bytes text
        cdef int i = 0
        if len(texts) > 3 or not 0 <= piece.kind < KW_TEXT_KINDS:
            raise ValueError("a piece has at most three texts")
        for i, text in enumerate(texts):
            kept.append(text)
            piece.texts[i] = <const uint8_t *> PyBytes_AS_STRING(text)
            piece.sizes[i] = <uint32_t> PyBytes_GET_SIZE(text)
        return 0

    def __dealloc__(self):
        free(self.pieces)
        free(self.out.data)

    def write(self, RecordColumns columns not None, rows=None):
        """Yield the text of rows (a list of their numbers, ascending; None: all) in blocks of bytes."""
        cdef Chunk chunk
        cdef Py_ssize_t first = 0, at = 0
        for chunk in columns.chunks:
            if self.needed & ~chunk.c.fields or chunk.c.views:
                raise ValueError("the columns lack fields of the pieces, or have views")
            wanted = range(chunk.c.rows) if rows is None else rows
            at = 0 if rows is None else at
            while at < len(wanted):
                at = self.fill(chunk, wanted, at, 0 if rows is None else first)
                yield self.taken()
                if rows is not None and at < len(rows) and rows[at] >= first + chunk.c.rows:
                    break
            first += chunk.c.rows

    cdef bytes taken(self):
        cdef bytes block = PyBytes_FromStringAndSize(<const char *> self.out.data, self.out.size)
        self.out.size = 0
        return block

    cdef Py_ssize_t fill(self, Chunk chunk, object rows, Py_ssize_t at, Py_ssize_t first) except -1:
        """Write rows from number `at` of the list on until a block is full; return the number of the next one."""
        cdef int64_t row
        cdef Py_ssize_t count = len(rows)
        cdef bint is_all = type(rows) is range
        try:
            while at < count and self.out.size < _BLOCK_BYTES:
                row = at if is_all else <int64_t> rows[at] - first
                if row >= chunk.c.rows:
                    break
                if row < 0:
                    raise IndexError("rows must be ascending")
                self.write_row(&chunk.c, row)
                at += 1
        except BaseException:
            self.out.size = 0
            raise
        return at

    cdef int write_row(self, kw_columns *columns, int64_t row) except -1:
        cdef kw_text_status status
        cdef size_t start = self.out.size
        cdef int at = 0
        cdef bint is_ascii = True
        cdef object given = None
        if self.decode is not None and (self.every or kw_text_number(columns, KW_COL_IS_CONTROL, row)):
            given = self.decode(
                kw_text_number(columns, KW_COL_OFFSET, row), kw_text_number(columns, KW_COL_TIMESTAMP, row),
                content(columns, KW_COL_KEY, row), content(columns, KW_COL_VALUE, row),
                bool(kw_text_number(columns, KW_COL_IS_CONTROL, row)))
        while True:
            status = kw_text_row(columns, row, self.pieces, self.count, given is not None, &at, &self.out)
            if status == KW_TEXT_DONE:
                break
            if status == KW_TEXT_MEMORY:
                raise MemoryError
            is_ascii = False
            self.append(self.given(columns, row, at, given))
            at += 1
        if self.cells:
            self.cut(start, is_ascii)
        return 0

    cdef object given(self, kw_columns *columns, int64_t row, int at, object given):
        """What Python writes of a piece."""
        cdef kw_text_piece *piece = &self.pieces[at]
        if given is not None and piece.given:
            return given[self.decoded[at]]
        call = self.calls[at]
        if piece.column < KW_COL_FIXED:
            return call(kw_text_number(columns, piece.column, row))
        if piece.column == KW_COL_HEADERS:
            return call(headers(columns, row))
        if piece.kind == KW_TEXT_CALL:
            return call(None)
        return call(content(columns, piece.column, row))

    cdef int append(self, bytes text) except -1:
        cdef size_t size = PyBytes_GET_SIZE(text)
        if not kw_text_reserve(&self.out, size):
            raise MemoryError
        memcpy(self.out.data + self.out.size, PyBytes_AS_STRING(text), size)
        self.out.size += size
        return 0

    cdef int cut(self, size_t start, bint is_ascii) except -1:
        """Cut the line that begins at byte start, and has its end, to the most signs."""
        cdef size_t size = self.out.size - start
        if size <= <size_t> self.cells + 1:  # no sign has less than a byte
            return 0
        line = PyBytes_FromStringAndSize(<const char *> self.out.data + start, size if not is_ascii else self.cells - 1)
        self.out.size = start
        if is_ascii:
            return self.append(line + _ELLIPSIS + b"\n")
        return self.append(self.fit(line))


cdef object content(kw_columns *columns, int column, int64_t row):
    """The bytes of key or value."""
    cdef uint32_t size
    cdef const uint8_t *data = kw_text_bytes(&columns.key if column == KW_COL_KEY else &columns.value, row, &size)
    return None if data == NULL else PyBytes_FromStringAndSize(<const char *> data, size)


cdef list headers(kw_columns *columns, int64_t row):
    """(name, value) of the headers of a record, both as bytes."""
    cdef const int32_t *lists = <const int32_t *> columns.header_lists.data
    cdef const uint8_t *data
    cdef uint32_t size, name_size
    cdef int64_t i
    found = []
    for i in range(lists[row], lists[row + 1]):
        data = kw_text_bytes(&columns.header_key, i, &name_size)
        name = PyBytes_FromStringAndSize(<const char *> data, name_size)
        data = kw_text_bytes(&columns.header_value, i, &size)
        found.append((name, None if data == NULL else PyBytes_FromStringAndSize(<const char *> data, size)))
    return found


def values_of(RecordColumns columns not None, name):
    """The Python values of a column: ints, bytes, or lists of (name, value) headers as bytes."""
    cdef Chunk chunk
    cdef int64_t row
    cdef int number = _FIELDS[name][0]
    values = []
    for chunk in columns.chunks:
        if not chunk.c.fields & 1u << number or chunk.c.views:
            raise ValueError(f"the columns lack {name!r}, or have views")
        for row in range(chunk.c.rows):
            if number == KW_COL_HEADERS:
                values.append(headers(&chunk.c, row))
            elif number >= KW_COL_FIXED:
                values.append(content(&chunk.c, number, row))
            else:
                values.append(kw_text_number(&chunk.c, number, row))
    return values
