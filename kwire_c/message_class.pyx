"""Message classes: heap types whose instances hold their fields at fixed offsets as native C types.

A NULL object slot means the field's default; an empty list is stored as () until it is read.
"""

from types import GenericAlias

from kwire_c.errors import EncodeError
from kwire_c.secrets import HIDDEN, is_secret

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Calloc
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject, PyObject_RichCompareBool, PyTypeObject, Py_EQ, Py_NE
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport INT64_MIN, int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint8_t
from libc.string cimport memcmp, memcpy

cimport cython

from kwire_c.buffers cimport holds_objects, is_no_row, take_view
from kwire_c.core cimport (
    KW_ARRAY, KW_BOOL, KW_BYTES, KW_FLOAT64, KW_INT16, KW_INT32, KW_INT64, KW_INT8, KW_PLACE, KW_RECORDS, KW_SLOT,
    KW_STRING, KW_STRUCT, KW_UINT16, KW_UINT32, KW_UNKNOWN_AT, KW_UUID, PyGetSetDef, PyObject_GC_IsTracked,
    PyObject_GC_Track, PyObject_GC_UnTrack, PyObject_HashNotImplemented, PyObject_TypeCheck, PyType_FromSpecWithBases,
    PyType_Slot, PyType_Spec, Py_EnterRecursiveCall, Py_LeaveRecursiveCall, Py_TPFLAGS_DEFAULT, Py_TPFLAGS_HAVE_GC,
    Py_tp_clear, Py_tp_dealloc, Py_tp_doc, Py_tp_getset, Py_tp_hash, Py_tp_init, Py_tp_new, Py_tp_repr,
    Py_tp_richcompare, Py_tp_traverse, kw_class, kw_closure, kw_cursor, kw_cursor_set, kw_failure, kw_field,
    kw_free_instance, kw_has, kw_head_model, kw_new_instance, kw_take_uvarint, kw_width, raise_set, raw_incref,
    raw_type, seal, visitproc,
)
from kwire_c.integers cimport brief


cdef int64_t[9] LOWEST = [0, -0x80, -0x8000, 0, -0x80000000, 0, INT64_MIN, 0, 0]
cdef int64_t[9] HIGHEST = [1, 0x7f, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0, 0]
KINDS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid")


cdef int wrong(const kw_field *field, str wanted, object value) except -1:
    raise TypeError(f"{<object>field.owner.label} {<object>field.name}: expected {wanted}, "
                    f"got {type(value).__name__}")


cdef int refuse(const kw_field *field, str reason) except -1:
    raise EncodeError(reason, path=f".{<object>field.name}", what=<object>field.owner.label)


