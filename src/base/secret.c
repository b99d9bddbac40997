/* secret.c - numbers that nobody can guess. */
#include "base/secret.h"

#include <stdlib.h>
#include <sys/random.h>

uint32_t sl_secret_u32(void)
{
	uint32_t value;

	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		abort();
	return value;
}
