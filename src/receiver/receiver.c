/* receiver.c - opens all parts of the receiving side, and finishes and closes them in the right
 * order. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/part_file.h"
#include "base/host/room.h"
#include "base/log.h"
#include "core/numa.h"
#include "receiver/private.h"

enum {
	BATCHES_MOST = 64, /* a bit each in dispatch.c */
	FRAMES_BEYOND_BATCHES = 16,
	FRAMES_DROPPED = 64, /* drop_oldest: runs of frames on their way to the settler */
};

static uint64_t bright_frames(const struct sl_detector_options *run, const struct sl_geometry *g)
{
	uint64_t all = sl_detector_frames(run, g);

	return all != UINT64_MAX && all > run->dark_frames ? all - run->dark_frames : 0;
}

static int open_detector(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;
	int err = sl_experiment_open_detector(e, &r->geometry);

	r->detector_open = true; /* close() is due even when open() failed */
	if (err) {
		sl_error("detector '%s' cannot be opened: %s", e->detector->name, strerror(-err));
		return err;
	}
	err = sl_calibrate(e, &r->geometry, &r->calibrated, &r->calibration);
	if (err < 0)
		return err;
	if (err > 0)
		r->env.calibration = &r->calibration;
	r->env.geometry = &r->geometry;
	r->env.detector = e->detector;
	r->env.detector_state = e->detector_state;
	r->env.frame_rate_Hz = e->run.frame_rate_Hz;
	r->env.frames = bright_frames(&e->run, &r->geometry);
	r->env.metadata = e->metadata;
	/* Dark frames come first, by the detector's own count. */
	e->goniometer.first_frame = e->cut.generator_options.dark_frames;
	if (e->goniometer.axes)
		r->env.goniometer = &e->goniometer;
	r->env.same_clock = (const bool *)&r->same_clock; /* as public headers have it */
	return 0;
}

/* Of detectors that attach to events: what their rings and links need to know. */
static int open_other(struct sl_receiver *r, unsigned d)
{
	struct sl_experiment *e = sl_receiver_experiment(r, d);
	int err = sl_experiment_open_detector(e, &r->memory[d].geometry);

	r->memory[d].detector_open = true; /* likewise */
	if (err)
		sl_error("detector '%s' cannot be opened: %s", r->experiment->other[d - 1].name,
			 strerror(-err));
	return err;
}

/* For stages and sinks. */
static void describe_others(struct sl_receiver *r)
{
	uint32_t first = r->geometry.modules;

	for (unsigned i = 0; i < r->experiment->others; i++) {
		const struct sl_geometry *g = &r->memory[i + 1].geometry;

		r->other[i] = (struct sl_env_detector){
			.name = r->experiment->other[i].name, .geometry = g, .first_module = first};
		first += g->modules;
	}
	r->env.other = r->other;
	r->env.others = r->experiment->others;
}

static int open_detectors(struct sl_receiver *r)
{
	int err = open_detector(r);

	for (unsigned d = 1; d <= r->experiment->others && !err; d++)
		err = open_other(r, d);
	if (!err)
		describe_others(r);
	return err;
}

/* Each detector has threads of its own. */
static int open_pollers(struct sl_receiver *r)
{
	unsigned pollers = r->placement.pollers + r->experiment->others;

	if (pollers > SL_POLLERS) {
		sl_error("%u link threads are too many: %d is the most, and each detector has its "
			 "own; lower link.pollers",
			 pollers, SL_POLLERS);
		return -EINVAL;
	}
	if (r->experiment->flight.record && sl_flight_open(pollers, &r->flight))
		return -ENOMEM;
	while (r->pollers < pollers) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0)
			return -errno;
		r->wake[r->pollers++].fd = fd;
	}
	return 0;
}

