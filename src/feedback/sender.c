/* sender.c - packets become blocks, and blocks go out as far as there is credit. */
#include "feedback/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/log.h"
#include "frontend/descriptor.h"

enum {
	PATIENCE_NS = 1000000000, /* for credit, or for a free block */
	WAIT_US = 500,
	LEAVE_NS = 2000000000, /* at the end, without progress: until all has arrived */
};

/* ---- blocks ---- */

static struct sl_feedback_block *block_of(struct sl_feedback_sender *b, uint64_t sequence)
{
	return &b->block[sequence % SL_FEEDBACK_SENDER_BLOCKS];
}

static void fill(struct sl_feedback_sender *b, const struct sl_feedback_packet *packet)
{
	struct sl_feedback_block *block = block_of(b, b->begun);
	const struct sl_frame_stamp stamp = {
		.number = packet->number,
		.timestamp = packet->timestamp,
		.emit_ns = sl_clock_ns(),
		.items = packet->items,
	};

	memcpy(block->bytes, packet->data, packet->bytes);
	memset(block->bytes + packet->bytes, 0, b->bytes - packet->bytes);
	block->frame = block->bytes;
	block->items = packet->items;
	block->position = sl_plan_position(&b->plan, b->begun + 1, 0);
	sl_block_make(&block->block, &b->transfer, &b->plan, b->begun, &stamp, &block->frame,
		      &block->frame, sl_crc32c);
	sl_descriptor_fill(&b->plan, b->begun, &block->block.source,
			   b->write + b->begun % SL_FEEDBACK_SENDER_BLOCKS * b->writes);
	b->begun++;
}

static void reap(struct sl_feedback_sender *b)
{
	uint64_t position = b->over.link->sending->reap(b->over.state, b->plan.transfer);

	while (b->reaped < b->posted / b->writes && block_of(b, b->reaped)->position <= position)
		b->reaped++;
}

int sl_feedback_sender_pump(struct sl_feedback_sender *b)
{
	const struct sl_link_sending *link = b->over.link->sending;
	uint64_t end = b->begun * b->writes, ring = (uint64_t)SL_FEEDBACK_SENDER_BLOCKS * b->writes;
	int n = 1;

	while (b->posted < end && n > 0) {
		uint64_t left = end - b->posted, at = b->posted % ring;

		n = link->post(b->over.state, b->plan.transfer, b->write + at,
			       left < ring - at ? left : ring - at);
		if (n < 0)
			return n;
		b->posted += (uint64_t)n;
	}
	if (b->posted == end && b->reaped < b->begun) {
		n = link->post(b->over.state, b->plan.transfer, NULL, 0);
		if (n < 0)
			return n;
	}
	reap(b);
	return 0;
}

/* ---- sending ---- */

/* Until the thread has found a front end, or has given up. */
static bool wait_for_connection(struct sl_feedback_sender *b)
{
	if (!b->give_up_ns)
		b->give_up_ns = sl_clock_ns() + b->wait_ns;
	/* One that was there and is gone is not waited for. */
	while (b->state == SL_FEEDBACK_SENDER_LOOKING && !b->connections && !b->given_up)
		pthread_cond_wait(&b->changed, &b->lock);
	if (b->state != SL_FEEDBACK_SENDER_CONNECTED)
		sl_feedback_sender_log_why(b);
	return b->state == SL_FEEDBACK_SENDER_CONNECTED;
}

/* Whether what all packets wait for has come: everything posted, or a block free. */
static bool satisfied(const struct sl_feedback_sender *b, bool room)
{
	return room ? b->begun - b->reaped < SL_FEEDBACK_SENDER_BLOCKS
		    : b->posted == b->begun * b->writes;
}

/* Pump until it is so, at most for a while without progress. False: it is not. */
static bool wait_for(struct sl_feedback_sender *b, bool room)
{
	uint64_t since = sl_clock_ns(), before = b->posted + b->reaped;
	int err;

	for (;;) {
		uint64_t now;

		err = sl_feedback_sender_pump(b);
		if (err) {
			sl_feedback_sender_disconnect(b, err);
			return false;
		}
		now = sl_clock_ns();
		if (b->posted + b->reaped != before) {
			before = b->posted + b->reaped;
			since = now;
			b->stuck = false;
		}
		if (satisfied(b, room))
			return true;
		if (b->stuck || now - since > PATIENCE_NS) {
			if (!b->stuck)
				sl_warn("feedback: %s, port %u takes no more answers: nothing was "
					"granted for a second",
					b->address, b->port);
			b->stuck = true;
			return false;
		}
		b->over.link->sending->wait(b->over.state, WAIT_US);
	}
}

