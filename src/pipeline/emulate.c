/* emulate.c - frames out of a synthetic detector, onto a link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/datathread.h"
#include "base/log.h"
#include "frontend/descriptor.h"
#include "pipeline/emulate.h"

enum {
	WAIT_US = 1000,
	SEQUENCE_MAX = INT32_MAX, /* that a plan may begin with */
	BURST = 32,		  /* writes of one module before the next has its turn */
	NAP_NS = 50 * 1000 * 1000,
	THREADS = 1, /* that send */
};

static int open_fault_log(struct sl_emulate *em)
{
	const struct sl_fault_options *o = &em->experiment->faults;
	const char *transfer = em->experiment->transfer;
	char path[sizeof(o->fault_log) + SL_STREAM_NAME + 1];

	if (sl_fault_options_any(o)) {
		em->faults = calloc(1, sizeof(*em->faults));
		if (!em->faults)
			return -ENOMEM;
		sl_faults_init(em->faults, o);
	}
	switch (sl_faults_restart_of(o, em->first_module, em->end_module, em->geometry.modules)) {
	case 0:
		break;
	case 1:
		em->restart = true;
		break;
	default:
		sl_error("frontend.restart_after: a front end goes away as a whole, and others go "
			 "on: give the modules in frontend.fault_modules one of their own "
			 "(--modules)");
		return -EINVAL;
	}
	if (!o->fault_log[0])
		return 0;
	/* Transfers of one file have one front end, and a log each. */
	snprintf(path, sizeof(path), "%s%s%s", o->fault_log, transfer[0] ? "." : "", transfer);
	em->fault_log = fopen(path, "w");
	if (em->fault_log)
		return 0;
	sl_error("cannot write frontend.fault_log '%s': %s", path, strerror(errno));
	return -errno;
}

static int open_modules(struct sl_emulate *em)
{
	em->module = calloc(em->geometry.modules, sizeof(*em->module));
	for (uint32_t m = em->first_module; em->module && m < em->end_module; m++)
		for (unsigned i = 0; i < SL_EMULATE_DEPTH; i++) {
			em->module[m].frame[i].buffer = malloc(em->geometry.module_bytes);
			if (!em->module[m].frame[i].buffer)
				return -ENOMEM;
		}
	return em->module ? 0 : -ENOMEM;
}

/* How many writes a block takes is known when there is a plan. */
static int make_writes(struct sl_emulate_module *module)
{
	module->writes = sl_descriptor_count(&module->plan);
	for (unsigned i = 0; i < SL_EMULATE_DEPTH; i++) {
		free(module->frame[i].write);
		module->frame[i].write = calloc(module->writes, sizeof(*module->frame[i].write));
		if (!module->frame[i].write)
			return -ENOMEM;
	}
	return 0;
}

static int choose_modules(struct sl_emulate *em, uint32_t first, uint32_t last)
{
	uint32_t modules = em->geometry.modules;

	if (last == UINT32_MAX)
		last = modules - 1;
	if (first > last || last >= modules) {
		sl_error("modules %u-%u: the experiment has 0-%u", first, last, modules - 1);
		return -EINVAL;
	}
	em->first_module = first;
	em->end_module = last + 1;
	return 0;
}

int sl_emulate_open(struct sl_experiment *experiment, uint32_t first, uint32_t last,
		    struct sl_emulate **emulate)
{
	struct sl_experiment *e = experiment;
	struct sl_emulate *em = calloc(1, sizeof(*em));
	int err;

