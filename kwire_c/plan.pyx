"""Compiles the schema of a message into classes (for all versions) and a plan per version, each at its first use."""

from kwire_c.errors import UnsupportedVersionError
from kwire_c.hooks import handed

from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Calloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.type cimport PyType_IsSubtype
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from kwire_c.core cimport (
    KW_ARRAY, KW_ARRAY_INT, KW_ARRAY_STRING, KW_ARRAY_STRUCT, KW_ARRAY_UUID, KW_BOOL, KW_BYTES, KW_COMPACT, KW_FLOAT64,
    KW_INT16, KW_INT32, KW_INT64, KW_INT8, KW_NULLABLE, KW_RECORDS, KW_RUN, KW_STRING, KW_STRUCT, KW_UINT16, KW_UINT32,
    KW_UNKNOWN_AT, KW_UUID, kw_class, kw_closure, kw_field, kw_op, kw_plan, kw_width, raw_type, seal,
)
from kwire_c.integers cimport brief
from kwire_c.message_class cimport Struct, make_type

KINDS = {
    "bool": KW_BOOL, "int8": KW_INT8, "int16": KW_INT16, "uint16": KW_UINT16, "int32": KW_INT32, "uint32": KW_UINT32,
    "int64": KW_INT64, "float64": KW_FLOAT64, "uuid": KW_UUID, "string": KW_STRING, "bytes": KW_BYTES,
    "records": KW_RECORDS,
}
cdef dict _messages = {}  # name (also an old one) -> Message
cdef object _schema = None  # kwire.schema.message, from its first use on
cdef uint64_t _spared = 0  # bytes of freed instances that are kept
cdef list _kept = []      # objects that the C structures point to, kept as long as the process


cdef void *keep(object value):
    _kept.append(value)
    return <void *>value


cdef void *room_for(size_t count, size_t size) except NULL:
    cdef void *made = PyMem_Calloc(count if count else 1, size)
    if made == NULL:
        raise MemoryError
    return made


cdef Message find(object message):
    """The Message of a name, a message class or an instance of one."""
    global _schema
    cdef kw_class *cls
    if type(message) is str:
        known = _messages.get(message)
        if known is None:
            if _schema is None:
                _schema = handed("message_schema")
            schema = _schema(message)
            known = _messages.get(schema.name)
            if known is None:
                known = _messages.setdefault(schema.name, made_message(schema))
            _messages[message] = known
        return <Message>known
    if isinstance(message, str):  # an instance of a subclass, such as a member of a StrEnum
        return find(str.__str__(message))
    if isinstance(message, Struct):
        cls = <kw_class *>kw_closure(raw_type(<PyObject *>message))
    elif isinstance(message, type) and PyType_IsSubtype(message, Struct):
        cls = <kw_class *>kw_closure(<PyTypeObject *>message)
    else:
        cls = NULL
    if cls == NULL:  # also for the base classes, and for a class that a user derived from them
        raise TypeError(f"message must be the name or the class of a message, not {brief(message)}")
    return of_class(cls)


cdef Message of_instance(object message):
    """The Message of an instance. Raises TypeError for anything else."""
    cdef kw_class *cls = NULL
    if isinstance(message, Struct):
        cls = <kw_class *>kw_closure(raw_type(<PyObject *>message))
    if cls == NULL:
        raise TypeError(f"message must be a message, as messages.FetchRequest(), not {brief(message)}")
    return of_class(cls)


cdef Message of_class(const kw_class *cls):
    """The Message whose class it is."""
    known = <Message>cls.message
    if (<Message>known).top != cls:
        raise TypeError(f"{<object>cls.label} is a struct of {(<Message>known).name}, not a message")
    return <Message>known


def message_of(message):
    """The Message of a name, a message class or an instance."""
    return find(message)