int sl_receiver_open_unit(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;
	uint32_t batch = e->unit_options.batch, at_a_time, frames;
	char what[64];
	int err;

	if (e->unit->choose_workers)
		e->unit->choose_workers(e->unit_state, r->placement.workers);
	at_a_time = e->unit->batches ? e->unit->batches(e->unit_state, batch) : 1;
	/* One more is being filled. */
	r->n_batches = at_a_time < BATCHES_MOST ? at_a_time + 1 : BATCHES_MOST;
	frames = r->n_batches * batch + FRAMES_BEYOND_BATCHES;
	r->env.batch_frames = batch;
	r->env.pool_frames = frames;
	err = sl_chain_open(e, &r->env, &r->build);
	if (err)
		return err;
	r->env.result = r->build.result;
	r->env.results = r->build.results;
	r->env.constant = r->build.constant;
	r->env.constants = r->build.constants;
	r->unit_open = true;
	err = e->unit->open(e->unit_state, &r->build.chain, &r->todo, &r->events, &r->workers);
	if (err) {
		sl_error("unit '%s' cannot be opened: %s", e->unit->name, strerror(-err));
		return err;
	}
	frames += sl_sink_pace_drop_frames(r);
	snprintf(what, sizeof(what), "a pool of %u frames", frames);
	if (!sl_room_for(what, sl_pool_bytes(frames, r->build.result, r->build.results),
			 "make unit.batch smaller, or raise the limit"))
		return -ENOMEM;
	err = sl_pool_init(&r->pool, frames, r->modules, r->feeds,
			   sl_geometry_frame_items(&r->geometry), r->build.result,
			   r->build.results);
	if (!err)
		err = sl_pool_init(&r->dropped, FRAMES_DROPPED, r->modules, r->feeds,
				   sl_geometry_frame_items(&r->geometry), NULL, 0);
	if (err) {
		sl_error("no memory for %u frames in flight; lower unit.batch", frames);
		return err;
	}
	if (e->unit->know && r->pool.results.base)
		e->unit->know(e->unit_state, r->pool.results.base, r->pool.results.bytes);
	for (unsigned d = 0; e->unit->know && d < r->feeds; d++)
		if (r->memory[d].region.base)
			e->unit->know(e->unit_state, r->memory[d].region.base,
				      r->memory[d].region.bytes);
	r->batches = calloc(r->n_batches, sizeof(*r->batches));
	for (unsigned i = 0; r->batches && i < r->n_batches; i++) {
		r->batches[i].capacity = e->unit_options.batch;
		r->batches[i].frame = calloc(e->unit_options.batch, sizeof(*r->batches[i].frame));
		if (!r->batches[i].frame)
			return -ENOMEM;
	}
	return r->batches ? sl_queue_init(&r->to_settle, frames + FRAMES_DROPPED) : -ENOMEM;
}

/* It is given frames on the data thread. */
static bool is_prompt(const struct sl_experiment *e, unsigned sink)
{
	const struct sl_sink *s = e->sink[sink];

	if (!e->threads.together || (s->own_thread && s->own_thread(e->sink_state[sink])))
		return false;
	return s->prompt && s->prompt(e->sink_state[sink]);
}

static int open_sinks(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;
	int err;

	r->env.experiment = e->text;
	sl_experiment_name(e->config->file ? e->config->file : "", e->transfer, r->name,
			   sizeof(r->name));
	r->env.name = r->name;
	sl_feedback_senders_init(&r->feedback, e->control.token, sl_experiment_digest(e));
	__atomic_store_n(&r->feedback.idle, true, __ATOMIC_SEQ_CST);
	r->env.feedback = &r->feedback;
	for (unsigned i = 0; i < e->sinks; i++) {
		if (is_prompt(e, i))
			r->prompt |= UINT32_C(1) << i;
		r->sink_wants[i] = sl_sink_wants(e->sink[i], e->sink_state[i]);
		r->sink_optional[i] = e->sink[i]->required &&
				      !e->sink[i]->required(e->sink_state[i]);
		r->sinks_open++; /* close() is due even when open() failed */
		err = e->sink[i]->open(e->sink_state[i], &r->env);
		if (err) {
			sl_error("sink '%s' cannot be opened: %s", e->sink[i]->name,
				 strerror(-err));
			r->sink_error[i] = err;
			return err;
		}
	}
	err = sl_forecast_make(r);
	return err ? err : sl_sink_threads_open(r);
}