	if (!em)
		return -ENOMEM;
	em->experiment = e;
	em->bright_left = e->run.frames;
	em->darks = sl_detector_darks(&e->run);
	em->detector_open = true;
	err = e->detector->open(e->detector_state, &e->run, &em->geometry);
	if (!err && e->detector->prepare)
		err = e->detector->prepare(e->detector_state);
	if (err)
		sl_error("detector '%s' cannot be opened: %s", e->detector->name, strerror(-err));
	if (!err && e->transfer[0] && sl_cut_left_over(&e->cut.options, &e->cut.source_run))
		sl_warn("transfer %s: the last %llu of its frames fill no stack of %u and are not "
			"sent",
			e->transfer,
			(unsigned long long)sl_cut_left_over(&e->cut.options, &e->cut.source_run),
			e->cut.options.stack);
	if (!err)
		err = choose_modules(em, first, last);
	if (!err)
		err = sl_placement_source(e, "", em->first_module, em->end_module, THREADS,
					  &em->placement);
	if (!err)
		err = open_fault_log(em);
	if (!err)
		err = open_modules(em);
	/* The link is opened once per plan, each time from its options alone. */
	em->link_options = malloc(e->link->state_bytes);
	if (!err && !em->link_options)
		err = -ENOMEM;
	if (err) {
		sl_emulate_close(em);
		return err;
	}
	memcpy(em->link_options, e->link_state, e->link->state_bytes);
	*emulate = em;
	return 0;
}

void sl_emulate_close(struct sl_emulate *em)
{
	for (uint32_t m = 0; em->module && m < em->geometry.modules; m++)
		for (unsigned i = 0; i < SL_EMULATE_DEPTH; i++) {
			free(em->module[m].frame[i].write);
			free(em->module[m].frame[i].buffer);
		}
	free(em->module);
	if (em->fault_log)
		fclose(em->fault_log);
	free(em->faults);
	free(em->link_options);
	if (em->detector_open)
		em->experiment->detector->close(em->experiment->detector_state);
	free(em);
}

static uint64_t all_frames(const struct sl_emulate *em)
{
	const struct sl_detector_run *run = &em->experiment->run;

	return run->frames > UINT64_MAX - run->dark_frames ? UINT64_MAX
							   : run->frames + run->dark_frames;
}

int sl_emulate_join(struct sl_emulate *em, uint64_t first_frame)
{
	uint64_t dark = em->experiment->run.dark_frames;

	if (first_frame >= all_frames(em)) {
		sl_error("--first_frame: the detector has %llu frames",
			 (unsigned long long)all_frames(em));
		return -EINVAL;
	}
	em->frame = first_frame;
	em->joined = true;
	if (first_frame > dark && em->bright_left != UINT64_MAX)
		em->bright_left -= first_frame - dark;
	return 0;
}

int sl_emulate_rejoin(struct sl_emulate *em)
{
	uint64_t next = em->frame + em->experiment->faults.restart_frames;

	if (next >= all_frames(em))
		return -ENODATA;
	em->bright_left = em->experiment->run.frames;
	return sl_emulate_join(em, next);
}

int sl_emulate_plan_begin(struct sl_emulate *em)
{
	struct sl_experiment *e = em->experiment;
	struct sl_link_env env = {
		.service = sl_experiment_service(e),
		.counters = &em->counters,
		.fate = em->faults ? sl_faults_fate : NULL,
		.fate_arg = em->faults,
		.hold = em->faults && e->faults.reorder > 0 ? e->faults.reorder_packets : 0,
	};

	memcpy(e->link_state, em->link_options, e->link->state_bytes);
	em->link_open = true;
	em->first_frame = em->frame;
	em->to_send = em->joined ? all_frames(em) - em->first_frame
		      : em->bright_left > UINT64_MAX - e->run.dark_frames
			      ? UINT64_MAX
			      : em->bright_left + e->run.dark_frames;
	atomic_store(&em->stop, 0);
	atomic_store(&em->finished, 0);
	atomic_store(&em->error, 0);
	return e->link->open(e->link_state, &env);
}

int sl_emulate_offer(struct sl_emulate *em, uint32_t module, struct sl_offer *offer)
{
	struct sl_experiment *e = em->experiment;

	*offer = (struct sl_offer){
		.module = (uint16_t)module,
		.block_bytes = em->geometry.module_bytes + SL_RECORD_BYTES,
		.lines = em->geometry.rows,
		.line_bytes = (uint32_t)(em->geometry.module_bytes / em->geometry.rows),
		.first_frame = sl_geometry_frame(&em->geometry, em->first_frame),
		.frames = em->to_send,
	};
	return e->link->offer(e->link_state, offer);
}

