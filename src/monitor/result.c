/* result.c - the verdict on a run. */
#include <errno.h>
#include <stddef.h>

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
		int err = status->addon[i].has_place ? status->addon[i].error : 0;

		if (err == -ENOSPC || err == -EDQUOT || err == -EFBIG)
			return "disk full: later frames were not stored";
		if (err)
			return "a sink failed: later frames were not stored";
	}
	return NULL;
}

const char *sl_result_early(const struct sl_status *status)
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

bool sl_outcome_is_trouble(enum sl_outcome outcome)
{
	return outcome != SL_STORED && outcome != SL_PRESCALED && outcome != SL_VETOED;
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
		trouble += status->addon[i].error != 0;
	for (uint32_t i = 0; i < status->figures; i++)
		trouble += status->figure[i].failed ? status->figure[i].value : 0;
	if (trouble)
		return SL_RESULT_DAMAGED;
	return sl_status_sent(status) ? SL_RESULT_INTACT : SL_RESULT_EMPTY;
}
