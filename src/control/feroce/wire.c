/* wire.c - FEROCE messages to bytes and back. */
#include "control/feroce/wire.h"

#include <errno.h>

enum { /* offsets; numbers of 24 bits have a byte of 0 before them */
       AT_FLAGS = 0,
       AT_LOCAL = 1,
       AT_REMOTE = 25,
       AT_PORT = 49,
       AT_GENERATOR = 51,
       /* within a queue */
       QPN = 0,
       PSN = 4,
       RKEY = 8,
       VA = 12,
       IP = 20,
       /* within the generator's part */
       GENERATE = 0,
       LENGTH = 1,
       TRANSFERS = 5,
       CLOCKS = 9,
};

static void put(uint8_t *at, unsigned bytes, uint64_t value)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static void put_queue(uint8_t *at, const struct sl_feroce_queue *queue)
{
	put(at + QPN, 4, queue->qpn & 0xffffff);
	put(at + PSN, 4, queue->psn & 0xffffff);
	put(at + RKEY, 4, queue->rkey);
	put(at + VA, 8, queue->va);
	put(at + IP, 4, queue->ip);
}

static struct sl_feroce_queue get_queue(const uint8_t *at)
{
	return (struct sl_feroce_queue){
		.qpn = (uint32_t)get(at + QPN, 4),
		.psn = (uint32_t)get(at + PSN, 4),
		.rkey = (uint32_t)get(at + RKEY, 4),
		.va = get(at + VA, 8),
		.ip = (uint32_t)get(at + IP, 4),
	};
}

void sl_feroce_encode(const struct sl_feroce_message *message, uint8_t out[SL_FEROCE_BYTES])
{
	const struct sl_feroce_generator *g = &message->generator;
	uint8_t *generator = out + AT_GENERATOR;

	out[AT_FLAGS] = (uint8_t)(message->info | (message->request & 7) << 1 |
				  message->answer << 4 | message->ack << 5);
	put_queue(out + AT_LOCAL, &message->local);
	put_queue(out + AT_REMOTE, &message->remote);
	put(out + AT_PORT, 2, message->port);
	generator[GENERATE] =
		(uint8_t)(g->valid | g->start << 1 | g->immediate << 2 | g->write << 3);
	put(generator + LENGTH, 4, g->bytes);
	put(generator + TRANSFERS, 4, g->transfers);
	put(generator + CLOCKS, 4, g->clocks);
}

static bool codes_exist(const struct sl_feroce_message *m)
{
	return (m->request <= SL_FEROCE_CLOSE || m->request == SL_FEROCE_ERROR) &&
	       (m->ack <= SL_FEROCE_NAK || m->ack == SL_FEROCE_ACK_ERROR);
}

static bool fits(const struct sl_feroce_queue *queue)
{
	return queue->qpn <= 0xffffff && queue->psn <= 0xffffff;
}

int sl_feroce_decode(const void *in, size_t bytes, struct sl_feroce_message *message)
{
	const uint8_t *data = in, *generator = data + AT_GENERATOR;
	struct sl_feroce_message m;

	if (bytes != SL_FEROCE_BYTES)
		return -EPROTO;
	m = (struct sl_feroce_message){
		.info = data[AT_FLAGS] & 1,
		.request = data[AT_FLAGS] >> 1 & 7,
		.answer = data[AT_FLAGS] >> 4 & 1,
		.ack = data[AT_FLAGS] >> 5,
		.local = get_queue(data + AT_LOCAL),
		.remote = get_queue(data + AT_REMOTE),
		.port = (uint16_t)get(data + AT_PORT, 2),
		.generator = {.valid = generator[GENERATE] & 1,
			      .start = generator[GENERATE] >> 1 & 1,
			      .immediate = generator[GENERATE] >> 2 & 1,
			      .write = generator[GENERATE] >> 3 & 1,
			      .bytes = (uint32_t)get(generator + LENGTH, 4),
			      .transfers = (uint32_t)get(generator + TRANSFERS, 4),
			      .clocks = (uint32_t)get(generator + CLOCKS, 4)},
	};
	if (!codes_exist(&m) || !fits(&m.local) || !fits(&m.remote) || generator[GENERATE] >> 4)
		return -EPROTO;
	*message = m;
	return 0;
}
