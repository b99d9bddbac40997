/* receiver.c - builds the receiving side, owns its threads, and takes it down in the right order.
 * */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/numa.h"
#include "receiver/receiver.h"

enum {
	BATCHES_MOST = 64, /* a bit each in dispatch.c */
	FRAMES_BEYOND_BATCHES = 16,
	FRAMES_DROPPED = 64, /* drop_oldest: runs of frames on their way to the settler */
	/* That a source without credits may claim beyond the slots. */
	OPEN_LOOP_FRAMES = SL_RING_AWAY / 2,
};

const char *sl_latency_name(enum sl_latency latency)
{
	static const char *const name[SL_LATENCIES] = {"wire", "assemble", "process",
						       "sink", "total",	   "decision"};

	return name[latency];
}

static int open_detector(struct sl_receive *r)
{
	struct sl_experiment *e = r->experiment;
	int err = e->detector->open(e->detector_state, &e->run, &r->geometry);

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
	r->env.same_clock = &r->same_clock;
	return 0;
}

static int open_ring(struct sl_receive *r)
{
	struct sl_experiment *e = r->experiment;
	struct sl_lines lines;
	uint64_t bytes;
	struct sl_assembler_options options = {
		.late_frames = e->ring.late_frames,
		.late_timeout_ns = e->ring.late_timeout_us
					   ? e->ring.late_timeout_us * UINT64_C(1000)
					   : e->ring.late_timeout_ms * UINT64_C(1000000),
		.require_crc = sl_experiment_crc(e),
		.frame_step = r->geometry.frame_step ? r->geometry.frame_step : 1,
		.dtype = r->geometry.dtype,
		.rows = r->geometry.rows,
		.columns = r->geometry.columns,
	};
	int err = sl_ring_run_lines(&e->ring, &r->geometry, &lines);

	if (err)
		return err;
	bytes = sl_ring_lines_bytes(e->ring.slots, r->geometry.modules, &lines);
	err = sl_receive_open_memory(r, bytes);
	if (err == -EINVAL || err == -ENOTSUP)
		return err; /* said there */
	if (err) {
		sl_error("no memory for a ring of %u slots (%.1f GB): %s; lower ring.slots, or "
			 "raise the "
			 "limit that is in the way (ulimit -v, -f for shm)",
			 e->ring.slots, (double)bytes * 1e-9, strerror(-err));
		return err;
	}
	if (e->ring.poison)
		sl_region_poison(&r->region);
	r->ring_node = r->placement.nodes > 1 ? sl_numa_of(r->region.base) : -1;
	err = sl_ring_init_lines(&r->ring, &r->region, &r->events, e->ring.slots,
				 r->geometry.modules, &lines);
	if (!err && e->ring.incomplete == SL_INCOMPLETE_KEEP) {
		r->fill = malloc(r->ring.record_at);
		err = r->fill ? 0 : -ENOMEM;
	}
	if (r->fill) {
		memset(r->fill, SL_FILL_BYTE, r->ring.record_at);
		/* -1 would be a measurement. */
		for (uint64_t i = 0; r->geometry.dtype == SL_I16 && i < r->ring.record_at / 2; i++)
			((int16_t *)r->fill)[i] = INT16_MIN;
		options.fill = r->fill;
	}
	if (!err)
		err = sl_ring_run_align(&e->ring, r->geometry.modules, &options.align);
	if (!err)
		sl_assembler_init(&r->assembler, &r->ring, &options);
	return err;
}

static int open_pollers(struct sl_receive *r)
{
	while (r->pollers < r->experiment->link_run.pollers) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0)
			return -errno;
		r->wake[r->pollers++].fd = fd;
	}
	return 0;
}

/* Where the file says that sources take no credits, those guard nothing. */
static uint32_t guards_of(const struct sl_receive *r)
{
	const struct sl_experiment *e = r->experiment;
	const struct sl_option *option = sl_option_find(e->link->options, "credits");
	bool credits = true;

	if (option && option->type == SL_OPTION_BOOL)
		memcpy(&credits, (const char *)e->link_state + option->offset, sizeof(credits));
	return credits ? e->link->guards : e->link->guards & ~(uint32_t)SL_GUARD_CREDITED;
}

