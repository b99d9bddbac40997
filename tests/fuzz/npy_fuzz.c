/* npy_fuzz.c - any bytes as the header of a NumPy file: it is refused with a reason, or what was
 * read makes, written again, the same header. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/share/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1); /* so that a byte behind it is found */
	char header[SL_NPY_HEADER], why[200] = "";
	struct sl_npy npy, again;
	size_t bytes;

	require(exact != NULL);
	memcpy(exact, data, size);
	if (sl_npy_parse(exact, size, &npy, why, sizeof(why))) {
		require(why[0]);
		free(exact);
		return 0;
	}
	require(npy.data <= size && npy.rank <= SL_NPY_RANK &&
		memchr(npy.type, 0, sizeof(npy.type)) != NULL);
	if (!strchr(npy.type, '\'')) { /* it would end the text */
		bytes = sl_npy_write(&npy, header);
		require(!sl_npy_parse(header, bytes, &again, why, sizeof(why)));
		require(again.rank == npy.rank && !strcmp(again.type, npy.type) &&
			!memcmp(again.dim, npy.dim, npy.rank * sizeof(npy.dim[0])));
	}
	free(exact);
	return 0;
}
