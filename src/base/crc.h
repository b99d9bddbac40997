/* crc.h - checksums at memory speed (ISA-L, which dispatches at run time). The one place with
 * <isa-l/crc.h>. */
#ifndef SL_BASE_CRC_H
#define SL_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* IEEE 802.3, as zlib's crc32(): start with 0, chain with the previous result. */
uint32_t sl_crc32(uint32_t crc, const void *data, size_t bytes);

/* Castagnoli (iSCSI), same conventions: sl_crc32c(0, "123456789", 9) == 0xe3069283. */
uint32_t sl_crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
