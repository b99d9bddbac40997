/* emulator.c - frames out of a synthetic detector, onto a link. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "emulator/counts.h"
#include "emulator/parts.h"
#include "frontend/descriptor.h"

static int open_fault_log(struct sl_emulator *em)
{
	const struct sl_fault_options *o = &em->experiment->faults;
	const char *one = em->experiment->transfer[0] ? em->experiment->transfer
						      : em->experiment->detector_name;
	char path[sizeof(o->fault_log) + SL_TRANSFER_NAME + 1];
	int fd;

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
	/* Transfers and detectors of one file have one front end, and a log each. */
	snprintf(path, sizeof(path), "%s%s%s", o->fault_log, one[0] ? "." : "", one);
	fd = sl_output_open(path);
	if (fd < 0)
		return fd;
	em->fault_log = fdopen(fd, "w");
	if (em->fault_log)
		return 0;
	close(fd);
	return -ENOMEM;
}

static int open_modules(struct sl_emulator *em)
{
	size_t bytes = em->geometry.modules * sizeof(*em->module);
	int err = 0;

	em->module = aligned_alloc(alignof(struct sl_emulator_module), bytes);
	if (!em->module)
		return -ENOMEM;
	memset(em->module, 0, bytes);
	for (uint32_t m = em->first_module; !err && m < em->end_module; m++)
		for (unsigned i = 0; !err && i < SL_EMULATOR_DEPTH; i++)
			err = sl_emulator_frame_open(em, &em->module[m].frame[i]);
	return err;
}

/* How many writes a block takes is known when there is a plan. */
static int make_writes(struct sl_emulator_module *module)
{
	module->writes = sl_descriptor_count(&module->plan);
	for (unsigned i = 0; i < SL_EMULATOR_DEPTH; i++) {
		free(module->frame[i].write);
		module->frame[i].write = calloc(module->writes, sizeof(*module->frame[i].write));
		if (!module->frame[i].write)
			return -ENOMEM;
	}
	return 0;
}

static int choose_modules(struct sl_emulator *em, uint32_t first, uint32_t last)
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

static int open_feedback(struct sl_emulator *em)
{
	const struct sl_experiment *e = em->experiment;
	const struct sl_feedback_account_terms terms = {
		.geometry = &em->geometry,
		.first_module = em->first_module,
		.end_module = em->end_module,
		.senders = em->senders,
		.token = e->control.token,
		.experiment = sl_experiment_digest(e),
	};

	return sl_feedback_listener_open(&e->feedback, &terms, &em->feedback);
}

/* How many threads send, and where they run. */
static int choose_senders(struct sl_emulator *em)
{
	int err = sl_placement_source(em->experiment, "", em->first_module, em->end_module,
				      &em->placement);

	em->senders = em->placement.threads;
	return err;
}

static uint64_t all_frames(const struct sl_emulator *em)
{
	return sl_detector_frames(&em->experiment->run, &em->geometry);
}

static uint64_t bright_frames(const struct sl_emulator *em)
{
	uint64_t all = all_frames(em);

	return all == UINT64_MAX ? all : all - em->experiment->run.dark_frames;
}

int sl_emulator_open(struct sl_experiment *experiment, uint32_t first, uint32_t last,
		     struct sl_emulator **emulator)
{
	struct sl_experiment *e = experiment;
	struct sl_emulator *em = aligned_alloc(alignof(struct sl_emulator), sizeof(*em));
	int err;

