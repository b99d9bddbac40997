/* keeper_fuzz.c - any bytes and any number of descriptors from whoever speaks to a keeper or passes
 * for one: what is taken for a message has the header of one, and what is taken for a handover
 * state is written again as the same. */
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
static void check_message(const uint8_t *data, size_t size, unsigned fds,
			  struct sl_handover_message *message)
{
	uint8_t *exact = malloc(size ? size : 1), header[SL_HANDOVER_MESSAGE_HEADER];

	require(exact != NULL);
	memcpy(exact, data, size);
	if (sl_handover_message_parse(exact, size, fds, message) == 0) {
		require(message->fds == fds && message->bytes == size - SL_HANDOVER_MESSAGE_HEADER);
		sl_handover_message_header(message, header);
		require(memcmp(header, exact, sizeof(header)) == 0);
	}
	free(exact);
}

static void check_state(const uint8_t *data, size_t size, unsigned fds,
			struct sl_handover_message *message)
{
	static struct sl_handover handover, again;

	message->bytes = size < SL_HANDOVER_MESSAGE_BODY ? size : SL_HANDOVER_MESSAGE_BODY;
	memcpy(message->body, data, message->bytes);
	message->fds = fds;
	for (unsigned i = 0; i < fds; i++)
		message->fd[i] = 1000 + (int)i; /* never used */
	if (sl_handover_decode(message, &handover)) {
		require(message->fds == fds);
		return;
	}
	require(handover.modules <= SL_HANDOVER_MODULES && message->fds == 0);
	require(sl_handover_encode(&handover, message) == 0 && message->fds == fds);
	require(sl_handover_decode(message, &again) == 0);
	require(memcmp(&handover, &again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_handover_message message;
	unsigned fds;

	if (!size)
		return 0;
	fds = data[0] % (SL_HANDOVER_MESSAGE_FDS + 1);
	check_message(data + 1, size - 1, fds, &message);
	check_state(data + 1, size - 1, fds, &message);
	return 0;
}