static int open_link(struct sl_receive *r)
{
	struct sl_experiment *e = r->experiment;
	struct sl_link_env env = {
		.ring = &r->ring,
		.pollers = r->pollers,
		.wake = r->wake,
		.counters = &r->counters,
		.service = sl_experiment_service(e),
		.operation = sl_experiment_operation(e),
		.message = sl_experiment_message(e),
		.pmtu = sl_experiment_pmtu(e),
		.crc = sl_experiment_crc(e),
		.notes = r->notes.base,
	};
	int err, fd;

	if (r->heir_to) {
		fd = fcntl(r->heir_to->link_fd, F_DUPFD_CLOEXEC, 0);
		env.kept_fd = &fd;
	}
	r->link_open = true;
	err = e->link->open(e->link_state, &env);
	if (err)
		return err;
	sl_guard_name(guards_of(r), r->guard, sizeof(r->guard));
	r->env.link = e->link->name;
	r->env.guard = r->guard;
	r->env.proof = sl_proof_name(sl_experiment_crc(e)
					     ? SL_PROOF_CHECKSUM
					     : e->link->proof(env.service, env.message));
	return 0;
}

static int open_unit(struct sl_receive *r)
{
	struct sl_experiment *e = r->experiment;
	uint32_t at_a_time = e->unit->batches ? e->unit->batches(e->unit_state) : 1, frames;
	int err;

	/* One more is being filled. */
	r->n_batches = at_a_time < BATCHES_MOST ? at_a_time + 1 : BATCHES_MOST;
	frames = r->n_batches * e->unit_run.batch + FRAMES_BEYOND_BATCHES;
	r->env.batch_frames = e->unit_run.batch;
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
	err = sl_pool_init(&r->pool, frames, r->geometry.modules,
			   sl_geometry_frame_items(&r->geometry), r->build.result,
			   r->build.results);
	if (!err)
		err = sl_pool_init(&r->dropped, FRAMES_DROPPED, r->geometry.modules,
				   sl_geometry_frame_items(&r->geometry), NULL, 0);
	if (err) {
		sl_error("no memory for %u frames in flight; lower unit.batch", frames);
		return err;
	}
	if (e->unit->know && r->pool.results.base)
		e->unit->know(e->unit_state, r->pool.results.base, r->pool.results.bytes);
	if (e->unit->know && r->region.base)
		e->unit->know(e->unit_state, r->region.base, r->region.bytes);
	r->batches = calloc(r->n_batches, sizeof(*r->batches));
	for (unsigned i = 0; r->batches && i < r->n_batches; i++) {
		r->batches[i].capacity = e->unit_run.batch;
		r->batches[i].frame = calloc(e->unit_run.batch, sizeof(*r->batches[i].frame));
		if (!r->batches[i].frame)
			return -ENOMEM;
	}
	return r->batches ? sl_queue_init(&r->to_settle, frames + FRAMES_DROPPED) : -ENOMEM;
}

static int open_sinks(struct sl_receive *r)
{
	struct sl_experiment *e = r->experiment;

	r->env.experiment = e->text;
	sl_backs_init(&r->backs, e->control.token, sl_experiment_digest(e));
	atomic_store(&r->backs.idle, true);
	r->env.backs = &r->backs;
	for (unsigned i = 0; i < e->sinks; i++) {
		int err;

		r->sinks_open++; /* close() is due even when open() failed */
		err = e->sink[i]->open(e->sink_state[i], &r->env);
		if (err) {
			sl_error("sink '%s' cannot be opened: %s", e->sink[i]->name,
				 strerror(-err));
			r->sink_error[i] = err;
			return err;
		}
	}
	return 0;
}

static int open_outcomes(struct sl_receive *r, const char *path)
{
	if (!path)
		return 0;
	r->outcomes = fopen(path, "w");
	if (r->outcomes)
		return 0;
	sl_error("cannot write the outcome log '%s': %s", path, strerror(errno));
	return -errno;
}

