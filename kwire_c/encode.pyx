"""encode: messages to bytes, by the ops of a plan."""

from operator import itemgetter

from kwire_c.errors import EncodeError

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_Clear, PyErr_ExceptionMatches
from cpython.object cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memmove

from kwire_c.buffers cimport holds_objects
from kwire_c.core cimport (
    KW_ARRAY_INT, KW_ARRAY_STRING, KW_ARRAY_STRUCT, KW_BYTES, KW_COMPACT, KW_INT16, KW_INT32, KW_INT64, KW_INT8,
    KW_MAX_STRING, KW_MAX_TAG, KW_NULLABLE, KW_PLACE, KW_RECORDS, KW_RUN, KW_SLOT, KW_STRING, KW_STRUCT, KW_UINT16,
    KW_UNKNOWN_AT, kw_failure, kw_field, kw_in, kw_op, kw_plan, kw_store16, kw_store32, kw_store64, kw_store_fixed,
    kw_width, kw_write_uvarint, raise_set, raw_bytes_check, raw_decref, raw_get_buffer, raw_incref, raw_int64_value,
    raw_int_value, raw_list_check, raw_list_item, raw_list_size, raw_no_memory, raw_str_check, raw_str_check_exact,
    raw_str_data, raw_str_is_ascii, raw_str_length, raw_str_utf8, raw_tuple_item, raw_tuple_size, raw_type,
)
from kwire_c.integers cimport brief
from kwire_c.message_class cimport Span, fallback, slot_equal, tags_list, take_uuid
from kwire_c.plan cimport Message, of_instance


cdef object FIRST = itemgetter(0)

cdef enum:
    LONG = 2048   # from this many bytes on, a field is copied straight into the result
    PIECES = 128


cdef struct Piece:
    size_t at     # its position among the bytes written
    const void *data
    size_t size
    PyObject *owner  # of the data, held until it is copied


cdef struct Out:
    uint8_t *start
    uint8_t *at
    uint8_t *end
    size_t long_bytes
    int n_pieces
    int inside_tag  # all bytes are written in place, as a tag is prefixed with its size
    Piece[PIECES] pieces
    kw_failure f
    PyObject *reason  # of the failure: a str, or NULL
    PyObject *raised  # an exception instead; NULL if it is set in the thread


cdef int grow(Out *o, size_t need) noexcept:
    """Make room for this many more bytes."""
    cdef size_t used = o.at - o.start, size = o.end - o.start
    cdef uint8_t *made
    if size == 0:
        size = 4096
    while size - used < need:
        size *= 2
    made = <uint8_t *>realloc(o.start, size)
    if made == NULL:
        raw_no_memory()
        return -1
    o.start, o.at, o.end = made, made + used, made + size
    return 0


cdef inline int ensure(Out *o, size_t need) noexcept:
    if <size_t>(o.end - o.at) < need:
        return grow(o, need)
    return 0


cdef int refuse(Out *o, object reason) noexcept:
    raw_incref(<PyObject *>reason)
    o.reason = <PyObject *>reason
    return -1


cdef int keep(Out *o, object error) noexcept:
    """Record an exception that Python code raised; the call raises it unchanged."""
    raw_incref(<PyObject *>error)
    o.raised = <PyObject *>error
    return -1


cdef void let_go(Out *o) noexcept:
    """Release the owners of the pieces."""
    cdef int i
    for i in range(o.n_pieces):
        raw_decref(o.pieces[i].owner)
    o.n_pieces = 0


cdef int refuse_number(Out *o, str text, int64_t number) noexcept:
    """Fail with a text that has one %d."""
    try:
        return refuse(o, text % number)
    except BaseException as error:
        return keep(o, error)


cdef int refuse_type(Out *o, object wanted, PyObject *item) noexcept:
    try:
        return refuse(o, f"expected {wanted}, got {type(<object>item).__name__}")
    except BaseException as error:
        return keep(o, error)


