"""decode and decode_from: bytes to messages, by the ops of a plan."""

from kwire_c.errors import DecodeError

from cpython.buffer cimport PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_Clear, PyErr_ExceptionMatches
from cpython.object cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from kwire_c.buffers cimport take_buffer, take_view
from kwire_c.core cimport (
    KW_ARRAY_INT, KW_ARRAY_STRING, KW_ARRAY_STRUCT, KW_BAD_BOOL, KW_BAD_MARK, KW_BAD_UTF8, KW_BYTES, KW_COMPACT,
    KW_COUNT, KW_INT16, KW_INT32, KW_INT64, KW_INT8, KW_MAX_STRING, KW_MAX_TAG, KW_NULL, KW_NULLABLE, KW_PLACE,
    KW_PYTHON, KW_RECORDS, KW_RUN, KW_SHORT, KW_SLOT, KW_STRING, KW_STRING_LONG, KW_STRUCT, KW_TAG_COUNT,
    KW_TAG_DEFAULT, KW_TAG_FOREIGN, KW_TAG_ORDER, KW_TAG_SIZE, KW_TAG_TWICE, KW_TAG_VALUE, KW_TRAILING, KW_UINT16,
    KW_UNKNOWN_AT, PyObject_GC_UnTrack, kw_cursor, kw_cursor_set, kw_fail, kw_failure, kw_field, kw_has, kw_in,
    kw_is_ascii, kw_load16, kw_load32, kw_load64, kw_load_fixed, kw_new_instance, kw_op, kw_plan, kw_take_length,
    kw_take_uvarint, kw_why_reason, kw_width, raise_set, raw_bytes_new, raw_bytes_resize, raw_decref, raw_incref,
    raw_int64_new, raw_int_new, raw_list_new, raw_list_set, raw_str_data, raw_str_decode, raw_str_new, raw_tuple_new,
    raw_tuple_set,
)
from kwire_c.integers cimport clipped
from kwire_c.message_class cimport Span, make_uuid, new_span, slot_equal
from kwire_c.plan cimport Message, find
from kwire_c.utf8 cimport java_text

# The arrays of int32 read last: replicas repeat from partition to partition, so their tuples are shared.
cdef enum:
    ARRAYS = 16
    LONG = 4096  # from this many bytes on, a field is copied only when it is read


cdef struct Known:
    const uint8_t *data
    int64_t count
    PyObject *made  # borrowed from the message being decoded


cdef struct Walk:
    kw_cursor c
    kw_failure f
    int lenient
    PyObject *owner  # keeps the bytes alive that are not copied; NULL: all are copied
    bint views       # no field is copied; else long ones are, when they are read
    PyObject *raised  # with KW_PYTHON: the exception, or NULL if it is set in the thread
    int known        # whether the arrays below are set up
    Known[ARRAYS] arrays


cdef PyObject *empty_text = <PyObject *>""
cdef PyObject *empty_tuple = <PyObject *>()


cdef int keep(Walk *w, object error) noexcept:
    """Record an exception that Python code raised; the call raises it unchanged."""
    if w.raised == NULL:
        raw_incref(<PyObject *>error)
        w.raised = <PyObject *>error
    return kw_fail(&w.f, &w.c, KW_PYTHON, 0)


cdef inline void store(char *self, uint32_t at, PyObject *value) noexcept:
    (<PyObject **>(self + at))[0] = value


cdef int read_run(Walk *w, const kw_op *op, char *self) noexcept:
    """Read consecutive fixed-width fields under one bounds check."""
    cdef const uint8_t *p = w.c.at
    cdef const kw_op *end = op + op.count
    cdef int need = 0, code
    if not kw_has(&w.c, op.need):
        while kw_has(&w.c, need + kw_width[op[1].code]):  # up to the first that does not fit
            op += 1
            need += kw_width[op.code]
        w.c.at += need
        kw_fail(&w.f, &w.c, KW_SHORT, kw_width[op[1].code])
        return kw_in(&w.f, op[1].field, -1)
    while op < end:
        op += 1
        code = op.code
        if code == KW_INT32:
            (<uint32_t *>(self + op.at))[0] = kw_load32(p)
            p += 4
        elif code == KW_INT16:
            (<uint16_t *>(self + op.at))[0] = kw_load16(p)
            p += 2
        else:
            if kw_load_fixed(code, p, <uint8_t *>(self + op.at), w.lenient) < 0:
                w.c.at = p
                kw_fail(&w.f, &w.c, KW_BAD_BOOL, p[0])
                return kw_in(&w.f, op.field, -1)
            p += kw_width[code]
    w.c.at = p
    return 0