/* All that holds memory for data. Pages are touched here, so that they come from the node that the
 * calling thread prefers. */
static int open_memory(struct sl_receive *r)
{
	int node = r->experiment->threads.numa ? r->placement.node : -1;
	int preferred = node >= 0 ? sl_numa_prefer(node) : -EINVAL;
	int err = open_pollers(r);

	if (!err)
		err = open_detector(r);
	if (!err)
		err = open_ring(r);
	if (!err)
		err = open_link(r);
	if (!err)
		err = open_unit(r);
	if (!preferred)
		sl_numa_forget();
	return err;
}

static int open_all(struct sl_experiment *experiment, const char *outcomes_path, bool kept,
		    const struct sl_estate *estate, struct sl_receive **receive)
{
	struct sl_receive *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	int err;

	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	r->experiment = experiment;
	r->same_clock = true; /* until an offer comes from elsewhere */
	atomic_store(&r->limit, UINT64_MAX);
	r->outlives = kept;
	r->heir_to = estate;
	r->region.fd = r->notes.fd = -1;
	r->pool.results.fd = r->dropped.results.fd = -1;
	err = sl_ledger_init(&r->ledger, experiment->run.modules);
	if (!err)
		err = sl_placement_receiver(experiment, "", &r->placement);
	if (!err)
		err = open_memory(r);
	if (!err)
		err = open_outcomes(r, outcomes_path);
	/* Files last: nothing is left behind by a run that could not begin. */
	if (!err)
		err = open_sinks(r);
	if (err) {
		sl_receive_close(r);
		return err;
	}
	atomic_store(&r->ledger.source_alive, experiment->run.modules);
	*receive = r;
	return 0;
}

int sl_receive_open(struct sl_experiment *experiment, const char *outcomes_path,
		    struct sl_receive **receive)
{
	return open_all(experiment, outcomes_path, false, NULL, receive);
}

int sl_receive_open_kept(struct sl_experiment *experiment, const char *outcomes_path,
			 const struct sl_estate *estate, struct sl_receive **receive)
{
	return open_all(experiment, outcomes_path, true, estate, receive);
}

/* What the experiment wants of a transfer and the front end does not offer, with the key that would
 * change it. */
static bool offer_lacks(const struct sl_receive *r, const struct sl_offer *offer, char *why,
			size_t why_bytes)
{
	const struct sl_experiment *e = r->experiment;
	const char *what = NULL;

	if (!(offer->services & sl_experiment_service(e)))
		what = e->link_run.service ? "service: rc" : "service: uc";
	else if (!(offer->operations & sl_experiment_operation(e)))
		what = e->link_run.operation ? "operation: send" : "operation: write";
	else if (!(offer->messages & sl_experiment_message(e)))
		what = sl_experiment_message(e) == SL_MESSAGE_MODULE ? "message: module"
		       : sl_experiment_message(e) == SL_MESSAGE_LINE ? "message: line"
								     : "message: packet";
	else if (offer->max_pmtu < 256 && !e->link->oneway)
		what = "a PMTU of 256 at least";
	if (what)
		snprintf(why, why_bytes, "it does not offer what is set here: link {%s}", what);
	return what != NULL;
}

/* Where a block is placed line by line, both must mean the same lines. */
static bool lines_differ(const struct sl_receive *r, const struct sl_offer *offer, char *why,
			 size_t why_bytes)
{
	const struct sl_lines *lines = &r->ring.lines;

	if (!lines->pitch && sl_experiment_message(r->experiment) != SL_MESSAGE_LINE)
		return false;
	if (offer->lines &&
	    (!lines->pitch || (offer->lines == lines->count && offer->line_bytes == lines->bytes)))
		return false;
	snprintf(why, why_bytes,
		 "its blocks have %u lines of %u bytes, here they have %u of %u (ring.line_pitch, "
		 "link.message: line)",
		 offer->lines, offer->line_bytes, lines->count, lines->bytes);
	return true;
}