cdef inline void put_length(Out *o, const kw_op *op, int64_t size, int width) noexcept:
    """Write a length, -1 for null; room is reserved."""
    if op.flags & KW_COMPACT:
        if 0 <= size < 0x7f:
            o.at[0] = <uint8_t>(size + 1)
            o.at += 1
        else:
            o.at = kw_write_uvarint(o.at, <uint32_t>(size + 1))
    elif width == 2:
        kw_store16(o.at, <uint16_t><int16_t>size)
        o.at += 2
    else:
        kw_store32(o.at, <uint32_t><int32_t>size)
        o.at += 4


cdef int put_null(Out *o, const kw_op *op, int width) noexcept:
    if not op.flags & KW_NULLABLE:
        return refuse(o, "null in a field that is not nullable in this version")
    put_length(o, op, -1, width)
    return 0


cdef const char *other_text(Out *o, PyObject *text, Py_ssize_t *size) noexcept:
    """The UTF-8 of a string that is not ASCII; NULL: a failure is set."""
    cdef const char *data
    if not raw_str_check(text):
        refuse_type(o, "str", text)
        return NULL
    data = raw_str_utf8(text, size)
    if data == NULL and PyErr_ExceptionMatches(UnicodeEncodeError):
        PyErr_Clear()
        refuse(o, "a lone surrogate cannot be encoded as UTF-8")
    return data


cdef int put_text(Out *o, const kw_op *op, PyObject *text, size_t room) noexcept:
    """Write a string and its length; `room` bytes stay reserved after it."""
    cdef Py_ssize_t size = 0
    cdef const char *data
    if raw_str_check_exact(text) and raw_str_is_ascii(text):
        data, size = <const char *>raw_str_data(text), raw_str_length(text)
    else:
        data = other_text(o, text, &size)
        if data == NULL:
            return -1
    if size > KW_MAX_STRING:
        return refuse_number(o, "string of %d bytes exceeds 32767", size)
    if ensure(o, size + 5 + room) < 0:
        return -1
    put_length(o, op, size, 2)
    memcpy(o.at, data, size)
    o.at += size
    return 0


cdef int put_data(Out *o, const kw_op *op, const void *data, Py_ssize_t size, size_t room, PyObject *owner) noexcept:
    """Write bytes and their length. owner: keeps them alive; NULL: they are valid only during this call."""
    cdef Piece *piece
    if size > 0x7ffffffe:
        return refuse_number(o, "%d bytes exceed what a field can hold", size)
    if owner != NULL and size >= LONG and not o.inside_tag and o.n_pieces < PIECES:
        put_length(o, op, size, 4)
        piece = &o.pieces[o.n_pieces]
        piece.at, piece.data, piece.size, piece.owner = o.at - o.start, data, size, owner
        raw_incref(owner)
        o.n_pieces += 1
        o.long_bytes += size
        return ensure(o, room)
    if ensure(o, size + 5 + room) < 0:
        return -1
    put_length(o, op, size, 4)
    if size:  # the address of an empty view may be NULL
        memcpy(o.at, data, size)
    o.at += size
    return 0


cdef int put_bytes(Out *o, const kw_op *op, PyObject *data, size_t room) noexcept:
    cdef Py_buffer buffer
    cdef int status
    if raw_bytes_check(data):
        return put_data(o, op, PyBytes_AS_STRING(<object>data), PyBytes_GET_SIZE(<object>data), room, data)
    if isinstance(<object>data, Span):
        return put_data(o, op, (<Span><object>data).data, (<Span><object>data).size, room, data)
    if raw_get_buffer(data, &buffer, PyBUF_SIMPLE) < 0:
        if not PyErr_ExceptionMatches(ValueError):
            return -1
        PyErr_Clear()
        return refuse(o, "the buffer of this view was released")
    status = put_data(o, op, buffer.buf, buffer.len, room, NULL)
    PyBuffer_Release(&buffer)
    return status


