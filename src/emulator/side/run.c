/* run.c - a run of a detector side: each transfer with its receiver, on a thread of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "emulator/side/private.h"
#include "monitor/result.h"
#include "session/errors.h"

enum { REOFFER_MS = 200, NAP_MS = 10 };

/* ---- a transfer ---- */

/* The side is where its slowest transfer is; it runs as soon as one does. With the lock held. */
static enum sl_state state_of(const struct sl_side *s)
{
	unsigned left = 0, sending = 0, storing = 0, ready = 0;

	for (unsigned i = 0; i < s->streams; i++) {
		const struct sl_side_stream *stream = &s->stream[i];

		left += !stream->finished;
		sending += stream->phase == SL_EXCHANGE_SEND;
		storing += stream->phase == SL_EXCHANGE_STORE;
		ready += stream->phase == SL_EXCHANGE_READY || stream->phase == SL_EXCHANGE_HOLD;
	}
	if (sending)
		return atomic_load(&s->stop) ? SL_STATE_STOPPING : SL_STATE_RUNNING;
	if (!left || storing)
		return SL_STATE_STOPPING;
	return ready == left ? SL_STATE_ARMED : SL_STATE_CONFIGURED;
}

/* The counts of a plan: from its beginning, until it is over. With the lock held. */
static void count_plan(struct sl_side_stream *stream, enum sl_exchange_phase phase)
{
	const struct sl_emulator *em = stream->emulator;

	if (phase == SL_EXCHANGE_SEND) {
		for (uint32_t m = 0; m < stream->modules; m++)
			stream->first[m] = em->module[stream->first_module + m].plan.first_sequence;
		stream->counting = stream->begun = true;
	} else if (phase == SL_EXCHANGE_REST && stream->counting) {
		for (uint32_t m = 0; m < stream->modules; m++)
			stream->before[m] = sl_side_module_sent(stream, m);
		stream->counting = false;
	}
}

static void enter(void *arg, enum sl_exchange_phase phase)
{
	struct sl_side_stream *stream = arg;
	struct sl_side *s = stream->side;

	pthread_mutex_lock(&s->lock);
	count_plan(stream, phase);
	stream->phase = phase;
	stream->connected = stream->exchange.connected;
	if (phase == SL_EXCHANGE_SEND && !s->started_unix_ns)
		s->started_unix_ns = sl_clock_unix_ns();
	if (phase != SL_EXCHANGE_REST)
		atomic_store(&s->state, state_of(s));
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	sl_socket_wake(s->socket);
}

static void hang_up(struct sl_side_stream *stream)
{
	sl_exchange_close(&stream->exchange);
	pthread_mutex_lock(&stream->side->lock);
	stream->connected = false;
	pthread_mutex_unlock(&stream->side->lock);
}

/* The receiver of the run before may have gone, or have been configured anew, since: then the
 * connection is made again. */
static int take_plan(struct sl_side_stream *stream)
{
	struct sl_exchange *x = &stream->exchange;
	int err;

	if (x->connected) {
		err = sl_exchange_again(x);
		if (!err)
			err = sl_exchange_run(x);
		if (!err || err == -EINTR || err == -ECANCELED || stream->begun)
			return err;
		hang_up(stream);
		sl_side_forget_line(stream->side);
	}
	err = sl_exchange_connect(x);
	return err ? err : sl_exchange_run(x);
}

static void note_refusal(struct sl_side_stream *stream)
{
	pthread_mutex_lock(&stream->side->lock);
	snprintf(stream->refusal, sizeof(stream->refusal), "%s", stream->exchange.client.refusal);
	pthread_mutex_unlock(&stream->side->lock);
}

/* Whether to offer again what is left: the receiver has vanished, or its run before is not over
 * yet. */
static bool offers_again(struct sl_side_stream *stream, int err)
{
	struct sl_side *s = stream->side;
	bool too_early = err == -ECONNREFUSED && stream->gone &&
			 strstr(stream->exchange.client.refusal, "already started");

	if (err == -ECONNREFUSED)
		note_refusal(stream);
	if ((err != -EPIPE && !too_early) || s->options.once || atomic_load(&s->stop))
		return false;
	sl_warn("%s%sthe receiver is gone; offering again, from frame %llu on", stream->transfer,
		stream->transfer[0] ? ": " : "",
		(unsigned long long)sl_geometry_frame(&stream->emulator->geometry,
						      stream->emulator->frame));
	pthread_mutex_lock(&s->lock);
	stream->gone += !too_early;
	pthread_mutex_unlock(&s->lock);
	sl_side_forget_line(s);
	for (int ms = 0; ms < REOFFER_MS && !atomic_load(&s->stop); ms += NAP_MS)
		sl_clock_sleep_until(sl_clock_ns() + NAP_MS * UINT64_C(1000000));
	return true;
}