/* A plan is outside input: it must fit what was offered before anything is computed from it. */
static bool plan_fits(const struct sl_emulate *em, const struct sl_plan *plan)
{
	uint64_t block = em->geometry.module_bytes + SL_RECORD_BYTES;

	return plan->version == SL_PLAN_VERSION && plan->module >= em->first_module &&
	       plan->module < em->end_module && plan->pmtu >= 256 && plan->pmtu <= 4096 &&
	       plan->slots && plan->block_bytes == block &&
	       (plan->service == SL_SERVICE_UC || plan->service == SL_SERVICE_RC) &&
	       (plan->message == SL_MESSAGE_PACKET || plan->message == SL_MESSAGE_MODULE ||
		plan->message == SL_MESSAGE_LINE) &&
	       (plan->operation == SL_OPERATION_WRITE ||
		(plan->operation == SL_OPERATION_SEND && plan->message == SL_MESSAGE_MODULE)) &&
	       (!plan->lines || (plan->lines == em->geometry.rows &&
				 plan->line_bytes == em->geometry.module_bytes / plan->lines)) &&
	       !plan->bare && sl_plan_lines_fit(plan) && plan->first_sequence < SEQUENCE_MAX;
}

int sl_emulate_connect(struct sl_emulate *em, const struct sl_plan *plan)
{
	struct sl_experiment *e = em->experiment;
	struct sl_emulate_module *module;
	int err;

	if (!plan_fits(em, plan)) {
		sl_error("the receiver's plan for module %u does not fit what was offered",
			 plan->module);
		return -EPROTO;
	}
	module = &em->module[plan->module];
	module->plan = *plan;
	err = make_writes(module);
	if (err)
		return err;
	module->limit = (struct sl_limit){
		.ns_per_byte = e->link_run.rate_limit > 0 ? 8 / e->link_run.rate_limit : 0};
	module->begun = module->skipped = module->end = module->delayed_to = 0;
	module->done = module->writes;
	module->gaps = e->ring.align == SL_ALIGN_SEQUENCE;
	for (unsigned i = 0; i < SL_EMULATE_DEPTH; i++)
		module->frame[i].position = 0;
	atomic_store(&module->next, plan->first_sequence);
	atomic_store(&module->sent, 0);
	atomic_store(&module->position, 0);
	return e->link->connect(e->link_state, plan);
}

/* Dark frames come first: of a plan, or of the detector when it was running before. */
static bool is_dark(const struct sl_emulate *em, uint64_t k)
{
	return sl_darks_has(&em->darks, em->joined ? em->first_frame + k : k);
}

/* Of the frame that is next. Frames of a plan are counted from 0 here; the receiver may have had
 * others of the module. */
static uint64_t sequence_of(const struct sl_emulate_module *module)
{
	return module->plan.first_sequence + module->begun - (module->gaps ? 0 : module->skipped);
}

/* How far the link has come with a module: that much may be reused, and counts as sent. What still
 * waits in a queue does not. */
static uint64_t note(struct sl_emulate *em, struct sl_emulate_module *module)
{
	uint64_t position =
		em->experiment->link->reap(em->experiment->link_state, module->plan.transfer);
	uint64_t next = sequence_of(module), skipped = module->skipped, passed;

	for (unsigned i = 0; i < SL_EMULATE_DEPTH; i++) {
		const struct sl_emulate_frame *frame = &module->frame[i];

		if (frame->position <= position || frame->sequence >= next)
			continue;
		next = frame->sequence;
		skipped = frame->skipped;
	}
	/* What was left out need not be waited for: nothing of it will come. */
	passed = sl_plan_position(&module->plan, next, 0);
	atomic_store_explicit(&module->next, next, memory_order_relaxed);
	atomic_store_explicit(&module->sent, next - (module->gaps ? skipped : 0),
			      memory_order_release);
	atomic_store_explicit(&module->position, passed > position ? passed : position,
			      memory_order_release);
	return position;
}