cdef int put_ints(Out *o, const kw_op *op, PyObject *items, size_t room) noexcept:
    """Write an array of numbers, which the setter stored as a tuple of ints in range."""
    cdef Py_ssize_t i, count = raw_tuple_size(items)
    cdef int kind = op.elem, width = kw_width[kind]
    cdef PyObject *item
    cdef uint8_t *p
    if count > 0x7ffffffe:
        return refuse_number(o, "%d elements exceed what an array can hold", count)
    if ensure(o, count * width + 5 + room) < 0:
        return -1
    put_length(o, op, count, 4)
    p = o.at
    for i in range(count):
        item = raw_tuple_item(items, i)
        if kind == KW_INT32:
            kw_store32(p, <uint32_t>raw_int_value(item))
        elif kind == KW_INT64:
            kw_store64(p, <unsigned long long>raw_int64_value(item))
        elif kind == KW_INT16 or kind == KW_UINT16:
            kw_store16(p, <uint16_t>raw_int_value(item))
        elif kind == KW_INT8:
            p[0] = <uint8_t>raw_int_value(item)
        else:
            kw_store32(p, <uint32_t>raw_int64_value(item))
        p += width
    o.at = p
    return 0


cdef int put_array(Out *o, const kw_op *op, PyObject *items, size_t room) noexcept:
    cdef Py_ssize_t i, count
    cdef PyObject *item
    cdef int status
    if op.code == KW_ARRAY_INT:
        return put_ints(o, op, items, room)
    if ensure(o, 5 + room) < 0:
        return -1
    if not raw_list_check(items):  # an empty list that was never read
        put_length(o, op, 0, 4)
        return 0
    count = raw_list_size(items)
    if count > 0x7ffffffe:
        return refuse_number(o, "%d elements exceed what an array can hold", count)
    put_length(o, op, count, 4)
    for i in range(count):
        if i >= raw_list_size(items):
            return refuse(o, "the list changed while it was written")
        item = raw_list_item(items, i)
        raw_incref(item)  # finalizers and other threads may remove it from the list
        status = put_element(o, op, item)
        raw_decref(item)
        if status < 0:
            return kw_in(&o.f, NULL, i)
    return ensure(o, room)


cdef inline int put_element(Out *o, const kw_op *op, PyObject *item) noexcept:
    if op.code == KW_ARRAY_STRUCT:
        if <void *>raw_type(item) != op.sub.cls.type:
            return refuse_type(o, <object>op.sub.cls.label, item)
        return put_struct(o, op.sub, <char *>item)
    if op.code == KW_ARRAY_STRING:
        return put_text(o, op, item, 0)
    return put_uuid(o, item)


cdef int put_uuid(Out *o, PyObject *value) noexcept:
    cdef int status
    if ensure(o, 16) < 0:
        return -1
    try:
        status = take_uuid(<object>value, o.at)
    except BaseException as error:
        return keep(o, error)
    if not status:
        return refuse_type(o, "uuid.UUID", value)
    o.at += 16
    return 0


cdef int put_struct_field(Out *o, const kw_op *op, PyObject *item, size_t room) noexcept:
    if item == <PyObject *>None:
        if not op.flags & KW_NULLABLE:
            return refuse(o, "null in a field that is not nullable in this version")
        o.at[0] = 0 if op.inside_tag else 0xff
        o.at += 1
        return 0
    if op.flags & KW_NULLABLE:
        o.at[0] = 1
        o.at += 1
    if put_struct(o, op.sub, <char *>item) < 0:
        return -1
    return ensure(o, room)


cdef PyObject *default_of(Out *o, const kw_field *field) noexcept:
    try:
        return fallback(field)
    except BaseException as error:
        keep(o, error)
        return NULL


