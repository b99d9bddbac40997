/* run.c - one run of a session, from armed to ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "monitor/result.h"
#include "monitor/summary.h"
#include "session/errors.h"
#include "session/outputs.h"
#include "session/private.h"
#include "session/probe.h"

/* A step of a run: the first error line that it logged is the message. */
static int checked(struct sl_session *s, enum sl_error_code otherwise, int err)
{
	if (err)
		return sl_session_fail(s, sl_error_code_of(err, otherwise), err, strerror(-err));
	sl_session_forget_line(s);
	return 0;
}

/* Locked from the beginning: a second run with this path is refused, instead of replacing the
 * summary of the first. */
static int open_summary(struct sl_session *s)
{
	int err = s->summary[0] ? sl_part_file_open(s->summary, &s->summary_file) : 0;

	return err ? err : sl_outputs_forget(s->summary);
}

static int check_outputs(struct sl_session *s)
{
	const char *const ours[] = {s->summary, s->outcomes, s->port_file,
				    s->hooks.truth ? s->hooks.truth : ""};

	int err = sl_outputs_check_run(s->experiment, s->path, ours, 4);

	return err ? err : open_summary(s);
}

/* Status from any thread sees the receiver from now on. */
static int open_receiver(struct sl_session *s)
{
	const char *outcomes = s->outcomes[0] ? s->outcomes : NULL;
	struct sl_receiver *receiver = s->kept;
	int err;

	s->kept = NULL;
	if (receiver) {
		err = sl_receiver_again(receiver, outcomes);
		if (err)
			sl_receiver_close(receiver);
	} else {
		err = sl_session_keeper_open(&s->keeper, s->experiment, outcomes, &receiver);
	}
	if (err)
		return checked(s,
			       s->experiment->control.keeper[0] ? SL_ERROR_KEEPER : SL_ERROR_SYSTEM,
			       err);
	sl_receiver_set_metadata(receiver, &s->metadata_of_env);
	pthread_mutex_lock(&s->lock);
	s->receiver = receiver;
	pthread_mutex_unlock(&s->lock);
	sl_session_begin_picture(s);
	return 0;
}

/* Sources that begin by themselves need slots before they are told anything. */
static int start_early(struct sl_session *s)
{
	int err;

	if (!sl_controls_start_alone(&s->controls))
		return 0;
	err = sl_receiver_start(s->receiver);
	s->started = !err;
	return err ? err : sl_receiver_wait_open(s->receiver);
}

static int arm(struct sl_session *s)
{
	int err;

	/* What an earlier run left in the states of add-ons that it closed. */
	sl_experiment_renew_sinks(s->experiment);
	if (!s->kept) {
		sl_experiment_renew_stages(s->experiment);
		sl_experiment_renew_sources(s->experiment);
	}
	err = checked(s, SL_ERROR_OUTPUT, sl_session_begin_folder(s));
	if (!err)
		err = checked(s, SL_ERROR_OUTPUT, check_outputs(s));
	if (!err)
		err = checked(s, SL_ERROR_SYSTEM, sl_session_probe(s));
	if (!err)
		err = open_receiver(s);
	if (!err)
		err = checked(s, SL_ERROR_SYSTEM, sl_session_open_controls(s));
	if (!err)
		err = checked(s, SL_ERROR_SYSTEM, start_early(s));
	if (!err)
		err = checked(s, SL_ERROR_OUTPUT, sl_session_write_port_file(s));
	if (!err && s->experiment->emulate_local && !sl_session_has_child(s))
		err = checked(s, SL_ERROR_FRONT_END, sl_session_spawn_child(s));
	if (!err)
		err = sl_session_wait_for_sources(s);
	if (!err)
		err = checked(s, SL_ERROR_KEEPER, sl_session_keeper_store(&s->keeper, s->receiver));
	return err;
}

/* Armed: sources wait, and are listened to. No source is polled between the last look at them and
 * the start, so that none can leave unnoticed. */
static int wait_for_start(struct sl_session *s)
{
	int err;

	for (;;) {
		if (!sl_session_sources_are_ready(s)) {
			sl_warn("a source has left before the start; waiting for another");
			sl_session_set_state(s, SL_STATE_CONFIGURED);
			err = sl_session_wait_for_sources(s);
			if (!err)
				err = checked(s, SL_ERROR_KEEPER,
					      sl_session_keeper_store(&s->keeper, s->receiver));
			if (err)
				return err;
			sl_session_set_state(s, SL_STATE_ARMED);
		}
		if (sl_session_wants(s, SL_WISH_STOP | SL_WISH_ABORT | SL_WISH_CLOSE)) {
			sl_info("stopped before it began");
			return sl_session_fail(s, SL_ERROR_STOPPED, -EINTR,
					       "stopped before it began");
		}
		if (sl_session_wishes(s, SL_WISH_START))
			return 0;
		sl_session_poll_sources(s);
	}
}

static int start(struct sl_session *s)
{
	int err;

	sl_session_begin_flight(s);
	err = s->started ? 0 : sl_receiver_start(s->receiver);

	if (!err && !s->hooks.quiet && !s->hooks.still)
		sl_receiver_log(s->receiver);
	return checked(s, SL_ERROR_SYSTEM, err);
}

