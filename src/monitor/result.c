/* result.c - the verdict on a run. */
#include <errno.h>
#include <stdio.h>

#include <sluice/sink.h>

#include "core/ledger.h"
#include "monitor/result.h"

const char *sl_result_name(enum sl_result result)
{
	static const char *const name[] = {"intact", "error", "damaged", "unclosed", "empty"};

	return name[result];
}

int sl_result_exit(enum sl_result result)
{
	return result == SL_RESULT_EMPTY ? 0 : (int)result;
}

int sl_result_worse(int a, int b)
{
	if (a == SL_RESULT_ERROR || b == SL_RESULT_ERROR)
		return SL_RESULT_ERROR;
	return a > b ? a : b;
}

/* Some sink took no more frames, since its disk is full or for another reason. */
static const char *sink_trouble(const struct sl_status *status)
{
	for (uint32_t i = 0; i < status->addons; i++) {
		const struct sl_status_addon *addon = &status->addon[i];
		int err = addon->has_place && !addon->optional ? addon->error : 0;

		if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG)
			return "disk full: later frames were not stored";
		if (err)
			return "a sink failed: later frames were not stored";
	}
	return NULL;
}

static const char *early(const struct sl_status *status)
{
	bool fewer = false;

	if (status->overrun)
		return "overrun: a front end was faster than this receiver (ring.overrun: stop)";
	/* An endless run ends that way. */
	if (status->stopped_by[0] && status->expected_frames)
		return "interrupted";
	for (uint32_t m = 0; m < status->modules; m++) {
		if (status->source[m].state == SL_SOURCE_GONE)
			return status->one_way ? "nothing came any more (control.silence_s, wait_s)"
					       : "a front end vanished";
		fewer |= status->source[m].fell_short;
	}
	return fewer ? "a front end sent less than it had offered" : sink_trouble(status);
}

/* The name of the sink that ended the run; NULL: none has. */
static const char *too_slow(const struct sl_status *status)
{
	return status->too_slow ? status->addon[status->too_slow - 1].name : NULL;
}

void sl_result_early(const struct sl_status *status, char *text, size_t bytes)
{
	const char *slow = too_slow(status), *why = early(status);

	if (slow)
		snprintf(text, bytes,
			 "stopped: %s could not keep pace with the data (on_slow: stop)", slow);
	else
		snprintf(text, bytes, "%s", why ? why : "");
}

static const char *word(const struct sl_status *status)
{
	static const char *const words[] = {
		[SL_RESULT_INTACT] =
			"intact: every module-frame is accounted for, none lost or damaged",
		[SL_RESULT_ERROR] = "error",
		[SL_RESULT_DAMAGED] = "damaged: everything is accounted for, but see above",
		[SL_RESULT_UNCLOSED] =
			"unclosed: not everything that was sent can be accounted for",
		[SL_RESULT_EMPTY] = "empty: nothing was sent",
	};

	return status->result < 0 ? "not known yet" : words[status->result];
}

void sl_result_words(const struct sl_status *status, char *text, size_t bytes)
{
	const char *slow = too_slow(status);
	size_t at = (size_t)snprintf(text, bytes, "%s", word(status));

	for (uint32_t i = 0; i < status->addons && at < bytes; i++)
		if (status->pace[i].left_out)
			at += (size_t)snprintf(
				text + at, bytes - at, "; %s left out %llu %sframes (on_slow: %s)",
				status->addon[i].name, (unsigned long long)status->pace[i].left_out,
				status->pace[i].on_slow == SL_ON_SLOW_DROP ? "" : "kept ",
				sl_on_slow_name(status->pace[i].on_slow));
	if (slow && at < bytes)
		snprintf(text + at, bytes - at,
			 "; the run was stopped because %s could not keep pace (on_slow: stop)",
			 slow);
}

bool sl_outcome_is_trouble(enum sl_outcome outcome)
{
	return sl_outcome_is_loss(outcome);
}

enum sl_result sl_result_of(const struct sl_status *status)
{
	uint64_t trouble = status->partial + status->broken + status->failures_left_out;

	if (!sl_status_closed(status) || status->sources_gone)
		return SL_RESULT_UNCLOSED;
	for (unsigned o = 0; o < SL_OUTCOMES; o++)
		if (sl_outcome_is_trouble(o))
			trouble += sl_status_total(status, o);
	for (uint32_t i = 0; i < status->addons; i++)
		trouble += status->addon[i].error != 0 && !status->addon[i].optional;
	trouble += status->too_slow != 0;
	for (uint32_t i = 0; i < status->figures; i++)
		trouble += status->figure[i].failed ? status->figure[i].value : 0;
	if (trouble)
		return SL_RESULT_DAMAGED;
	return sl_status_sent(status) ? SL_RESULT_INTACT : SL_RESULT_EMPTY;
}