	if (!em)
		return -ENOMEM;
	memset(em, 0, sizeof(*em));
	em->experiment = e;
	em->darks = sl_detector_darks(&e->run);
	em->detector_open = true;
	err = e->detector->open(e->detector_state, &e->run, &em->geometry);
	if (!err && e->detector->prepare)
		err = e->detector->prepare(e->detector_state);
	if (err)
		sl_error("detector '%s' cannot be opened: %s", e->detector->name, strerror(-err));
	if (!err && e->transfer[0] && sl_cut_left_over(&e->cut.options, &e->cut.generator_options))
		sl_warn("transfer %s: the last %llu of its frames fill no stack of %u and are not "
			"sent",
			e->transfer,
			(unsigned long long)sl_cut_left_over(&e->cut.options,
							     &e->cut.generator_options),
			e->cut.options.stack);
	if (!err) {
		em->bright_left = bright_frames(em);
		sl_emulator_choose_generator(em);
		err = sl_transfer_valid(&em->transfer) ? choose_modules(em, first, last) : -EFBIG;
		if (err == -EFBIG)
			sl_error("a block of %.1f GB is too large, at most 2 GiB: lower stack, or "
				 "the rectangle",
				 (double)em->geometry.module_bytes * 1e-9);
	}
	if (!err)
		err = choose_senders(em);
	if (!err)
		err = sl_emulator_senders_open(em);
	if (!err)
		err = open_fault_log(em);
	if (!err)
		err = sl_emulator_counts_open(em);
	if (!err)
		err = open_modules(em);
	if (!err && e->feedback.address[0])
		err = open_feedback(em);
	/* The link is opened once per plan, each time from its options alone. */
	em->link_options = malloc(e->link->state_bytes);
	if (!err && !em->link_options)
		err = -ENOMEM;
	if (err) {
		sl_emulator_close(em);
		return err;
	}
	memcpy(em->link_options, e->link_state, e->link->state_bytes);
	em->sending = e->link->sending;
	*emulator = em;
	return 0;
}

void sl_emulator_close(struct sl_emulator *em)
{
	for (uint32_t m = 0; em->module && m < em->geometry.modules; m++)
		for (unsigned i = 0; i < SL_EMULATOR_DEPTH; i++)
			sl_emulator_frame_close(&em->module[m].frame[i]);
	free(em->module);
	if (em->feedback)
		sl_feedback_listener_close(em->feedback);
	if (em->fault_log)
		fclose(em->fault_log);
	sl_emulator_counts_close(em);
	sl_emulator_senders_close(em);
	free(em->link_options);
	if (em->detector_open)
		em->experiment->detector->close(em->experiment->detector_state);
	free(em);
}

int sl_emulator_join(struct sl_emulator *em, uint64_t first_frame)
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

int sl_emulator_rejoin(struct sl_emulator *em)
{
	uint64_t next = em->frame + em->experiment->faults.restart_frames;

	if (next >= all_frames(em))
		return -ENODATA;
	em->bright_left = bright_frames(em);
	return sl_emulator_join(em, next);
}

void sl_emulator_again(struct sl_emulator *em)
{
	const struct sl_fault_options *o = &em->experiment->faults;

	em->frame = 0;
	em->bright_left = bright_frames(em);
	em->joined = false;
	sl_emulator_senders_again(em);
	em->restart =
		sl_faults_restart_of(o, em->first_module, em->end_module, em->geometry.modules) > 0;
}

int sl_emulator_plan_begin(struct sl_emulator *em)
{
	const struct sl_experiment *e = em->experiment;

	em->first_frame = em->frame;
	em->to_send = all_frames(em) == UINT64_MAX ? UINT64_MAX
		      : em->joined		   ? all_frames(em) - em->first_frame
		      : em->bright_left > UINT64_MAX - e->run.dark_frames
			      ? UINT64_MAX
			      : em->bright_left + e->run.dark_frames;
	atomic_store(&em->stop, 0);
	atomic_store(&em->finished, 0);
	atomic_store(&em->error, 0);
	atomic_store(&em->begun, 0);
	em->planned = true;
	sl_emulator_counts_begin(em);
	return sl_emulator_senders_connect(em);
}

int sl_emulator_offer(struct sl_emulator *em, uint32_t module, struct sl_offer *offer)
{
	uint64_t first = sl_geometry_frame(&em->geometry, em->first_frame);

	*offer = (struct sl_offer){
		.module = (uint16_t)module,
		/* Over a link that goes one way the link counts (number_base). */
		.first_frame = em->experiment->link->oneway
				       ? first
				       : sl_emulator_counter(em->experiment, first),
		.frame_step = em->geometry.frame_step,
		.frames = em->to_send == UINT64_MAX ? 0 : em->to_send,
	};
	sl_transfer_describe(&em->transfer, offer);
	return em->sending->offer(sl_emulator_sender_of(em, module)->link_state, offer);
}