/* What front ends said that does not fit what they sent, or the experiment. */
static void log_odd(const struct sl_status *status)
{
	for (uint32_t m = 0; m < status->modules; m++)
		if (status->source[m].state == SL_SOURCE_DONE &&
		    sl_status_contradicts(&status->column[m]))
			sl_error("module %u: more frames arrived than the %llu that its front end "
				 "says it sent: its counts are wrong, and the ledger does not "
				 "close",
				 m, (unsigned long long)status->column[m].sent);
	if (status->dark > status->dark_expected)
		sl_warn("%llu of %llu frames were marked dark by their front ends, and %llu are by "
			"the experiment (detector.dark_frames, dark_every): dark frames are not "
			"stored as images",
			(unsigned long long)status->dark, (unsigned long long)status->frames,
			(unsigned long long)status->dark_expected);
	if (status->repeated)
		sl_warn("%llu of %llu frames have the number of the frame before them: a front end "
			"repeats itself, or its counter stands still",
			(unsigned long long)status->repeated, (unsigned long long)status->frames);
}

static int write_summary(struct sl_session *s)
{
	struct sl_metadata *metadata = malloc(sizeof(*metadata));
	int err;

	if (metadata)
		sl_session_copy_metadata(s, metadata);
	err = sl_summary_write(&s->summary_file, &s->last, metadata, s->summary_version);
	free(metadata);
	return err;
}

/* The status of the end, and the files that are made of it. What the data deserve is the result; an
 * output that failed is an error beside it. */
static void conclude(struct sl_session *s)
{
	struct sl_status *status = &s->last;

	pthread_mutex_lock(&s->lock);
	sl_receiver_status(s->receiver, status);
	status->started_unix_ns = s->started_unix_ns;
	status->ended_unix_ns = sl_clock_unix_ns();
	snprintf(status->experiment, sizeof(status->experiment), "%s", s->name);
	sl_session_copy_reason(s, status->stopped_by, sizeof(status->stopped_by));
	snprintf(status->flight, sizeof(status->flight), "%s", s->flight_path);
	sl_result_early(status, status->early, sizeof(status->early));
	status->result = sl_result_of(status);
	pthread_mutex_unlock(&s->lock);
	log_odd(status);
	sl_session_forget_line(s);
	if (s->summary_file.fd >= 0 && write_summary(s))
		sl_session_fail(s, SL_ERROR_OUTPUT, -EIO, "the summary was not written");
	if (status->unsaved)
		sl_session_fail(s, SL_ERROR_OUTPUT, -EIO, "the outcome log is not whole");
}

/* The next run finds memory, stages and front ends as this one leaves them. What a keeper holds
 * belongs to the run that a keeper takes over. */
static bool keeps(const struct sl_session *s)
{
	return !s->hooks.single && !s->experiment->control.keeper[0] && !s->abandoned_ns &&
	       !sl_session_wants(s, SL_WISH_CLOSE);
}

static void rest(struct sl_session *s)
{
	/* Its account of answers is that of one run; or it hears of no other run. */
	if (s->experiment->feedback.address[0] || s->experiment->link->oneway)
		sl_session_end_child(s);
	pthread_mutex_lock(&s->lock);
	s->kept = s->receiver;
	s->receiver = NULL;
	pthread_mutex_unlock(&s->lock);
	sl_receiver_rest(s->kept);
}

static void close_all(struct sl_session *s)
{
	struct sl_receiver *receiver = s->receiver;

	sl_controls_close(&s->controls); /* a child notices and ends */
	sl_session_end_child(s);
	pthread_mutex_lock(&s->lock);
	s->receiver = NULL;
	pthread_mutex_unlock(&s->lock);
	if (receiver) {
		sl_receiver_close(receiver);
		sl_session_keeper_close(&s->keeper);
	}
	if (s->kept)
		sl_receiver_close(s->kept);
	s->kept = NULL;
}

void sl_session_release(struct sl_session *s, bool last)
{
	if (!s->kept)
		return;
	if (last) /* front ends that stayed may go home */
		sl_controls_bye(&s->controls, false);
	close_all(s);
}

/* It never began. */
static void note_failure(struct sl_session *s)
{
	if (s->summary_file.fd >= 0)
		sl_part_file_discard(&s->summary_file);
	pthread_mutex_lock(&s->lock);
	s->last.result = SL_RESULT_ERROR;
	s->last.started_unix_ns = s->started_unix_ns;
	snprintf(s->last.experiment, sizeof(s->last.experiment), "%s", s->name);
	pthread_mutex_unlock(&s->lock);
}

void sl_session_run(struct sl_session *s)
{
	bool more = false;
	enum sl_state state;
	int err;

	s->started = false;
	s->child_status = 0;
	s->started_unix_ns = sl_clock_unix_ns();
	err = arm(s);
	if (!err) {
		sl_session_set_state(s, SL_STATE_ARMED);
		err = wait_for_start(s);
	}
	if (!err)
		err = start(s);
	if (!err) {
		sl_session_acquire(s);
		sl_session_set_state(s, SL_STATE_STOPPING);
		/* In this order: what a source sent is safe before it may forget it. */
		sl_receiver_finish(s->receiver);
		sl_session_keeper_end(&s->keeper, s->receiver);
		sl_session_end_flight(s);
		more = keeps(s);
		sl_controls_bye(&s->controls, more);
		conclude(s);
	} else {
		sl_session_end_flight(s);
		note_failure(s);
	}
	if (more)
		rest(s);
	else
		close_all(s);
	state = !err || err == -EINTR ? SL_STATE_ENDED : SL_STATE_FAULT;
	sl_log_left_out();
	sl_session_end_folder(s, state);
	sl_session_picture_end(&s->pictures);
	sl_session_end_metadata(s);
	sl_points_end(&s->points);
	sl_session_set_state(s, state);
}