/* Shared memory has its credits elsewhere. */
static bool is_open_loop(const struct sl_receive *r, const struct sl_offer *offer)
{
	const struct sl_link *link = r->experiment->link;

	return link->oneway || (!offer->credit_va && !strcmp(link->wire, "roce"));
}

/* ring.overrun says what to do with a source for which there is no room, and this one would never
 * be treated so. */
static bool policy_lacks(const struct sl_receive *r, const struct sl_offer *offer, char *why,
			 size_t why_bytes)
{
	const struct sl_experiment *e = r->experiment;
	/* Over RC our own responder, or a NIC without a posted receive, tells it to come again. */
	bool asked = sl_experiment_service(e) == SL_SERVICE_RC &&
		     ((e->link->guards & SL_GUARD_ENFORCED) ||
		      sl_experiment_operation(e) == SL_OPERATION_SEND);
	bool waits = asked || !is_open_loop(r, offer);

	if (e->ring.overrun == SL_OVERRUN_PAUSE && !waits)
		snprintf(why, why_bytes,
			 "it takes no credits and cannot be paused; set ring.overrun to stop, "
			 "drop_newest or drop_oldest");
	else if (e->ring.overrun == SL_OVERRUN_DROP_NEWEST && waits)
		snprintf(why, why_bytes,
			 "it waits until there is room, so that drop_newest would never drop "
			 "anything; set ring.overrun to pause, stop or drop_oldest");
	else
		return false;
	return true;
}

/* The plan is known, and the source goes by it. */
static int adopt_transfer(struct sl_receive *r, const struct sl_offer *offer,
			  const struct sl_plan *plan)
{
	int kept = r->heir_to->transfer[offer->module].fd;
	int fd = kept < 0 ? -1 : fcntl(kept, F_DUPFD_CLOEXEC, 0);
	int err = r->experiment->link->adopt(r->experiment->link_state, offer, plan, fd);

	if (err && fd >= 0)
		close(fd);
	return err;
}

int sl_receive_accept(struct sl_receive *r, const struct sl_offer *offer, bool same_host,
		      struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct sl_experiment *e = r->experiment;
	uint64_t block_bytes = offer->bare ? r->ring.pixel_bytes : r->ring.block_bytes;
	struct sl_source_status *s = &r->source[offer->module];
	struct sl_offer placed = *offer;
	int err;

	if (offer->block_bytes != block_bytes) {
		snprintf(why, why_bytes, "its blocks have %llu bytes, here they have %llu",
			 (unsigned long long)offer->block_bytes, (unsigned long long)block_bytes);
		return -EINVAL;
	}
	for (uint32_t m = 0; m < r->ring.modules; m++)
		if (e->ring.align == SL_ALIGN_SEQUENCE && r->source[m].accepted &&
		    r->assembler.options.first_frame != offer->first_frame) {
			snprintf(why, why_bytes, "it begins with frame %llu, the others with %llu",
				 (unsigned long long)offer->first_frame,
				 (unsigned long long)r->assembler.options.first_frame);
			return -EINVAL;
		}
	if (offer_lacks(r, offer, why, why_bytes) || lines_differ(r, offer, why, why_bytes) ||
	    policy_lacks(r, offer, why, why_bytes))
		return -EINVAL;
	if (r->started)
		err = sl_rejoin_begin(r, offer->module, offer->first_frame, why, why_bytes);
	else
		err = 0;
	if (err)
		return err;
	placed.first_sequence = r->source[offer->module].end;
	err = r->heir_to ? adopt_transfer(r, offer, plan)
			 : e->link->accept(e->link_state, &placed, plan);
	if (err) {
		snprintf(why, why_bytes, "link '%s' does not take the offer (%s)", e->link->name,
			 strerror(-err));
		return err;
	}
	s->offer = *offer;
	s->plan = *plan;
	r->plans++;
	s->transfer = plan->transfer;
	s->accepted = true;
	s->dropped = false;
	s->first_sequence = s->end;
	s->offered = offer->frames && offer->frames < UINT64_MAX - s->end ? s->end + offer->frames
									  : 0;
	s->open_loop = is_open_loop(r, offer);
	r->same_clock &= same_host;
	if (r->started) {
		sl_rejoin_end(r, offer->module);
		return 0;
	}
	r->assembler.options.first_frame = offer->first_frame;
	if (s->open_loop && !(e->link->guards & SL_GUARD_ENFORCED))
		r->assembler.options.unguarded |= UINT64_C(1) << offer->module;
	sl_assembler_begin(&r->assembler, offer->module, 0, offer->first_frame);
	return 0;
}

