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

static void put_message(struct cursor *c, const struct sl_wire_message *message)
{
	int n = c->err ? c->err : sl_wire_encode(message, c->at, c->left);

	if (n < 0) {
		c->err = n;
		return;
	}
	c->at += n;
	c->left -= (size_t)n;
}

static void get_message(struct cursor *c, enum sl_wire_type type, struct sl_wire_message *message)
{
	int n = c->err ? c->err : sl_wire_decode(c->at, c->left, message);

	if (n <= 0 || message->type != type) {
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

static void put_transfer(struct cursor *c, const struct sl_estate_transfer *transfer,
			 struct sl_parcel *parcel)
{
	struct sl_wire_message message = {.type = SL_WIRE_OFFER, .offer = transfer->offer};

	put(c, transfer->fd >= 0, 4);
	put_darks(c, &transfer->plan.darks); /* these two do not travel over TCP */
	put(c, transfer->offer.psn_plus_1, 4);
	put_message(c, &message);
	message = (struct sl_wire_message){.type = SL_WIRE_PLAN, .plan = transfer->plan};
	put_message(c, &message);
	if (transfer->fd >= 0)
		parcel->fd[parcel->fds++] = transfer->fd;
}

int sl_estate_encode(const struct sl_estate *estate, struct sl_parcel *parcel)
{
	struct cursor c = {parcel->body, sizeof(parcel->body), 0};

	if (estate->modules > SL_ESTATE_MODULES || estate->region < 0 || estate->notes < 0 ||
	    estate->link_fd < 0)
		return -EINVAL;
	parcel->fds = 0;
	parcel->fd[parcel->fds++] = estate->region;
	parcel->fd[parcel->fds++] = estate->notes;
	parcel->fd[parcel->fds++] = estate->link_fd;
	put(&c, SL_ESTATE_VERSION, 4);
	put(&c, SL_LINK_NOTE_BYTES, 4);
	for (unsigned i = 0; i < sizeof(estate->link); i++)
		put(&c, (uint8_t)estate->link[i], 1);
	put(&c, estate->experiment, 8);
	put(&c, estate->slots, 4);
	put(&c, estate->modules, 4);
	put(&c, estate->region_bytes, 8);
	put(&c, estate->host, 8);
	for (uint32_t m = 0; m < estate->modules; m++)
		put_transfer(&c, &estate->transfer[m], parcel);
	parcel->bytes = sizeof(parcel->body) - c.left;
	return c.err;
}

static void get_transfer(struct cursor *c, uint32_t module, const struct sl_parcel *parcel,
			 unsigned *fds, struct sl_estate_transfer *transfer)
{
	struct sl_wire_message message;
	uint64_t has_fd = get(c, 4);
	struct sl_darks darks = get_darks(c);
	uint32_t psn_plus_1 = (uint32_t)get(c, 4);

	get_message(c, SL_WIRE_OFFER, &message);
	if (c->err)
		return;
	transfer->offer = message.offer;
	transfer->offer.darks = darks;
	transfer->offer.psn_plus_1 = psn_plus_1;
	get_message(c, SL_WIRE_PLAN, &message);
	if (c->err)
		return;
	transfer->plan = message.plan;
	transfer->plan.darks = darks;
	if (has_fd > 1 || (has_fd && *fds == parcel->fds) || transfer->offer.module != module ||
	    transfer->plan.module != module || transfer->plan.transfer >= SL_LINK_TRANSFERS) {
		c->err = -EPROTO;
		return;
	}
	if (has_fd)
		transfer->fd = parcel->fd[(*fds)++];
}

static void get_head(struct cursor *c, struct sl_estate *estate)
{
	for (unsigned i = 0; i < sizeof(estate->link); i++)
		estate->link[i] = (char)get(c, 1);
	estate->experiment = get(c, 8);
	estate->slots = (uint32_t)get(c, 4);
	estate->modules = (uint32_t)get(c, 4);
	estate->region_bytes = get(c, 8);
	estate->host = get(c, 8);
	if (estate->link[sizeof(estate->link) - 1] || estate->modules > SL_ESTATE_MODULES)
		c->err = -EPROTO;
}

int sl_estate_decode(struct sl_parcel *parcel, struct sl_estate *estate)
{
	struct cursor c = {parcel->body, parcel->bytes, 0};
	unsigned fds = 3;

	sl_estate_init(estate);
	if (get(&c, 4) != SL_ESTATE_VERSION || get(&c, 4) != SL_LINK_NOTE_BYTES)
		return c.err ? c.err : -EPROTONOSUPPORT;
	get_head(&c, estate);
	for (uint32_t m = 0; m < estate->modules && !c.err; m++)
		get_transfer(&c, m, parcel, &fds, &estate->transfer[m]);
	if (!c.err && (c.left || fds != parcel->fds))
		c.err = -EPROTO;
	if (c.err) {
		sl_estate_init(estate); /* nothing in it is its own */
		return c.err;
	}
	estate->region = parcel->fd[0];
	estate->notes = parcel->fd[1];
	estate->link_fd = parcel->fd[2];
	parcel->fds = 0;
	return 0;
}