cdef inline int null_or_fail(Walk *w, const kw_op *op, char *self, const uint8_t *start) noexcept:
    """None for a null, or a failure if the version does not allow null."""
    if not op.flags & KW_NULLABLE:
        w.c.at = start
        return kw_fail(&w.f, &w.c, KW_NULL, 0)
    raw_incref(<PyObject *>None)
    store(self, op.at, <PyObject *>None)
    return 0


cdef PyObject *make_text(Walk *w, int64_t size) noexcept:
    """The string in the next bytes, whose presence is checked. NULL: a failure is set."""
    cdef const uint8_t *p = w.c.at
    cdef PyObject *text
    if size == 0:
        raw_incref(empty_text)
        return empty_text
    text = NULL
    if size > 1 and p[0] < 0x80:
        text = raw_str_new(size, 127)
        if text == NULL:
            kw_fail(&w.f, &w.c, KW_PYTHON, 0)
            return NULL
        memcpy(raw_str_data(text), p, size)
        if not kw_is_ascii(<const uint8_t *>raw_str_data(text), size):  # checked in the copy: p may be mutable
            raw_decref(text)
            text = NULL
    if text == NULL:
        text = raw_str_decode(<const char *>p, size, NULL)
        if text == NULL and PyErr_ExceptionMatches(UnicodeDecodeError):
            PyErr_Clear()
            if not w.lenient:
                kw_fail(&w.f, &w.c, KW_BAD_UTF8, size)
                return NULL
            return repaired(w, p, size)
    if text == NULL:
        kw_fail(&w.f, &w.c, KW_PYTHON, 0)
        return NULL
    w.c.at += size
    return text


cdef PyObject *repaired(Walk *w, const uint8_t *p, Py_ssize_t size) noexcept:
    try:
        text = java_text(p, size)
        raw_incref(<PyObject *>text)
        w.c.at += size
        return <PyObject *>text
    except BaseException as error:
        keep(w, error)
        return NULL


cdef inline int take_text_size(Walk *w, const kw_op *op, int64_t *size) noexcept:
    if kw_take_length(&w.c, op.flags & KW_COMPACT, 2, w.lenient, &w.f, size) < 0:
        return -1
    if size[0] > KW_MAX_STRING:
        return kw_fail(&w.f, &w.c, KW_STRING_LONG, size[0])
    return kw_fail(&w.f, &w.c, KW_SHORT, size[0]) if size[0] > 0 and not kw_has(&w.c, size[0]) else 0


cdef int read_string(Walk *w, const kw_op *op, char *self) noexcept:
    cdef int64_t size = 0
    cdef const uint8_t *start = w.c.at
    cdef PyObject *text
    if take_text_size(w, op, &size) < 0:
        return -1
    if size < 0:
        return null_or_fail(w, op, self, start)
    text = make_text(w, size)
    if text == NULL:
        return -1
    store(self, op.at, text)
    return 0


