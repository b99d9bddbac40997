/* crc32c.h - a CRC32C for where there is no faster one: a table of 64 bytes.
 *
 * Cost:      two look-ups per byte. Records are sealed with it; who wants checksums of pixels,
 *            too, passes a faster one to the sender. Builds freestanding. */
#ifndef SL_FRONTEND_CRC32C_H
#define SL_FRONTEND_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* As sl_crc32c() of base/crc.h: start with 0, chain with the previous result. */
uint32_t sl_crc32c_small(uint32_t crc, const void *data, size_t bytes);

#endif