cdef int put_field(Out *o, const kw_op *op, char *self, size_t room) noexcept:
    """Write any field except a fixed-width one; `room` bytes stay reserved after it."""
    cdef PyObject *item = KW_SLOT(self, op.at)
    cdef int status
    if item == NULL:
        item = <PyObject *>op.field.fallback
        if item == NULL:
            item = default_of(o, op.field)
            if item == NULL:
                return -1
    raw_incref(item)  # other code may run while it is written, and set the field
    if op.code == KW_STRUCT:
        status = put_struct_field(o, op, item, room)
    elif item == <PyObject *>None:
        status = put_null(o, op, 2 if op.code == KW_STRING else 4)
    elif op.code == KW_STRING:
        status = put_text(o, op, item, room)
    elif op.code == KW_BYTES or op.code == KW_RECORDS:
        status = put_bytes(o, op, item, room)
    else:
        status = put_array(o, op, item, room)
    raw_decref(item)
    return status


cdef int put_struct(Out *o, const kw_plan *plan, char *self) noexcept:
    cdef const kw_op *op = plan.ops
    cdef const kw_op *end = op + plan.n_ops
    cdef const kw_op *last
    cdef size_t room = plan.room
    cdef uint8_t *p
    if plan.n_absent and check_absent(o, plan, self) < 0:
        return -1
    if ensure(o, room) < 0:
        return -1
    while op < end:
        if op.code == KW_RUN:
            last = op + op.count
            p = o.at
            while op < last:
                op += 1
                if op.code == KW_INT32:
                    kw_store32(p, (<uint32_t *>(self + op.at))[0])
                    p += 4
                elif op.code == KW_INT16:
                    kw_store16(p, (<uint16_t *>(self + op.at))[0])
                    p += 2
                else:
                    kw_store_fixed(op.code, <uint8_t *>(self + op.at), p)
                    p += kw_width[op.code]
            o.at = p
        elif put_field(o, op, self, room) < 0:
            return kw_in(&o.f, op.field, -1)
        op += 1
    if plan.flexible:
        if plan.n_tags == 0 and KW_SLOT(self, KW_UNKNOWN_AT) == NULL:
            o.at[0] = 0
            o.at += 1
            return 0
        return put_tags(o, plan, self)
    if KW_SLOT(self, KW_UNKNOWN_AT) != NULL:
        return refuse_tags(o, plan, KW_SLOT(self, KW_UNKNOWN_AT))
    return 0


cdef int refuse_tags(Out *o, const kw_plan *plan, PyObject *slot) noexcept:
    try:
        if not tags_list(slot):
            return 0
        return refuse(o, f"version {plan.version} has no tagged fields, so it cannot carry unknown tags")
    except BaseException as error:
        return keep(o, error)


cdef inline int is_default(Out *o, const kw_field *field, char *self) noexcept:
    """1: the field holds its default; 0: it does not; -1: an exception is set."""
    cdef PyObject *item
    if field.kind < KW_STRING:
        return memcmp(KW_PLACE(self, field.at), field.owner.model + field.at, kw_width[field.kind]) == 0
    item = KW_SLOT(self, field.at)
    return 1 if item == NULL else equals_default(o, field, item)


cdef int equals_default(Out *o, const kw_field *field, PyObject *item) noexcept:
    try:
        return slot_equal(field, item, NULL)
    except BaseException as error:
        return keep(o, error)


cdef int check_absent(Out *o, const kw_plan *plan, char *self) noexcept:
    """Check that the fields that the version lacks hold their default."""
    cdef int i, same
    for i in range(plan.n_absent):
        same = is_default(o, plan.absent[i], self)
        if same <= 0:
            if same == 0:
                refuse_absent(o, plan, plan.absent[i])
            return kw_in(&o.f, plan.absent[i], -1)
    return 0


cdef int refuse_absent(Out *o, const kw_plan *plan, const kw_field *field) noexcept:
    try:
        first, last = field.first, min(field.last, (<Message>plan.cls.message).last)
        versions = f"version {first} has it" if first == last else f"versions {first}-{last} have it"
        return refuse(o, f"version {plan.version} lacks this field and it cannot be dropped; {versions}")
    except BaseException as error:
        return keep(o, error)


