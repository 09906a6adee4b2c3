/* UTF-8 as Java's String(bytes, UTF_8) reads it. Pure C. */
#ifndef KWIRE_UTF8_H
#define KWIRE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Writes the text as valid UTF-8, with U+FFFD where Java puts it: at most 3 * size bytes to out; returns how many. */
size_t kw_utf8_clean(const uint8_t *data, size_t size, uint8_t *out);

#endif