cdef class Message:
    """One message: its schema, its classes, and a plan for each version, made at the first use of the version."""

    cdef int make(self, schema) except -1:
        self.schema, self.name, self.classes, self.renamed = schema, schema.name, {}, {}
        self.first, self.last = schema.valid_versions
        self.plans = <const kw_plan **>room_for(self.last - self.first + 1, sizeof(void *))
        _kept.append(self)
        structs = schema.structs()
        structs[self.name] = schema.fields
        made = {name: <size_t>self.declare(len(fields)) for name, fields in structs.items()}
        self.classes = made
        for name, fields in structs.items():
            self.lay_out(<kw_class *><size_t>made[name], fields)
        again = True
        while again:  # a class with a list, or with a struct that has one, may be part of a cycle
            again = False
            for name in structs:
                again |= self.spread(<kw_class *><size_t>made[name])
        self.top = <kw_class *><size_t>made[self.name]
        for name, fields in structs.items():
            label = name if name == self.name else f"{self.name}.{name}"
            kind = self.name_type(<kw_class *><size_t>made[name], label, fields)
            if name == self.name:
                self.root = kind
        for name in structs:
            if name != self.name:
                setattr(self.root, name, <object>(<kw_class *><size_t>made[name]).type)
        return 0

    cdef kw_class *declare(self, int count) except NULL:
        cdef kw_class *cls = <kw_class *>room_for(1, sizeof(kw_class))
        cls.fields = <kw_field *>room_for(count, sizeof(kw_field))
        cls.n_fields, cls.message, cls.spared = count, <void *>self, &_spared
        return cls

    cdef int lay_out(self, kw_class *cls, tuple fields) except -1:
        """Set the kind, default and place of every field: objects first, then numbers, the widest first."""
        cdef kw_field *field
        cdef uint32_t at = KW_UNKNOWN_AT + sizeof(void *)
        cdef int i, width
        cls.n_slots = 1
        for i in range(cls.n_fields):
            field, schema = &cls.fields[i], fields[i]
            field.owner = cls
            field.first, field.last = schema.versions
            field.null_first, field.null_last = schema.nullable_versions
            field.nullable, field.ignorable = bool(schema.nullable_versions), schema.ignorable
            field.name, field.json = keep(schema.snake_name), keep(schema.json_name)
            element = KINDS.get(schema.element, KW_STRUCT)
            field.kind, field.elem = KW_ARRAY if schema.is_array else element, element
            if element == KW_STRUCT:
                field.cls = <kw_class *><size_t>self.classes[schema.element] if self.classes else NULL
            default = schema.default_value
            if field.kind >= KW_STRING:
                if field.kind != KW_STRUCT or schema.default == "null":
                    field.fallback = keep(default)
                field.at = at
                at += sizeof(void *)
                cls.n_slots += 1
            elif field.kind == KW_FLOAT64:
                field.number = 0  # no schema has another default for it
            elif field.kind != KW_UUID:
                field.number = default or 0
        for width in (16, 8, 4, 2, 1):
            for i in range(cls.n_fields):
                field = &cls.fields[i]
                if field.kind < KW_STRING and kw_width[field.kind] == width:
                    field.at = at
                    at += width
        cls.size = (at + 15) & ~15  # rounded as the allocator does
        cls.model = <uint8_t *>room_for(1, cls.size)
        for i in range(cls.n_fields):
            field = &cls.fields[i]
            if field.kind < KW_UUID:  # in native byte order
                place_model(field, cls.model + field.at)
        return 0

    cdef bint spread(self, kw_class *cls) except? True:
        cdef kw_field *field
        cdef int i
        if cls.collected:
            return False
        for i in range(cls.n_fields):
            field = &cls.fields[i]
            if field.kind == KW_ARRAY and (field.elem >= KW_UUID) or field.kind == KW_STRUCT and field.cls.collected:
                cls.collected = 1
                return True
        return False

    cdef object name_type(self, kw_class *cls, str label, tuple fields):
        names = tuple([schema.snake_name for schema in fields])
        self.renamed.update({(label, item.json_name): item.old_names for item in fields if item.old_names})
        cls.label, cls.names = keep(label), keep({name: index for index, name in enumerate(names)})
        schema = self.schema
        heading = ", ".join(["*", *[f"{item.snake_name}={shown(item)}" for item in fields], "unknown_tags={}"])
        lines = [f"{item.snake_name}: {described(item)}" for item in fields]
        doc = (f"{label.rpartition('.')[2]}({heading})\n--\n\n{label}, versions {schema.valid_versions}, "
               f"flexible {schema.flexible_versions}.\n\n" + "\n".join(lines))
        kind = schema.type if label == self.name else ""
        made = make_type(cls, label, names, doc, [described(item) for item in fields], kind)
        cls.type = keep(made)
        return made

    cdef const kw_plan *at(self, object version) except NULL:
        """The plan of a version. Raises UnsupportedVersionError if the schema lacks it."""
        cdef int overflow = 0
        cdef long long number
        if not isinstance(version, int):
            raise TypeError(f"version must be an int, not {type(version).__name__}")
        number = PyLong_AsLongLongAndOverflow(version, &overflow)
        if overflow or number < self.first or number > self.last:
            self.schema.check(version)
            raise UnsupportedVersionError(
                f"{self.name} supports versions {self.schema.valid_versions}, not {brief(version)}", api=self.name)
        if self.plans[number - self.first] == NULL:
            flexible = number in self.schema.flexible_versions
            self.plans[number - self.first] = compile_struct(
                self, self.top, self.schema.fields, number, flexible)
        return self.plans[number - self.first]

    def flexible(self, version):
        """Whether a version is flexible: with tagged fields and compact lengths (KIP-482)."""
        return self.at(version).flexible == 1

    def least(self, version):
        """(minimum size on the wire, size of the object, name) of each struct in a version, in bytes."""
        return sizes(self.at(version))