cdef int put_tags(Out *o, const kw_plan *plan, char *self) noexcept:
    """Write known and unknown tags in ascending order."""
    cdef int i, n = 0, same
    cdef uint64_t there = 0  # the known tags that do not hold their default, a bit each
    if KW_SLOT(self, KW_UNKNOWN_AT) != NULL:
        try:
            return put_all_tags(o, plan, self)
        except BaseException as error:
            return keep(o, error)
    for i in range(plan.n_tags):
        same = is_default(o, plan.tags[i].field, self)
        if same < 0:
            return kw_in(&o.f, plan.tags[i].field, -1)
        if not same:
            there |= <uint64_t>1 << i
            n += 1
    if ensure(o, 5) < 0:
        return -1
    o.at = kw_write_uvarint(o.at, n)
    if n:
        for i in range(plan.n_tags):
            if there >> i & 1 and put_tag(o, &plan.tags[i], self) < 0:
                return -1
    return 0


cdef int put_all_tags(Out *o, const kw_plan *plan, char *self) except? -1:
    """Write tags with unknown ones among them, which must be unique and not known. -1: o has the failure."""
    cdef int i, same
    cdef PyObject *slot = KW_SLOT(self, KW_UNKNOWN_AT)
    cdef bint ordered = isinstance(<object>slot, dict)  # else as decoded: they must be in order, as in Kafka
    cdef list entries = tags_list(slot)
    cdef set seen = set()
    if not ordered:
        for i in range(1, len(entries)):
            if entries[i][0] <= entries[i - 1][0]:
                return refuse(o, f"tags out of order: {entries[i][0]} was read after {entries[i - 1][0]}")
    for i in range(len(entries)):
        tag, data = entries[i]
        if not isinstance(tag, int) or not 0 <= (tag := int.__index__(tag)) <= KW_MAX_TAG:
            return refuse(o, f"invalid tag number {brief(tag)}")
        if not isinstance(data, (bytes, bytearray, memoryview)) or holds_objects(data):
            return refuse(o, f"unknown tag {tag}: expected bytes, got {type(data).__name__}")
        try:
            content = bytes(data)  # which may be of the caller's class
            entries[i] = tag, content if type(content) is bytes else bytes(memoryview(content))
        except ValueError:
            if type(data) is not memoryview:
                raise  # of a subclass of bytes
            return refuse(o, f"unknown tag {tag}: the buffer of this view was released")
    for i in range(plan.n_tags):
        same = is_default(o, plan.tags[i].field, self)
        if same < 0:
            return kw_in(&o.f, plan.tags[i].field, -1)
        if not same:
            entries.append((plan.tags[i].tag, i))
        seen.add(plan.tags[i].tag)
    for tag, data in entries:
        if isinstance(data, bytes):
            if tag in seen:
                return refuse(o, f"unknown tag {tag} repeats another, or is a known one")
            seen.add(tag)
    entries.sort(key=FIRST)
    if ensure(o, 5) < 0:
        return -1
    o.at = kw_write_uvarint(o.at, len(entries))
    for tag, data in entries:
        if isinstance(data, int):
            if put_tag(o, &plan.tags[<int>data], self) < 0:
                return -1
        elif put_unknown(o, tag, data) < 0:
            return -1
    return 0


cdef int put_unknown(Out *o, uint32_t tag, bytes data) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    if size > 0x7ffffffe:
        return refuse_number(o, "%d bytes exceed what a tag can hold", size)
    if ensure(o, 10 + size) < 0:
        return -1
    o.at = kw_write_uvarint(o.at, tag)
    o.at = kw_write_uvarint(o.at, size)
    memcpy(o.at, PyBytes_AS_STRING(data), size)
    o.at += size
    return 0