void sl_receive_withdraw(struct sl_receive *r, uint16_t transfer)
{
	for (uint32_t m = 0; m < r->ring.modules; m++)
		if (r->source[m].accepted && r->source[m].transfer == transfer) {
			sl_rejoin_drop(r, m);
			r->source[m].accepted = false;
		}
}

int sl_receive_meet(struct sl_receive *r, uint16_t transfer, uint32_t qpn)
{
	const struct sl_link *link = r->experiment->link;

	for (uint32_t m = 0; m < r->ring.modules; m++)
		if (r->source[m].accepted && r->source[m].transfer == transfer)
			r->source[m].plan.credit_qpn = qpn;
	return link->meet ? link->meet(r->experiment->link_state, transfer, qpn) : -ENOTSUP;
}

void sl_receive_serve(struct sl_receive *r)
{
	if (r->experiment->link->serve)
		r->experiment->link->serve(r->experiment->link_state);
}

/* Counts are outside input. A source that may send only what it was granted cannot have sent
 * more than that, so a lie costs at most a ring of frames; one that takes no credits may have lost
 * more, or any have left out more, but not without bounds. */
static const char *count_problem(const struct sl_receive *r, uint32_t module, uint64_t next,
				 uint64_t sent, uint64_t position)
{
	const struct sl_source_status *s = &r->source[module];
	uint64_t granted = sl_ring_opened(&r->ring, module);

	if (s->open_loop)
		granted += OPEN_LOOP_FRAMES;
	else if (sent <= next) /* no credit is needed to leave frames out */
		granted += next - sent < OPEN_LOOP_FRAMES ? next - sent : OPEN_LOOP_FRAMES;
	if (next < atomic_load_explicit(&s->next, memory_order_relaxed) ||
	    sent < atomic_load_explicit(&r->ledger.tally[module].sent, memory_order_relaxed))
		return "it takes back what it said";
	if (sent > next)
		return "it sent more than there was";
	if (s->offered && next > s->offered)
		return "it sent more than it offered";
	if ((r->experiment->link->guards & SL_GUARD_CREDITED) &&
	    (next > granted || s->first_sequence + position / r->ring.block_bytes > granted))
		return "it sent more than it was granted";
	return NULL;
}

int sl_receive_count(struct sl_receive *r, uint32_t module, uint64_t next, uint64_t sent,
		     uint64_t position, bool final, char *why, size_t why_bytes)
{
	struct sl_source_status *s = &r->source[module];
	const char *problem = count_problem(r, module, next, sent, position);

	if (problem) {
		snprintf(why, why_bytes, "module %u: a count that cannot be true: %s", module,
			 problem);
		return -EPROTO;
	}
	sl_ledger_report(&r->ledger, module, sent);
	sl_ledger_skip(&r->ledger, module, next - sent);
	atomic_store_explicit(&s->next, next, memory_order_release);
	r->experiment->link->reported(r->experiment->link_state, s->transfer, position);
	if (final) {
		atomic_fetch_sub(&r->ledger.source_alive, 1);
		atomic_store_explicit(&s->state, SL_SOURCE_DONE, memory_order_release);
	}
	sl_bell_ring(&r->events);
	return 0;
}

void sl_receive_gone(struct sl_receive *r, uint32_t module)
{
	atomic_fetch_sub(&r->ledger.source_alive, 1);
	atomic_fetch_add(&r->ledger.source_died, 1);
	atomic_store_explicit(&r->source[module].state, SL_SOURCE_GONE, memory_order_release);
	sl_bell_ring(&r->events);
}

