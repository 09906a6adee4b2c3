/* Record batches: headers, heads of records, columns, checksums, the search for headers. */
#include "batch.h"
#include "columns.h"
#include "utf8.h"
#include "crc32c.h"
#include "cursor.h"
#include "log_scan.h"
#include "target.h"

int starved;
uint32_t digest;

static void headers_of(const uint8_t *block, uint32_t size, const kw_record *record) {
    uint32_t at = record->headers_at, key_at, value_at;
    int32_t key_size, value_size;
    for (int32_t n = record->headers; n > 0; n--) {
        MUST(kw_header_read(block, size, &at, &key_at, &key_size, &value_at, &value_size) == KW_BATCH_OK);
        touch(block + key_at, key_size);
        touch(block + value_at, value_size);
        uint8_t *clean = malloc((size_t)key_size * 3 + 1);
        MUST(kw_utf8_clean(block + key_at, (size_t)key_size, clean) <= (size_t)key_size * 3);
        free(clean);
    }
}

static void records_of(const uint8_t *block, uint32_t size, const kw_batch *batch, const kw_record *records,
                       uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const kw_record *record = records + i;
        touch(block + record->key_at, record->key_size);
        touch(block + record->value_at, record->value_size);
        headers_of(block, size, record);
        sink += (uint32_t)kw_timestamp(batch, record) + (uint32_t)kw_control_type(block, record);
    }
}

/* The records of a batch by portions of three: what is checked whole can be read. */
static void records_in(const uint8_t *block, uint32_t size, uint32_t at, const kw_batch *batch) {
    kw_heads heads = {.batch = batch, .block = block, .size = size, .at = at};
    kw_record records[3];
    uint32_t count, total = 0;
    if (kw_heads_check(&heads, records, 2) != KW_BATCH_OK) return;
    records_of(block, size, batch, records, heads.left < 2 ? heads.left : 2);
    const uint32_t all = heads.left;
    do {
        MUST(kw_heads_next(&heads, records, 3, &count) == KW_BATCH_OK);
        records_of(block, size, batch, records, count);
        total += count;
    } while (count);
    MUST(total == all && heads.at <= size);
}

static void batches(const uint8_t *data, size_t size) {
    size_t at = 0;
    kw_batch batch;
    while (at < size && kw_batch_read(data + at, size - at, &batch) == KW_BATCH_OK) {
        MUST(batch.size <= size - at);
        sink += kw_batch_trusted_size(data + at, size - at);
        uint8_t *copy = exact(data + at, batch.size);
        if (batch.magic < 2) {
            kw_record entry;
            if (kw_legacy_entry(copy, batch.size, &entry) == KW_BATCH_OK) {
                records_of(copy, batch.size, &batch, &entry, 1);
                if (entry.value_size >= 0) {
                    uint8_t *value = exact(copy + entry.value_at, (size_t)entry.value_size);
                    if (batch.codec) records_in(value, (uint32_t)entry.value_size, 0, &batch);
                    free(value);
                }
            }
        } else if (kw_batch_count(&batch, batch.size - KW_RECORD_BATCH_OVERHEAD) == KW_BATCH_OK) {
            records_in(copy, batch.size, KW_RECORD_BATCH_OVERHEAD, &batch);
        }
        free(copy);
        at += batch.size;
    }
}

static void digest_bytes(const kw_buffer *buffer, size_t size) {
    MUST(buffer->room >= size);
    if (size) digest = kw_crc32c(digest, buffer->data, size);
}

static void digest_binary(const kw_binary *binary, int views, int64_t rows) {
    const size_t spans = rows == 0 ? 0 : views ? (size_t)rows * 16 : (size_t)(rows + 1) * 4;
    digest_bytes(&binary->spans, spans);
    if (spans && !views) digest_bytes(&binary->data, (size_t)((const int32_t *)binary->spans.data)[rows]);
    if (binary->nulls) digest_bytes(&binary->validity, (size_t)rows / 8);
    digest += (uint32_t)binary->nulls;
}

static void digest_columns(const kw_columns *columns) {
    static const uint8_t widths[KW_COL_FIXED] = {8, 8, 1, 4, 8, 2, 4, 8, 4, 1, 1};
    for (int i = 0; i < KW_COL_FIXED; i++) digest_bytes(&columns->fixed[i], (size_t)columns->rows * widths[i]);
    digest_binary(&columns->key, columns->views, columns->rows);
    digest_binary(&columns->value, columns->views, columns->rows);
    digest_binary(&columns->header_key, 0, columns->header_rows);
    digest_binary(&columns->header_value, 0, columns->header_rows);
    digest_bytes(&columns->header_lists, columns->rows ? (size_t)(columns->rows + 1) * 4 : 0);
}

static void as_columns(const uint8_t *data, size_t size, int views, int64_t most, int verify) {
    kw_columns columns = {.fields = (1u << (KW_COL_HEADERS + 1)) - 1, .views = views, .max_bytes = most,
                          .input_bytes = size};
    kw_window window = {1, most < INT32_MAX ? 5 : INT64_MAX, INT64_MIN, INT64_MAX};
    kw_run run = {.data = data, .size = size, .window = views ? &window : NULL, .crc32c = kw_crc32c, .keep_at = SIZE_MAX,
                  .view_buffer = 2, .verify_crc = verify};
    while (run.at < size) {
        kw_run_status status = kw_columns_run(&columns, &run);
        if (status == KW_RUN_MEMORY && ++starved == 1) continue; /* no row of the batch was added: once more */
        if (status == KW_RUN_END || status == KW_RUN_MEMORY || status == KW_RUN_FULL) break;
        if (!kw_batch_trusted_size(data + run.at, size - run.at)) break;
        run.at += 12 + kw_load32(data + run.at + 8);
    }
    MUST(columns.rows >= 0 && columns.key.nulls <= columns.rows);
    digest_columns(&columns);
    kw_columns_free(&columns);
}

static void checksums(const uint8_t *data, size_t size) {
    const uint32_t expected = kw_crc32c(7, data, size);
    const kw_crc32c_variant *variant;
    for (size_t i = 0; (variant = kw_crc32c_usable(i)); i++) MUST(~variant->run(~7u, data, size) == expected);
}

static void scans(const uint8_t *data, size_t size) {
    size_t end, last;
    for (int64_t rows = 0; rows < 4; rows += 3) {
        kw_hop(data, size, size, rows, &end, &last);
        MUST(end <= size && last <= end);
    }
    for (int ordered = 0; ordered < 2; ordered++) {
        kw_hops hops = {.left = size + 5 * (size_t)ordered, .stop = size, .ordered = ordered, .checked = SIZE_MAX,
                        .previous = INT64_MAX};
        while (kw_hop_valid(data, size, kw_crc32c, &hops) == KW_HOP_LEGACY) hops.checked = hops.end;
        MUST(hops.end <= size && hops.last <= hops.end);
        MUST(kw_find_header(data, size, size + 5, 0, size, ordered ? 10 : 0, INT64_MAX, ordered) <= size);
    }
    MUST(kw_next_marked(data, size, 0, KW_ATTR_CONTROL) <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    batches(data, size);
    as_columns(data, size, 0, INT32_MAX, 0);
    as_columns(data, size, 0, INT32_MAX, 1);
    as_columns(data, size, 1, INT32_MAX, 0);
    as_columns(data, size, 0, 50, 0);
    checksums(data, size);
    scans(data, size);
    return 0;
}
