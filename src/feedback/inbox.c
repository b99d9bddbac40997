/* inbox.c - a ring for answers, a link that fills it, and the exchange that leads to it. */
#include "feedback/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/log.h"
#include "feedback/wire.h"
#include "net/net.h"

enum {
	BUDGET = 256,
	WAIT_US = 1000,
	IDLE_MS = 2,		      /* nobody is connected */
	SILENCE_MS = 10000,	      /* a sink counts every 20 ms; a stranger that waits must go */
	SERVE_NS = 5 * 1000 * 1000,   /* how often the exchange is looked at in between */
	QUIET_NS = 100 * 1000 * 1000, /* nothing came for so long: nothing more will */
	BLOCK_MIN = SL_FEEDBACK_HEADER + SL_FEEDBACK_ANSWER,
};

/* ---- ring and link ---- */

static void take_down(struct sl_feedback_inbox *w)
{
	w->over.link->close(w->over.state);
	sl_ring_fini(&w->ring);
	sl_region_close(&w->region);
	free(w->copy);
	free(w->taken);
	w->copy = NULL;
	w->taken = NULL;
	w->up = false;
	atomic_store(&w->connected, 0);
}

/* For packets of so many bytes. */
static int set_up(struct sl_feedback_inbox *w, uint64_t bytes)
{
	const struct sl_link_env env = {
		.ring = &w->ring,
		.pollers = 1,
		.wake = &w->wake,
		.counters = &w->counters,
		.service = w->over.service,
		.operation = SL_OPERATION_WRITE,
		.message = w->over.message,
		.pmtu = w->pmtu,
		.crc = w->over.crc,
	};
	int err = sl_region_open(w->over.link->places, sl_ring_region_bytes(w->slots, 1, bytes),
				 &w->region);

	if (err)
		return err;
	err = sl_ring_init(&w->ring, &w->region, NULL, w->slots, 1, bytes);
	if (err) {
		sl_region_close(&w->region);
		return err;
	}
	w->up = true;
	w->ended = w->said = false;
	w->head = w->end = w->last = 0;
	w->copy = malloc(bytes);
	w->taken = calloc(w->slots, sizeof(*w->taken));
	err = sl_feedback_link_open(&w->over, &env);
	if (!err && (!w->copy || !w->taken))
		err = -ENOMEM;
	if (err)
		take_down(w);
	return err;
}

/* ---- the exchange ---- */

static int accept_offer(void *arg, const struct sl_wire_hello *hello, const struct sl_offer *offer,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct sl_feedback_inbox *w = arg;
	uint64_t bytes = offer->block_bytes - SL_RECORD_BYTES;
	int err;

	(void)hello;
	if (w->up)
		return -EAGAIN; /* what the one before sent has not been taken yet */
	if (offer->block_bytes < SL_RECORD_BYTES + BLOCK_MIN || bytes > SL_FEEDBACK_PAYLOAD_MAX ||
	    offer->bare) {
		snprintf(why, why_bytes,
			 "its blocks have %llu bytes, and are no packets of answers",
			 (unsigned long long)offer->block_bytes);
		return -EINVAL;
	}
	if (!(offer->services & w->over.service)) {
		snprintf(why, why_bytes, "feedback.service is %s here",
			 w->over.service == SL_SERVICE_RC ? "rc" : "uc");
		return -EINVAL;
	}
	err = set_up(w, bytes);
	if (!err)
		err = w->over.link->receiving->accept(w->over.state, offer, plan);
	if (err) {
		if (w->up)
			take_down(w);
		return err == -EAGAIN ? -EBUSY : err;
	}
	w->plan = *plan;
	w->active_ns = sl_clock_ns();
	sl_ring_open(&w->ring, UINT64_MAX);
	return 0;
}