void sl_receive_limit(struct sl_receive *r, uint64_t sequence)
{
	atomic_store_explicit(&r->limit, sequence, memory_order_relaxed);
}

void sl_receive_end(struct sl_receive *r, uint32_t module)
{
	atomic_fetch_sub(&r->ledger.source_alive, 1);
	atomic_store_explicit(&r->source[module].state, SL_SOURCE_ENDED, memory_order_release);
	sl_bell_ring(&r->events);
}

void sl_receive_cut(struct sl_receive *r, uint32_t module)
{
	r->source[module].cut = true;
	sl_rejoin_drop(r, module);
	sl_receive_end(r, module);
}

uint64_t sl_receive_idle(const struct sl_receive *r)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < r->pollers; i++) {
		uint64_t idle = atomic_load_explicit(&r->link_idle[i], memory_order_relaxed);

		least = idle < least ? idle : least;
	}
	return least;
}

void sl_receive_progress(const struct sl_receive *r, uint32_t module,
			 struct sl_receive_progress *progress)
{
	uint64_t reached = sl_ring_reached(&r->ring, module);

	*progress = (struct sl_receive_progress){
		.reached = reached,
		.packets = reached ? sl_ring_packets(&r->ring, reached - 1, module) : 0,
		.opened = sl_ring_opened(&r->ring, module),
		.idle = sl_receive_idle(r),
	};
}

uint64_t sl_receive_turned_away(const struct sl_receive *r)
{
	uint64_t sum = 0;

	for (uint32_t m = 0; m < r->ring.modules; m++)
		sum += atomic_load_explicit(&r->ring.lane[m].turned_away, memory_order_relaxed);
	return sum;
}

bool sl_receive_done(const struct sl_receive *r)
{
	return atomic_load(&r->settled);
}

/* ledger: NULL when the run never began. */
static int close_sinks(struct sl_receive *r, const struct sl_ledger *ledger)
{
	struct sl_experiment *e = r->experiment;
	int first = 0;

	for (unsigned i = 0; i < r->sinks_open; i++) {
		int err = e->sink[i]->close(e->sink_state[i], ledger);

		if (err && !r->sink_error[i])
			r->sink_error[i] = err;
		if (err && !first)
			first = err;
	}
	r->sinks_open = 0;
	return first;
}

int sl_receive_finish(struct sl_receive *r)
{
	int err;

	sl_receive_join(r);
	err = close_sinks(r, &r->ledger);
	sl_settle_pending(r, err ? SL_UNWRITTEN : SL_STORED, err ? SL_CAUSE_SINK : SL_CAUSE_NONE);
	if (r->outcomes && fclose(r->outcomes) != 0) {
		sl_error("the outcome log could not be written whole: %s", strerror(errno));
		r->outcomes_failed = true;
	}
	r->outcomes = NULL;
	return err;
}

void sl_receive_close(struct sl_receive *r)
{
	struct sl_experiment *e = r->experiment;

	atomic_store(&r->abandon, 1);
	sl_bell_ring(&r->events);
	sl_receive_join(r);
	close_sinks(r, NULL);
	if (r->outcomes)
		fclose(r->outcomes);
	free(r->pending);
	sl_queue_fini(&r->to_settle);
	for (unsigned i = 0; r->batches && i < r->n_batches; i++)
		free(r->batches[i].frame);
	free(r->batches);
	if (r->unit_open) /* before the memory goes that it knows of */
		e->unit->close(e->unit_state);
	sl_pool_fini(&r->pool);
	sl_pool_fini(&r->dropped);
	free(r->fill);
	sl_chain_close(&r->build);
	if (r->link_open)
		e->link->close(e->link_state);
	sl_ring_fini(&r->ring);
	if (r->region.base)
		sl_region_close(&r->region);
	if (r->notes.base)
		sl_region_close(&r->notes);
	sl_calibrated_free(&r->calibrated);
	if (r->detector_open)
		e->detector->close(e->detector_state);
	for (unsigned i = 0; i < r->pollers; i++)
		close(r->wake[i].fd);
	sl_ledger_fini(&r->ledger);
	free(r);
}
