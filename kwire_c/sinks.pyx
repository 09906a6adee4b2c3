"""Messages as Arrow columns: routes through plans, and the columns they end in."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, realloc


import sys

from kwire_c.decode import decode
from kwire_c.failure import LimitError

from kwire_c.arrow cimport Node, make_node
from kwire_c.columns cimport buffer_free, buffer_grow, kw_buffer
from kwire_c.instance cimport KW_PLACE, KW_SLOT, Span, fallback, take_uuid
from kwire_c.plan cimport (KW_ARRAY, KW_ARRAY_STRUCT, KW_ARRAY_UUID, KW_BOOL, KW_BYTES, KW_COMPACT, KW_RECORDS,
                           KW_RUN, KW_STRING, KW_STRUCT, KW_UUID, Message, find, kw_cursor, kw_cursor_set, kw_field,
                           kw_op, kw_plan, kw_width)

cdef extern from "sink.h" nogil:
    ctypedef struct kw_sink:
        const kw_field *field
        uint8_t kind, default_null
        uint16_t n_children
        int64_t rows, nulls, most
        int64_t *room
        kw_buffer values, offsets, valid
        kw_sink **children

    ctypedef struct kw_pick:
        kw_sink *sink
        uint32_t at
        uint8_t kind, width

    ctypedef struct kw_step:
        const kw_op *op
        kw_sink *sink
        kw_route *below
        kw_pick *picks
        uint16_t n_picks
        uint8_t code, guesses, shift, last_length
        uint32_t last_size

    ctypedef struct kw_route:
        const kw_plan *plan
        kw_step *steps
        kw_sink **tag_sinks
        uint16_t n_steps

    enum: KW_DONE, KW_BY_OBJECT, KW_NO_MEMORY, KW_TOO_LARGE, KW_TOO_WIDE
    int (*kw_sink_grow)(kw_buffer *buffer, size_t need, size_t wish) noexcept
    void (*kw_sink_give)(kw_buffer *buffer) noexcept
    int kw_sink_fixed(kw_sink *s, const uint8_t *native)
    int kw_sink_bytes(kw_sink *s, const uint8_t *data, size_t size)
    int kw_sink_start(kw_sink *s)
    int kw_sink_list(kw_sink *s)
    int kw_sink_struct(kw_sink *s)
    int kw_sink_null(kw_sink *s)
    int kw_sink_repeat(const kw_sink *src, int64_t row, kw_sink *to, int64_t times)
    void kw_sink_empty(kw_sink *s)
    void kw_sink_free(kw_sink *s)
    int kw_route_walk(kw_cursor *c, const kw_route *route)

cdef enum:
    REPEATED = 50  # times the bytes of the payloads

kw_sink_grow, kw_sink_give = buffer_grow, buffer_free

FORMATS = (b"b", b"c", b"s", b"S", b"i", b"I", b"l", b"g", b"w:16", b"u", b"z")  # by kind, up to bytes


cdef struct Mark:  # where a sink stood before the message that is being added
    kw_sink *sink
    int64_t rows, nulls
    size_t values, offsets, valid


cdef int check(int status) except -1:
    if status == KW_NO_MEMORY:
        raise MemoryError
    if status == KW_TOO_LARGE:
        raise LimitError("a column of these messages passes 2 GiB", limit=0x7fffffff)
    if status == KW_TOO_WIDE:
        raise LimitError("outer values beside the rows take more than 50 times the payloads", limit=REPEATED)
    return 0


cdef void *some_room(size_t count, size_t size) except NULL:
    """Cleared memory."""
    cdef void *made = calloc(count + 1, size)
    if made == NULL:
        raise MemoryError
    return made


cdef class Gatherer:
    """The sinks of one message and version, and the routes that fill them. A node made: nothing can be added.

    It is one thread's at a time; another is told so.
    """
    cdef Message message
    cdef int version
    cdef kw_sink *top
    cdef kw_route *route
    cdef int64_t most, room  # room: bytes that repeated outer values may still take
    cdef Mark *marks       # one a sink
    cdef void **owned      # memory of sinks and routes
    cdef size_t n_marks, n_owned
    cdef bint is_done, is_adding

    def __cinit__(self, message, version, wanted, int64_t most=INT32_MAX):
        """wanted: None for every field, else {name: None or the same below}; most: where a column is full."""
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
        """Cleared memory that goes with this object."""
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
        """wanted: None for every field, else {name: None or the same below}; owner: NULL where nobody looks."""
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
                raise ValueError(f"{self.message.name} v{self.version} has no field {path}{name}")
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
            mark.offsets, mark.valid = sink.offsets.size, sink.valid.size

    cdef void restore(self) noexcept:
        cdef Mark *mark
        cdef kw_sink *sink
        cdef size_t i
        for i in range(self.n_marks):
            mark, sink = &self.marks[i], self.marks[i].sink
            sink.rows, sink.nulls, sink.values.size = mark.rows, mark.nulls, mark.values
            sink.offsets.size, sink.valid.size = mark.offsets, mark.valid

    def add(self, payload, bint lenient):
        """Appends the message in a payload. DecodeError, LimitError (a column is full): it appended nothing."""
        if self.is_done:
            raise ValueError("columns were made of these messages: none can be added")
        self.refuse_adding()
        self.is_adding = True
        try:
            self.add_alone(payload, lenient)
        finally:
            self.is_adding = False

    cdef int refuse_adding(self) except -1:
        if self.is_adding:
            raise ValueError("another thread adds a message to these columns")
        return 0

    cdef int add_alone(self, object payload, bint lenient) except -1:
        cdef Py_buffer buffer
        cdef kw_cursor c
        cdef int status
        self.remember()
        if type(payload) is not bytes:
            payload = memoryview(payload)  # asked again, an object may give other bytes
        PyObject_GetBuffer(payload, &buffer, PyBUF_SIMPLE)
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
        """Messages so far."""
        return self.top.rows

    def node(self):
        """The whole messages as one struct column."""
        self.refuse_adding()
        self.is_done = True
        return sink_node("message", self.top, self)

    def flat(self, tuple paths, int64_t first, int64_t last):
        """[(rows, nodes)] of flattened paths, of some of the messages: one row an element of the deepest array.

        In more than one part where a column would be too large else.
        """
        if not 0 <= first <= last <= self.top.rows:
            raise ValueError(f"rows {first} to {last} of {self.top.rows}")
        self.refuse_adding()
        self.is_done = True
        chains = [self.chain(path) for path in paths]
        longest = max([chain[0] for chain in chains], key=len)
        for path, (arrays, _) in zip(paths, chains):
            if longest[:len(arrays)] != arrays:
                raise ValueError(f"{path} stands beside, not above, the rows of the other paths")
        cdef int64_t room = self.room
        try:
            return [flat_part(self, paths, chains, longest, first, last)]
        except LimitError:
            if last - first < 2 or self.room < 0:
                raise
            self.room = room  # a column was full: in two parts it is not
        middle = (first + last) // 2
        return self.flat(paths, first, middle) + self.flat(paths, middle, last)

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


cdef int same_shape(const kw_sink *like, kw_sink **made, int64_t *room) except -1:
    """An empty sink like another at *made, which whoever gives the place owns; room: bytes that it may still take."""
    cdef int i
    made[0] = <kw_sink *>some_room(1, sizeof(kw_sink))
    made[0].field, made[0].kind, made[0].most, made[0].room = like.field, like.kind, like.most, room
    made[0].children = <kw_sink **>some_room(like.n_children, sizeof(void *))
    made[0].n_children = like.n_children  # none of them made yet
    for i in range(like.n_children):
        same_shape(like.children[i], &made[0].children[i], room)
    return 0


cdef (int64_t, int64_t) below(list arrays, int64_t first, int64_t last) noexcept:
    """The elements that these rows have in the innermost of some arrays."""
    cdef const int32_t *ends
    for address in arrays:
        ends = <const int32_t *>(<kw_sink *><size_t>address).offsets.data
        first, last = ends[first], ends[last]
    return first, last


cdef tuple flat_part(Gatherer self, tuple paths, list chains, list longest, int64_t first, int64_t last):
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


cdef Node repeated(Gatherer self, str name, kw_sink *sink, list arrays, int64_t outer, int64_t end):
    """A column of an outer level, each of its values beside all rows below it."""
    cdef int64_t first, last
    cdef Taken owner = Taken.__new__(Taken)
    same_shape(sink, &owner.sink, &self.room)
    check(kw_sink_start(owner.sink))
    for outer in range(outer, end):
        first, last = below(arrays, outer, outer + 1)
        check(kw_sink_repeat(sink, outer, owner.sink, last - first))
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
    """A struct over columns, which the stream of a table consists of."""
    cdef const void *buffers[1]
    buffers[0] = NULL
    cdef Node node = make_node("", b"+s", rows, 0, nodes, nodes)
    node.set_buffers(buffers, 1)
    return node