/* Wait until the link has no need of what ends at position. -ECANCELED: told to end at once. */
static int wait_for(struct sl_emulate *em, struct sl_emulate_module *module, uint64_t position)
{
	const struct sl_link *link = em->experiment->link;
	void *state = em->experiment->link_state;

	while (note(em, module) < position) {
		int err = link->post(state, module->plan.transfer, NULL, 0);

		if (err < 0)
			return err;
		if (note(em, module) >= position)
			break;
		if (atomic_load_explicit(&em->stop, memory_order_relaxed) > 1)
			return -ECANCELED;
		if (sl_idle_sleep(&em->idle))
			link->wait(state, 0, WAIT_US);
	}
	sl_idle_work(&em->idle);
	return 0;
}

/* The frame's memory, once the frame that had it before is no longer needed. */
static int take_frame(struct sl_emulate *em, struct sl_emulate_module *module, uint64_t k,
		      struct sl_emulate_frame **frame)
{
	*frame = &module->frame[k % SL_EMULATE_DEPTH];
	return wait_for(em, module, (*frame)->position);
}

/* A bit of the block is flipped, after all that vouches for it was computed. */
static const void *spoil(struct sl_emulate *em, const struct sl_plan *plan,
			 struct sl_emulate_frame *frame, const void *pixels)
{
	uint64_t bytes = em->geometry.module_bytes, bit;
	uint8_t *record = (uint8_t *)&frame->record;

	if (!sl_faults_spoil(em->faults, plan, frame->sequence, &bit))
		return pixels;
	if (bit / 8 >= bytes) {
		record[bit / 8 - bytes] ^= (uint8_t)(1 << bit % 8);
		return pixels;
	}
	/* The detector may have given out pixels that it needs again. */
	if (pixels != frame->buffer)
		memcpy(frame->buffer, pixels, bytes);
	frame->buffer[bit / 8] ^= (uint8_t)(1 << bit % 8);
	return frame->buffer;
}

static void forge_keys(struct sl_emulate *em, struct sl_emulate_module *module,
		       struct sl_emulate_frame *frame)
{
	const struct sl_plan *plan = &module->plan;

	for (uint32_t i = 0; i < module->writes; i++) {
		struct sl_write *write = &frame->write[i];
		uint32_t packet = (write->psn - sl_plan_psn(plan, frame->sequence, 0)) & 0xffffff;

		if (sl_faults_wrong_key(em->faults, plan->module, frame->sequence, packet))
			write->rkey ^= 0x5a5a5a5a;
	}
}

/* Render the next frame of module m and lay out its writes. */
static int prepare(struct sl_emulate *em, uint32_t m)
{
	const struct sl_detector *detector = em->experiment->detector;
	void *state = em->experiment->detector_state;
	struct sl_emulate_module *module = &em->module[m];
	struct sl_emulate_frame *slot;
	uint64_t k = module->begun, sequence = sequence_of(module);
	uint32_t flags = is_dark(em, k) ? SL_RECORD_DARK : 0;
	uint64_t frame = sl_geometry_frame(&em->geometry, em->first_frame + k);
	const void *pixels;
	int err = take_frame(em, module, k, &slot);

	if (!err)
		err = detector->render(state, frame, m, flags, slot->buffer, &pixels);
	if (err)
		return err;
	slot->record = (struct sl_record){
		.sequence = sequence,
		.frame = frame,
		.timestamp = detector->timestamp(state, frame),
		.emit_ns = sl_clock_ns(),
		.bytes = (uint32_t)em->geometry.module_bytes,
		.items = sl_geometry_items(&em->geometry),
		.packets = module->plan.packets,
		.module = (uint16_t)m,
		.cell = sl_geometry_cell(&em->geometry, frame),
		.flags = (uint16_t)flags,
		.first_psn = sl_plan_psn(&module->plan, sequence, 0),
	};
	if (module->plan.crc) {
		slot->record.flags |= SL_RECORD_CRC;
		slot->record.crc32c = sl_crc32c(0, pixels, em->geometry.module_bytes);
	}
	if (em->faults)
		slot->record.timestamp =
			sl_faults_clock(em->faults, (uint16_t)m, sequence, slot->record.timestamp);
	sl_record_seal(&slot->record);
	slot->sequence = sequence;
	slot->skipped = module->skipped;
	slot->pixels = em->faults ? spoil(em, &module->plan, slot, pixels) : pixels;
	slot->source = (struct sl_source){
		.frame = &slot->pixels,
		.frames = 1,
		.lines = em->geometry.rows,
		.line_bytes = (uint32_t)(em->geometry.module_bytes / em->geometry.rows),
		.record = &slot->record,
	};
	sl_descriptor_fill(&module->plan, sequence, &slot->source, slot->write);
	if (em->faults)
		forge_keys(em, module, slot);
	slot->position = module->end = sl_plan_position(&module->plan, sequence + 1, 0);
	module->begun++;
	module->done = 0;
	return 0;
}