int sl_emulator_assume(struct sl_emulator *em, uint32_t module)
{
	void *link_state = sl_emulator_sender_of(em, module)->link_state;
	struct sl_offer offer;
	struct sl_plan plan;
	int err = sl_emulator_offer(em, module, &offer);

	if (!err)
		err = em->sending->accept(link_state, &offer, &plan);
	if (err)
		return err;
	em->number_base = offer.first_frame - sl_geometry_frame(&em->geometry, em->first_frame);
	return sl_emulator_connect(em, &plan);
}

/* A plan is outside input: it must fit what was offered before anything is computed from it. */
static bool plan_fits(const struct sl_emulator *em, const struct sl_plan *plan)
{
	return plan->module >= em->first_module && plan->module < em->end_module &&
	       sl_transfer_agrees(&em->transfer, plan);
}

int sl_emulator_connect(struct sl_emulator *em, const struct sl_plan *plan)
{
	struct sl_experiment *e = em->experiment;
	struct sl_emulator_module *module;
	int err;

	if (!e->link->oneway && !plan_fits(em, plan)) {
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
		.ns_per_byte = e->link_options.rate_limit > 0 ? 8 / e->link_options.rate_limit : 0};
	module->begun = module->skipped = module->end = module->delayed_to = 0;
	module->done = module->writes;
	module->gaps = e->ring.align == SL_ALIGN_SEQUENCE || e->link->oneway;
	for (unsigned i = 0; i < SL_EMULATOR_DEPTH; i++)
		module->frame[i].position = 0;
	/* Those before it were sent by who had the module then: nothing is taken back. */
	atomic_store(&module->next, plan->first_sequence);
	atomic_store(&module->sent, plan->first_sequence);
	atomic_store(&module->position, 0);
	return em->sending->connect(sl_emulator_sender_of(em, plan->module)->link_state, plan);
}

int sl_emulator_start(struct sl_emulator *em)
{
	char text[512];
	int err = em->feedback ? sl_feedback_listener_wait(em->feedback) : 0;

	if (err)
		return err;
	if (em->senders > 1)
		sl_info("%u threads send", em->senders);
	sl_placement_describe(&em->placement, text, sizeof(text));
	sl_info("%s", text);
	return sl_emulator_senders_start(em);
}

void sl_emulator_stop(struct sl_emulator *em, bool at_once)
{
	sl_emulator_tell_stop(em, at_once);
}

bool sl_emulator_finished(const struct sl_emulator *em)
{
	return atomic_load(&em->finished) >= em->senders;
}

static void say_why(const struct sl_emulator *em, int err)
{
	switch (err) {
	case -EMSGSIZE:
		if (em->experiment->link->oneway) {
			sl_error("packets do not fit the path's MTU, or cannot leave from "
				 "link.source: raise the MTU (9000), send fewer bytes in each "
				 "(link %s), or set link.source to the address they go out from",
				 em->experiment->link->name);
			break;
		}
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

int sl_emulator_plan_end(struct sl_emulator *em)
{
	uint64_t slowed;
	int err;

	sl_emulator_senders_end(em);
	em->joined = false; /* the next receiver knows nothing of the frames before */
	sl_emulator_log_faults(em);
	if (em->planned)
		sl_emulator_counts_end(em);
	em->planned = false;
	sl_emulator_senders_disconnect(em);
	slowed = atomic_exchange(&em->counters.slowed, 0);
	if (slowed)
		sl_warn("the path was congested: the receiver asked %llu times to slow down",
			(unsigned long long)slowed);
	err = atomic_load(&em->error);
	if (err && err != -EPIPE && err != -ERESTART)
		say_why(em, err);
	return err;
}

void sl_emulator_log_faults(struct sl_emulator *em)
{
	struct sl_fault fault;

	for (unsigned i = 0; i < em->senders; i++)
		while (em->sender[i].faults && sl_faults_drain(em->sender[i].faults, &fault)) {
			atomic_fetch_add(&em->faults[fault.kind % SL_FAULT_KINDS], 1);
			if (em->fault_log)
				fprintf(em->fault_log, "%u %llu %u %s\n", fault.module,
					(unsigned long long)fault.sequence, fault.packet,
					sl_fault_name(fault.kind));
		}
	if (em->fault_log)
		fflush(em->fault_log);
	sl_emulator_counts_write(em);
}