cdef int64_t integer(const kw_field *field, int kind, object value) except? -1:
    """An integer within the range of its kind. Raises TypeError, EncodeError."""
    cdef int overflow = 0
    cdef long long number
    if not isinstance(value, int):
        if isinstance(value, (float, str, bytes)) or not hasattr(value, "__index__"):
            wrong(field, "int", value)
        try:
            value = PyNumber_Index(value)
        except TypeError:  # of an array
            wrong(field, "int", value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < LOWEST[kind] or number > HIGHEST[kind]:
        refuse(field, f"{brief(value)} is out of range of {KINDS[kind]}")
    return number


cdef int place_number(const kw_field *field, int kind, object value, uint8_t *place) except -1:
    """Store a number, bool or uuid in its native form."""
    cdef int64_t number
    cdef unsigned long long bits
    cdef int width = kw_width[kind]
    if kind == KW_FLOAT64:
        if not isinstance(value, (float, int)):
            wrong(field, "float", value)
        try:
            (<double *>place)[0] = value
        except OverflowError:
            refuse(field, f"{brief(value)} is out of range of float64")
        return 0
    if kind == KW_UUID:
        if not take_uuid(value, place):
            wrong(field, "uuid.UUID", value)
        return 0
    if kind == KW_BOOL:
        if value is not True and value is not False:
            wrong(field, "bool", value)
        place[0] = value is True
        return 0
    number = integer(field, kind, value)
    bits = <unsigned long long>number
    if LITTLE:
        memcpy(place, &bits, width)
    else:
        memcpy(place, <uint8_t *>&bits + 8 - width, width)
    return 0


cdef bint LITTLE = __import__("sys").byteorder == "little"


cdef object take_bytes(const kw_field *field, object value):
    """bytes and memoryviews of bytes unchanged, a copy of any other buffer."""
    if type(value) is bytes:
        return value
    try:
        # of other items, such as signed ones, it would not equal the same bytes
        if isinstance(value, memoryview) and value.contiguous and value.format == "B" and value.ndim == 1:
            return value
    except ValueError:
        refuse(field, "the memoryview was released")
    if isinstance(value, (str, int, list, tuple)) or not PyObject_CheckBuffer(value) or holds_objects(value):
        wrong(field, "bytes", value)
    return take_view(value, f"{<object>field.owner.label} {<object>field.name}").tobytes()


cdef object take_ints(const kw_field *field, object value):
    """A tuple of integers in range, untracked by the garbage collector."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__") or is_no_row(value):
        wrong(field, "a sequence of int", value)
    cdef tuple numbers = tuple([integer(field, field.elem, item) for item in value])
    if numbers:
        PyObject_GC_UnTrack(<void *>numbers)
    return numbers


cdef object take_list(const kw_field *field, object value):
    """The list itself, or a list of another sequence; each element is checked to be of the right class."""
    cdef list items
    if type(value) is list:
        items = value
    elif isinstance(value, (list, tuple)):
        items = list(value)
    else:
        wrong(field, "a list", value)
    if field.elem == KW_STRUCT:
        for item in items:
            if raw_type(<PyObject *>item) != field.cls.type:
                wrong(field, f"a list of {<object>field.cls.label}", item)
    elif field.elem == KW_STRING:
        for item in items:
            if not isinstance(item, str):
                wrong(field, "a list of str", item)
    else:
        for item in items:
            if not is_uuid(item):
                wrong(field, "a list of uuid.UUID", item)
    return items


cdef dict take_tags(str label, object value):
    """Unknown tags: a dict of tag number to bytes."""
    if value is None:
        raise EncodeError("no version allows null", path=".unknown_tags", what=label)
    if not isinstance(value, dict):
        raise TypeError(f"{label} unknown_tags: expected dict, got {type(value).__name__}")
    for tag, data in value.items():
        if not isinstance(tag, int) or not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"{label} unknown_tags: expected int and bytes, got "
                            f"{type(tag).__name__} and {type(data).__name__}")
        if not 0 <= tag <= 0xffffffff:
            raise EncodeError(f"{brief(tag)} is out of range of a tag", path=".unknown_tags", what=label)
    return value if type(value) is dict else dict(value)


cdef list tags_list(PyObject *item):
    """The unknown tags of a slot, which holds NULL, the bytes that were read (tag, size, data, ...) or a dict."""
    cdef kw_cursor c
    cdef kw_failure f
    cdef uint32_t tag = 0, size = 0
    if item == NULL:
        return []
    held = <object>item  # making the list may run the garbage collector, and a finalizer may set the field
    if isinstance(held, dict):
        return list((<dict>held).items())
    cdef bytes raw = <bytes>held
    cdef list tags = []
    kw_cursor_set(&c, <const uint8_t *><const char *>raw, len(raw))
    while kw_has(&c, 1):
        if kw_take_uvarint(&c, 1, &f, &tag) < 0 or kw_take_uvarint(&c, 1, &f, &size) < 0 or not kw_has(&c, size):
            break  # impossible: decoding checked it
        tags.append((tag, (<const char *>c.at)[:size]))
        c.at += size
    return tags


cdef dict tags_dict(PyObject *item):
    """The unknown tags of a slot as a dict: its own or a new one."""
    return <dict>item if item != NULL and isinstance(<object>item, dict) else dict(tags_list(item))


cdef int unknown_equal(PyObject *a, PyObject *b) except -1:
    """Whether two slots hold the same unknown tags."""
    if a == b:
        return 1
    _one = None if a == NULL else <object>a  # held: see slot_equal
    _other = None if b == NULL else <object>b
    return tags_dict(a) == tags_dict(b)


# uuid.UUID and its slots, through which objects are read and made without running Python code
cdef object _uuid_type = None
cdef object _uuid_set_int, _uuid_get_int, _uuid_set_safe, _uuid_unknown
cdef object _to_bytes = int.to_bytes


cdef int know_uuid() except -1:
    global _uuid_type, _uuid_set_int, _uuid_get_int, _uuid_set_safe, _uuid_unknown
    import uuid
    _uuid_set_int, _uuid_get_int = uuid.UUID.int.__set__, uuid.UUID.int.__get__
    _uuid_set_safe, _uuid_unknown = uuid.UUID.is_safe.__set__, uuid.SafeUUID.unknown
    _uuid_type = uuid.UUID  # set last: it marks the others as set
    return 0


cdef object make_uuid(const uint8_t *data):
    """A uuid.UUID from 16 bytes, in half the time of its constructor."""
    if _uuid_type is None:
        know_uuid()
    value = _uuid_type.__new__(_uuid_type)
    _uuid_set_int(value, int.from_bytes((<const char *>data)[:16], "big"))
    _uuid_set_safe(value, _uuid_unknown)
    return value


cdef bint is_uuid(object value) except? True:
    """Whether a value is a uuid.UUID or of a subclass, by its type (not __class__)."""
    if _uuid_type is None:
        know_uuid()
    return type(value) is _uuid_type or PyObject_TypeCheck(value, <PyTypeObject *>_uuid_type)


cdef int take_uuid(object value, uint8_t *to) except -1:
    """Copy the 16 bytes of a uuid.UUID; 0 if the value is not a UUID or is uninitialised."""
    if not is_uuid(value):
        return 0
    try:
        data = _to_bytes(_uuid_get_int(value), 16, "big")
    except (AttributeError, TypeError, OverflowError):
        return 0
    memcpy(to, <const char *>data, 16)
    return 1


cdef kw_class *class_of(object value) except? NULL:
    """The class of a message instance; NULL without an error for anything else."""
    if not isinstance(value, Struct):
        return NULL
    return <kw_class *>kw_closure(raw_type(<PyObject *>value))


cdef PyObject *made_instance(const kw_class *cls) except NULL:
    cdef PyObject *self = kw_new_instance(cls)
    if self == NULL:
        raise MemoryError
    return self


cdef PyObject *blank(const kw_class *cls) except NULL:
    """The instance with every default, used only to compare with and to encode; borrowed."""
    if cls.blank == NULL:
        (<kw_class *>cls).blank = made_instance(cls)
    return <PyObject *>cls.blank


cdef PyObject *fallback(const kw_field *field) except NULL:
    """The default that an empty slot means; borrowed."""
    if field.fallback != NULL:
        return <PyObject *>field.fallback
    return blank(field.cls)


@cython.no_gc_clear  # what it points into must not go before it
cdef class Span:
    """A part of a buffer, which it keeps alive: the content of a bytes field until it is read, with views=True."""

    def seen(self):
        """The value of the field: a memoryview or bytes."""
        return self.view() if self.viewed else (<const char *>self.data)[:self.size]

    def view(self):
        """A memoryview of the part."""
        return memoryview(self.owner).cast("B")[self.position:self.position + self.size]


cdef void track(PyObject *self) noexcept:
    """Track a container that is handed out: it may become part of a cycle from now on."""
    if not PyObject_GC_IsTracked(self):
        PyObject_GC_Track(self)


cdef void dealloc(PyObject *self) noexcept:
    cdef PyTypeObject *type = raw_type(self)
    cdef kw_class *cls = <kw_class *>kw_closure(type)
    cdef uint32_t i
    if cls.collected:
        PyObject_GC_UnTrack(self)
    for i in range(cls.n_slots):
        Py_XDECREF(KW_SLOT(self, KW_UNKNOWN_AT + i * sizeof(void *)))
    kw_free_instance(self, cls)


cdef int traverse(PyObject *self, visitproc visit, void *arg) noexcept:
    cdef kw_class *cls = <kw_class *>kw_closure(raw_type(self))
    cdef uint32_t i
    cdef int status
    cdef PyObject *item
    for i in range(cls.n_slots):
        item = KW_SLOT(self, KW_UNKNOWN_AT + i * sizeof(void *))
        if item != NULL:
            status = visit(item, arg)
            if status:
                return status
    return visit(<PyObject *>raw_type(self), arg)  # GC classes only, whose instances own their type


cdef int clear(PyObject *self) noexcept:
    cdef kw_class *cls = <kw_class *>kw_closure(raw_type(self))
    cdef uint32_t i
    cdef PyObject *item
    for i in range(cls.n_slots):
        item = KW_SLOT(self, KW_UNKNOWN_AT + i * sizeof(void *))
        (<PyObject **>KW_PLACE(self, KW_UNKNOWN_AT))[i] = NULL
        Py_XDECREF(item)
    return 0


cdef void put(PyObject *self, size_t at, object value) noexcept:
    """Store a new reference, then drop the old one."""
    cdef PyObject *old = KW_SLOT(self, at)
    Py_INCREF(value)
    (<PyObject **>KW_PLACE(self, at))[0] = <PyObject *>value
    Py_XDECREF(old)


cdef PyObject *get_field(PyObject *self, void *closure) except NULL:
    """The value of a field as a Python object."""
    value = read_field(self, <const kw_field *>closure)
    Py_INCREF(value)
    return <PyObject *>value


cdef object read_native(int kind, const uint8_t *place):
    """The Python value of a number, bool or uuid."""
    if kind == KW_INT32:
        return (<int32_t *>place)[0]
    if kind == KW_INT16:
        return (<int16_t *>place)[0]
    if kind == KW_INT64:
        return (<int64_t *>place)[0]
    if kind == KW_INT8:
        return (<int8_t *>place)[0]
    if kind == KW_BOOL:
        return True if place[0] else False
    if kind == KW_UINT16:
        return (<uint16_t *>place)[0]
    if kind == KW_UINT32:
        return (<uint32_t *>place)[0]
    if kind == KW_FLOAT64:
        return (<double *>place)[0]
    return make_uuid(place)


cdef object read_field(PyObject *self, const kw_field *field):
    cdef uint8_t *place = KW_PLACE(self, field.at)
    cdef PyObject *item
    cdef int kind = field.kind
    if kind < KW_STRING:
        return read_native(kind, place)
    item = (<PyObject **>place)[0]
    if kind == KW_STRUCT:
        if item == NULL:
            if field.fallback != NULL:
                return <object>field.fallback
            made = <object>made_instance(field.cls)
            Py_DECREF(made)  # the reference of the variable remains
            settle(self, place, NULL, made)
            item = (<PyObject **>place)[0]
        if field.owner.collected:
            track(self)
        return <object>item
    if item == NULL:
        item = <PyObject *>field.fallback
    if kind == KW_ARRAY and (field.elem >= KW_STRING or field.elem == KW_UUID):
        if isinstance(<object>item, tuple):
            settle(self, place, (<PyObject **>place)[0], [])
            item = (<PyObject **>place)[0]
        if isinstance(<object>item, list):
            track(item)
            track(self)
        return <object>item
    if (kind == KW_BYTES or kind == KW_RECORDS) and isinstance(<object>item, Span):
        span = <object>item
        settle(self, place, item, (<Span>span).seen())
        item = (<PyObject **>place)[0]
    return <object>item


cdef void settle(PyObject *self, uint8_t *place, PyObject *before, object made) noexcept:
    """Store the object made for a slot, unless another thread has changed the slot meanwhile.

    (Making an object may run finalizers, during which other threads may run.)
    """
    cdef PyObject *held = (<PyObject **>place)[0]
    if held != before:
        return
    Py_INCREF(made)
    (<PyObject **>place)[0] = <PyObject *>made
    Py_XDECREF(held)


cdef int set_field(PyObject *self, PyObject *value, void *closure) except -1:
    """Check a value and store it."""
    cdef const kw_field *field = <const kw_field *>closure
    if value == NULL:
        raise TypeError(f"{<object>field.owner.label} {<object>field.name} cannot be deleted")
    write_field(self, field, <object>value)
    return 0


cdef int write_field(PyObject *self, const kw_field *field, object value) except -1:
    cdef int kind = field.kind
    cdef kw_class *cls
    if value is None:
        if not field.nullable and kind != KW_RECORDS:
            refuse(field, "no version allows null")
    elif kind == KW_STRING:
        if not isinstance(value, str):
            wrong(field, "str", value)
        if type(value) is not str:
            value = str.__str__(value)
    elif kind == KW_BYTES or kind == KW_RECORDS:
        value = take_bytes(field, value)
    elif kind == KW_STRUCT:
        cls = class_of(value)
        if cls != field.cls:
            wrong(field, str(<object>field.cls.label), value)
        if field.owner.collected:
            track(self)
    elif kind == KW_ARRAY:
        if field.elem >= KW_STRING or field.elem == KW_UUID:
            value = take_list(field, value)
            track(self)
        else:
            value = take_ints(field, value)
    else:
        return place_number(field, kind, value, KW_PLACE(self, field.at))
    put(self, field.at, value)
    return 0


cdef PyObject *get_unknown(PyObject *self, void *closure) except NULL:
    """The dict of unknown tags, made when first read."""
    cdef PyObject *item = KW_SLOT(self, KW_UNKNOWN_AT)
    if item == NULL or not isinstance(<object>item, dict):
        _held = None if item == NULL else <object>item
        settle(self, KW_PLACE(self, KW_UNKNOWN_AT), item, tags_dict(item))
        item = KW_SLOT(self, KW_UNKNOWN_AT)
    raw_incref(item)
    return item


cdef int set_unknown(PyObject *self, PyObject *value, void *closure) except -1:
    if value == NULL:
        raise TypeError(f"{<object>(<kw_class *>closure).label} unknown_tags cannot be deleted")
    put(self, KW_UNKNOWN_AT, take_tags(str(<object>(<kw_class *>closure).label), <object>value))
    return 0


cdef int slot_equal(const kw_field *field, PyObject *a, PyObject *b) except -1:
    """Whether two slots of one field hold the same content."""
    if a == b:
        return 1
    _held = <object>(b if a == NULL else a)  # making a default, once, may run finalizers
    if a == NULL:
        a = fallback(field)
    if b == NULL:
        b = fallback(field)
    if a == b:
        return 1
    if a == <PyObject *>None or b == <PyObject *>None:
        return 0
    first, second = <object>a, <object>b  # held: comparing may run other code, which may set the fields
    if field.kind == KW_STRUCT:
        return is_equal(a, b, field.cls)
    if field.kind == KW_ARRAY and type(first) is not type(second):
        return len(first) == len(second) == 0
    if field.kind == KW_BYTES or field.kind == KW_RECORDS:
        return plain(first) == plain(second)
    return PyObject_RichCompareBool(first, second, Py_EQ)


cdef bint is_default_slot(const kw_field *field, PyObject *self) except? True:
    """Whether a field of an instance holds its default."""
    cdef PyObject *item
    if field.kind < KW_STRING:
        return memcmp(KW_PLACE(self, field.at), field.owner.model + field.at, kw_width[field.kind]) == 0
    item = KW_SLOT(self, field.at)
    return item == NULL or slot_equal(field, item, NULL)


cdef object plain(object value):
    return (<Span>value).view() if isinstance(value, Span) else value


cdef int is_equal(PyObject *a, PyObject *b, const kw_class *cls) except -1:
    """Whether two instances of one class hold the same content."""
    cdef uint32_t fixed = KW_UNKNOWN_AT + cls.n_slots * sizeof(void *)
    cdef int i
    cdef const kw_field *field
    if a == b:
        return 1
    if memcmp(KW_PLACE(a, fixed), KW_PLACE(b, fixed), cls.size - fixed) != 0:
        return 0
    for i in range(cls.n_fields):
        field = &cls.fields[i]
        if field.kind >= KW_STRING:
            if not slot_equal(field, KW_SLOT(a, field.at), KW_SLOT(b, field.at)):
                return 0
    return unknown_equal(KW_SLOT(a, KW_UNKNOWN_AT), KW_SLOT(b, KW_UNKNOWN_AT))


cdef PyObject *compare(PyObject *a, PyObject *b, int op) except NULL:
    result = NotImplemented
    if (op == Py_EQ or op == Py_NE) and raw_type(a) == raw_type(b):
        same = is_equal(a, b, <kw_class *>kw_closure(raw_type(a)))
        result = bool(same) if op == Py_EQ else not same
    Py_INCREF(result)
    return <PyObject *>result


cdef list contents(PyObject *self):
    """(name, value) of every field that does not hold its default, unknown tags last."""
    cdef kw_class *cls = <kw_class *>kw_closure(raw_type(self))
    cdef kw_field *field
    cdef PyObject *item
    cdef int i
    cdef list fields = []
    for i in range(cls.n_fields):
        field = &cls.fields[i]
        if is_default_slot(field, self):
            continue
        fields.append((<object>field.name, read_field(self, field)))
    item = KW_SLOT(self, KW_UNKNOWN_AT)
    if item != NULL:
        tags = tags_dict(item)
        if tags:
            fields.append(("unknown_tags", tags))
    return fields


cdef object snapshot(object value):
    """A value that other threads do not change while it is copied or pickled item by item."""
    if isinstance(value, memoryview):
        return copied(value)
    if type(value) is dict:  # of unknown tags
        return {tag: copied(data) if isinstance(data, memoryview) else data
                for tag, data in list((<dict>value).items())}
    return list(value) if type(value) is list else value


cdef bytes copied(object view):
    """The bytes of a memoryview. Raises EncodeError if it was released."""
    try:
        return bytes(view)
    except ValueError:
        raise EncodeError("the memoryview in a field was released") from None


cdef enum:
    MOST_SHOWN = 2000  # characters of a repr, about
    MOST_ITEMS = 100
    MOST_BYTES = 64    # of one value
    MOST_TEXT = 200    # characters of one value


cdef PyObject *represent(PyObject *self) except NULL:
    text = struct_text(self, MOST_SHOWN)
    Py_INCREF(text)
    return <PyObject *>text


cdef str struct_text(PyObject *self, Py_ssize_t room):
    """What repr() gives: the fields that do not hold their default, cut after about room characters; no secret."""
    if Py_EnterRecursiveCall(" while getting the repr of a message"):  # the user may put it into its own list
        raise_set()
    try:
        return fields_text(self, room)
    finally:
        Py_LeaveRecursiveCall()


cdef str fields_text(PyObject *self, Py_ssize_t room):
    cdef kw_class *cls = <kw_class *>kw_closure(raw_type(self))
    cdef str text
    cdef list parts = []
    cdef list fields = contents(self)
    setting = config_name(fields)
    for name, value in fields:
        if room <= 0:
            parts.append("...")
            break
        if value is not None and is_secret(name, setting):
            text = f"{name}={HIDDEN}"
        else:
            text = f"{name}={value_text(value, room)}"
        parts.append(text)
        room -= len(text) + 2
    return f"{<object>cls.label}({', '.join(parts)})"


cdef object config_name(list fields):
    """The name among the fields of a struct, which may be that of a config; None if there is none."""
    for name, value in fields:
        if name == "name" or name == "config_name":
            return value
    return None


cdef str value_text(object value, Py_ssize_t room):
    """The repr of a field's value, cut after about room characters."""
    cdef list parts
    cdef str text
    if isinstance(value, Struct):
        return struct_text(<PyObject *>value, room)
    if isinstance(value, memoryview):
        try:
            text = repr(bytes(value[:MOST_BYTES] if value.ndim == 1 else value)[:MOST_BYTES])
            return text if value.nbytes <= MOST_BYTES else f"{text}... ({value.nbytes} bytes)"
        except ValueError:  # the user released it
            return "<released memoryview>"
    if isinstance(value, bytes) and len(value) > MOST_BYTES:
        return f"{value[:MOST_BYTES]!r}... ({len(value)} bytes)"
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[:MOST_TEXT]!r}... ({len(value)} characters)"
    if isinstance(value, float) and value - value != 0:
        return f"float('{value}')"
    if isinstance(value, dict):
        parts = items_text(list(value.items())[:MOST_ITEMS], len(value), room, True)
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        parts = items_text(value[:MOST_ITEMS], len(value), room, False)
        return f"[{', '.join(parts)}]"
    if isinstance(value, tuple):
        parts = items_text(list(value[:MOST_ITEMS]), len(value), room, False)
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return repr(value)


