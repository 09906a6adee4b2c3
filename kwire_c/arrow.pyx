"""Arrow arrays over memory that Python objects own, exported through the Arrow C interfaces; casts between types."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport ENOMEM
from libc.stdint cimport INT64_MAX, int32_t, int64_t, int8_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

cimport cython

from kwire_c.core cimport ARROW_FLAG_NULLABLE, ArrowArray, ArrowArrayStream, ArrowSchema, seal


cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil


@cython.no_gc  # it holds no object that could refer to it, and what it points into must not go before it
cdef class Node:
    """One Arrow array: format string, length, buffers, children. owner keeps the buffers alive."""

    def __dealloc__(self):
        free(self.buffers)

    cdef int set_buffers(self, const void **buffers, int64_t count) except -1:
        """Copy the list of buffer pointers."""
        free(self.buffers)
        self.buffers = <const void **> calloc(count or 1, sizeof(void *))
        if self.buffers == NULL:
            raise MemoryError
        memcpy(self.buffers, buffers, count * sizeof(void *))
        self.n_buffers = count
        return 0


cdef Node make_node(str name, bytes format, int64_t length, int64_t null_count, object owner, list children=None,
                    Node dictionary=None):
    cdef Node node = Node.__new__(Node)
    node.name = name
    node.format = format
    node.length = length
    node.null_count = null_count
    node.owner = owner
    node.children = children if children is not None else []
    node.dictionary = dictionary
    return node


# -- private_data keeps strings and buffers alive. Consumers may release what they keep after Python has ended, as from
# a handler of C's atexit: nothing of Python can be called then, and the memory goes with the process.

cdef void _release_schema(ArrowSchema *schema) noexcept nogil:
    if Py_IsInitialized():
        _free_schema(schema)
    schema.release = NULL


cdef void _free_schema(ArrowSchema *schema) noexcept with gil:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:
            schema.children[i].release(schema.children[i])
        free(schema.children[i])
    free(schema.children)
    if schema.dictionary != NULL:
        if schema.dictionary.release != NULL:
            schema.dictionary.release(schema.dictionary)
        free(schema.dictionary)
    Py_DECREF(<object> schema.private_data)


cdef int _fill_schema(Node node, ArrowSchema *schema) except -1:
    cdef Node child
    memset(schema, 0, sizeof(ArrowSchema))
    cdef bytes name = node.name.encode()
    keeper = (node.format, name)
    schema.format = <const char *> node.format
    schema.name = <const char *> name
    schema.flags = ARROW_FLAG_NULLABLE
    Py_INCREF(keeper)
    schema.private_data = <void *> keeper
    schema.release = _release_schema
    if node.children:
        schema.children = <ArrowSchema **> calloc(len(node.children), sizeof(ArrowSchema *))
        if schema.children == NULL:
            raise MemoryError
        for child in node.children:
            schema.children[schema.n_children] = <ArrowSchema *> calloc(1, sizeof(ArrowSchema))
            if schema.children[schema.n_children] == NULL:
                raise MemoryError
            schema.n_children += 1
            _fill_schema(child, schema.children[schema.n_children - 1])
    if node.dictionary is not None:
        schema.dictionary = <ArrowSchema *> calloc(1, sizeof(ArrowSchema))
        if schema.dictionary == NULL:
            raise MemoryError
        _fill_schema(node.dictionary, schema.dictionary)
    return 0


cdef void _release_array(ArrowArray *array) noexcept nogil:
    if Py_IsInitialized():
        _free_array(array)
    array.release = NULL


cdef void _free_array(ArrowArray *array) noexcept with gil:
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
        free(array.children[i])
    free(array.children)
    if array.dictionary != NULL:
        if array.dictionary.release != NULL:
            array.dictionary.release(array.dictionary)
        free(array.dictionary)
    Py_DECREF(<object> array.private_data)


cdef int _fill_array(Node node, ArrowArray *array) except -1:
    cdef Node child
    memset(array, 0, sizeof(ArrowArray))
    array.length = node.length
    array.null_count = node.null_count
    array.offset = node.offset
    array.n_buffers = node.n_buffers
    array.buffers = node.buffers
    Py_INCREF(node)
    array.private_data = <void *> node
    array.release = _release_array
    if node.children:
        array.children = <ArrowArray **> calloc(len(node.children), sizeof(ArrowArray *))
        if array.children == NULL:
            raise MemoryError
        for child in node.children:
            array.children[array.n_children] = <ArrowArray *> calloc(1, sizeof(ArrowArray))
            if array.children[array.n_children] == NULL:
                raise MemoryError
            array.n_children += 1
            _fill_array(child, array.children[array.n_children - 1])
    if node.dictionary is not None:
        array.dictionary = <ArrowArray *> calloc(1, sizeof(ArrowArray))
        if array.dictionary == NULL:
            raise MemoryError
        _fill_array(node.dictionary, array.dictionary)
    return 0


cdef void _drop_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void _drop_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


cdef void _drop_stream(object capsule) noexcept:
    cdef ArrowArrayStream *stream = <ArrowArrayStream *> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


cdef object _capsule(void *content, const char *name, void (*drop)(object) noexcept):
    """A capsule that owns an empty structure."""
    try:
        return PyCapsule_New(content, name, drop)
    except BaseException:
        free(content)
        raise


def export_schema(Node node not None):
    """The "arrow_schema" capsule of a node."""
    cdef ArrowSchema *schema = <ArrowSchema *> calloc(1, sizeof(ArrowSchema))
    if schema == NULL:
        raise MemoryError
    capsule = _capsule(schema, "arrow_schema", _drop_schema)
    _fill_schema(node, schema)
    return capsule


def export_array(Node node not None):
    """The pair ("arrow_schema", "arrow_array") of capsules of a node."""
    cdef ArrowArray *array = <ArrowArray *> calloc(1, sizeof(ArrowArray))
    if array == NULL:
        raise MemoryError
    capsule = _capsule(array, "arrow_array", _drop_array)
    _fill_array(node, array)
    return export_schema(node), capsule


# -- stream: private_data is [schema node, list of nodes not yet returned]

cdef int _stream_schema(ArrowArrayStream *stream, ArrowSchema *out) noexcept with gil:
    try:
        _fill_schema(<Node> (<list> stream.private_data)[0], out)
        return 0
    except BaseException:
        if out.release != NULL:
            out.release(out)
        return ENOMEM


cdef int _stream_next(ArrowArrayStream *stream, ArrowArray *out) noexcept with gil:
    cdef list left = <list> (<list> stream.private_data)[1]
    if not left:
        memset(out, 0, sizeof(ArrowArray))
        return 0
    try:
        _fill_array(<Node> left[0], out)
        del left[0]
        return 0
    except BaseException:
        if out.release != NULL:
            out.release(out)
        return ENOMEM


cdef const char *_stream_error(ArrowArrayStream *stream) noexcept with gil:
    return "out of memory"


cdef void _release_stream(ArrowArrayStream *stream) noexcept nogil:
    if Py_IsInitialized():
        _free_stream(stream)
    stream.release = NULL


cdef void _free_stream(ArrowArrayStream *stream) noexcept with gil:
    Py_DECREF(<object> stream.private_data)


def export_stream(Node schema not None, list nodes not None):
    """The "arrow_array_stream" capsule of nodes, in order; schema: a node of the same type."""
    cdef ArrowArrayStream *stream = <ArrowArrayStream *> calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError
    capsule = _capsule(stream, "arrow_array_stream", _drop_stream)
    state = [schema, list(nodes)]
    Py_INCREF(state)
    stream.private_data = <void *> state
    stream.get_schema = _stream_schema
    stream.get_next = _stream_next
    stream.get_last_error = _stream_error
    stream.release = _release_stream
    return capsule


cdef class Cast:
    """One Arrow array, which pyarrow.array(cast) accepts."""

    cdef Node node

    def __len__(self):
        return self.node.length

    def __arrow_c_array__(self, requested_schema=None):
        return export_array(self.node)


cdef Cast made(bytes format, int64_t rows, bytes values, bytes validity, int64_t nulls):
    cdef const void *buffers[2]
    cdef Cast cast = Cast.__new__(Cast)
    cast.node = make_node("", format, rows, nulls, (values, validity))
    buffers[0] = <const void *> PyBytes_AS_STRING(validity) if nulls else NULL
    buffers[1] = PyBytes_AS_STRING(values)
    cast.node.set_buffers(buffers, 2)
    return cast


seal(Cast)


def microseconds(milliseconds):
    """timestamp[us, UTC] from a buffer of int64 milliseconds; values that overflow in microseconds are null."""
    cdef Py_buffer view
    cdef const int64_t *times
    cdef int64_t *out
    cdef uint8_t *valid = NULL
    cdef int64_t row, rows, nulls = 0, largest = INT64_MAX // 1000
    cdef bytes values, validity = b""
    PyObject_GetBuffer(milliseconds, &view, PyBUF_SIMPLE)
    try:
        times = <const int64_t *> view.buf
        rows = view.len // 8
        values = PyBytes_FromStringAndSize(NULL, 8 * rows)
        out = <int64_t *> PyBytes_AS_STRING(values)
        for row in range(rows):
            if -largest <= times[row] <= largest:
                out[row] = times[row] * 1000
                continue
            if valid == NULL:
                validity = PyBytes_FromStringAndSize(NULL, rows // 8 + 1)
                valid = <uint8_t *> PyBytes_AS_STRING(validity)
                memset(valid, 0xff, rows // 8 + 1)
            valid[row >> 3] &= ~(1 << (row & 7))
            out[row] = 0
            nulls += 1
    finally:
        PyBuffer_Release(&view)
    return made(b"tsu:UTC", rows, values, validity, nulls)


def widened(numbers):
    """int32 from a buffer of int8."""
    cdef Py_buffer view
    cdef const int8_t *narrow
    cdef int32_t *wide
    cdef Py_ssize_t row
    cdef bytes values
    PyObject_GetBuffer(numbers, &view, PyBUF_SIMPLE)
    try:
        narrow = <const int8_t *> view.buf
        values = PyBytes_FromStringAndSize(NULL, 4 * view.len)
        wide = <int32_t *> PyBytes_AS_STRING(values)
        for row in range(view.len):
            wide[row] = narrow[row]
        return made(b"i", view.len, values, b"", 0)
    finally:
        PyBuffer_Release(&view)