cdef int put_tag(Out *o, const kw_op *op, char *self) noexcept:
    """Write a known tag: its body after one byte for its size, moved if the size needs more bytes."""
    cdef size_t start, size
    cdef uint8_t[5] length
    cdef int width
    if ensure(o, 32) < 0:
        return -1
    o.at = kw_write_uvarint(o.at, op.tag)
    start = o.at - o.start
    o.at += 1
    if op.code < KW_STRING:
        kw_store_fixed(op.code, <uint8_t *>(self + op.at), o.at)
        o.at += kw_width[op.code]
    else:
        o.inside_tag += 1
        if put_field(o, op, self, 0) < 0:
            return kw_in(&o.f, op.field, -1)
        o.inside_tag -= 1
    size = (o.at - o.start) - start - 1
    if size > 0x7ffffffe:
        refuse_number(o, "%d bytes exceed what a tag can hold", size)
        return kw_in(&o.f, op.field, -1)
    width = kw_write_uvarint(length, size) - length
    if width > 1:
        if ensure(o, width) < 0:
            return -1
        memmove(o.start + start + width, o.start + start + 1, size)
        o.at += width - 1
    memcpy(o.start + start, length, width)
    return 0


# One buffer is kept between calls. A call takes it while it runs, so a nested call or another thread makes its own.
cdef uint8_t *_spare = NULL
cdef size_t _spare_size = 0
cdef size_t KEEP = 1 << 20


cdef object written(Message message, const kw_plan *plan, PyObject *self, bytes before):
    """The bytes of a message, after those of `before`."""
    global _spare, _spare_size
    cdef Out o
    cdef size_t size = _spare_size
    cdef int status = 0
    o.start = o.at = _spare
    o.end, o.reason, o.raised, o.f.depth = o.start + size, NULL, NULL, 0
    o.long_bytes, o.n_pieces, o.inside_tag = 0, 0, 0
    _spare, _spare_size = NULL, 0
    if before is not None:
        status = grow(&o, PyBytes_GET_SIZE(before))
        if status == 0:
            memcpy(o.at, PyBytes_AS_STRING(before), PyBytes_GET_SIZE(before))
            o.at += PyBytes_GET_SIZE(before)
    if status == 0:
        status = put_struct(&o, plan, <char *>self)
    try:
        if status < 0:
            raise failed(&o, message, plan)
        return gathered(&o) if o.n_pieces else PyBytes_FromStringAndSize(<const char *>o.start, o.at - o.start)
    finally:
        let_go(&o)
        size = o.end - o.start
        if size <= KEEP and size > _spare_size:
            free(_spare)
            _spare, _spare_size = o.start, size
        else:
            free(o.start)


cdef object gathered(Out *o):
    """The result: the bytes written, with the long pieces inserted."""
    cdef size_t used = o.at - o.start, at = 0
    cdef int i
    result = PyBytes_FromStringAndSize(NULL, used + o.long_bytes)
    cdef char *to = PyBytes_AS_STRING(result)
    for i in range(o.n_pieces):
        memcpy(to, o.start + at, o.pieces[i].at - at)
        to += o.pieces[i].at - at
        memcpy(to, o.pieces[i].data, o.pieces[i].size)
        to += o.pieces[i].size
        at = o.pieces[i].at
    memcpy(to, o.start + at, used - at)
    return result


cdef object failed(Out *o, Message message, const kw_plan *plan):
    cdef int i
    if o.raised != NULL:
        error = <object>o.raised
        raw_decref(o.raised)
        return error
    if o.reason == NULL:
        raise_set()
    reason = <object>o.reason
    raw_decref(o.reason)
    pieces = []
    for i in range(o.f.depth):
        piece = o.f.path[i]
        pieces.append(f"[{piece.index}]" if piece.field == NULL else f".{<object>piece.field.name}")
    return EncodeError(reason, path="".join(reversed(pieces)), what=f"{message.name} v{plan.version}")


def encode(message, version):
    """The bytes of a message at a version.

    A field that the version lacks is dropped if it holds its default or is ignorable.
    Raises EncodeError (path, reason) for values that the version cannot represent, UnsupportedVersionError.
    """
    cdef Message target = of_instance(message)
    return written(target, target.at(version), <PyObject *>message, None)


def encode_after(bytes before not None, message, version):
    """The bytes of a message after those of its header."""
    cdef Message target = of_instance(message)
    return written(target, target.at(version), <PyObject *>message, before)