cdef list items_text(list items, Py_ssize_t count, Py_ssize_t room, bint are_pairs):
    """The reprs of the first items of a list, a tuple or (as pairs) a dict, as far as there is room."""
    cdef list parts = []
    cdef str text
    for item in items:
        if room <= 0:
            break
        prefix = ""
        if are_pairs:
            tag, item = item
            prefix = f"{tag!r}: "
        # a container in a container was put there by the user: it may hold itself
        text = prefix + (repr(item) if isinstance(item, (list, tuple, dict)) else value_text(item, room))
        parts.append(text)
        room -= len(text) + 2
    if len(parts) < count:
        parts.append(f"... {count - len(parts)} more")
    return parts


cdef PyObject *create(PyTypeObject *type, PyObject *args, PyObject *named) except NULL:
    return made_instance(<kw_class *>kw_closure(type))


cdef int assign(PyObject *self, kw_class *cls, object name, object value) except -1:
    where = (<dict>cls.names).get(name)
    if where is None:
        if name == "unknown_tags":
            return set_unknown(self, <PyObject *>value, cls)
        raise TypeError(f"{<object>cls.label} has no field {name!r}")
    return write_field(self, &cls.fields[<int>where], value)


cdef int initialise(PyObject *self, PyObject *args, PyObject *named) except -1:
    cdef kw_class *cls = <kw_class *>kw_closure(raw_type(self))
    if args != NULL and len(<tuple>args):
        raise TypeError(f"{<object>cls.label} takes its fields by keyword")
    if named != NULL:
        for name, value in (<dict>named).items():
            assign(self, cls, name, value)
    return 0


