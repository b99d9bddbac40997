/* record.c - sealing and checking the 64 bytes after a module's pixels. */
#include <stddef.h>

#include <sluice/record.h>

#include "base/crc.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are little-endian; this host needs a conversion here"
#endif

static uint32_t self_crc(const struct sl_record *record)
{
	return sl_crc32c(0, record, offsetof(struct sl_record, self_crc));
}

void sl_record_seal(struct sl_record *record)
{
	record->version = SL_RECORD_VERSION;
	record->self_crc = self_crc(record);
}

bool sl_record_valid(const struct sl_record *record)
{
	return record->version == SL_RECORD_VERSION && record->self_crc == self_crc(record);
}
