/* plan_fuzz.c - any bytes on the control port: what decodes must encode to the same message again,
 * and a channel must find the same messages in them whatever the pieces in which they arrive. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/tcp/channel.h"
#include "control/tcp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGES = 64 };

static void require(int good)
{
	if (!good)
		abort();
}

/* Decode from memory that ends where the bytes end, so that a byte too far is seen. */
static int decode(const uint8_t *data, size_t size, struct sl_wire_message *message)
{
	uint8_t *exact = malloc(size ? size : 1);
	int used;

	require(exact != NULL);
	memcpy(exact, data, size);
	memset(message, 0x5a, sizeof(*message));
	used = sl_wire_decode(exact, size, message);
	free(exact);
	return used;
}

static void check_round_trip(const struct sl_wire_message *message)
{
	struct sl_wire_message again;
	uint8_t bytes[SL_WIRE_MAX];
	int n = sl_wire_encode(message, bytes, sizeof(bytes));

	require(n >= SL_WIRE_HEADER);
	require(decode(bytes, (size_t)n, &again) == n);
	require(memcmp(message, &again, sizeof(again)) == 0);
	require(decode(bytes, (size_t)n - 1, &again) == 0);
	require(strcmp(sl_wire_name(message->type), "?") != 0);
}

/* All messages in a row; how the bytes end: 0 or -errno. */
static int decode_all(const uint8_t *data, size_t size, struct sl_wire_message *message,
		      unsigned *messages)
{
	int used;

	for (*messages = 0; *messages < MESSAGES && size; (*messages)++) {
		used = decode(data, size, &message[*messages]);
		if (used <= 0)
			return used;
		require((size_t)used <= size);
		check_round_trip(&message[*messages]);
		data += used;
		size -= (size_t)used;
	}
	return 0;
}

/* The same bytes through a channel, in pieces whose sizes the bytes themselves decide. */
static void check_channel(const uint8_t *data, size_t size, const struct sl_wire_message *message,
			  unsigned messages, int end)
{
	static struct sl_channel channel;
	struct sl_wire_message got;
	unsigned seen = 0;
	int fd[2], result = 0;

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	sl_channel_init(&channel, fd[0]);
	for (size_t at = 0, n; at < size && result >= 0; at += n) {
		n = 1 + data[at] % 97u * 5;
		n = n < size - at ? n : size - at;
		require(write(fd[1], data + at, n) == (ssize_t)n);
		for (; (result = sl_channel_receive(&channel, 0, &got)) > 0; seen++)
			if (seen < messages)
				require(memcmp(&got, &message[seen], sizeof(got)) == 0);
	}
	require(messages == MESSAGES ? seen >= MESSAGES : seen == messages && result == end);
	sl_channel_close(&channel);
	close(fd[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_wire_message message[MESSAGES];
	unsigned messages;
	int end = decode_all(data, size, message, &messages);

	check_channel(data, size, message, messages, end);
	return 0;
}