uint32_t sl_feedback_sender_send(struct sl_feedback_sender *b,
				 const struct sl_feedback_packet *packet, uint32_t n)
{
	uint32_t taken = 0;

	pthread_mutex_lock(&b->lock);
	if (wait_for_connection(b)) {
		while (taken < n &&
		       (b->begun - b->reaped < SL_FEEDBACK_SENDER_BLOCKS || wait_for(b, true)))
			fill(b, &packet[taken++]);
		if (b->state == SL_FEEDBACK_SENDER_CONNECTED)
			wait_for(b, false);
		if (b->reaped < b->begun)
			pthread_cond_signal(&b->changed); /* the thread takes care of them */
	}
	pthread_mutex_unlock(&b->lock);
	return taken;
}

/* ---- from beginning to end ---- */

static int open_blocks(struct sl_feedback_sender *b)
{
	for (unsigned i = 0; i < SL_FEEDBACK_SENDER_BLOCKS; i++) {
		b->block[i].bytes = malloc(b->bytes);
		if (!b->block[i].bytes)
			return -ENOMEM;
	}
	return 0;
}

static void dispose(struct sl_feedback_sender *b)
{
	for (unsigned i = 0; i < SL_FEEDBACK_SENDER_BLOCKS; i++)
		free(b->block[i].bytes);
	free(b->write);
	sl_feedback_link_fini(&b->over);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void init_lock(struct sl_feedback_sender *b)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* as sl_clock_ns() */
	pthread_cond_init(&b->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&b->lock, NULL);
}

int sl_feedback_sender_open(const struct sl_feedback_senders *feedback,
			    const struct sl_feedback_sender_options *o,
			    enum sl_packet_fault (*fault)(void *arg, uint16_t module,
							  uint64_t sequence, uint32_t packet),
			    void *fault_arg, struct sl_feedback_sender **back)
{
	struct sl_feedback_sender *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	init_lock(b);
	b->feedback = feedback;
	b->fault = fault;
	b->fault_arg = fault_arg;
	b->port = o->port;
	b->bytes = o->bytes;
	b->device = o->device;
	b->wait_ns = (uint64_t)(o->wait_s * 1e9);
	b->transfer = (struct sl_transfer){.every = 1,
					   .stack = 1,
					   .part = SL_PART_PIXELS | SL_PART_RECORD,
					   .rectangle = {.lines = 1, .line_bytes = o->bytes}};
	snprintf(b->address, sizeof(b->address), "%s", o->address);
	snprintf(b->source, sizeof(b->source), "%s", o->source);
	err = sl_feedback_link_init(&b->over, "feedback", o->link, o->service);
	if (!err)
		err = open_blocks(b);
	if (!err)
		err = sl_thread_start(&b->thread, "feedback", NULL, sl_feedback_sender_run, b);
	if (err) {
		dispose(b);
		return err;
	}
	*back = b;
	return 0;
}

/* What was taken is out, and acknowledged where that can be known; or nothing went on for a
 * while. */
static void drain(struct sl_feedback_sender *b)
{
	uint64_t since = sl_clock_ns(), before = b->posted + b->reaped;

	while (b->state == SL_FEEDBACK_SENDER_CONNECTED && b->reaped < b->begun &&
	       sl_clock_ns() - since < LEAVE_NS) {
		int err = sl_feedback_sender_pump(b);

		if (b->posted + b->reaped != before)
			since = sl_clock_ns();
		before = b->posted + b->reaped;
		if (err) {
			sl_feedback_sender_disconnect(b, err);
			return;
		}
		if (b->reaped < b->begun)
			b->over.link->sending->wait(b->over.state, WAIT_US);
	}
	if (b->state == SL_FEEDBACK_SENDER_CONNECTED && b->over.link->sending->flush)
		b->over.link->sending->flush(b->over.state, b->plan.transfer);
}

uint64_t sl_feedback_sender_close(struct sl_feedback_sender *b)
{
	uint64_t missing;

	pthread_mutex_lock(&b->lock);
	drain(b);
	b->stop = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	sl_thread_join(&b->thread); /* says good-bye */
	missing = b->missing;
	dispose(b);
	return missing;
}

/* ---- for sinks ---- */

static int open_plainly(const struct sl_feedback_senders *feedback,
			const struct sl_feedback_sender_options *options,
			struct sl_feedback_sender **back)
{
	return sl_feedback_sender_open(feedback, options, NULL, NULL, back);
}

void sl_feedback_senders_init(struct sl_feedback_senders *feedback, const char *token,
			      uint64_t experiment)
{
	*feedback = (struct sl_feedback_senders){
		.open = open_plainly,
		.send = sl_feedback_sender_send,
		.close = sl_feedback_sender_close,
		.token = token,
		.experiment = experiment,
	};
}
