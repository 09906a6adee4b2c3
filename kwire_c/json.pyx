"""Messages to and from the values that JSON holds, as Kafka's *JsonConverter classes write and read them."""

import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode

from kwire_c.errors import EncodeError

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from kwire_c.core cimport (
    KW_ARRAY_INT, KW_ARRAY_STRING, KW_ARRAY_STRUCT, KW_ARRAY_UUID, KW_BOOL, KW_BYTES, KW_FLOAT64, KW_NULLABLE,
    KW_PLACE, KW_RECORDS, KW_RUN, KW_SLOT, KW_STRING, KW_STRUCT, KW_UNKNOWN_AT, KW_UUID, kw_field, kw_new_instance,
    kw_op, kw_plan, raw_decref, raw_type,
)
from kwire_c.integers cimport brief
from kwire_c.message_class cimport (
    Span, fallback, is_default_slot, place_number, put, read_native, tags_list, take_ints, take_uuid,
)
from kwire_c.plan cimport Message, find, of_instance

UNKNOWN = "_unknownTags"

_UUID = re.compile("[A-Za-z0-9_-]{22}(?:==)?")
_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_TAG = re.compile("0|[1-9][0-9]{0,9}")
cdef object _MISSING = object()


class Refusal(Exception):
    """An error while converting, which collects its path from the inside out."""

    def __init__(self, reason, *path):
        self.reason, self.path = reason, list(path)

    def error(self, what):
        """The EncodeError with the whole path."""
        return EncodeError(self.reason, path="".join(reversed(self.path)), what=what)


cdef str uuid_text(const uint8_t *data):
    return urlsafe_b64encode((<const char *>data)[:16])[:22].decode()


cdef str element_text(object value):
    cdef uint8_t data[16]
    if not take_uuid(value, data):
        raise Refusal(f"expected uuid.UUID, got {type(value).__name__}")
    return uuid_text(data)


cdef str data_text(object value):
    try:
        return b64encode((<Span>value).view() if isinstance(value, Span) else value).decode()
    except ValueError:  # the user released the memoryview
        raise Refusal("the memoryview was released") from None


cdef str tag_text(object tag):
    if not isinstance(tag, int) or not 0 <= (tag := int.__index__(tag)) <= 0xffffffff:
        raise Refusal(f"invalid tag number {brief(tag)}")
    return str(tag)


cdef str tag_data(object tag, object data):
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise Refusal(f"unknown tag {tag}: expected bytes, got {type(data).__name__}")
    try:
        return data_text(data)
    except BufferError:  # of a memoryview that is not contiguous
        return data_text(data.tobytes())


cdef object to_value(const kw_op *op, char *self):
    """The JSON value of one field."""
    cdef PyObject *item
    if op.code == KW_UUID:
        return uuid_text(KW_PLACE(self, op.at))
    if op.code < KW_STRING:
        return read_native(op.code, KW_PLACE(self, op.at))
    item = KW_SLOT(self, op.at)
    if item == NULL:
        item = fallback(op.field)
    value = <object>item
    if value is None:
        if not op.flags & KW_NULLABLE:
            raise Refusal("null in a field that is not nullable in this version")
        return None
    if op.code == KW_STRING:
        return value
    if op.code == KW_BYTES or op.code == KW_RECORDS:
        return data_text(value)
    if op.code == KW_STRUCT:
        return to_dict(op.sub, <char *>item)
    if op.code == KW_ARRAY_UUID:
        return [element_text(uuid) for uuid in value]
    if op.code == KW_ARRAY_STRING:
        return texts(value, "str")
    if op.code != KW_ARRAY_STRUCT:
        return list(value)
    return to_dicts(op, value)


cdef inline str text_of(object value, str wanted):
    """The string, of type str: one of the caller's class may have any methods."""
    if not isinstance(value, str):
        raise Refusal(f"expected {wanted}, got {type(value).__name__}")
    return value if type(value) is str else str.__str__(value)


cdef list texts(object items, str wanted):
    cdef list values = []
    for item in items:
        try:
            values.append(text_of(item, wanted))
        except Refusal as refusal:
            refusal.path.append(f"[{len(values)}]")
            raise
    return values


cdef list to_dicts(const kw_op *op, object items):
    cdef list values = []
    for item in items:
        if <void *>raw_type(<PyObject *>item) != op.sub.cls.type:
            raise Refusal(f"expected {<object>op.sub.cls.label}, got {type(item).__name__}", f"[{len(values)}]")
        try:
            values.append(to_dict(op.sub, <char *><PyObject *>item))
        except Refusal as refusal:
            refusal.path.append(f"[{len(values)}]")
            raise
    return values