/* The next frame of module m, or none, where it was to miss one. */
static int begin(struct sl_emulate *em, uint32_t m)
{
	struct sl_emulate_module *module = &em->module[m];

	if (!em->faults ||
	    !sl_faults_skip(em->faults, (uint16_t)m, module->begun, sequence_of(module)))
		return prepare(em, m);
	module->begun++;
	module->skipped++;
	note(em, module);
	return 0;
}

/* A burst of one module, as far as credit and its limit allow. How many writes. */
static int send_burst(struct sl_emulate *em, struct sl_emulate_module *module)
{
	uint64_t k = module->begun - 1;
	const struct sl_write *write = module->frame[k % SL_EMULATE_DEPTH].write + module->done;
	uint32_t left = module->writes - module->done;
	uint64_t now = module->limit.ns_per_byte > 0 ? sl_clock_ns() : 0, bytes = 0;
	bool allowed = sl_limit_allows(&module->limit, now);
	int n = em->experiment->link->post(em->experiment->link_state, module->plan.transfer, write,
					   !allowed	  ? 0
					   : left < BURST ? left
							  : BURST);

	for (int i = 0; i < n; i++)
		bytes += write[i].bytes;
	if (n > 0) {
		sl_limit_spend(&module->limit, bytes, now);
		module->done += (uint32_t)n;
	}
	return n;
}

/* When a module that is held back by its limit may go on; UINT64_MAX: none is. */
static uint64_t next_allowed(const struct sl_emulate *em)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t m = em->first_module; m < em->end_module; m++) {
		const struct sl_emulate_module *module = &em->module[m];

		if (module->done < module->writes && module->limit.ns_per_byte > 0 &&
		    module->limit.next_ns < next)
			next = module->limit.next_ns;
	}
	return next;
}

/* Nothing can be sent now. */
static void rest(struct sl_emulate *em)
{
	uint64_t now = sl_clock_ns(), next = next_allowed(em);

	if (!sl_idle_sleep(&em->idle))
		return;
	if (next == UINT64_MAX || next <= now)
		em->experiment->link->wait(em->experiment->link_state, 0, WAIT_US);
	else
		sl_clock_sleep_until(next - now < WAIT_US * UINT64_C(1000)
					     ? next
					     : now + WAIT_US * UINT64_C(1000));
}

/* A burst of each module in turn, until all that was prepared is out. -ECANCELED: told to end at
 * once. */
static int send_frame(struct sl_emulate *em)
{
	for (bool left = true; left;) {
		bool progress = false;

		left = false;
		for (uint32_t m = em->first_module; m < em->end_module; m++) {
			struct sl_emulate_module *module = &em->module[m];
			int n;

			if (module->done == module->writes)
				continue;
			n = send_burst(em, module);
			if (n < 0)
				return n;
			progress |= n > 0;
			note(em, module);
			left |= module->done != module->writes;
		}
		if (atomic_load_explicit(&em->stop, memory_order_relaxed) > 1)
			return -ECANCELED;
		if (progress)
			sl_idle_work(&em->idle);
		else if (left)
			rest(em);
	}
	return 0;
}