def restore(cls, fields):
    """An instance of a message class with these fields, for pickle."""
    return cls(**fields)


cdef class Struct:
    """Base class of all message classes."""

    def __cinit__(self):
        raise TypeError("messages are made from the classes in kwire.messages")

    def __reduce__(self):
        return restore, (type(self), {
            name: snapshot(value)
            for name, value in contents(<PyObject *>self)
        })

    def __copy__(self):
        return restore(type(self), dict(contents(<PyObject *>self)))

    def __deepcopy__(self, memo):
        from copy import deepcopy
        made = type(self)()
        memo[id(self)] = made
        for name, value in contents(<PyObject *>self):
            assign(<PyObject *>made, class_of(made), name, deepcopy(snapshot(value), memo))
        return made

    def __replace__(self, /, **changes):
        """A copy with these fields changed (copy.replace)."""
        made = self.__copy__()
        for name, value in changes.items():
            assign(<PyObject *>made, class_of(made), name, value)
        return made


cdef class Message(Struct):
    """Base class of the classes of whole messages, as messages.FetchRequest; structs inside them are Structs only."""


cdef class RequestMessage(Message):
    """Base class of the classes of requests. To type checkers RequestMessage[R] is a request whose response is an R."""

    __class_getitem__ = classmethod(GenericAlias)