/* A word that cannot be true would have us look for sequences that nobody could have sent. */
static int take_count(void *arg, uint32_t module, const struct sl_wire_count *count, bool final,
		      char *why, size_t why_bytes)
{
	struct sl_feedback_inbox *w = arg;
	uint64_t opened = w->up ? sl_ring_opened(&w->ring, 0) : 0;

	(void)module;
	if (!w->up || count->next < w->end || count->next > opened || count->sent > count->next ||
	    count->position > sl_plan_position(&w->plan, opened, 0)) {
		snprintf(why, why_bytes, "a count that cannot be true");
		return -EPROTO;
	}
	atomic_store(&w->connected, 1); /* its first word after the start */
	w->end = count->next;
	w->ended = w->said = final;
	w->active_ns = final ? sl_clock_ns() : w->active_ns;
	if (w->over.link->receiving->reported)
		w->over.link->receiving->reported(w->over.state, w->plan.transfer, count->position);
	return 0;
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	(void)arg, (void)transfer; /* before the start: there is no such time */
}

static void source_lost(void *arg, uint32_t module)
{
	struct sl_feedback_inbox *w = arg;

	(void)module;
	if (!w->up || w->ended)
		return;
	sl_warn("feedback: the sink that wrote the answers vanished");
	w->ended = true;
	w->active_ns = sl_clock_ns();
}

static const struct sl_server_ops server_ops = {
	.accept = accept_offer,
	.count = take_count,
	.cancel_plan = cancel_plan,
	.source_lost = source_lost,
};

/* ---- blocks ---- */

/* As the assembler would: the record is the sink's word about this block and no other. */
static bool is_sound(const struct sl_feedback_inbox *w, uint64_t sequence)
{
	struct sl_record record;

	memcpy(&record, sl_ring_record(&w->ring, sequence, 0), sizeof(record));
	return sl_record_valid(&record) && record.sequence == sequence && record.module == 0 &&
	       record.bytes == w->ring.pixel_bytes &&
	       (!w->plan.crc || (record.flags & SL_RECORD_CRC &&
				 record.crc32c == sl_crc32c(0, w->copy, w->ring.pixel_bytes)));
}

static void take_block(struct sl_feedback_inbox *w, uint64_t sequence)
{
	size_t bytes;

	memcpy(w->copy, sl_ring_block(&w->ring, sequence, 0), w->ring.pixel_bytes);
	bytes = sl_feedback_bytes(w->copy, w->ring.pixel_bytes);
	w->packet(w->arg, w->copy, is_sound(w, sequence) ? bytes : 0);
	sl_ring_finish(&w->ring, sequence, 0);
	sl_ring_release(&w->ring, sequence, 0);
	w->taken[sequence % w->slots] = sequence + 1;
	if (sequence >= w->last)
		w->last = sequence + 1;
}

static bool was_taken(const struct sl_feedback_inbox *w, uint64_t sequence)
{
	return w->taken[sequence % w->slots] == sequence + 1;
}

/* Behind the last that was taken or given up. What is missing is given up when half a ring came
 * after it, or nothing more will come. This thread polls, so it is not inside: there is nobody to
 * wait for. */
static void advance(struct sl_feedback_inbox *w, uint64_t reached, bool all)
{
	while (w->head < reached &&
	       (was_taken(w, w->head) || all || w->head + w->slots / 2 < reached)) {
		if (!was_taken(w, w->head)) {
			sl_ring_close(&w->ring, w->head, 0);
			sl_ring_release(&w->ring, w->head, 0);
		}
		w->head++;
	}
	sl_ring_open(&w->ring, UINT64_MAX);
}

static int take_blocks(struct sl_feedback_inbox *w)
{
	uint64_t opened = sl_ring_opened(&w->ring, 0), reached = sl_ring_reached(&w->ring, 0), ns;
	int n = 0;

	reached = reached < opened ? reached : opened;
	for (uint64_t k = w->head; k < reached; k++) {
		if (was_taken(w, k) || !sl_ring_event(&w->ring, k, 0, &ns))
			continue;
		take_block(w, k);
		n++;
	}
	if (w->head < reached)
		advance(w, reached, false);
	return n;
}