cdef dict to_dict(const kw_plan *plan, char *self):
    cdef dict fields = {}
    cdef const kw_op *op
    cdef const kw_field *before = NULL
    cdef int i
    for i in range(plan.n_absent):
        if not is_default_slot(plan.absent[i], <PyObject *>self):
            raise Refusal(f"version {plan.version} lacks this field and it cannot be dropped",
                          f".{<object>plan.absent[i].name}")
    for i in range(plan.n_ops):
        op = &plan.ops[i]
        if op.code != KW_RUN:
            before = add_tags(fields, plan, self, before, op.field)
            add_value(fields, op, self)
    add_tags(fields, plan, self, before, NULL)
    if KW_SLOT(self, KW_UNKNOWN_AT) != NULL:
        tags = {tag_text(tag): tag_data(tag, data) for tag, data in tags_list(KW_SLOT(self, KW_UNKNOWN_AT))}
        if tags:
            fields[UNKNOWN] = tags
    return fields


cdef const kw_field *add_tags(dict fields, const kw_plan *plan, char *self, const kw_field *before,
                              const kw_field *after) except? NULL:
    """Add the tagged fields declared between two fields (NULL: before the first, after the last); return `after`.

    The fields of a class are in the order of their declaration, which is that of the keys in Kafka's JSON.
    """
    cdef const kw_op *op
    cdef int i
    while plan.n_tags:
        op = NULL
        for i in range(plan.n_tags):
            if before < plan.tags[i].field and (after == NULL or plan.tags[i].field < after) and (
                    op == NULL or plan.tags[i].field < op.field):
                op = &plan.tags[i]
        if op == NULL:
            break
        if not is_default_slot(op.field, <PyObject *>self):
            add_value(fields, op, self)
        before = op.field
    return after


cdef int add_value(dict fields, const kw_op *op, char *self) except -1:
    try:
        fields[<object>op.field.json] = to_value(op, self)
    except Refusal as refusal:
        refusal.path.append(f".{<object>op.field.name}")
        raise
    return 0


def to_json(message, version):
    """The message as Kafka's JsonConverter writes it at a version, as Python values (dict, list, str, int, ...).

    Keys in camelCase, bytes and records as base64, uuids as 22 characters of base64; a tagged field that holds its
    default is left out; unknown tags are under "_unknownTags" in the struct that holds them.
    Raises EncodeError, UnsupportedVersionError.
    """
    cdef Message target = of_instance(message)
    cdef const kw_plan *plan = target.at(version)
    try:
        return to_dict(plan, <char *><PyObject *>message)
    except Refusal as refusal:
        raise refusal.error(f"{target.name} v{version}") from None


cdef object decoded(object value, object decoder, str kind):
    text = text_of(value, kind)  # slices and sums of one of the caller's class may be anything
    try:
        return decoder(text)
    except ValueError:
        raise Refusal(f"invalid {kind}") from None


def strict_base64(text):
    """The bytes of base64 text, with or without padding."""
    return b64decode(text + "=" * (-len(text) % 4), validate=True)


def uuid_bytes(text):
    """The 16 bytes of a uuid as Kafka writes it, in 22 characters of base64, with or without padding."""
    if not _UUID.fullmatch(text):  # the decoder ignores characters that are not of base64
        raise ValueError("expected a uuid of 16 bytes")
    return urlsafe_b64decode(text[:22] + "==")


def double(text):
    """The double in a text, in a decimal form that java.lang.Double.parseDouble reads."""
    if not _DOUBLE.fullmatch(text):
        raise ValueError("expected a number")
    return float(text)