static int open_outcomes(struct sl_receiver *r, const char *path)
{
	int fd;

	if (!path)
		return 0;
	fd = sl_output_open(path);
	if (fd < 0)
		return fd;
	r->outcomes_path = strdup(path);
	r->outcomes = r->outcomes_path ? fdopen(fd, "w") : NULL;
	if (r->outcomes)
		return 0;
	close(fd);
	return -ENOMEM;
}

/* All that holds memory for data. Pages are touched here, so that they come from the node that the
 * calling thread prefers. */
static int open_memory(struct sl_receiver *r)
{
	int node = r->experiment->threads.numa ? r->placement.node : -1;
	int preferred = node >= 0 ? sl_numa_prefer(node) : -EINVAL;
	int err = open_pollers(r);

	if (!err)
		err = open_detectors(r);
	if (!err)
		err = sl_receiver_open_ring(r);
	if (!err)
		err = sl_receiver_open_link(r);
	if (!err)
		err = sl_receiver_open_unit(r);
	if (!preferred)
		sl_numa_forget();
	return err;
}

void sl_receiver_begin_run(struct sl_receiver *r)
{
	memset((char *)r + offsetof(struct sl_receiver, guard), 0,
	       sizeof(*r) - offsetof(struct sl_receiver, guard));
	atomic_store(&r->same_clock, true); /* until an offer comes from elsewhere */
	for (unsigned d = 0; d < SL_FEEDS; d++) {
		atomic_store(&r->feed[d].limit, UINT64_MAX);
		atomic_store(&r->feed[d].pause_limit, UINT64_MAX);
	}
	r->resting = false;
}

/* Files last: a run that could not begin leaves none behind. */
int sl_receiver_open_outputs(struct sl_receiver *r, const char *outcomes_path)
{
	int err = open_outcomes(r, outcomes_path);

	if (!err)
		err = open_sinks(r);
	if (err)
		return err;
	for (uint32_t m = 0; m < r->modules; m++)
		atomic_store(&r->source[m].state, SL_SOURCE_RUNNING);
	atomic_store(&r->ledger.source_alive, r->modules);
	sl_figures_take_unit(r);
	sl_figures_take_sinks(r);
	atomic_store(&r->state, SL_STATE_CONFIGURED);
	return 0;
}

static int open_all(struct sl_experiment *experiment, const char *outcomes_path, bool kept,
		    const struct sl_handover *handover, struct sl_receiver **receiver)
{
	struct sl_receiver *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	int err;

	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->experiment = experiment;
	r->outlives = kept;
	r->handover_from = handover;
	r->memory[0].region.fd = r->notes.fd = -1;
	r->pool.results.fd = r->dropped.results.fd = -1;
	sl_receiver_begin_run(r);
	err = sl_receiver_keep_links(r);
	if (!err)
		err = sl_ledger_init(&r->ledger, sl_experiment_modules(experiment));
	if (!err)
		err = sl_placement_receiver(experiment, "", &r->placement);
	if (!err)
		err = open_memory(r);
	if (!err)
		err = sl_receiver_open_outputs(r, outcomes_path);
	if (err) {
		sl_receiver_close(r);
		return err;
	}
	*receiver = r;
	return 0;
}

int sl_receiver_open(struct sl_experiment *experiment, const char *outcomes_path,
		     struct sl_receiver **receiver)
{
	return open_all(experiment, outcomes_path, false, NULL, receiver);
}

int sl_receiver_open_handover(struct sl_experiment *experiment, const char *outcomes_path,
			      const struct sl_handover *handover, struct sl_receiver **receiver)
{
	return open_all(experiment, outcomes_path, true, handover, receiver);
}

void sl_receiver_set_metadata(struct sl_receiver *r, const struct sl_env_metadata *metadata)
{
	r->env.metadata = metadata;
}

void sl_receiver_serve(struct sl_receiver *r)
{
	sl_begins_tell(r, sl_clock_ns());
	for (unsigned d = 0; d < r->feeds; d++)
		if (r->feed[d].link->receiving->serve)
			r->feed[d].link->receiving->serve(r->feed[d].link_state);
}

struct sl_flight_tap *sl_receiver_taps(const struct sl_receiver *r, unsigned *taps)
{
	*taps = r->flight ? r->pollers : 0;
	return r->flight;
}

