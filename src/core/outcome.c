/* outcome.c - names of outcomes and causes, as they appear in tables, files and JSON. */
#include <sluice/outcome.h>

static const char *const outcome_name[SL_OUTCOMES] = {
	[SL_NO_OUTCOME] = "none",   [SL_STORED] = "stored",	    [SL_PRESCALED] = "prescaled",
	[SL_VETOED] = "vetoed",	    [SL_INCOMPLETE] = "incomplete", [SL_OVERRUN] = "overrun",
	[SL_UNPROVEN] = "unproven", [SL_REFUSED] = "refused",	    [SL_UNWRITTEN] = "unwritten",
	[SL_LOST] = "lost",	    [SL_UNMATCHED] = "unmatched",
};

static const char *const cause_name[SL_CAUSES] = {
	[SL_CAUSE_NONE] = "none",
	[SL_CAUSE_DARK] = "dark",
	[SL_CAUSE_STAGE] = "stage",
	[SL_CAUSE_DAMAGED] = "damaged",
	[SL_CAUSE_PARTNER] = "partner",
	[SL_CAUSE_RECORD] = "record",
	[SL_CAUSE_CHECKSUM] = "checksum",
	[SL_CAUSE_NO_SLOT] = "no_slot",
	[SL_CAUSE_NO_ARRIVAL] = "no_arrival",
	[SL_CAUSE_SINK] = "sink",
	[SL_CAUSE_UNIT] = "unit",
	[SL_CAUSE_LATE] = "late",
	[SL_CAUSE_OLDEST] = "oldest",
	[SL_CAUSE_OVERWRITTEN] = "overwritten",
	[SL_CAUSE_SLOW] = "slow",
	[SL_CAUSE_NO_EVENT] = "no_event",
};

const char *sl_outcome_name(enum sl_outcome outcome)
{
	return outcome < SL_OUTCOMES ? outcome_name[outcome] : "?";
}

const char *sl_cause_name(enum sl_cause cause)
{
	return cause < SL_CAUSES ? cause_name[cause] : "?";
}
