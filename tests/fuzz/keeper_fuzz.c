/* keeper_fuzz.c - any bytes and any number of descriptors from whoever speaks to a keeper or passes
 * for one: what is taken for a parcel has the header of one, and what is taken for an estate is
 * written again as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control/handover/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

/* From memory that ends where the bytes end, so that a byte too far is seen. */
static void check_parcel(const uint8_t *data, size_t size, unsigned fds, struct sl_parcel *parcel)
{
	uint8_t *exact = malloc(size ? size : 1), header[SL_PARCEL_HEADER];

	require(exact != NULL);
	memcpy(exact, data, size);
	if (sl_parcel_parse(exact, size, fds, parcel) == 0) {
		require(parcel->fds == fds && parcel->bytes == size - SL_PARCEL_HEADER);
		sl_parcel_header(parcel, header);
		require(memcmp(header, exact, sizeof(header)) == 0);
	}
	free(exact);
}

static void check_estate(const uint8_t *data, size_t size, unsigned fds, struct sl_parcel *parcel)
{
	static struct sl_estate estate, again;

	parcel->bytes = size < SL_PARCEL_BODY ? size : SL_PARCEL_BODY;
	memcpy(parcel->body, data, parcel->bytes);
	parcel->fds = fds;
	for (unsigned i = 0; i < fds; i++)
		parcel->fd[i] = 1000 + (int)i; /* never used */
	if (sl_estate_decode(parcel, &estate)) {
		require(parcel->fds == fds);
		return;
	}
	require(estate.modules <= SL_ESTATE_MODULES && parcel->fds == 0);
	require(sl_estate_encode(&estate, parcel) == 0 && parcel->fds == fds);
	require(sl_estate_decode(parcel, &again) == 0);
	require(memcmp(&estate, &again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_parcel parcel;
	unsigned fds;

	if (!size)
		return 0;
	fds = data[0] % (SL_PARCEL_FDS + 1);
	check_parcel(data + 1, size - 1, fds, &parcel);
	check_estate(data + 1, size - 1, fds, &parcel);
	return 0;
}
