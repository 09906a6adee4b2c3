/* Scanning the headers of record batches, and finding the next one. Pure C without Python. */
#ifndef KWIRE_LOG_SCAN_H
#define KWIRE_LOG_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The whole batches from data on: *end is the byte after them, *last the first byte of the last one. Ends before an
   invalid header or a partial batch, at or after stop, or when `rows` rows are reached (0: no limit; a compressed
   wrapper of magic 0 or 1 counts as 100). */
void kw_hop(const uint8_t *data, size_t size, size_t stop, int64_t rows, size_t *end, size_t *last);

/* Why kw_hop_valid ended. STOP: at stop or rows, or more bytes are needed; CHECKSUM: it is wrong in the batch at end;
   LEGACY: the caller must check the CRC-32 of the batch of magic 0 or 1 at end, and set checked; ORDER: the batch at end
   is out of order, and those before and after it are not. */
typedef enum { KW_HOP_STOP, KW_HOP_CHECKSUM, KW_HOP_LEGACY, KW_HOP_ORDER } kw_hop_status;

typedef struct {
    uint64_t left;    /* bytes from data to the end of the file */
    size_t stop;      /* as of kw_hop */
    int64_t rows;     /* as of kw_hop; what is left of them when it returns */
    int ordered;      /* whether offsets are compared */
    size_t end, last; /* as of kw_hop; end is where it begins, too */
    size_t checked;   /* byte of a batch of magic 0 or 1 whose checksum the caller knows to hold, SIZE_MAX: none */
    int64_t previous; /* last offset of the batch before end, INT64_MAX: unknown */
} kw_hops;

typedef uint32_t kw_hop_checksum(uint32_t value, const uint8_t *data, size_t size);

/* kw_hop over batches whose checksum holds. A batch is taken only when the header after it is in view, or the end of the
   file. */
kw_hop_status kw_hop_valid(const uint8_t *data, size_t size, kw_hop_checksum *crc32c, kw_hops *hops);

/* The first byte in [from, stop) at which a header may begin: length, magic and size agree, the batch ends at or before
   `left` bytes from data on (the end of the file), and its base offset is in [low, high]. followed: where the byte after
   it is in view a header or zeros may be there too. size: bytes in view. stop where there is none. */
size_t kw_find_header(const uint8_t *data, size_t size, uint64_t left, size_t from, size_t stop, int64_t low,
                      int64_t high, int followed);

/* From the batch at `at` on, the first of magic 2 with one of the attribute bits; size if there is none. data consists
   of whole batches. */
size_t kw_next_marked(const uint8_t *data, size_t size, size_t at, uint16_t bits);

#endif
