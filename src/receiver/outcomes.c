/* outcomes.c - the outcome log: a line for each module-frame, once its outcome is known.
 *
 * A frame that sinks took is pending until their files are safe, at the end of the run. Which
 * sequences are pending is kept as spans; when there are many they go to a file without a name, so
 * that an endless run does not fill the memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "receiver/private.h"

enum { SPANS_MOST = 65536 }; /* in memory: 2 MB */

static void give_up(struct sl_receiver *r, const char *why)
{
	sl_warn("the outcome log ends here: %s", why);
	fclose(r->outcomes);
	r->outcomes = NULL;
	r->outcomes_failed = true;
}

void sl_outcomes_log(struct sl_receiver *r, uint64_t sequence, uint32_t module,
		     enum sl_outcome outcome, enum sl_cause cause)
{
	int bytes;

	if (!r->outcomes)
		return;
	bytes = fprintf(r->outcomes, "%llu %u %s %s\n", (unsigned long long)sequence, module,
			sl_outcome_name(outcome), sl_cause_name(cause));
	r->outcomes_bytes += bytes > 0 ? (uint64_t)bytes : 0; /* an error is end()'s to tell */
}

static bool spill(struct sl_receiver *r)
{
	if (!r->spilled)
		r->spilled = tmpfile();
	if (!r->spilled || fwrite(r->pending, sizeof(*r->pending), r->pending_spans, r->spilled) !=
				   r->pending_spans)
		return false;
	r->pending_spans = 0;
	memset(r->pending_last, 0, sizeof(r->pending_last));
	return true;
}

static bool has_room(struct sl_receiver *r)
{
	size_t room = r->pending_room ? r->pending_room * 2 : 256;
	struct sl_pending_span *more;

	if (r->pending_spans < r->pending_room)
		return true;
	if (r->pending_room >= SPANS_MOST)
		return spill(r);
	more = realloc(r->pending, room * sizeof(*more));
	if (!more)
		return false;
	r->pending = more;
	r->pending_room = room;
	return true;
}

void sl_outcomes_pend(struct sl_receiver *r, uint64_t sequence, uint32_t module, bool sample)
{
	size_t newest = r->pending_last[module];
	struct sl_pending_span *last = newest ? &r->pending[newest - 1] : NULL;

	if (!r->outcomes)
		return;
	if (last && last->first + last->count == sequence && last->sample == sample) {
		last->count++;
		return;
	}
	if (!has_room(r)) {
		give_up(r, r->pending_room >= SPANS_MOST
				   ? "no room for a temporary file of what is not yet safe"
				   : "out of memory");
		return;
	}
	r->pending[r->pending_spans++] = (struct sl_pending_span){sequence, 1, module, sample};
	r->pending_last[module] = r->pending_spans;
}

static void log_span(struct sl_receiver *r, const struct sl_pending_span *span,
		     enum sl_outcome outcome, enum sl_cause cause)
{
	for (uint64_t k = 0; k < span->count; k++)
		sl_outcomes_log(r, span->first + k, span->module,
				span->sample && outcome == SL_STORED ? SL_PRESCALED : outcome,
				cause);
}

static void log_spilled(struct sl_receiver *r, enum sl_outcome outcome, enum sl_cause cause)
{
	struct sl_pending_span span;

	if (!r->spilled)
		return;
	rewind(r->spilled);
	while (fread(&span, sizeof(span), 1, r->spilled) == 1)
		log_span(r, &span, outcome, cause);
	if (ferror(r->spilled) && r->outcomes)
		give_up(r, "the temporary file of what was not yet safe cannot be read");
	fclose(r->spilled);
	r->spilled = NULL;
}

void sl_settle_pending(struct sl_receiver *r, enum sl_outcome outcome, enum sl_cause cause)
{
	for (uint32_t m = 0; m < r->ledger.modules; m++)
		sl_ledger_resolve(&r->ledger, m, atomic_load(&r->ledger.tally[m].pending), outcome,
				  cause);
	log_spilled(r, outcome, cause);
	for (size_t i = 0; i < r->pending_spans; i++)
		log_span(r, &r->pending[i], outcome, cause);
	r->pending_spans = 0;
	memset(r->pending_last, 0, sizeof(r->pending_last));
}

void sl_outcomes_end(struct sl_receiver *r)
{
	bool lost;
	int err;

	if (!r->outcomes)
		return;
	err = fflush(r->outcomes) || ferror(r->outcomes) ? (errno ? errno : EIO) : 0;
	/* The log that was written is the one that lies under its name. */
	lost = !err && sl_output_check(fileno(r->outcomes), r->outcomes_path, r->outcomes_bytes);
	if (fclose(r->outcomes) && !err)
		err = errno;
	r->outcomes = NULL;
	if (err)
		sl_error("%s: the outcome log could not be written whole: %s", r->outcomes_path,
			 strerror(err));
	if (err || lost)
		r->outcomes_failed = true;
}

void sl_outcomes_close(struct sl_receiver *r)
{
	if (r->outcomes)
		fclose(r->outcomes);
	if (r->spilled)
		fclose(r->spilled);
	free(r->pending);
	free(r->outcomes_path);
	r->outcomes_path = NULL;
	r->outcomes = r->spilled = NULL;
	r->pending = NULL;
}