/* Whether module m has a frame to send now that the k'th is due. One that was delayed sends several
 * when it goes on. */
static bool has_frame(struct sl_emulate *em, uint32_t m, uint64_t k, bool last)
{
	struct sl_emulate_module *module = &em->module[m];

	if (module->begun > k || last)
		return module->begun <= k;
	if (module->begun == k && em->faults &&
	    sl_faults_delay(em->faults, (uint16_t)m, sequence_of(module)))
		module->delayed_to = k + em->experiment->faults.delay_frames;
	return k >= module->delayed_to;
}

/* All modules up to the k'th frame; last: those that were delayed, too. */
static int send_due(struct sl_emulate *em, uint64_t k, bool last)
{
	for (;;) {
		bool some = false;
		int err = 0;

		for (uint32_t m = em->first_module; m < em->end_module && !err; m++)
			if (has_frame(em, m, k, last)) {
				some = true;
				err = begin(em, m);
			}
		if (!err && some)
			err = send_frame(em);
		if (err || !some)
			return err;
	}
}

/* Whether everything that was sent is out of the link's hands; lets it go on meanwhile. */
static int settled(struct sl_emulate *em, bool *all)
{
	const struct sl_link *link = em->experiment->link;
	int err = 0;

	*all = true;
	for (uint32_t m = em->first_module; m < em->end_module && err >= 0; m++) {
		struct sl_emulate_module *module = &em->module[m];

		if (note(em, module) >= module->end)
			continue;
		*all = false;
		err = link->post(em->experiment->link_state, module->plan.transfer, NULL, 0);
	}
	return err < 0 ? err : 0;
}

/* Until the next frame is due, in bites, so that a slow detector can still be stopped soon. */
static int wait_until(struct sl_emulate *em, uint64_t due_ns)
{
	bool all = false;
	uint64_t now;
	int err;

	while ((now = sl_clock_ns()) < due_ns && !atomic_load(&em->stop)) {
		err = all ? 0 : settled(em, &all);
		if (err)
			return err;
		if (em->idle.polling == SL_POLLING_LATENCY)
			sl_idle_sleep(&em->idle); /* it never does */
		else if (all)
			sl_clock_sleep_until(due_ns - now < NAP_NS ? due_ns : now + NAP_NS);
		else if (due_ns - now > WAIT_US * UINT64_C(1000))
			em->experiment->link->wait(em->experiment->link_state, 0, WAIT_US);
		else
			sl_clock_sleep_until(due_ns);
	}
	return 0;
}

/* All that was posted is with the receiver, or was given up: then the link may be closed. */
static int drain(struct sl_emulate *em)
{
	const struct sl_link *link = em->experiment->link;
	int err = 0;

	for (uint32_t m = em->first_module; m < em->end_module && !err; m++) {
		struct sl_emulate_module *module = &em->module[m];

		if (link->flush)
			err = link->flush(em->experiment->link_state, module->plan.transfer);
		if (!err)
			err = wait_for(em, module, module->end);
	}
	return err;
}

/* Whether this front end goes away before the k'th frame, once. */
static bool restarts(struct sl_emulate *em, uint64_t k)
{
	bool all = true;

	if (!em->restart || em->frame < em->experiment->faults.restart_after || !k)
		return false;
	em->restart = false;
	for (uint32_t m = em->first_module; m < em->end_module; m++)
		all &= sl_faults_restart(em->faults, (uint16_t)m, sequence_of(&em->module[m]));
	return all;
}

