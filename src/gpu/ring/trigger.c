/* trigger.c - five ways to have the device look at a buffer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/ring/ring.h"
#include "gpu/table.h"

enum { WORDS = 16, TURN = 12 }; /* TURN: where it is in a word */

/* The kernel for a buffer; for all of them when it never ends. */
static int launch(struct sl_gpuring *r, uint32_t buffer)
{
	const struct sl_gpuring_terms *t = &r->terms;
	bool forever = t->trigger == SL_TRIGGER_PERSISTENT;
	struct sl_device_argument argument[SL_GPURING_OWN + SL_GPURING_ARGUMENTS + 1] = {
		SL_ARG_MEMORY(&r->data),   SL_ARG_MEMORY(&r->meta),   SL_ARG_MEMORY(&r->result),
		SL_ARG_MEMORY(&r->record), SL_ARG_MEMORY(&r->enable), SL_ARG_MEMORY(&r->stop),
		SL_ARG_MEMORY(&r->turn),   SL_ARG(t->buffers),	      SL_ARG(r->buffer_bytes),
		SL_ARG(r->slot_bytes),	   SL_ARG(t->backoff_ns),
	};
	struct sl_device_range range = {{forever ? t->groups : 1}, r->threads};
	unsigned n = SL_GPURING_OWN;

	for (unsigned i = 0; i < r->work.arguments; i++)
		argument[n++] = r->work.argument[i];
	if (!forever)
		argument[n++] = SL_ARG(buffer);
	return r->platform->launch(r->run, r->kernel, &range, argument, n);
}

/* The word of a buffer that has the turn, and where. */
static const struct sl_device_memory *turn_word(const struct sl_gpuring *r, uint32_t b,
						uint64_t *offset)
{
	*offset = (uint64_t)b * (r->terms.tagged ? r->buffer_bytes : WORDS) + TURN;
	return r->terms.tagged ? &r->data : &r->meta;
}

/* A kernel for event `queued`, which begins when the event is there. */
static int queue_next(struct sl_gpuring *r)
{
	uint32_t b = (uint32_t)r->queued & (r->terms.buffers - 1);
	uint64_t offset;
	const struct sl_device_memory *word = turn_word(r, b, &offset);
	int err = r->platform->wait_value(r->run, word, offset, (uint32_t)(r->queued + 1));

	r->running = true;
	r->queued += !err; /* also when the launch fails: somebody must end the wait */
	if (!err)
		err = launch(r, b);
	return err ? err : r->platform->flush(r->run);
}

static int record_all(struct sl_gpuring *r)
{
	int err = 0;

	for (uint32_t b = 0; b < r->terms.buffers && !err; b++) {
		int ended;

		err = r->platform->record_begin(r->run);
		if (err)
			break;
		err = launch(r, b);
		ended = r->platform->record_end(r->run, &r->recorded[b]); /* in any case */
		err = err ? err : ended;
	}
	return err;
}

/* Kernels of all buffers in one record. */
static int record_round(struct sl_gpuring *r)
{
	struct sl_device_record *lost;
	int err = r->platform->record_begin(r->run);

	if (err)
		return err;
	for (uint32_t b = 0; b < r->terms.buffers && !err; b++)
		err = launch(r, b);
	if (!err)
		return r->host_plays
			       ? r->platform->record_end(r->run, &r->recorded[0])
			       : r->platform->record_end_looped(r->run, &r->stop, &r->recorded[0]);
	if (!r->platform->record_end(r->run, &lost))
		r->platform->record_close(lost);
	return err;
}

static int play_round(struct sl_gpuring *r)
{
	int err = r->platform->play(r->run, r->recorded[0]);

	r->running |= !err; /* also when flush() fails: somebody must end it */
	return err ? err : r->platform->flush(r->run);
}

static int begin_loop(struct sl_gpuring *r)
{
	int err = record_round(r);

	if (err == -ENOTSUP) {
		sl_info("gpu ring: on %s the host plays the loop's rounds: %s", r->platform->name,
			r->platform->problem(r->device));
		r->host_plays = true;
		err = record_round(r);
	}
	return err ? err : play_round(r);
}

int sl_gpuring_trigger_open(struct sl_gpuring *r)
{
	const char *name = r->terms.trigger == SL_TRIGGER_PERSISTENT ? r->work.forever
								     : r->work.once;
	int err = sl_device_kernels(r->device, r->work.kernels, &name, 1, &r->program, &r->kernel);

	if (!err)
		err = sl_device_finish(r->device, r->run); /* words are as they begin */
	if (!err)
		err = r->platform->mark_open(r->device, &r->ended);
	if (!err && (r->terms.trigger == SL_TRIGGER_GRAPH || r->terms.trigger == SL_TRIGGER_LOOP)) {
		r->recorded = calloc(r->terms.buffers, sizeof(*r->recorded));
		err = !r->recorded			     ? -ENOMEM
		      : r->terms.trigger == SL_TRIGGER_GRAPH ? record_all(r)
							     : begin_loop(r);
	}
	for (uint32_t b = 0; b < r->terms.buffers && !err && r->terms.trigger == SL_TRIGGER_WAIT;
	     b++)
		err = queue_next(r);
	if (!err && r->terms.trigger == SL_TRIGGER_PERSISTENT) {
		err = launch(r, 0);
		r->running = !err;
		if (!err)
			err = r->platform->mark(r->run, r->ended); /* is it still there? */
		if (!err)
			err = r->platform->flush(r->run);
	}
	r->running |= !err;
	return err;
}