cdef Message made_message(object schema):
    """The Message for a schema."""
    cdef Message made = Message.__new__(Message)
    made.make(schema)
    return made


seal(Message)


cdef list sizes(const kw_plan *plan):
    structs = [(plan.least, plan.cls.size, <object>plan.cls.label)]
    for i in range(plan.n_ops):
        if plan.ops[i].sub != NULL:
            structs.extend(sizes(plan.ops[i].sub))
    for i in range(plan.n_tags):
        if plan.tags[i].sub != NULL:
            structs.extend(sizes(plan.tags[i].sub))
    return structs


cdef int place_model(const kw_field *field, uint8_t *place) except -1:
    cdef int width = kw_width[field.kind]
    cdef int64_t bits = field.number
    memcpy(place, <uint8_t *>&bits + (0 if LITTLE else 8 - width), width)
    return 0


cdef bint LITTLE = __import__("sys").byteorder == "little"


cdef str shown(object schema):
    """A default as shown in a signature."""
    if schema.is_array and schema.default != "null":
        return "()" if schema.struct is None else "[]"
    if schema.type == "uuid":
        return "UUID(int=0)"
    if schema.struct and schema.default != "null":
        return "..."
    return repr(schema.default_value)


cdef str described(object schema):
    text = f"{schema.type}, versions {schema.versions}"
    if schema.nullable_versions:
        text += f", null allowed {schema.nullable_versions}"
    if schema.tag is not None:
        text += f", tag {schema.tag} {schema.tagged_versions}"
    return f"{text}. {schema.about}" if schema.about else text