static void *send_run(void *arg)
{
	struct sl_emulate *em = arg;
	uint64_t k;
	int err = 0;

	sl_pace_begin(&em->pace, em->experiment->run.frame_rate_Hz, sl_clock_ns());
	sl_data_thread_begin("front end");
	for (k = 0; k < em->to_send && !err && !atomic_load(&em->stop); k++) {
		if (restarts(em, k)) {
			err = -ERESTART;
			break;
		}
		err = wait_until(em, sl_pace_due(&em->pace, k));
		if (sl_clock_ns() < sl_pace_due(&em->pace, k))
			break; /* told to stop before it was due */
		sl_pace_note(&em->pace, k, sl_clock_ns());
		if (!err)
			err = send_due(em, k, false);
		/* The frame number is spent even when the frame was cut short: the next plan
		 * starts after it. */
		em->frame++;
		if ((em->joined ? em->first_frame + k : k) >= em->darks.first &&
		    em->bright_left != UINT64_MAX)
			em->bright_left--;
	}
	if ((!err || err == -ERESTART) && k) {
		int end = send_due(em, k - 1, true);

		if (!end)
			end = drain(em);
		err = end ? end : err;
	}
	sl_data_thread_end();
	if (err != -ECANCELED)
		atomic_store(&em->error, err);
	atomic_store(&em->finished, 1);
	return NULL;
}

int sl_emulate_start(struct sl_emulate *em)
{
	const struct sl_placement *p = &em->placement;
	char text[512];
	cpu_set_t set;

	sl_placement_tell(p, text, sizeof(text));
	sl_info("%s", text);
	sl_placement_idle(p, em->experiment, &em->idle);
	return sl_thread_start(&em->thread, "front-end",
			       sl_placement_of(p, SL_ROLE_SOURCE, 0, &set), send_run, em);
}

void sl_emulate_stop(struct sl_emulate *em, bool at_once)
{
	if (atomic_load(&em->stop) < (at_once ? 2u : 1u))
		atomic_store(&em->stop, at_once ? 2 : 1);
}

bool sl_emulate_finished(const struct sl_emulate *em)
{
	return atomic_load(&em->finished);
}

static void say_why(const struct sl_emulate *em, int err)
{
	switch (err) {
	case -EMSGSIZE:
		sl_error("packets with %u bytes of payload do not fit the path's MTU; set "
			 "link.pmtu to 1024 (MTU 1500), or raise the MTU",
			 sl_experiment_pmtu(em->experiment));
		break;
	case -ETIMEDOUT:
		sl_error("the reliable connection failed: the receiver did not acknowledge, "
			 "however often packets were sent again (link.timeout, link.retry)");
		break;
	case -ENOBUFS:
		sl_error("the reliable connection failed: the receiver was not ready too often "
			 "(link.rnr_retry; 7 waits without end)");
		break;
	case -EACCES:
		sl_error("the reliable connection failed: the receiver refused key or address");
		break;
	default:
		sl_error("sending failed: %s", strerror(-err));
	}
}

int sl_emulate_plan_end(struct sl_emulate *em)
{
	uint64_t slowed;
	int err;

	sl_thread_join(&em->thread);
	em->joined = false; /* the next receiver knows nothing of the frames before */
	sl_emulate_log_faults(em);
	if (em->link_open)
		em->experiment->link->close(em->experiment->link_state);
	em->link_open = false;
	slowed = atomic_exchange(&em->counters.slowed, 0);
	if (slowed)
		sl_warn("the path was congested: the receiver asked %llu times to slow down",
			(unsigned long long)slowed);
	err = atomic_load(&em->error);
	if (err && err != -EPIPE && err != -ERESTART)
		say_why(em, err);
	return err;
}

void sl_emulate_log_faults(struct sl_emulate *em)
{
	struct sl_fault fault;

	while (em->faults && sl_faults_drain(em->faults, &fault))
		if (em->fault_log)
			fprintf(em->fault_log, "%u %llu %u %s\n", fault.module,
				(unsigned long long)fault.sequence, fault.packet,
				sl_fault_name(fault.kind));
	if (em->fault_log)
		fflush(em->fault_log);
}