int sl_gpuring_trigger_event(struct sl_gpuring *r, uint64_t n)
{
	uint32_t b = (uint32_t)n & (r->terms.buffers - 1);
	int err = 0;

	if (r->terms.trigger == SL_TRIGGER_LAUNCH)
		err = launch(r, b);
	else if (r->terms.trigger == SL_TRIGGER_GRAPH)
		err = r->platform->play(r->run, r->recorded[b]);
	else
		return 0;
	return err ? err : r->platform->flush(r->run);
}

int sl_gpuring_trigger_free(struct sl_gpuring *r)
{
	if (r->host_plays && !(r->next & (r->terms.buffers - 1)))
		return play_round(r); /* all of the one before is answered */
	return r->terms.trigger == SL_TRIGGER_WAIT ? queue_next(r) : 0;
}

/* Was event n published? Where the host sees the word, it need not be told. */
static bool is_there(const struct sl_gpuring *r, uint64_t n)
{
	uint64_t offset;
	const struct sl_device_memory *word =
		turn_word(r, (uint32_t)n & (r->terms.buffers - 1), &offset);

	if (!word->host)
		return n < atomic_load(&r->published);
	return (int32_t)(atomic_load((_Atomic uint32_t *)((char *)word->host + offset)) -
			 (uint32_t)(n + 1)) >= 0;
}

/* Kernels that are queued begin, and find that there is nothing: the words of buffers say so. */
static int let_go(struct sl_gpuring *r)
{
	uint64_t first = r->queued > r->terms.buffers ? r->queued - r->terms.buffers : 0;
	int err = 0;

	for (uint64_t n = first; n < r->queued && !err; n++) {
		uint32_t b = (uint32_t)n & (r->terms.buffers - 1), turn = (uint32_t)(n + 1);
		const uint32_t words[] = {0, SL_RING_END, 0, turn};
		char *at = r->terms.tagged ? (char *)r->data.host + (uint64_t)b * r->buffer_bytes
			   : r->meta.host  ? (char *)r->meta.host + (uint64_t)b * WORDS
					   : (char *)r->staging.host + 2 * (uint64_t)b * WORDS;

		if (is_there(r, n))
			continue;
		for (int i = 0; i < 4; i++)
			atomic_store((_Atomic uint32_t *)at + i, words[i]);
		if (!r->terms.tagged && !r->meta.host)
			err = r->platform->write(r->in, &r->meta, (uint64_t)b * WORDS, at, WORDS, 1,
						 0);
	}
	return err ? err : r->platform->flush(r->in);
}

int sl_gpuring_trigger_end(struct sl_gpuring *r)
{
	_Atomic uint32_t *stop = r->stop.host;
	struct timespec nap = {0, 20000};
	uint64_t since = sl_clock_ns();
	int err, done = 0;

	if (!r->running)
		return 0;
	/* What is published has arrived before the kernel hears that nothing comes any more. */
	err = r->terms.on_device ? sl_device_finish(r->device, r->in) : 0;
	atomic_store_explicit(stop, 1, memory_order_release);
	if (!err)
		err = r->terms.trigger == SL_TRIGGER_WAIT ? let_go(r)
		      : r->host_plays ? play_round(r) /* the last, as devices do */
				      : 0;
	if (!err)
		err = r->platform->mark(r->run, r->ended);
	if (!err)
		err = r->platform->flush(r->run);
	while (!err && !(done = r->platform->reached(r->ended))) {
		nanosleep(&nap, NULL);
		if (sl_clock_ns() - since > r->terms.timeout_ns)
			err = -ETIMEDOUT;
	}
	if (done < 0)
		err = done;
	if (err == -ETIMEDOUT)
		sl_error("gpu ring: %s did not end its work within %.1f s", r->platform->name,
			 (double)r->terms.timeout_ns * 1e-9);
	else if (err)
		sl_error("gpu ring: %s: %s", r->platform->name, r->platform->problem(r->device));
	r->running = err; /* what it does then is not known: its memory is left alone */
	return err;
}

void sl_gpuring_trigger_close(struct sl_gpuring *r)
{
	for (uint32_t b = 0; r->recorded && b < r->terms.buffers; b++)
		if (r->recorded[b])
			r->platform->record_close(r->recorded[b]);
	free(r->recorded);
	if (r->ended)
		r->platform->mark_close(r->ended);
	sl_device_kernels_close(r->device, r->program, &r->kernel, 1);
}
