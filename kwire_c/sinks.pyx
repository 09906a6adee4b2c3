"""Messages as Arrow columns: routes through plans, and the columns they end in."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport calloc, free, malloc


import sys

from kwire_c.arrow import export_array, export_schema, export_stream
from kwire_c.decode import decode
from kwire_c.failure import LimitError

from kwire_c.arrow cimport Node, make_node
from kwire_c.instance cimport KW_PLACE, KW_SLOT, Span, fallback
from kwire_c.plan cimport (KW_ARRAY, KW_ARRAY_STRUCT, KW_BOOL, KW_BYTES, KW_RECORDS, KW_RUN, KW_STRING, KW_STRUCT,
                           KW_UUID, Message, find, kw_cursor, kw_cursor_set, kw_field, kw_op, kw_plan, kw_width)

cdef extern from "sink.h" nogil:
    ctypedef struct kw_store:
        uint8_t *data
        size_t used, size

    ctypedef struct kw_sink:
        const kw_field *field
        uint8_t kind, default_null
        int64_t rows, nulls
        kw_store values, offsets, valid
        kw_sink **children
        uint16_t n_children

    ctypedef struct kw_route:
        const kw_plan *plan
        kw_sink **sinks
        kw_sink **tag_sinks
        kw_route **below
        uint8_t *looked

    enum: KW_DONE, KW_BY_OBJECT, KW_NO_MEMORY, KW_TOO_LARGE
    int kw_sink_fixed(kw_sink *s, const uint8_t *native)
    int kw_sink_bytes(kw_sink *s, const uint8_t *data, size_t size)
    int kw_sink_start(kw_sink *s)
    int kw_sink_list(kw_sink *s)
    int kw_sink_struct(kw_sink *s)
    int kw_sink_null(kw_sink *s)
    int kw_sink_take(const kw_sink *src, kw_sink *to, const int64_t *rows, int64_t count)
    void kw_sink_free(kw_sink *s)
    int kw_route_walk(kw_cursor *c, const kw_route *route)

FORMATS = (b"b", b"c", b"s", b"S", b"i", b"I", b"l", b"g", b"w:16", b"u", b"z")  # by kind, up to bytes


cdef struct Mark:
    int64_t rows, nulls
    size_t values, offsets, valid


cdef int check(int status) except -1:
    if status == KW_NO_MEMORY:
        raise MemoryError
    if status == KW_TOO_LARGE:
        raise LimitError("a column of these messages passes 2 GiB", limit=0x7fffffff)
    return 0


cdef class Gatherer:
    """The sinks of one message and version, and the routes that fill them."""
    cdef Message message
    cdef int version
    cdef kw_sink *top
    cdef kw_route *route
    cdef list routes       # addresses, to be freed
    cdef list sinks        # addresses, to be marked
    cdef Mark *marks
    cdef readonly list bad

    def __cinit__(self, message, version, wanted):
        cdef const kw_plan *plan
        self.message = find(message)
        plan = self.message.at(version)
        self.version, self.routes, self.sinks, self.bad = plan.version, [], [], []
        self.top = self.make_sink(NULL, KW_STRUCT, False)
        self.route = self.make_route(plan, self.top, wanted, "")
        check(kw_sink_start(self.top))
        self.marks = <Mark *>PyMem_Calloc(len(self.sinks), sizeof(Mark))
        if self.marks == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef kw_route *route
        kw_sink_free(self.top)
        PyMem_Free(self.marks)
        for address in self.routes or ():
            route = <kw_route *><size_t>address
            free(route.sinks)
            free(route.tag_sinks)
            free(route.below)
            free(route.looked)
            free(route)

    cdef kw_sink *make_sink(self, const kw_field *field, int kind, bint default_null) except NULL:
        cdef kw_sink *sink = <kw_sink *>calloc(1, sizeof(kw_sink))
        if sink == NULL:
            raise MemoryError
        sink.field, sink.kind, sink.default_null = field, kind, default_null
        self.sinks.append(<size_t>sink)
        return sink

    cdef kw_route *make_route(self, const kw_plan *plan, kw_sink *owner, object wanted, str path) except NULL:
        """wanted: None for every field, else {name: None or the same below}; owner: NULL where nobody looks."""
        cdef kw_route *route = <kw_route *>calloc(1, sizeof(kw_route))
        cdef const kw_op *op
        cdef int i
        if route == NULL:
            raise MemoryError
        self.routes.append(<size_t>route)
        route.plan = plan
        route.sinks = <kw_sink **>calloc(plan.n_ops + 1, sizeof(void *))
        route.tag_sinks = <kw_sink **>calloc(plan.n_tags + 1, sizeof(void *))
        route.below = <kw_route **>calloc(plan.n_ops + 1, sizeof(void *))
        route.looked = <uint8_t *>calloc(plan.n_ops + 1, 1)
        if route.sinks == NULL or route.tag_sinks == NULL or route.below == NULL or route.looked == NULL:
            raise MemoryError
        made, names, first = [], set(), 0
        for i in range(plan.n_ops):
            op = &plan.ops[i]
            if op.code == KW_RUN:
                first = i
                continue
            name = str(<object>op.field.name)
            names.add(name)
            if owner != NULL and (wanted is None or name in wanted):
                route.sinks[i] = self.field_sink(op)
                made.append((<size_t>op.field, <size_t>route.sinks[i]))
            if op.code < KW_STRING and (route.sinks[i] != NULL or op.code == KW_BOOL):
                route.looked[first] = 1
            if op.sub != NULL:
                route.below[i] = self.below(op, route.sinks[i], None if wanted is None else wanted.get(name),
                                            f"{path}{name}.")
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
                raise ValueError(f"{self.message.name} v{self.version} has no field {path}{name}")
        if owner != NULL:
            owner.children = <kw_sink **>calloc(len(made) + 1, sizeof(void *))
            if owner.children == NULL:
                raise MemoryError
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
            sink.children = <kw_sink **>calloc(1, sizeof(void *))
            if sink.children == NULL:
                raise MemoryError
            sink.children[0] = self.make_sink(field, field.elem, False)
            sink.n_children = 1
        return sink

    cdef int remember(self) except -1:
        cdef kw_sink *sink
        cdef Mark *mark = self.marks
        for address in self.sinks:
            sink = <kw_sink *><size_t>address
            mark.rows, mark.nulls, mark.values = sink.rows, sink.nulls, sink.values.used
            mark.offsets, mark.valid = sink.offsets.used, sink.valid.used
            mark += 1
        return 0

    cdef int restore(self) except -1:
        cdef kw_sink *sink
        cdef Mark *mark = self.marks
        for address in self.sinks:
            sink = <kw_sink *><size_t>address
            sink.rows, sink.nulls, sink.values.used = mark.rows, mark.nulls, mark.values
            sink.offsets.used, sink.valid.used = mark.offsets, mark.valid
            mark += 1
        return 0

    def add(self, payload, bint lenient):
        """Appends the message in a payload. Raises DecodeError, having appended nothing."""
        cdef Py_buffer buffer
        cdef kw_cursor c
        cdef int status
        self.remember()
        PyObject_GetBuffer(payload, &buffer, PyBUF_SIMPLE)
        try:
            with nogil:
                kw_cursor_set(&c, <const uint8_t *>buffer.buf, buffer.len)
                status = kw_route_walk(&c, self.route)
                if status == KW_DONE:
                    status = kw_sink_struct(self.top) if c.at == c.end else KW_BY_OBJECT
        finally:
            PyBuffer_Release(&buffer)
        check(status)
        if status == KW_BY_OBJECT:
            self.restore()
            message = decode(self.message.name, self.version, payload, lenient=lenient)
            try:
                add_struct(self.top, <char *><PyObject *>message)
            except BaseException:
                self.restore()
                raise

    @property
    def rows(self):
        """Messages so far."""
        return self.top.rows

    def node(self):
        """The whole messages as one struct column."""
        return struct_node("message", self.top, self)

    def flat(self, tuple paths):
        """(rows, nodes) of flattened paths: one row an element of the deepest array that they pass."""
        chains = [self.chain(path) for path in paths]
        longest = max([chain[0] for chain in chains], key=len)
        for path, (arrays, _) in zip(paths, chains):
            if longest[:len(arrays)] != arrays:
                raise ValueError(f"{path} stands beside, not above, the rows of the other paths")
        rows = (<kw_sink *><size_t>longest[len(longest) - 1]).children[0].rows if longest else self.top.rows
        nodes = []
        for path, (arrays, address) in zip(paths, chains):
            if len(arrays) == len(longest):
                nodes.append(sink_node(path, <kw_sink *><size_t>address, self))
            else:
                nodes.append(repeated(path, <kw_sink *><size_t>address, longest[len(arrays):], rows))
        return rows, nodes

    cdef object chain(self, str path):
        """(addresses of the arrays that a path passes, address of its last sink)."""
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
                raise ValueError(f"{self.message.name} v{self.version} has no field {path}")
        return arrays, <size_t>sink


cdef class Taken:
    """A column made from another by repeating rows; owns its sink."""
    cdef kw_sink *sink

    def __dealloc__(self):
        kw_sink_free(self.sink)


cdef kw_sink *same_shape(const kw_sink *like) except NULL:
    cdef kw_sink *made = <kw_sink *>calloc(1, sizeof(kw_sink))
    cdef int i
    if made == NULL:
        raise MemoryError
    made.field, made.kind = like.field, like.kind
    made.children = <kw_sink **>calloc(like.n_children + 1, sizeof(void *))
    if made.children == NULL:
        raise MemoryError
    for i in range(like.n_children):
        made.children[i] = same_shape(like.children[i])
        made.n_children = i + 1
    return made


cdef Node repeated(str name, kw_sink *sink, list arrays, int64_t rows):
    """A column of an outer level, each of its values beside all rows below it."""
    cdef int64_t *index = <int64_t *>malloc(8 * (rows + 1))
    cdef const int32_t *ends
    cdef int64_t outer, at, first, last
    cdef Taken owner = Taken.__new__(Taken)
    if index == NULL:
        raise MemoryError
    try:
        owner.sink = same_shape(sink)
        check(kw_sink_start(owner.sink))
        at = 0
        for outer in range(sink.rows):
            first, last = outer, outer + 1
            for address in arrays:
                ends = <const int32_t *>(<kw_sink *><size_t>address).offsets.data
                first, last = ends[first], ends[last]
            for _ in range(last - first):
                index[at] = outer
                at += 1
        check(kw_sink_take(sink, owner.sink, index, at))
    finally:
        free(index)
    return sink_node(name, owner.sink, owner)


cdef bytes packed(const uint8_t *flags, int64_t rows):
    """A bit a row from a byte a row."""
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


cdef Node struct_node(str name, kw_sink *sink, object owner):
    return sink_node(name, sink, owner)


cdef Node sink_node(str name, kw_sink *sink, object owner):
    """The Arrow array of a sink."""
    cdef const void *buffers[3]
    cdef Node node
    cdef int n = 2
    cdef int i
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
    buffers[0] = NULL if validity is None else <const void *><const char *>validity
    node = make_node(name, format, sink.rows, sink.nulls, (owner, validity, bools), children)
    node.set_buffers(buffers, n)
    return node


cdef int add_struct(kw_sink *sink, char *self) except -1:
    """Appends an instance, the slow way."""
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
    if sink.kind == KW_UUID:
        data = element.bytes
    else:
        data = element.to_bytes(kw_width[sink.kind], sys.byteorder, signed=element < 0)
    return check(kw_sink_fixed(sink, <const uint8_t *><const char *>data))


cdef int add_bytes(kw_sink *sink, object value) except -1:
    if isinstance(value, Span):
        value = (<Span>value).seen()
    data = value.encode() if isinstance(value, str) else bytes(value)
    return check(kw_sink_bytes(sink, <const uint8_t *><const char *>data, len(data)))


class MessageColumn:
    """One column of MessageColumns: an Arrow array in one chunk, for whatever takes the Arrow PyCapsule interface."""

    def __init__(self, node):
        self._node = node

    @property
    def name(self):
        """Its name."""
        return self._node.name

    def __len__(self):
        return self._node.length

    @property
    def null_count(self):
        """Rows that are null."""
        return self._node.null_count

    def __arrow_c_schema__(self):
        return export_schema(self._node)

    def __arrow_c_array__(self, requested_schema=None):
        return export_array(self._node)

    def __arrow_c_stream__(self, requested_schema=None):
        return export_stream(self._node, [self._node])


class MessageColumns:
    """Messages as Arrow columns: pyarrow.table(columns) and polars.DataFrame(columns) take it as it is.

    names; len(): rows; columns["topics.name"]: a MessageColumn; bad: BadMessage of each payload that gave no rows.
    """

    def __init__(self, rows, nodes, bad):
        self.names, self.bad = tuple(node.name for node in nodes), bad
        self._rows, self._nodes = rows, nodes

    def __len__(self):
        return self._rows

    def __iter__(self):
        return iter(self.names)

    def __contains__(self, name):
        return name in self.names

    def __getitem__(self, name):
        for node in self._nodes:
            if node.name == name:
                return MessageColumn(node)
        raise KeyError(name)

    def __arrow_c_schema__(self):
        return export_schema(self._table())

    def __arrow_c_stream__(self, requested_schema=None):
        node = self._table()
        return export_stream(node, [node])

    def _table(self):
        return table_node(self._rows, self._nodes)

    def __repr__(self):
        return f"<MessageColumns {', '.join(self.names)}: {self._rows} rows>"


def table_node(rows, list nodes):
    """A struct over columns, which the stream of a table consists of."""
    cdef const void *buffers[1]
    buffers[0] = NULL
    cdef Node node = make_node("", b"+s", rows, 0, nodes, nodes)
    node.set_buffers(buffers, 1)
    return node