cdef list _kept = []  # objects that the types point to, kept as long as the process


cdef object make_type(kw_class *cls, str label, tuple names, str doc, list docs, str kind):
    """The heap type of a class with its field layout. kind: the type of the message, "" for a struct inside one."""
    cdef PyGetSetDef *members = <PyGetSetDef *>PyMem_Calloc(cls.n_fields + 2, sizeof(PyGetSetDef))
    cdef PyType_Slot[12] slots
    cdef PyType_Spec spec
    cdef int i, n = 0
    if members == NULL:
        raise MemoryError
    texts = [b"Unknown tagged fields: dict of tag to bytes."]
    texts.extend(text.encode() for text in docs)
    encoded = [name.encode() for name in names]
    heading, path = doc.encode(), ("kwire.messages." + label).encode()
    _kept.append((texts, encoded, heading, path))
    members[0].name, members[0].doc = b"unknown_tags", <const char *>texts[0]
    members[0].get, members[0].set, members[0].closure = <void *>get_unknown, <void *>set_unknown, cls
    for i in range(cls.n_fields):
        members[i + 1].name, members[i + 1].doc = <const char *>encoded[i], <const char *>texts[i + 1]
        members[i + 1].get, members[i + 1].set = <void *>get_field, <void *>set_field
        members[i + 1].closure = &cls.fields[i]
    for slot, function in ((Py_tp_dealloc, <size_t>dealloc), (Py_tp_new, <size_t>create),
                           (Py_tp_init, <size_t>initialise), (Py_tp_repr, <size_t>represent),
                           (Py_tp_richcompare, <size_t>compare), (Py_tp_getset, <size_t>members),
                           (Py_tp_hash, <size_t>PyObject_HashNotImplemented),
                           (Py_tp_doc, <size_t><const char *>heading)):
        slots[n].slot, slots[n].pfunc = slot, <void *><size_t>function
        n += 1
    if cls.collected:
        slots[n].slot, slots[n].pfunc = Py_tp_traverse, <void *>traverse
        slots[n + 1].slot, slots[n + 1].pfunc = Py_tp_clear, <void *>clear
        n += 2
    slots[n].slot, slots[n].pfunc = 0, NULL
    spec.name, spec.basicsize, spec.itemsize, spec.slots = <const char *>path, cls.size, 0, slots
    spec.flags = Py_TPFLAGS_DEFAULT | (Py_TPFLAGS_HAVE_GC if cls.collected else 0)
    made = PyType_FromSpecWithBases(&spec, (RequestMessage if kind == "request" else Message if kind else Struct,))
    made.__module__, made.__qualname__ = "kwire.messages", label
    made.__match_args__ = names
    cls.type = <void *>made
    kw_head_model(cls)
    return made


cdef Span new_span():
    """An empty Span, to be filled before it is used."""
    return Span.__new__(Span)


seal(Span)