/* All of it was taken, or what is missing will not come. */
static void conclude(struct sl_feedback_inbox *w)
{
	uint64_t opened = sl_ring_opened(&w->ring, 0), reached = sl_ring_reached(&w->ring, 0);
	uint64_t now = sl_clock_ns();

	if (!w->ended || ((!w->said || w->head < w->end) && now - w->active_ns < QUIET_NS))
		return;
	reached = reached < opened ? reached : opened; /* it may have been ahead of its slots */
	if (w->end > reached)
		reached = w->end;
	advance(w, reached, true);
	if (reached > w->last)
		w->lost(w->arg, reached - w->last);
	take_down(w);
	sl_server_bye(w->server, false);
}

int sl_feedback_inbox_poll(struct sl_feedback_inbox *w)
{
	uint64_t now = sl_clock_ns();
	bool talking = !atomic_load_explicit(&w->connected, memory_order_relaxed) || w->ended;
	int n = 0;

	if (talking || now - w->served_ns >= SERVE_NS) {
		sl_server_poll(w->server, w->up ? 0 : IDLE_MS);
		if (w->up && w->over.link->receiving->serve)
			w->over.link->receiving->serve(w->over.state);
		w->served_ns = now;
	}
	if (!w->up)
		return 0;
	if (w->over.link->receiving->poll(w->over.state, 0, BUDGET) > 0)
		w->active_ns = sl_clock_ns();
	n = take_blocks(w);
	conclude(w);
	if (!n && w->up)
		w->over.link->receiving->wait(w->over.state, 0, WAIT_US);
	return n;
}

/* ---- from beginning to end ---- */

static int configure(struct sl_feedback_inbox *w, const struct sl_feedback_inbox_options *o)
{
	uint8_t gid[SL_NET_GID_BYTES];
	char port[8];
	int err = sl_net_parse("feedback.address", o->address, gid);

	if (!err)
		err = sl_feedback_link_init(&w->over, "feedback", o->link, o->service);
	if (err)
		return err;
	snprintf(port, sizeof(port), "%u", o->roce_port ? o->roce_port : o->port);
	err = sl_feedback_link_set(&w->over, "feedback", "listen", o->address);
	return err ? err : sl_feedback_link_set(&w->over, "feedback", "port", port);
}

int sl_feedback_inbox_open(struct sl_feedback_inbox *w, const struct sl_feedback_inbox_options *o)
{
	struct sl_server_options server = {
		.address = o->address,
		.port = o->port,
		.token = o->token,
		.purpose = SL_PROOF_FEEDBACK,
		.modules = 1,
		.experiment = o->experiment,
		.detector = "answers",
		.silence_ms = SILENCE_MS,
		.rejoin = true,
		.peer = "feedback sink",
		.self = "front end",
		.section = "feedback",
	};
	int err;

	w->wake.fd = -1;
	w->pmtu = o->pmtu;
	w->slots = o->slots;
	err = configure(w, o);
	if (err)
		return err;
	w->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake.fd < 0)
		return -errno;
	server.link = w->over.link->wire;
	err = sl_server_open(&server, &server_ops, w, &w->server);
	/* What is in the way of a ring is found now, and not when somebody comes. */
	if (!err)
		err = set_up(w, BLOCK_MIN);
	if (err)
		return err;
	take_down(w);
	sl_server_start(w->server, sl_clock_ns()); /* who comes, begins */
	return 0;
}

void sl_feedback_inbox_close(struct sl_feedback_inbox *w)
{
	if (w->up)
		take_down(w);
	if (w->server)
		sl_server_close(w->server);
	w->server = NULL;
	if (w->wake.fd >= 0)
		close(w->wake.fd);
	w->wake.fd = -1;
	sl_feedback_link_fini(&w->over);
}
