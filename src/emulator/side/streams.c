/* streams.c - the transfers of a detector side: experiments read, detectors opened, frames
 * counted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/side/private.h"

static void close_emulator(struct sl_side_stream *stream)
{
	struct sl_side *s = stream->side;
	struct sl_emulator *em = stream->emulator;

	sl_exchange_close(&stream->exchange);
	pthread_mutex_lock(&s->lock); /* the status looks no more */
	stream->emulator = NULL;
	stream->counting = stream->connected = false;
	pthread_mutex_unlock(&s->lock);
	if (em)
		sl_emulator_close(em);
}

void sl_side_free_streams(struct sl_side_stream *stream, unsigned streams)
{
	for (unsigned i = 0; i < streams; i++) {
		close_emulator(&stream[i]);
		if (stream[i].experiment)
			sl_experiment_close(stream[i].experiment);
		free(stream[i].before);
		free(stream[i].first);
	}
	free(stream);
}

static int read_experiment(const struct sl_side *s, struct sl_side_stream *stream)
{
	const char *const *set = (const char *const *)s->set, *name = stream->transfer;
	int err = stream->is_detector ? sl_experiment_open_one(s->options.path, name, set, s->sets,
							       &stream->experiment)
				      : sl_experiment_open(s->options.path, name[0] ? name : NULL,
							   set, s->sets, &stream->experiment);

	if (err || !stream->experiment->feedback.address[0])
		return err;
	sl_error("%s: a detector side that stays does not listen for answers: its account of them "
		 "is that of one run; leave --serve out",
		 s->options.path);
	return -EINVAL;
}

int sl_side_read(struct sl_side *s)
{
	const char *one = s->options.transfer, *const *set = (const char *const *)s->set;
	struct sl_detector_names detectors;
	struct sl_transfer_names names = {0};
	struct sl_side_stream *stream, *former;
	unsigned streams, n;
	int err = sl_experiment_detectors(s->options.path, set, s->sets, &detectors);

	if (!err && !detectors.n)
		err = sl_experiment_transfers(s->options.path, set, s->sets, &names);
	if (err)
		return err;
	streams = detectors.n ? detectors.n : one[0] || !names.n ? 1 : names.n;
	stream = calloc(streams, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	for (unsigned i = 0; i < streams && !err; i++) {
		stream[i].side = s;
		stream[i].phase = SL_EXCHANGE_REST;
		stream[i].is_detector = detectors.n;
		snprintf(stream[i].transfer, sizeof(stream[i].transfer), "%s",
			 detectors.n	      ? detectors.name[i]
			 : one[0] || !names.n ? one
					      : names.name[i]);
		err = read_experiment(s, &stream[i]);
	}
	if (err) {
		sl_side_free_streams(stream, streams);
		return err;
	}
	pthread_mutex_lock(&s->lock);
	former = s->stream;
	n = s->streams;
	s->stream = stream;
	s->streams = streams;
	pthread_mutex_unlock(&s->lock);
	sl_side_free_streams(former, n);
	return 0;
}

void sl_side_begin_stream(struct sl_side_stream *stream)
{
	const struct sl_emulator *em = stream->emulator;
	bool held;

	stream->begun = stream->finished = false;
	stream->gone = 0;
	stream->refusal[0] = '\0';
	stream->err = 0;
	for (uint32_t m = 0; m < stream->modules; m++)
		stream->before[m] = 0;
	for (unsigned k = 0; em && k < SL_FAULT_KINDS; k++)
		stream->faults_before[k] = atomic_load(&em->faults[k]);
	stream->held_before_ns = em ? sl_emulator_held_ns(em, &held) : 0;
}

/* What the status says of it does not change from now on. */
static int publish(struct sl_side_stream *stream, struct sl_emulator *em)
{
	uint32_t modules = em->end_module - em->first_module;
	uint64_t *before = calloc(modules, sizeof(*before));
	uint64_t *first = calloc(modules, sizeof(*first));

	if (!before || !first) {
		free(before);
		free(first);
		return -ENOMEM;
	}
	pthread_mutex_lock(&stream->side->lock);
	stream->before = before;
	stream->first = first;
	stream->modules = modules;
	stream->first_module = em->first_module;
	stream->module_bytes = em->geometry.module_bytes;
	stream->expected = sl_detector_frames(&em->experiment->run, &em->geometry);
	stream->emulator = em;
	pthread_mutex_unlock(&stream->side->lock);
	return 0;
}

int sl_side_open_stream(struct sl_side_stream *stream)
{
	const struct sl_side_options *o = &stream->side->options;
	struct sl_emulator *em;
	int err;

	if (stream->emulator) {
		sl_emulator_again(stream->emulator);
		return 0;
	}
	err = sl_emulator_open(stream->experiment, o->first_module, o->last_module, &em);
	if (err)
		return err;
	err = publish(stream, em);
	if (err)
		sl_emulator_close(em);
	return err;
}

uint64_t sl_side_module_sent(const struct sl_side_stream *stream, uint32_t module)
{
	const struct sl_emulator *em = stream->emulator;
	uint64_t sent = 0;

	if (stream->counting)
		sent = atomic_load(&em->module[stream->first_module + module].sent) -
		       stream->first[module];
	return stream->before[module] + sent;
}

uint64_t sl_side_sent(const struct sl_side_stream *stream, uint64_t *pixel_bytes)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t m = 0; m < stream->modules; m++) {
		uint64_t sent = sl_side_module_sent(stream, m);

		least = sent < least ? sent : least;
		*pixel_bytes += sent * stream->module_bytes;
	}
	return stream->modules ? least : 0;
}
