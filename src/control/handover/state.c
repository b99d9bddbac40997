/* state.c - what outlives a receiver, as bytes and descriptors. */
#include <errno.h>
#include <string.h>

#include "control/handover/state.h"
#include "control/tcp/wire.h"

struct cursor {
	uint8_t *at;
	size_t left;
	int err;
};

static void put(struct cursor *c, uint64_t value, unsigned bytes)
{
	if (c->left < bytes) {
		c->err = -EMSGSIZE;
		return;
	}
	for (unsigned i = 0; i < bytes; i++)
		c->at[i] = (uint8_t)(value >> 8 * i);
	c->at += bytes;
	c->left -= bytes;
}

static uint64_t get(struct cursor *c, unsigned bytes)
{
	uint64_t value = 0;

	if (c->left < bytes) {
		c->err = -EPROTO;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)c->at[i] << 8 * i;
	c->at += bytes;
	c->left -= bytes;
	return value;
}

static void put_message(struct cursor *c, const struct sl_wire_message *wire)
{
	int n = c->err ? c->err : sl_wire_encode(wire, c->at, c->left);

	if (n < 0) {
		c->err = n;
		return;
	}
	c->at += n;
	c->left -= (size_t)n;
}

static void get_message(struct cursor *c, enum sl_wire_type type, struct sl_wire_message *wire)
{
	int n = c->err ? c->err : sl_wire_decode(c->at, c->left, wire);

	if (n <= 0 || wire->type != type) {
		c->err = -EPROTO;
		return;
	}
	c->at += n;
	c->left -= (size_t)n;
}

static void put_darks(struct cursor *c, const struct sl_darks *darks)
{
	put(c, darks->first, 8);
	put(c, darks->every, 4);
	put(c, darks->phase, 4);
	put(c, darks->step, 4);
}

static struct sl_darks get_darks(struct cursor *c)
{
	struct sl_darks darks;

	darks.first = get(c, 8);
	darks.every = (uint32_t)get(c, 4);
	darks.phase = (uint32_t)get(c, 4);
	darks.step = (uint32_t)get(c, 4);
	return darks;
}

static void put_transfer(struct cursor *c, const struct sl_handover_transfer *transfer,
			 struct sl_handover_message *message)
{
	struct sl_wire_message wire = {.type = SL_WIRE_OFFER, .offer = transfer->offer};

	put(c, transfer->fd >= 0, 4);
	put_darks(c, &transfer->plan.darks); /* these two do not travel over TCP */
	put(c, transfer->offer.psn_plus_1, 4);
	put_message(c, &wire);
	wire = (struct sl_wire_message){.type = SL_WIRE_PLAN, .plan = transfer->plan};
	put_message(c, &wire);
	if (transfer->fd >= 0)
		message->fd[message->fds++] = transfer->fd;
}

int sl_handover_encode(const struct sl_handover *handover, struct sl_handover_message *message)
{
	struct cursor c = {message->body, sizeof(message->body), 0};

	if (handover->modules > SL_HANDOVER_MODULES || handover->region < 0 ||
	    handover->notes < 0 || handover->link_fd < 0)
		return -EINVAL;
	message->fds = 0;
	message->fd[message->fds++] = handover->region;
	message->fd[message->fds++] = handover->notes;
	message->fd[message->fds++] = handover->link_fd;
	put(&c, SL_HANDOVER_VERSION, 4);
	put(&c, SL_LINK_NOTE_BYTES, 4);
	for (unsigned i = 0; i < sizeof(handover->link); i++)
		put(&c, (uint8_t)handover->link[i], 1);
	put(&c, handover->experiment, 8);
	put(&c, handover->slots, 4);
	put(&c, handover->modules, 4);
	put(&c, handover->region_bytes, 8);
	put(&c, handover->host, 8);
	for (uint32_t m = 0; m < handover->modules; m++)
		put_transfer(&c, &handover->transfer[m], message);
	message->bytes = sizeof(message->body) - c.left;
	return c.err;
}

static void get_transfer(struct cursor *c, uint32_t module,
			 const struct sl_handover_message *message, unsigned *fds,
			 struct sl_handover_transfer *transfer)
{
	struct sl_wire_message wire;
	uint64_t has_fd = get(c, 4);
	struct sl_darks darks = get_darks(c);
	uint32_t psn_plus_1 = (uint32_t)get(c, 4);

	get_message(c, SL_WIRE_OFFER, &wire);
	if (c->err)
		return;
	transfer->offer = wire.offer;
	transfer->offer.darks = darks;
	transfer->offer.psn_plus_1 = psn_plus_1;
	get_message(c, SL_WIRE_PLAN, &wire);
	if (c->err)
		return;
	transfer->plan = wire.plan;
	transfer->plan.darks = darks;
	if (has_fd > 1 || (has_fd && *fds == message->fds) || transfer->offer.module != module ||
	    transfer->plan.module != module || transfer->plan.transfer >= SL_LINK_TRANSFERS) {
		c->err = -EPROTO;
		return;
	}
	if (has_fd)
		transfer->fd = message->fd[(*fds)++];
}

static void get_head(struct cursor *c, struct sl_handover *handover)
{
	for (unsigned i = 0; i < sizeof(handover->link); i++)
		handover->link[i] = (char)get(c, 1);
	handover->experiment = get(c, 8);
	handover->slots = (uint32_t)get(c, 4);
	handover->modules = (uint32_t)get(c, 4);
	handover->region_bytes = get(c, 8);
	handover->host = get(c, 8);
	if (handover->link[sizeof(handover->link) - 1] || handover->modules > SL_HANDOVER_MODULES)
		c->err = -EPROTO;
}

int sl_handover_decode(struct sl_handover_message *message, struct sl_handover *handover)
{
	struct cursor c = {message->body, message->bytes, 0};
	unsigned fds = 3;

	sl_handover_init(handover);
	if (get(&c, 4) != SL_HANDOVER_VERSION || get(&c, 4) != SL_LINK_NOTE_BYTES)
		return c.err ? c.err : -EPROTONOSUPPORT;
	get_head(&c, handover);
	for (uint32_t m = 0; m < handover->modules && !c.err; m++)
		get_transfer(&c, m, message, &fds, &handover->transfer[m]);
	if (!c.err && (c.left || fds != message->fds))
		c.err = -EPROTO;
	if (c.err) {
		sl_handover_init(handover); /* nothing in it is its own */
		return c.err;
	}
	handover->region = message->fd[0];
	handover->notes = message->fd[1];
	handover->link_fd = message->fd[2];
	message->fds = 0;
	return 0;
}
