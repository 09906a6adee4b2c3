"""The C functions that kwire_c calls: its own core/*.h, and those of CPython that Cython's cpython.* lacks."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "cursor.h" nogil:
    ctypedef struct kw_cursor:
        const uint8_t *base
        const uint8_t *at
        const uint8_t *end

    ctypedef enum kw_status:
        KW_OK
        KW_SHORT
        KW_VARINT_LONG
        KW_OVERLONG

    void kw_cursor_set(kw_cursor *c, const uint8_t *data, size_t size)
    bint kw_has(const kw_cursor *c, int64_t n)
    uint16_t kw_load16(const uint8_t *p)
    uint32_t kw_load32(const uint8_t *p)
    uint64_t kw_load64(const uint8_t *p)
    void kw_store16(uint8_t *p, uint16_t v)
    void kw_store32(uint8_t *p, uint32_t v)
    void kw_store64(uint8_t *p, uint64_t v)
    int32_t kw_unzigzag32(uint32_t v)
    int64_t kw_unzigzag64(uint64_t v)
    uint32_t kw_zigzag32(int32_t v)
    uint64_t kw_zigzag64(int64_t v)
    int kw_uvarint_size(uint64_t v)
    kw_status kw_read_uvarint32(kw_cursor *c, uint32_t *out)
    kw_status kw_read_uvarint64(kw_cursor *c, uint64_t *out)
    kw_status kw_read_uvarint32_strict(kw_cursor *c, uint32_t *out)
    kw_status kw_read_varint32(kw_cursor *c, int32_t *out)
    kw_status kw_read_varint64(kw_cursor *c, int64_t *out)
    uint8_t *kw_write_uvarint(uint8_t *p, uint64_t v)
    void kw_copy(uint8_t *to, const uint8_t *source, size_t size)


cdef extern from "crc32c.h" nogil:
    ctypedef struct kw_crc32c_variant:
        const char *name
        uint32_t (*run)(uint32_t state, const uint8_t *data, size_t size) noexcept nogil

    uint32_t kw_crc32c(uint32_t value, const uint8_t *data, size_t size)
    uint32_t kw_crc32(uint32_t value, const uint8_t *data, size_t size)
    const kw_crc32c_variant *kw_crc32c_usable(size_t index)


cdef extern from "utf8.h" nogil:
    size_t kw_utf8_clean(const uint8_t *data, size_t size, uint8_t *out)


cdef extern from "batch_layout.h" nogil:
    enum:
        KW_LENGTH_OFFSET, KW_LOG_OVERHEAD, KW_MAGIC_OFFSET, KW_HEADER_UP_TO_MAGIC, KW_PARTITION_LEADER_EPOCH_OFFSET
        KW_CRC_OFFSET, KW_ATTRIBUTES_OFFSET, KW_LAST_OFFSET_DELTA_OFFSET, KW_BASE_TIMESTAMP_OFFSET
        KW_MAX_TIMESTAMP_OFFSET, KW_PRODUCER_ID_OFFSET, KW_PRODUCER_EPOCH_OFFSET, KW_BASE_SEQUENCE_OFFSET
        KW_RECORDS_COUNT_OFFSET, KW_RECORD_BATCH_OVERHEAD, KW_LEGACY_CRC_OFFSET, KW_LEGACY_ATTRIBUTES_OFFSET
        KW_LEGACY_TIMESTAMP_OFFSET, KW_RECORD_OVERHEAD_V0, KW_RECORD_OVERHEAD_V1, KW_MIN_LENGTH, KW_MAX_LENGTH
        KW_ATTR_CODEC, KW_ATTR_LOG_APPEND, KW_ATTR_TRANSACTIONAL, KW_ATTR_CONTROL, KW_ATTR_DELETE_HORIZON

    const char *KW_BATCH_FORMAT
    const char *KW_LEGACY_FORMAT
    uint32_t kw_smallest_batch(int magic)
    int KW_LEGACY_KEY_OFFSET(int magic)


cdef extern from "batch.h" nogil:
    enum:
        KW_MIN_RECORD
        KW_PORTION
        KW_TIME_NONE
        KW_TIME_CREATE
        KW_TIME_LOG_APPEND

    ctypedef enum kw_batch_status:
        KW_BATCH_OK
        KW_BATCH_TAIL
        KW_BATCH_LENGTH
        KW_BATCH_MAGIC
        KW_BATCH_TOO_SMALL
        KW_BATCH_CRC
        KW_BATCH_TRAILING
        KW_BATCH_CODEC
        KW_BATCH_LEGACY_CODEC
        KW_BATCH_WRAPPER_NULL

    const char *kw_batch_reason(kw_batch_status status)

    ctypedef struct kw_batch:
        int64_t base_offset
        int64_t last_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int64_t producer_id
        uint32_t size
        uint32_t crc
        int32_t partition_leader_epoch
        int32_t base_sequence
        int32_t count
        uint32_t payload
        uint16_t attributes
        int16_t producer_epoch
        int8_t magic
        int8_t codec
        int8_t timestamp_type

    ctypedef struct kw_record:
        int64_t offset
        int64_t stamp
        uint32_t key_at
        uint32_t value_at
        uint32_t headers_at
        int32_t key_size
        int32_t value_size
        int32_t headers
        int8_t attributes
        int8_t timestamp_type

    ctypedef struct kw_heads:
        const kw_batch *batch
        const uint8_t *block
        uint32_t size
        uint32_t at
        uint32_t left
        uint64_t shift

    kw_batch_status kw_batch_read(const uint8_t *data, size_t left, kw_batch *batch)
    uint32_t kw_batch_trusted_size(const uint8_t *data, size_t left)
    kw_batch_status kw_records_read(const uint8_t *block, uint32_t *at, uint32_t size, const kw_batch *batch,
                                    kw_record *records, uint32_t count)
    kw_batch_status kw_batch_count(const kw_batch *batch, uint32_t size)
    kw_batch_status kw_legacy_entry(const uint8_t *block, uint32_t size, kw_record *record)
    kw_batch_status kw_heads_check(kw_heads *heads, kw_record *first, uint32_t room)
    kw_batch_status kw_heads_next(kw_heads *heads, kw_record *records, uint32_t room, uint32_t *count)
    kw_batch_status kw_header_read(const uint8_t *block, uint32_t size, uint32_t *at, uint32_t *key_at,
                                   int32_t *key_size, uint32_t *value_at, int32_t *value_size)
    int32_t kw_sequence(const kw_batch *batch, int64_t offset)
    int64_t kw_timestamp(const kw_batch *batch, const kw_record *record)
    int kw_control_type(const uint8_t *block, const kw_record *record)


cdef extern from "log_scan.h" nogil:
    void kw_hop(const uint8_t *data, size_t size, size_t stop, int64_t rows, size_t *end, size_t *last)
    ctypedef uint32_t kw_hop_checksum(uint32_t value, const uint8_t *data, size_t size)
    ctypedef enum kw_hop_status:
        KW_HOP_STOP
        KW_HOP_CHECKSUM
        KW_HOP_LEGACY
        KW_HOP_ORDER
    ctypedef struct kw_hops:
        uint64_t left
        size_t stop
        int64_t rows
        int ordered
        size_t end
        size_t last
        size_t checked
        int64_t previous
    kw_hop_status kw_hop_valid(const uint8_t *data, size_t size, kw_hop_checksum *crc32c, kw_hops *hops)
    size_t kw_find_header(const uint8_t *data, size_t size, uint64_t left, size_t start, size_t stop, int64_t low,
                          int64_t high, int followed)
    size_t kw_next_marked(const uint8_t *data, size_t size, size_t at, uint16_t bits)


cdef extern from "rows.h" nogil:
    ctypedef struct kw_row:
        int64_t offset
        int64_t stamp
        const uint8_t *key
        const uint8_t *value
        int32_t key_size
        int32_t value_size
        int32_t headers
        int32_t headers_size
        uint8_t attributes

    bint kw_offset_fits(int64_t offset, int64_t base, int32_t *delta)
    int64_t kw_body_size(const kw_row *row, uint64_t stamp, int32_t delta)
    uint8_t *kw_write_record(uint8_t *p, const kw_row *row, int64_t body, uint64_t stamp, int32_t delta,
                             const uint8_t *headers)


cdef extern from "plain_rows.h":
    bint kw_plain_row(PyObject *item, kw_row *row, uint8_t *scratch, Py_ssize_t room)
    Py_ssize_t kw_write_plain_rows(PyObject *rows, Py_ssize_t index, Py_ssize_t count, uint8_t **at, const uint8_t *end,
                                   int64_t base, int64_t base_stamp, int64_t *next, int64_t *max_stamp,
                                   uint8_t *scratch, Py_ssize_t room)


cdef extern from "containers.h" nogil:
    ctypedef enum kw_container_status:
        KW_CONTAINER_OK
        KW_CONTAINER_END
        KW_CONTAINER_SHORT
        KW_CONTAINER_DECLARED

    ctypedef struct kw_lz4_frame:
        uint32_t max_block

    ctypedef struct kw_lz4_block:
        const uint8_t *start
        uint32_t size
        bint stored

    ctypedef struct kw_zstd_frame:
        bint skippable
        uint64_t least
        uint64_t most

    const char *kw_container_reason(kw_container_status status)
    kw_container_status kw_lz4_open(kw_cursor *c, bint any_checksum, kw_lz4_frame *frame)
    kw_container_status kw_lz4_next(kw_cursor *c, const kw_lz4_frame *frame, kw_lz4_block *block)
    kw_container_status kw_zstd_next(kw_cursor *c, kw_zstd_frame *frame)
    kw_container_status kw_snappy_declared(const uint8_t *data, size_t size, uint32_t *declared)
    size_t kw_snappy_long_end(const uint8_t *data, size_t size, size_t *extra)
    bint kw_xerial_is(const uint8_t *data, size_t size)
    kw_container_status kw_xerial_next(
        kw_cursor *c, int64_t given, const uint8_t **block, uint32_t *size, uint32_t *declared)
    uint32_t kw_xxh32(const uint8_t *data, size_t size)


cdef extern from "arrow.h" nogil:
    enum:
        ARROW_FLAG_NULLABLE

    struct ArrowSchema:
        const char *format
        const char *name
        const char *metadata
        int64_t flags
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil
        void *private_data

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil
        void *private_data

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *out) noexcept nogil
        int (*get_next)(ArrowArrayStream *, ArrowArray *out) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *) noexcept nogil
        void (*release)(ArrowArrayStream *) noexcept nogil
        void *private_data


cdef extern from "arrow_rows.h" nogil:
    ctypedef enum kw_layout:
        KW_LAYOUT_NULL
        KW_LAYOUT_32
        KW_LAYOUT_64
        KW_LAYOUT_VIEW
        KW_LAYOUT_FIXED

    ctypedef struct kw_arrow_bytes:
        kw_layout layout
        const uint8_t *valid
        const void *spans
        const uint8_t *data
        const uint8_t **buffers
        const int64_t *sizes
        int64_t n_buffers
        int64_t width
        int64_t first

    ctypedef struct kw_arrow_numbers:
        const uint8_t *valid
        const int64_t *values
        int64_t multiply
        int64_t divide
        int64_t first

    ctypedef struct kw_arrow_headers:
        kw_layout layout
        const uint8_t *valid
        const void *spans
        int64_t first
        int64_t items
        const uint8_t *pair_valid
        int64_t pair_first
        kw_arrow_bytes key
        kw_arrow_bytes value

    ctypedef struct kw_arrow_rows:
        int64_t rows
        const uint8_t *valid
        int64_t first
        kw_arrow_bytes key
        kw_arrow_bytes value
        kw_arrow_numbers stamp
        kw_arrow_numbers offset
        kw_arrow_headers headers

    ctypedef enum kw_fill_status:
        KW_FILL_OK
        KW_FILL_FULL
        KW_FILL_ROOM

    const char *kw_fill_reason(kw_fill_status status, const char **column)

    ctypedef struct kw_fill:
        int64_t at
        int64_t next
        int64_t most_bytes
        int64_t most_rows
        int64_t count
        int64_t base
        int64_t base_stamp
        int64_t max_stamp
        int64_t head
        int64_t need
        int takes_stamp
        int has_next
        uint8_t *start
        uint8_t *out
        uint8_t *end

    kw_fill_status kw_arrow_row(const kw_arrow_rows *rows, int64_t at, kw_row *row, int64_t *start, int64_t *stop)
    kw_fill_status kw_arrow_offset(const kw_arrow_rows *rows, kw_fill *fill, int64_t *offset)
    kw_fill_status kw_fill_batch(const kw_arrow_rows *rows, kw_fill *fill)


cdef extern from "buffer.h" nogil:
    ctypedef struct kw_buffer:
        uint8_t *data
        size_t size
        size_t room

    int kw_buffer_grow(kw_buffer *buffer, size_t need, size_t wish)
    void kw_buffer_free(kw_buffer *buffer)


cdef extern from "columns.h" nogil:
    enum:
        KW_COL_OFFSET
        KW_COL_TIMESTAMP
        KW_COL_TIMESTAMP_TYPE
        KW_COL_SEQUENCE
        KW_COL_PRODUCER_ID
        KW_COL_PRODUCER_EPOCH
        KW_COL_LEADER_EPOCH
        KW_COL_BATCH_POSITION
        KW_COL_SOURCE
        KW_COL_CODEC
        KW_COL_IS_CONTROL
        KW_COL_FIXED
        KW_COL_KEY
        KW_COL_VALUE
        KW_COL_HEADERS

    ctypedef struct kw_binary:
        kw_buffer spans
        kw_buffer data
        kw_buffer validity
        int64_t nulls

    ctypedef struct kw_columns:
        uint32_t fields
        int views
        int64_t rows
        int64_t header_rows
        int64_t max_bytes
        uint64_t input_bytes
        uint64_t seen_bytes
        kw_buffer fixed[11]
        kw_binary key
        kw_binary value
        kw_binary header_key
        kw_binary header_value
        kw_buffer header_lists

    ctypedef enum kw_append_status:
        KW_APPEND_OK
        KW_APPEND_FULL
        KW_APPEND_MEMORY
        KW_APPEND_BAD

    ctypedef struct kw_place:
        const uint8_t *block
        uint32_t block_size
        int32_t view_buffer
        uint64_t view_at
        int64_t position
        int32_t source

    ctypedef struct kw_window:
        int64_t offset_from
        int64_t offset_last
        int64_t time_from
        int64_t time_last

    ctypedef enum kw_run_status:
        KW_RUN_END
        KW_RUN_BAD
        KW_RUN_SLOW
        KW_RUN_TRANSACTION
        KW_RUN_FULL
        KW_RUN_MEMORY

    ctypedef uint32_t kw_checksum(uint32_t value, const uint8_t *data, size_t size) noexcept nogil

    ctypedef struct kw_run:
        const uint8_t *data
        size_t size
        int verify_crc
        int control
        int ask
        const kw_window *window
        int64_t origin
        int32_t source
        int32_t view_buffer
        kw_checksum *crc32c
        size_t at
        size_t keep_at
        kw_batch batch
        kw_batch_status status
        uint32_t where

    uint32_t kw_window_apply(const kw_window *window, const kw_batch *batch, kw_record *records, uint32_t count)
    kw_append_status kw_columns_append(kw_columns *columns, const kw_batch *batch, const kw_record *records,
                                       uint32_t count, const kw_place *place)
    kw_append_status kw_columns_append_batch(kw_columns *columns, const kw_batch *batch, const kw_place *place,
                                             uint32_t at, const kw_window *window, kw_checksum *crc32c,
                                             kw_batch_status *status, uint32_t *where)
    void kw_columns_free(kw_columns *columns)
    kw_run_status kw_columns_run(kw_columns *columns, kw_run *run)


cdef extern from "record_text.h" nogil:
    ctypedef enum kw_text_kind:
        KW_TEXT_CALL
        KW_TEXT_KINDS

    ctypedef struct kw_text_piece:
        kw_text_kind kind
        int column
        uint32_t width
        uint32_t limit
        uint8_t begin "from"
        uint8_t end "to"
        int given
        const uint8_t *texts[3]
        uint32_t sizes[3]

    ctypedef enum kw_text_status:
        KW_TEXT_DONE
        KW_TEXT_ASK
        KW_TEXT_MEMORY

    int kw_text_reserve(kw_buffer *out, size_t more)
    kw_text_status kw_text_row(const kw_columns *columns, int64_t row, const kw_text_piece *pieces, int count,
                               int decoded, int *at, kw_buffer *out)
    int64_t kw_text_number(const kw_columns *columns, int column, int64_t row)
    const uint8_t *kw_text_bytes(const kw_binary *binary, int64_t row, uint32_t *size)


cdef extern from "plan.h" nogil:
    enum:
        KW_BOOL, KW_INT8, KW_INT16, KW_UINT16, KW_INT32, KW_UINT32, KW_INT64, KW_FLOAT64, KW_UUID
        KW_STRING, KW_BYTES, KW_RECORDS, KW_STRUCT, KW_ARRAY
        KW_RUN, KW_ARRAY_STRUCT, KW_ARRAY_STRING, KW_ARRAY_UUID, KW_ARRAY_INT
    enum:
        KW_NEGATIVE, KW_NULL, KW_STRING_LONG, KW_BAD_BOOL, KW_BAD_UTF8, KW_BAD_MARK, KW_COUNT
        KW_TAG_ORDER, KW_TAG_TWICE, KW_TAG_SIZE, KW_TAG_DEFAULT, KW_TAG_FOREIGN, KW_TAG_COUNT, KW_TRAILING
        KW_TAG_VALUE, KW_PYTHON

    const char *kw_why_reason(int why)

    enum:
        KW_COMPACT, KW_NULLABLE, KW_MAX_STRING, KW_MAX_TAG, KW_MAX_DEPTH

    const uint8_t kw_width[9]

    ctypedef struct kw_field:
        uint8_t kind, elem, nullable, ignorable
        int16_t first, last, null_first, null_last
        uint32_t at
        int64_t number
        void *fallback
        kw_class *cls
        kw_class *owner
        void *name
        void *json

    ctypedef struct kw_class:
        void *type
        void *message
        void *label
        void *names
        void *blank
        kw_field *fields
        uint8_t *model
        uint32_t size
        uint16_t n_fields, n_slots
        uint8_t collected
        uint32_t n_spare
        void *spare
        uint64_t *spared

    ctypedef struct kw_op:
        uint8_t code, flags, elem, inside_tag
        uint16_t count
        uint32_t need, at, tag
        const kw_plan *sub
        const kw_field *field

    ctypedef struct kw_plan:
        const kw_class *cls
        const kw_op *ops
        const kw_op *tags
        const kw_field **absent
        const uint32_t *foreign
        uint16_t n_ops, n_tags, n_absent, n_foreign
        uint32_t least, room
        int16_t version
        uint8_t flexible

    ctypedef struct kw_piece:
        const kw_field *field
        int64_t index

    ctypedef struct kw_failure:
        int why, depth
        int64_t number, left, offset
        kw_piece path[16]

    int kw_fail(kw_failure *f, const kw_cursor *c, int why, int64_t number)
    int kw_in(kw_failure *f, const kw_field *field, int64_t index)
    int kw_take_uvarint(kw_cursor *c, int lenient, kw_failure *f, uint32_t *out)
    int kw_take_length(kw_cursor *c, int compact, int width, int lenient, kw_failure *f, int64_t *out)
    bint kw_is_ascii(const uint8_t *p, int64_t n)
    int kw_load_fixed(int kind, const uint8_t *p, uint8_t *to, int lenient)
    void kw_store_fixed(int kind, const uint8_t *src, uint8_t *p)


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


cdef extern from "instances.h":
    PyObject *KW_SLOT(void *self, size_t at) nogil
    uint8_t *KW_PLACE(void *self, size_t at) nogil
    const size_t KW_UNKNOWN_AT
    void *kw_closure(PyTypeObject *type)
    PyObject *kw_new_instance(const kw_class *cls)
    void kw_free_instance(PyObject *self, kw_class *cls)
    void kw_head_model(kw_class *cls)


cdef extern from "extension.h":
    const char *KWIRE_COMPILER
    int seal "kw_seal"(type kind) except -1
    Py_ssize_t kw_claimed(const Py_ssize_t *place) nogil
    bint kw_claim(Py_ssize_t *place, Py_ssize_t before, Py_ssize_t after) nogil
    int raise_set "kw_raise_set"() except -1


cdef extern from "Python.h":
    # With references counted by hand: Cython does not check for exceptions; NULL or -1 means that one is set.
    PyObject *raw_none "Py_None"
    PyTypeObject *raw_type "Py_TYPE"(void *item)
    void raw_incref "Py_INCREF"(PyObject *item)
    void raw_decref "Py_DECREF"(PyObject *item)
    void raw_xdecref "Py_XDECREF"(PyObject *item)
    PyObject *raw_no_memory "PyErr_NoMemory"()
    bint Py_EnterRecursiveCall(const char *where)  # True: RecursionError is set
    void Py_LeaveRecursiveCall()
    int raw_get_buffer "PyObject_GetBuffer"(PyObject *item, Py_buffer *buffer, int flags)
    bint raw_bytes_check "PyBytes_CheckExact"(PyObject *item)
    PyObject *raw_bytes_new "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size)
    int raw_bytes_resize "_PyBytes_Resize"(PyObject **item, Py_ssize_t size)
    char *raw_bytes_data "PyBytes_AS_STRING"(PyObject *item)
    Py_ssize_t raw_bytes_size "PyBytes_GET_SIZE"(PyObject *item)
    bint raw_list_check "PyList_CheckExact"(PyObject *item)
    PyObject *raw_list_new "PyList_New"(Py_ssize_t size)
    Py_ssize_t raw_list_size "PyList_GET_SIZE"(PyObject *items)
    PyObject *raw_list_item "PyList_GET_ITEM"(PyObject *items, Py_ssize_t index)
    void raw_list_set "PyList_SET_ITEM"(PyObject *items, Py_ssize_t index, PyObject *item)
    bint raw_tuple_check "PyTuple_CheckExact"(PyObject *item)
    PyObject *raw_tuple_new "PyTuple_New"(Py_ssize_t size)
    Py_ssize_t raw_tuple_size "PyTuple_GET_SIZE"(PyObject *items)
    PyObject *raw_tuple_item "PyTuple_GET_ITEM"(PyObject *items, Py_ssize_t index)
    void raw_tuple_set "PyTuple_SET_ITEM"(PyObject *items, Py_ssize_t index, PyObject *item)
    bint raw_int_check "PyLong_CheckExact"(PyObject *item)
    PyObject *raw_int_new "PyLong_FromLong"(long value)
    PyObject *raw_int64_new "PyLong_FromLongLong"(long long value)
    long raw_int_value "PyLong_AsLong"(PyObject *item)
    long long raw_int64_value "PyLong_AsLongLong"(PyObject *item)
    bint raw_str_check "PyUnicode_Check"(PyObject *item)
    bint raw_str_check_exact "PyUnicode_CheckExact"(PyObject *item)
    bint raw_str_is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject *text)
    PyObject *raw_str_new "PyUnicode_New"(Py_ssize_t size, Py_UCS4 highest)
    PyObject *raw_str_decode "PyUnicode_DecodeUTF8"(const char *data, Py_ssize_t size, const char *errors)
    void *raw_str_data "PyUnicode_DATA"(PyObject *text)
    Py_ssize_t raw_str_length "PyUnicode_GET_LENGTH"(PyObject *text)
    const char *raw_str_utf8 "PyUnicode_AsUTF8AndSize"(PyObject *text, Py_ssize_t *size)

    # Garbage collection.
    void PyObject_GC_Track(void *item)
    void PyObject_GC_UnTrack(void *item)
    int PyObject_GC_IsTracked(PyObject *item)

    # Types created at run time.
    ctypedef struct PyGetSetDef:
        const char *name
        void *get
        void *set
        const char *doc
        void *closure

    ctypedef struct PyType_Slot:
        int slot
        void *pfunc

    ctypedef struct PyType_Spec:
        const char *name
        int basicsize
        int itemsize
        unsigned int flags
        PyType_Slot *slots

    ctypedef int (*visitproc)(PyObject *, void *) noexcept
    enum: Py_tp_dealloc, Py_tp_traverse, Py_tp_clear, Py_tp_new, Py_tp_init, Py_tp_repr, Py_tp_richcompare
    enum: Py_tp_getset, Py_tp_doc, Py_tp_hash, Py_TPFLAGS_DEFAULT, Py_TPFLAGS_HAVE_GC
    object PyType_FromSpecWithBases(PyType_Spec *spec, object bases)
    PyObject *PyIter_Next(object)  # NULL: the end, or an error that the caller looks for
    void PyObject_HashNotImplemented()
    bint PyObject_TypeCheck(object value, PyTypeObject *type)
