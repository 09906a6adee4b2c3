/* Scanning the headers of record batches, and finding the next one. Pure C without Python. */
#ifndef KWIRE_LOG_SCAN_H
#define KWIRE_LOG_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The whole batches from data on: *end is the byte after them, *last the first byte of the last one. Ends before an
   invalid header or a partial batch, at or after stop, or when `rows` rows are reached (0: no limit; a compressed
   wrapper of magic 0 or 1 counts as 100). */
void kw_hop(const uint8_t *data, size_t size, size_t stop, int64_t rows, size_t *end, size_t *last);

/* The first byte in [from, stop) at which a header may begin: length, magic and size agree, the batch ends at or before
   `left` bytes from data on (the end of the file), and if the byte after it is within size, a header or zeros may begin
   there too. size: bytes at data. Returns stop if there is none. */
size_t kw_find_header(const uint8_t *data, size_t size, uint64_t left, size_t from, size_t stop);

/* From the batch at `at` on, the first of magic 2 with one of the attribute bits; size if there is none. data consists
   of whole batches. */
size_t kw_next_marked(const uint8_t *data, size_t size, size_t at, uint16_t bits);

#endif
