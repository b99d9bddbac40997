/* plan_fuzz.c - whatever arrives on the control port. */
#include <stddef.h>
#include <stdint.h>

#include "control/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_wire_message message;

	sl_wire_decode(data, size, &message);
	return 0;
}