cdef int read_bytes(Walk *w, const kw_op *op, char *self) noexcept:
    cdef int64_t size = 0
    cdef const uint8_t *start = w.c.at
    cdef PyObject *data
    if kw_take_length(&w.c, op.flags & KW_COMPACT, 4, w.lenient, &w.f, &size) < 0:
        return -1
    if size < 0:
        return null_or_fail(w, op, self, start)
    if not kw_has(&w.c, size):
        return kw_fail(&w.f, &w.c, KW_SHORT, size)
    if w.owner == NULL or (not w.views and (size < LONG or size < (w.c.end - w.c.base) // 64)):
        data = raw_bytes_new(<const char *>w.c.at, size)
    else:
        data = make_span(w, size)
        if data == NULL:
            return -1
    if data == NULL:
        return kw_fail(&w.f, &w.c, KW_PYTHON, 0)
    store(self, op.at, data)
    w.c.at += size
    return 0


cdef Span _nothing = new_span()
_nothing.owner, _nothing.data, _nothing.viewed = b"", <const uint8_t *>b"", True


cdef PyObject *make_span(Walk *w, int64_t size) noexcept:
    cdef Span span
    if size == 0:  # an empty field is one byte on the wire: it must not cost an object
        raw_incref(<PyObject *>_nothing)
        return <PyObject *>_nothing
    try:
        span = new_span()
    except BaseException as error:
        keep(w, error)
        return NULL
    span.owner, span.data, span.size, span.position = <object>w.owner, w.c.at, size, w.c.at - w.c.base
    span.viewed = w.views
    raw_incref(<PyObject *>span)
    return <PyObject *>span


cdef int read_struct_field(Walk *w, const kw_op *op, char *self) noexcept:
    cdef const uint8_t *start = w.c.at
    cdef uint32_t mark = 0
    cdef int8_t sign
    cdef PyObject *made
    if op.flags & KW_NULLABLE:
        if op.inside_tag:
            if kw_take_uvarint(&w.c, w.lenient, &w.f, &mark) < 0:
                return -1
            if mark > 1 and not w.lenient:
                w.c.at = start
                return kw_fail(&w.f, &w.c, KW_BAD_MARK, mark)
            if <int32_t>mark <= 0:
                return null_or_fail(w, op, self, start)
        else:
            if not kw_has(&w.c, 1):
                return kw_fail(&w.f, &w.c, KW_SHORT, 1)
            sign = <int8_t>w.c.at[0]
            if sign != 1 and sign != -1 and not w.lenient:
                return kw_fail(&w.f, &w.c, KW_BAD_MARK, sign)
            w.c.at += 1
            if sign < 0:
                return null_or_fail(w, op, self, start)
    made = fresh(w, op.sub)
    if made == NULL:
        return -1
    store(self, op.at, made)  # complete or not, its owner frees it
    return read_struct(w, op.sub, <char *>made)


cdef inline PyObject *fresh(Walk *w, const kw_plan *plan) noexcept:
    cdef PyObject *made = kw_new_instance(plan.cls)
    if made == NULL:
        kw_fail(&w.f, &w.c, KW_PYTHON, 0)
    return made


cdef int read_array(Walk *w, const kw_op *op, char *self) noexcept:
    """Read an array of any kind. Its count is checked against the minimum size of its elements before allocating."""
    cdef int64_t count = 0
    cdef const uint8_t *start = w.c.at
    cdef PyObject *items
    if kw_take_length(&w.c, op.flags & KW_COMPACT, 4, w.lenient, &w.f, &count) < 0:
        return -1
    if count < 0:
        return null_or_fail(w, op, self, start)
    if count == 0:
        raw_incref(empty_tuple)
        store(self, op.at, empty_tuple)
        return 0
    if count * op.need > w.c.end - w.c.at:  # 31 and 32 bits: no overflow
        return kw_fail(&w.f, &w.c, KW_COUNT, count)
    if op.code == KW_ARRAY_INT and op.elem == KW_INT32 and count <= 8:
        return read_few(w, op, self, count)
    items = raw_tuple_new(count) if op.code == KW_ARRAY_INT else raw_list_new(count)
    if items == NULL:
        return kw_fail(&w.f, &w.c, KW_PYTHON, 0)
    PyObject_GC_UnTrack(items)  # not reachable yet; a list is tracked when it is first read
    store(self, op.at, items)
    if op.code == KW_ARRAY_STRUCT:
        return read_structs(w, op, items, count)
    if op.code == KW_ARRAY_INT:
        return read_ints(w, op.elem, items, count)
    if op.code == KW_ARRAY_STRING:
        return read_strings(w, op, items, count)
    return read_uuids(w, items, count)


cdef int read_few(Walk *w, const kw_op *op, char *self, int64_t count) noexcept:
    """A short array of int32; a tuple made before, if the same bytes were read before."""
    cdef const uint8_t *p = w.c.at
    cdef uint32_t first = kw_load32(p), last = kw_load32(p + 4 * (count - 1))
    cdef uint32_t mixed = first * <uint32_t>0x9e3779b1 + last * <uint32_t>0x85ebca6b + <uint32_t>count
    cdef Known *known = &w.arrays[mixed >> 28]
    if not w.known:
        memset(w.arrays, 0, sizeof(w.arrays))
        w.known = 1
    if known.made == NULL or known.count != count or memcmp(known.data, p, 4 * count) != 0:
        known.made = raw_tuple_new(count)
        if known.made == NULL:
            return kw_fail(&w.f, &w.c, KW_PYTHON, 0)
        PyObject_GC_UnTrack(known.made)
        store(self, op.at, known.made)
        known.data, known.count = p, count
        return read_ints(w, KW_INT32, known.made, count)
    raw_incref(known.made)
    store(self, op.at, known.made)
    w.c.at += 4 * count
    return 0


cdef int read_structs(Walk *w, const kw_op *op, PyObject *items, int64_t count) noexcept:
    cdef int64_t i
    cdef PyObject *made
    for i in range(count):
        made = fresh(w, op.sub)
        if made == NULL:
            return -1
        raw_list_set(items, i, made)
        if read_struct(w, op.sub, <char *>made) < 0:
            return kw_in(&w.f, NULL, i)
    return 0


cdef int read_strings(Walk *w, const kw_op *op, PyObject *items, int64_t count) noexcept:
    cdef int64_t i, size = 0
    cdef const uint8_t *start
    cdef PyObject *text
    for i in range(count):
        start = w.c.at
        if take_text_size(w, op, &size) < 0:
            return kw_in(&w.f, NULL, i)
        if size < 0:
            w.c.at = start
            kw_fail(&w.f, &w.c, KW_NULL, 0)
            return kw_in(&w.f, NULL, i)
        text = make_text(w, size)
        if text == NULL:
            return kw_in(&w.f, NULL, i)
        raw_list_set(items, i, text)
    return 0


cdef int read_ints(Walk *w, int kind, PyObject *items, int64_t count) noexcept:
    """A tuple of integers; the presence of the bytes is checked."""
    cdef const uint8_t *p = w.c.at
    cdef int64_t i, width = kw_width[kind]
    cdef PyObject *number
    for i in range(count):
        if kind == KW_INT32:
            number = raw_int_new(<int32_t>kw_load32(p))
        elif kind == KW_INT64:
            number = raw_int64_new(<int64_t>kw_load64(p))
        elif kind == KW_INT16:
            number = raw_int_new(<int16_t>kw_load16(p))
        elif kind == KW_INT8:
            number = raw_int_new(<int8_t>p[0])
        elif kind == KW_UINT16:
            number = raw_int_new(kw_load16(p))
        else:
            number = raw_int64_new(kw_load32(p))
        if number == NULL:
            return kw_fail(&w.f, &w.c, KW_PYTHON, 0)
        raw_tuple_set(items, i, number)
        p += width
    w.c.at = p
    return 0


cdef int read_uuids(Walk *w, PyObject *items, int64_t count) noexcept:
    cdef int64_t i
    try:
        for i in range(count):
            value = make_uuid(w.c.at)
            raw_incref(<PyObject *>value)
            raw_list_set(items, i, <PyObject *>value)
            w.c.at += 16
    except BaseException as error:
        return keep(w, error)
    return 0


cdef inline int read_field(Walk *w, const kw_op *op, char *self) noexcept:
    """Read any field except a fixed-width one."""
    if op.code == KW_STRING:
        return read_string(w, op, self)
    if op.code == KW_BYTES or op.code == KW_RECORDS:
        return read_bytes(w, op, self)
    if op.code == KW_STRUCT:
        return read_struct_field(w, op, self)
    return read_array(w, op, self)


cdef int read_struct(Walk *w, const kw_plan *plan, char *self) noexcept:
    """Fill a new instance. -1: w.f has the failure and the path so far."""
    cdef const kw_op *op = plan.ops
    cdef const kw_op *end = op + plan.n_ops
    while op < end:
        if op.code == KW_RUN:
            if read_run(w, op, self) < 0:
                return -1
            op += op.count + 1
        else:
            if read_field(w, op, self) < 0:
                return kw_in(&w.f, op.field, -1)
            op += 1
    if plan.flexible:
        if w.c.at < w.c.end and w.c.at[0] == 0:
            w.c.at += 1
            return 0
        return read_tags(w, plan, self)
    return 0


cdef struct Tail:
    PyObject *raw  # bytes, with room to spare
    Py_ssize_t used


cdef int read_tags(Walk *w, const kw_plan *plan, char *self) noexcept:
    """Read the tagged fields after a struct. Unknown ones are kept as bytes."""
    cdef Tail tail
    cdef int status
    tail.raw, tail.used = NULL, 0
    status = read_each_tag(w, plan, self, &tail)
    if tail.raw != NULL:
        if raw_bytes_resize(&tail.raw, tail.used) < 0:
            return kw_fail(&w.f, &w.c, KW_PYTHON, 0)
        store(self, KW_UNKNOWN_AT, tail.raw)
    return status


cdef int read_each_tag(Walk *w, const kw_plan *plan, char *self, Tail *tail) noexcept:
    cdef const uint8_t *entry
    cdef uint32_t count = 0, tag = 0, size = 0, last = 0, i, j
    cdef const kw_op *known
    if kw_take_uvarint(&w.c, w.lenient, &w.f, &count) < 0:
        return -1
    if count > (w.c.end - w.c.at) // 2:
        return kw_fail(&w.f, &w.c, KW_TAG_COUNT, count)
    for i in range(count):
        entry = w.c.at
        if kw_take_uvarint(&w.c, w.lenient, &w.f, &tag) < 0 or kw_take_uvarint(&w.c, w.lenient, &w.f, &size) < 0:
            return -1
        if not w.lenient:
            if i and tag <= last:
                w.c.at = entry
                return kw_fail(&w.f, &w.c, KW_TAG_TWICE if tag == last else KW_TAG_ORDER, tag)
            if tag > KW_MAX_TAG:
                w.c.at = entry
                return kw_fail(&w.f, &w.c, KW_TAG_VALUE, tag)
        last = tag
        for j in range(plan.n_foreign):
            if plan.foreign[j] == tag:
                w.c.at = entry
                return kw_fail(&w.f, &w.c, KW_TAG_FOREIGN, tag)
        known = NULL
        for j in range(plan.n_tags):
            if plan.tags[j].tag == tag:
                known = &plan.tags[j]
                break
        if known != NULL:
            if read_tag(w, known, self, size) < 0:
                return kw_in(&w.f, known.field, -1)
            continue
        if not kw_has(&w.c, size):
            return kw_fail(&w.f, &w.c, KW_SHORT, size)
        w.c.at += size
        if add_unknown(tail, entry, w.c.at - entry) < 0:
            return kw_fail(&w.f, &w.c, KW_PYTHON, 0)
    return 0


cdef int add_unknown(Tail *tail, const uint8_t *entry, Py_ssize_t size) noexcept:
    """Append one unknown tag. The buffer doubles, so that millions of tags take linear time."""
    cdef Py_ssize_t room = 0 if tail.raw == NULL else PyBytes_GET_SIZE(<object>tail.raw)
    if tail.used + size > room:
        room = tail.used + size + tail.used
        if tail.raw == NULL:
            tail.raw = raw_bytes_new(NULL, room)
            if tail.raw == NULL:
                return -1
        elif raw_bytes_resize(&tail.raw, room) < 0:
            return -1
    memcpy(PyBytes_AS_STRING(<object>tail.raw) + tail.used, entry, size)
    tail.used += size
    return 0


cdef int read_tag(Walk *w, const kw_op *op, char *self, uint32_t size) noexcept:
    """Read a known tag. Strict: it must have the declared size and not hold its default."""
    cdef const uint8_t *start = w.c.at
    cdef PyObject *old
    if op.code < KW_STRING:
        if not kw_has(&w.c, kw_width[op.code]):
            return kw_fail(&w.f, &w.c, KW_SHORT, kw_width[op.code])
        if kw_load_fixed(op.code, w.c.at, KW_PLACE(self, op.at), w.lenient) < 0:
            return kw_fail(&w.f, &w.c, KW_BAD_BOOL, w.c.at[0])
        w.c.at += kw_width[op.code]
    else:
        old = KW_SLOT(self, op.at)
        if old != NULL:  # lenient: of a duplicate tag the last one wins
            store(self, op.at, NULL)
            w.known = 0
            raw_decref(old)
        if read_field(w, op, self) < 0:
            return -1
    if w.lenient:
        return 0
    if w.c.at - start != size:
        w.c.at = start
        return kw_fail(&w.f, &w.c, KW_TAG_SIZE, size)
    cdef int same = is_default(w, op, self)
    if same > 0:
        w.c.at = start
        return kw_fail(&w.f, &w.c, KW_TAG_DEFAULT, op.tag)
    return same


cdef int is_default(Walk *w, const kw_op *op, char *self) noexcept:
    """Whether a tagged field holds its default; -1: an exception is set."""
    cdef const kw_field *field = op.field
    cdef const uint8_t *place = KW_PLACE(self, op.at)
    cdef const uint8_t *model = field.owner.model + op.at
    if op.code < KW_STRING:
        return memcmp(place, model, kw_width[op.code]) == 0
    try:
        return slot_equal(field, KW_SLOT(self, op.at), NULL)
    except BaseException as error:
        return keep(w, error)


cdef object walk(Message message, const kw_plan *plan, const uint8_t *data, Py_ssize_t size, Py_ssize_t position,
                 bint lenient, bint views, object owner, Py_ssize_t *end):
    """The message at a position; *end: where it ends. end NULL: it must end with the data (unless lenient)."""
    cdef Walk w
    kw_cursor_set(&w.c, data, size)
    w.c.at += position
    w.f.why, w.f.depth, w.lenient, w.views, w.known, w.raised = 0, 0, lenient, views, 0, NULL
    w.owner = NULL if owner is None else <PyObject *>owner
    cdef PyObject *made = kw_new_instance(plan.cls)
    if made == NULL:
        raise MemoryError
    result = <object>made
    raw_decref(made)
    if read_struct(&w, plan, <char *>made) < 0:
        raise failed(&w, message, plan)
    if end != NULL:
        end[0] = w.c.at - w.c.base
    elif w.c.at != w.c.end and not lenient:
        kw_fail(&w.f, &w.c, KW_TRAILING, w.c.end - w.c.at)
        raise failed(&w, message, plan)
    return result


cdef object failed(Walk *w, Message message, const kw_plan *plan):
    """The error of a failed decode, with its path."""
    cdef int i
    if w.f.why == KW_PYTHON:
        if w.raised == NULL:
            raise_set()
        error = <object>w.raised
        raw_decref(w.raised)
        return error
    pieces = []
    for i in range(w.f.depth):
        piece = w.f.path[i]
        pieces.append(f"[{piece.index}]" if piece.field == NULL else f".{<object>piece.field.name}")
    path = "".join(reversed(pieces))
    reason = kw_why_reason(w.f.why).decode().format(number=w.f.number, left=w.f.left)
    return DecodeError(reason, offset=w.f.offset, path=path, what=f"{message.name} v{plan.version}")


def decode(message, version, data, *, bint lenient=False, bint views=False):
    """Decode one message, which must fill the data.

    message: its name ("FetchRequest") or class; version: int; data: bytes or any other contiguous buffer.
    lenient: accept whatever Kafka 4.4's own classes accept (trailing bytes, overlong varints, bad UTF-8, ...); strict
    decoding accepts only what encodes to the same bytes again.
    views: bytes and records fields are memoryviews into data, which they keep alive.
    Raises DecodeError (offset, path, reason) and UnsupportedVersionError.
    """
    cdef Message target = find(message)
    return over(target, target.at(version), data, 0, lenient, views, NULL)


def decode_from(message, version, data, position=0, *, bint lenient=False, bint views=False):
    """Decode the message that starts at a position: (message, position after it). Otherwise as decode."""
    cdef Message target = find(message)
    cdef Py_ssize_t end = 0
    made = over(target, target.at(version), data, position, lenient, views, &end)
    return made, end


cdef object over(Message target, const kw_plan *plan, object data, object position, bint lenient, bint views,
                 Py_ssize_t *end):
    cdef Py_buffer buffer
    cdef Py_ssize_t at = clipped(position, "position")
    owner = take_view(data, "data") if views else data if type(data) is bytes else None
    if type(data) is bytes:
        check_position(at, PyBytes_GET_SIZE(data))
        return walk(target, plan, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at, lenient,
                    views, owner, end)
    # taken once, as the base of views: an object may return another buffer the next time
    take_buffer(owner if views else data, &buffer, "data")
    try:
        check_position(at, buffer.len)
        return walk(target, plan, <const uint8_t *>buffer.buf, buffer.len, at, lenient, views, owner, end)
    finally:
        PyBuffer_Release(&buffer)


cdef int check_position(Py_ssize_t at, Py_ssize_t size) except -1:
    if at < 0 or at > size:
        raise DecodeError(f"position {at} is outside the {size} bytes", offset=at)
    return 0