static int send_all(struct sl_side_stream *stream)
{
	struct sl_emulator *em = stream->emulator;
	int err;

	for (;;) {
		err = em->experiment->link->oneway ? sl_exchange_blindly(&stream->exchange)
						   : take_plan(stream);
		if (err || !sl_exchange_stays(&stream->exchange))
			hang_up(stream);
		if (err == -ERESTART && !atomic_load(&stream->side->stop)) {
			err = sl_emulator_rejoin(em);
			if (err)
				break;
			sl_info("gone, as asked for; coming back with frame %llu",
				(unsigned long long)sl_geometry_frame(&em->geometry, em->frame));
		} else if (!offers_again(stream, err)) {
			break;
		}
	}
	return err == -ENODATA || err == -ERESTART ? 0 : err;
}

static void *send_stream(void *arg)
{
	struct sl_side_stream *stream = arg;
	struct sl_side *s = stream->side;

	stream->err = send_all(stream);
	pthread_mutex_lock(&s->lock);
	stream->finished = true;
	stream->phase = SL_EXCHANGE_REST;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- a run ---- */

static int open_stream(struct sl_side *s, struct sl_side_stream *stream)
{
	int err = sl_side_open_stream(stream);

	if (err)
		return sl_side_fail(s, sl_error_code_of(err, SL_ERROR_EXPERIMENT), err,
				    strerror(-err));
	stream->exchange.emulator = stream->emulator;
	stream->exchange.stop = &s->stop;
	stream->exchange.hurry = &s->hurry;
	stream->exchange.abort = &s->abort;
	stream->exchange.hold = &s->hold;
	stream->exchange.quiet = s->options.quiet;
	stream->exchange.patient = true;
	stream->exchange.phase = enter;
	stream->exchange.arg = stream;
	return 0;
}

static int fail_of(struct sl_side *s, const struct sl_side_stream *stream)
{
	switch (stream->err) {
	case 0:
		return 0;
	case -EINTR:
	case -ECANCELED:
		return stream->begun ? 0
				     : sl_side_fail(s, SL_ERROR_STOPPED, -EINTR,
						    "stopped before it began");
	case -EPIPE:
		return sl_side_fail(s, SL_ERROR_RECEIVER, -EPIPE, "the receiver is gone");
	case -ECONNREFUSED:
	case -ETIMEDOUT:
	case -EPROTO:
		return sl_side_fail(s, SL_ERROR_RECEIVER, stream->err, strerror(-stream->err));
	default:
		return sl_side_fail(s, sl_error_code_of(stream->err, SL_ERROR_SYSTEM), stream->err,
				    strerror(-stream->err));
	}
}

/* What the receivers have said: good-bye, all is stored; or nothing. */
static int result_of(const struct sl_side *s)
{
	bool said = true;
	uint64_t frames = 0, bytes = 0;

	for (unsigned i = 0; i < s->streams; i++) {
		said &= !s->stream[i].err;
		frames += sl_side_sent(&s->stream[i], &bytes);
	}
	if (s->error.code)
		return SL_RESULT_ERROR;
	if (!said)
		return SL_RESULT_UNCLOSED;
	return frames ? SL_RESULT_INTACT : SL_RESULT_EMPTY;
}

static void conclude(struct sl_side *s)
{
	bool begun = false, stopped = false;

	for (unsigned i = 0; i < s->streams; i++) {
		begun |= s->stream[i].begun;
		fail_of(s, &s->stream[i]);
	}
	pthread_mutex_lock(&s->lock);
	stopped = s->error.code == SL_ERROR_STOPPED;
	s->result = result_of(s);
	s->ended_unix_ns = sl_clock_unix_ns();
	pthread_mutex_unlock(&s->lock);
	sl_log_left_out();
	sl_side_set_state(s, begun || stopped || !s->error.code ? SL_STATE_ENDED : SL_STATE_FAULT);
}

static void run(struct sl_side *s)
{
	unsigned started = 0;
	int err = 0;

	for (unsigned i = 0; i < s->streams && !err; i++)
		err = open_stream(s, &s->stream[i]);
	for (; started < s->streams && !err; started += !err) {
		err = sl_thread_start(&s->stream[started].thread, "stream", NULL, send_stream,
				      &s->stream[started]);
		if (err) {
			sl_side_fail(s, SL_ERROR_SYSTEM, err, strerror(-err));
			atomic_store(&s->stop, 1);
		}
	}
	for (unsigned i = 0; i < started; i++)
		sl_thread_join(&s->stream[i].thread);
	conclude(s);
}

void *sl_side_main(void *arg)
{
	struct sl_side *s = arg;
	bool wanted, closing;

	do {
		pthread_mutex_lock(&s->lock);
		while (!s->wanted && !s->closing)
			pthread_cond_wait(&s->changed, &s->lock);
		wanted = s->wanted;
		closing = s->closing;
		s->wanted = false;
		pthread_mutex_unlock(&s->lock);
		if (wanted)
			run(s);
	} while (!closing);
	return NULL;
}