cdef int whole(object value, Py_ssize_t number=-1) except -1:
    """Check that a value is a whole number; number: its place in a list."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refusal(f"expected a number, got {type(value).__name__}", *([] if number < 0 else [f"[{number}]"]))
    return 0


cdef int from_value(const kw_op *op, PyObject *self, object value) except -1:
    """Set one field from its JSON value."""
    if value is None:
        if not op.flags & KW_NULLABLE:
            raise Refusal("null in a field that is not nullable in this version")
        put(self, op.at, None)
        return 0
    if op.code == KW_UUID:
        data = decoded(value, uuid_bytes, "uuid")
        memcpy(KW_PLACE(self, op.at), <const char *>data, 16)
        return 0
    if op.code < KW_STRING:
        if op.code == KW_FLOAT64 and isinstance(value, str):
            value = decoded(value, double, "number")
        elif op.code == KW_FLOAT64 and isinstance(value, bool):
            raise Refusal("expected a number, got bool")
        elif op.code != KW_BOOL and op.code != KW_FLOAT64:
            whole(value)
        return place_number(op.field, op.code, value, KW_PLACE(self, op.at))
    if op.code == KW_STRING:
        value = text_of(value, "a string")
    elif op.code == KW_BYTES or op.code == KW_RECORDS:
        value = decoded(value, strict_base64, "base64")
    elif op.code == KW_STRUCT:
        value = from_dict(op.sub, value)
    elif not isinstance(value, list):
        raise Refusal(f"expected a list, got {type(value).__name__}")
    else:
        value = from_list(op, value if type(value) is list else list(value))
    put(self, op.at, value)
    return 0


cdef object from_list(const kw_op *op, list items):
    if op.code == KW_ARRAY_INT:
        for number, item in enumerate(items):
            whole(item, number)
        return take_ints(op.field, items)
    if op.code == KW_ARRAY_STRING:
        return texts(items, "a string")
    cdef list values = []
    for item in items:
        try:
            if op.code == KW_ARRAY_STRUCT:
                values.append(from_dict(op.sub, item))
            else:
                from uuid import UUID
                values.append(UUID(bytes=decoded(item, uuid_bytes, "uuid")))
        except Refusal as refusal:
            refusal.path.append(f"[{len(values)}]")
            raise
    return values


cdef object from_dict(const kw_plan *plan, object value):
    cdef PyObject *made
    cdef int i
    if not isinstance(value, dict):
        raise Refusal(f"expected an object, got {type(value).__name__}")
    made = kw_new_instance(plan.cls)
    if made == NULL:
        raise MemoryError
    result = <object>made
    raw_decref(made)
    for i in range(plan.n_ops):
        if plan.ops[i].code != KW_RUN:
            from_key(plan, &plan.ops[i], made, <dict>value, True)
    for i in range(plan.n_tags):
        from_key(plan, &plan.tags[i], made, <dict>value, False)
    tags = (<dict>value).get(UNKNOWN)
    if tags is not None:
        put(made, KW_UNKNOWN_AT, unknown_tags(tags))
    return result


cdef dict unknown_tags(object tags):
    if not isinstance(tags, dict):
        raise Refusal(f"expected an object, got {type(tags).__name__}", f".{UNKNOWN}")
    unknown = {}
    for tag, data in tags.items():
        if isinstance(tag, str) and type(tag) is not str:  # int() of one of the caller's class may be any
            tag = str.__str__(tag)
        if not (isinstance(tag, str) and _TAG.fullmatch(tag) and int(tag) <= 0x7fffffff):  # "05" is no other 5
            raise Refusal(f"invalid tag number {brief(tag)}", f".{UNKNOWN}")
        try:
            unknown[int(tag)] = decoded(data, strict_base64, "base64")
        except Refusal as refusal:
            refusal.path.append(f".{UNKNOWN}.{tag}")
            raise
    return unknown


cdef int from_key(const kw_plan *plan, const kw_op *op, PyObject *self, dict value, bint mandatory) except -1:
    """Set a field from its key in the object: its newest name, or an older one that the version had."""
    name = <object>op.field.json
    found = value.get(name, _MISSING)  # looked up once: keys of the caller's class may equal any, or not
    if found is _MISSING:
        message = <Message>plan.cls.message
        for old, versions in message.renamed.get((<object>plan.cls.label, name), ()):
            found = value.get(old, _MISSING) if plan.version in versions else _MISSING
            if found is not _MISSING:
                break
        else:
            if mandatory:
                raise Refusal(f"version {plan.version} needs the key {name!r}", f".{<object>op.field.name}")
            return 0
    try:
        from_value(op, self, found)
    except Refusal as refusal:
        refusal.path.append(f".{<object>op.field.name}")
        raise
    except TypeError as error:
        raise Refusal(str(error), f".{<object>op.field.name}") from None
    except EncodeError as error:  # of a number, without the path to its struct
        raise Refusal(error.reason, f".{<object>op.field.name}") from None
    return 0


def from_json(message, version, value):
    """The message that Kafka's JsonConverter reads from a JSON value at a version: the reverse of to_json.

    message: its name or class. Fields that the version lacks are ignored, tagged ones may be left out.
    A key is the field's name in the newest release, or one that it had at that version in 3.9 or later.
    Raises EncodeError (path, reason) for values that do not fit, UnsupportedVersionError.
    """
    cdef Message target = find(message)
    cdef const kw_plan *plan = target.at(version)
    if not isinstance(value, dict):
        what = f"{target.name} v{version}"
        raise EncodeError(f"expected an object, got {type(value).__name__}", path="value", what=what)
    try:
        return from_dict(plan, value)
    except Refusal as refusal:
        raise refusal.error(f"{target.name} v{version}") from None