cdef const kw_plan *compile_struct(Message owner, kw_class *cls, tuple fields, int version, bint flexible) except NULL:
    """The plan of one struct at one path. Consecutive fixed-width fields become one run."""
    cdef kw_plan *plan = <kw_plan *>room_for(1, sizeof(kw_plan))
    cdef kw_op *ops = <kw_op *>room_for(2 * len(fields), sizeof(kw_op))
    cdef kw_op *tags = <kw_op *>room_for(len(fields), sizeof(kw_op))
    cdef const kw_field **absent = <const kw_field **>room_for(cls.n_fields, sizeof(void *))
    cdef uint32_t *foreign = <uint32_t *>room_for(len(fields), sizeof(uint32_t))
    cdef kw_op *run = NULL
    cdef kw_op *op
    cdef kw_field *field
    cdef dict names = <dict>cls.names
    cdef set present = set()
    plan.cls, plan.ops, plan.tags, plan.absent, plan.foreign = cls, ops, tags, absent, foreign
    plan.version, plan.flexible = version, flexible
    if flexible:
        plan.least, plan.room = 1, 5
    tagged = []
    for schema in fields:
        if version in schema.tagged_versions:
            tagged.append(schema)
            present.add(schema.snake_name)
            continue
        if schema.tag is not None and flexible:
            foreign[plan.n_foreign] = schema.tag
            plan.n_foreign += 1
        if version not in schema.versions:
            continue
        present.add(schema.snake_name)
        field = &cls.fields[names[schema.snake_name]]
        if field.kind < KW_STRING:
            if run == NULL:
                run = &ops[plan.n_ops]
                run.code = KW_RUN
                plan.n_ops += 1
            run.count += 1
            run.need += kw_width[field.kind]
        else:
            run = NULL
        op = &ops[plan.n_ops]
        plan.n_ops += 1
        compile_field(owner, op, field, schema, version, flexible, False)
        add_sizes(plan, op)
    if len(tagged) > 64:
        raise NotImplementedError(f"{owner.name}: more than 64 tagged fields in one struct")  # a bit each in encode.pyx
    for schema in sorted(tagged, key=lambda item: item.tag):
        op = &tags[plan.n_tags]
        plan.n_tags += 1
        compile_field(owner, op, &cls.fields[names[schema.snake_name]], schema, version, flexible, True)
        op.tag = schema.tag
    for name, index in names.items():
        if name not in present and not cls.fields[<int>index].ignorable:
            absent[plan.n_absent] = &cls.fields[<int>index]
            plan.n_absent += 1
    return plan


cdef int compile_field(Message owner, kw_op *op, kw_field *field, object schema, int version, bint flexible,
                       bint inside_tag) except -1:
    op.field, op.at, op.code, op.inside_tag = field, field.at, field.kind, inside_tag
    if flexible and (schema.flexible_versions is None or version in schema.flexible_versions):
        op.flags |= KW_COMPACT
    if version in schema.nullable_versions:
        op.flags |= KW_NULLABLE
    if schema.struct is not None:
        op.sub = compile_struct(owner, field.cls, schema.fields, version, flexible)
    if field.kind == KW_ARRAY:
        op.elem = field.elem
        if field.elem == KW_STRUCT:
            op.code, op.need = KW_ARRAY_STRUCT, op.sub.least
        elif field.elem == KW_STRING:
            op.code, op.need = KW_ARRAY_STRING, 1 if op.flags & KW_COMPACT else 2
        elif field.elem == KW_UUID:
            op.code, op.need = KW_ARRAY_UUID, 16
        elif field.elem < KW_STRING and field.elem != KW_BOOL and field.elem != KW_FLOAT64:
            op.code, op.need = KW_ARRAY_INT, kw_width[field.elem]
        else:
            raise NotImplementedError(f"{owner.name}: arrays of {schema.element}")
        if op.need == 0:
            op.need = 1
    return 0


cdef int add_sizes(kw_plan *plan, const kw_op *op) except -1:
    """Add a field's minimum size, and the room that its fixed part needs when it is written."""
    cdef uint32_t least, room
    if op.code < KW_STRING:
        least = room = kw_width[op.code]
    elif op.code == KW_STRUCT:
        least, room = 1 if op.flags & KW_NULLABLE else op.sub.least, 1
    else:
        least = 1 if op.flags & KW_COMPACT else 2 if op.code == KW_STRING else 4
        room = 5 if op.flags & KW_COMPACT else 4
    plan.least += least
    plan.room += room
    return 0