bool sl_receiver_plan(const struct sl_receiver *r, uint32_t module, struct sl_plan *plan)
{
	if (module >= r->modules || !atomic_load(&r->source[module].accepted))
		return false;
	*plan = r->source[module].plan;
	return true;
}

bool sl_receiver_done(const struct sl_receiver *r)
{
	return atomic_load(&r->settled);
}

/* status: NULL when the run never began. Returns the first error of a required sink. */
static int close_sinks(struct sl_receiver *r, const struct sl_status *status)
{
	struct sl_experiment *e = r->experiment;
	int first = 0;

	for (unsigned i = 0; i < r->sinks_open; i++) {
		int err = e->sink[i]->close(e->sink_state[i], status);

		if (err && !r->sink_error[i])
			r->sink_error[i] = err;
		if (err && !first && !r->sink_optional[i])
			first = err;
	}
	r->sinks_open = 0;
	return first;
}

/* All batches are back, and no worker is at work. */
static void conclude_stages(struct sl_receiver *r)
{
	struct sl_chain *chain = &r->build.chain;

	if (r->experiment->unit->settle)
		r->experiment->unit->settle(r->experiment->unit_state);
	for (unsigned s = 0; s < chain->stages; s++)
		if (chain->stage[s].ops->conclude)
			chain->stage[s].ops->conclude(chain->stage[s].state);
}

int sl_receiver_finish(struct sl_receiver *r)
{
	int err;

	sl_receiver_join(r);
	sl_figures_take_unit(r);
	sl_figures_take_sinks(r);
	sl_receiver_status(r, &r->at_end);
	conclude_stages(r);
	err = close_sinks(r, &r->at_end);
	sl_settle_pending(r, err ? SL_UNWRITTEN : SL_STORED, err ? SL_CAUSE_SINK : SL_CAUSE_NONE);
	sl_outcomes_end(r);
	atomic_store(&r->safe, !err);
	sl_figures_take_unit(r);
	sl_figures_take_sinks(r);
	atomic_store(&r->state, SL_STATE_ENDED);
	return err;
}

static void close_feed(struct sl_feed *f)
{
	if (f->link_open)
		f->link->close(f->link_state);
	f->link_open = false;
	sl_ring_fini(&f->ring);
}

void sl_receiver_close_run(struct sl_receiver *r)
{
	atomic_store(&r->abandon, 1);
	sl_dispatcher_wake(r);
	sl_receiver_join(r);
	sl_receiver_join_link(r);
	sl_dispatcher_close(r->dispatcher);
	r->dispatcher = NULL;
	close_sinks(r, NULL);
	sl_sink_threads_close(r);
	sl_outcomes_close(r);
	for (unsigned d = 0; d < r->feeds; d++)
		close_feed(&r->feed[d]);
	sl_ledger_fini(&r->ledger);
}

/* Before the memory goes that the unit knows of. */
void sl_receiver_close_unit(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;

	sl_queue_fini(&r->to_settle);
	for (unsigned i = 0; r->batches && i < r->n_batches; i++)
		free(r->batches[i].frame);
	free(r->batches);
	r->batches = NULL;
	if (r->unit_open)
		e->unit->close(e->unit_state);
	r->unit_open = false;
	sl_pool_fini(&r->pool);
	sl_pool_fini(&r->dropped);
	sl_chain_close(&r->build);
}

void sl_receiver_close(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;

	if (!r->resting)
		sl_receiver_close_run(r);
	sl_receiver_close_unit(r);
	for (unsigned d = 0; d < SL_FEEDS; d++) {
		free(r->memory[d].fill);
		free(r->memory[d].link_options);
		if (r->memory[d].region.base)
			sl_region_close(&r->memory[d].region);
	}
	if (r->notes.base)
		sl_region_close(&r->notes);
	sl_calibrated_free(&r->calibrated);
	if (r->detector_open)
		e->detector->close(e->detector_state);
	for (unsigned d = 1; d <= e->others; d++)
		if (r->memory[d].detector_open) {
			struct sl_experiment *other = sl_receiver_experiment(r, d);

			other->detector->close(other->detector_state);
		}
	for (unsigned i = 0; i < r->pollers; i++)
		close(r->wake[i].fd);
	sl_flight_close(r->flight);
	free(r);
}
