"""The checks that a value passes on its way into a field: type (TypeError), range and null (EncodeError)."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport INT64_MIN, int64_t, uint32_t, uint8_t
from libc.string cimport memcpy

from kwire_c.failure import EncodeError

from kwire_c.instance cimport is_uuid, take_uuid
from kwire_c.integers cimport brief
from kwire_c.plan cimport (KW_BOOL, KW_FLOAT64, KW_STRING, KW_STRUCT, KW_UUID, kw_cursor, kw_cursor_set, kw_failure,
                           kw_field, kw_has, kw_take_uvarint, kw_width)

cdef extern from "Python.h":
    PyTypeObject *Py_TYPE(PyObject *self)
    void PyObject_GC_UnTrack(void *self)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    object PyNumber_Index(object value)

cdef int64_t[9] LOWEST = [0, -0x80, -0x8000, 0, -0x80000000, 0, INT64_MIN, 0, 0]
cdef int64_t[9] HIGHEST = [1, 0x7f, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0, 0]
KINDS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid")


cdef int wrong(const kw_field *field, str wanted, object value) except -1:
    raise TypeError(f"{<object>field.owner.label} {<object>field.name}: expected {wanted}, "
                    f"got {type(value).__name__}")


cdef int refuse(const kw_field *field, str reason) except -1:
    raise EncodeError(reason, path=f".{<object>field.name}", what=<object>field.owner.label)


cdef int64_t integer(const kw_field *field, int kind, object value) except? -1:
    """A whole number within the range of its kind."""
    cdef int overflow = 0
    cdef long long number
    if not isinstance(value, int):
        if isinstance(value, (float, str, bytes)) or not hasattr(value, "__index__"):
            wrong(field, "int", value)
        value = PyNumber_Index(value)
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < LOWEST[kind] or number > HIGHEST[kind]:
        refuse(field, f"{brief(value)} is out of range of {KINDS[kind]}")
    return number


cdef int place_number(const kw_field *field, int kind, object value, uint8_t *place) except -1:
    """Stores a number, bool or uuid in its native form."""
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
    """bytes as they are, memoryviews of bytes too, any other buffer copied."""
    if type(value) is bytes:
        return value
    if isinstance(value, memoryview) and value.contiguous and value.itemsize == 1 and value.ndim == 1:
        return value
    if isinstance(value, (str, int, list, tuple)):
        wrong(field, "bytes", value)
    try:
        return memoryview(value).tobytes()
    except TypeError:
        wrong(field, "bytes", value)


cdef object take_ints(const kw_field *field, object value):
    """A tuple of whole numbers in range, which the garbage collector need not know."""
    if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
        wrong(field, "a sequence of int", value)
    cdef tuple numbers = tuple([integer(field, field.elem, item) for item in value])
    if numbers:
        PyObject_GC_UnTrack(<void *>numbers)
    return numbers


cdef object take_list(const kw_field *field, object value):
    """The list itself (other sequences become one), each element of the right class."""
    cdef list items
    if type(value) is list:
        items = value
    elif isinstance(value, (list, tuple)):
        items = list(value)
    else:
        wrong(field, "a list", value)
    if field.elem == KW_STRUCT:
        for item in items:
            if Py_TYPE(<PyObject *>item) != field.cls.type:
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
    """The unknown tags of a slot: none yet, the bytes that were read (tag, size, data, ...), or a dict."""
    cdef kw_cursor c
    cdef kw_failure f
    cdef uint32_t tag = 0, size = 0
    if item == NULL:
        return []
    held = <object>item  # making the list may collect garbage, and a finalizer may set the field
    if isinstance(held, dict):
        return list((<dict>held).items())
    cdef bytes raw = <bytes>held
    cdef list found = []
    kw_cursor_set(&c, <const uint8_t *><const char *>raw, len(raw))
    while kw_has(&c, 1):
        if kw_take_uvarint(&c, 1, &f, &tag) < 0 or kw_take_uvarint(&c, 1, &f, &size) < 0 or not kw_has(&c, size):
            break  # cannot be: decoding checked it
        found.append((tag, (<const char *>c.at)[:size]))
        c.at += size
    return found


cdef dict tags_dict(PyObject *item):
    """The same as a dict: the slot's own, or a new one."""
    return <dict>item if item != NULL and isinstance(<object>item, dict) else dict(tags_list(item))


cdef int unknown_equal(PyObject *a, PyObject *b) except -1:
    """Whether two slots hold the same unknown tags."""
    if a == b:
        return 1
    _one = None if a == NULL else <object>a  # held: see slot_equal
    _other = None if b == NULL else <object>b
    return tags_dict(a) == tags_dict(b)
