/* status.c - names and sums of a status. */
#include <stddef.h>

#include <sluice/sink.h>
#include <sluice/status.h>

const char *sl_state_name(enum sl_state state)
{
	static const char *const name[SL_STATES] = {"idle",   "configured", "armed", "running",
						    "paused", "stopping",   "ended", "fault"};

	return state < SL_STATES ? name[state] : "?";
}

const char *sl_latency_name(enum sl_latency latency)
{
	static const char *const name[SL_LATENCIES] = {"wire", "assemble", "process",
						       "sink", "total",	   "decision"};

	return latency < SL_LATENCIES ? name[latency] : "?";
}

const char *sl_drop_name(enum sl_drop drop)
{
	static const char *const name[SL_DROPS] = {
		[SL_DROP_MALFORMED] = "malformed",
		[SL_DROP_ICRC] = "icrc",
		[SL_DROP_QUEUE] = "queue",
		[SL_DROP_PEER] = "peer",
		[SL_DROP_KEY] = "key",
		[SL_DROP_RANGE] = "range",
		[SL_DROP_BROKEN] = "broken",
		[SL_DROP_GAP] = "gap",
		[SL_DROP_LATE] = "late",
		[SL_DROP_AHEAD] = "ahead",
		[SL_DROP_DUPLICATE] = "duplicate",
		[SL_DROP_FULL] = "full",
	};

	return drop < SL_DROPS ? name[drop] : "?";
}

const char *sl_on_slow_name(enum sl_on_slow on_slow)
{
	static const char *const name[] = {"wait", "prescale", "stop", "drop"};

	return on_slow <= SL_ON_SLOW_DROP ? name[on_slow] : "?";
}

uint64_t sl_status_total(const struct sl_status *status, enum sl_outcome outcome)
{
	uint64_t total = 0;

	for (uint32_t m = 0; m < status->modules; m++)
		total += status->column[m].outcome[outcome];
	return total;
}

uint64_t sl_status_sent(const struct sl_status *status)
{
	uint64_t total = 0;

	for (uint32_t m = 0; m < status->modules; m++)
		total += status->column[m].sent;
	return total;
}

/* Of these outcomes each is of a block that was here. */
bool sl_status_contradicts(const struct sl_status_column *column)
{
	static const enum sl_outcome arrived[] = {SL_STORED, SL_PRESCALED, SL_VETOED, SL_UNWRITTEN,
						  SL_UNMATCHED};
	uint64_t sum = column->pending;

	for (size_t i = 0; i < sizeof(arrived) / sizeof(*arrived); i++)
		sum += column->outcome[arrived[i]];
	return sum > column->sent;
}

static bool column_closed(const struct sl_status_column *column)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SL_STATUS_OUTCOMES; i++)
		sum += column->outcome[i];
	return sum == column->sent + column->skipped && !column->pending &&
	       !column->outcome[SL_NO_OUTCOME] && !sl_status_contradicts(column);
}

bool sl_status_closed(const struct sl_status *status)
{
	if (status->misuse || status->sources_alive)
		return false;
	for (uint32_t m = 0; m < status->modules; m++)
		if (!column_closed(&status->column[m]))
			return false;
	return true;
}
