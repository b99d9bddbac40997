/* seen.c - the last status that was seen of a run that lives: all that is left of its counters when
 * its session crashes. Kept in ROOT/.service/seen/NNNNNN.json until the run has a result. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/history/private.h"

#define WRITE_NS UINT64_C(5000000000)

static void path_of(const struct sl_history *h, uint64_t run, char *path, size_t bytes)
{
	char name[32];

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(path, bytes, "%s/seen/%s.json", h->own, name);
}

/* {when_unix_ns, frames, lost, damaged, ledger} of a status. */
static json_t *record_of(const json_t *status)
{
	json_t *when = json_object_get(status, "taken_unix_ns");
	json_t *ledger = json_object_get(status, "ledger");

	return json_pack("{s:I, s:I, s:I, s:I, s:O?}", "when_unix_ns", json_integer_value(when),
			 "frames", sl_history_frames(status), "lost", sl_history_lost(status),
			 "damaged", sl_history_damaged(status), "ledger", ledger);
}

static void write_seen(const struct sl_history *h, struct sl_history_seen *seen)
{
	char path[1200], part[1208];
	json_t *record = record_of(seen->status);

	seen->written_ns = sl_clock_ns();
	path_of(h, seen->run, path, sizeof(path));
	snprintf(part, sizeof(part), "%s.part", path);
	if (!record || json_dump_file(record, part, JSON_COMPACT | JSON_REAL_PRECISION(9)) ||
	    rename(part, path))
		sl_debug("cannot write '%s': %s", path, strerror(errno));
	json_decref(record);
}

static struct sl_history_seen *find(struct sl_history *h, uint64_t run)
{
	for (unsigned i = 0; i < SL_HISTORY_LIVE; i++)
		if (h->seen[i].run == run)
			return &h->seen[i];
	return NULL;
}

static void drop(struct sl_history_seen *seen)
{
	json_decref(seen->status);
	memset(seen, 0, sizeof(*seen));
}

void sl_history_see(struct sl_history *h, uint64_t run)
{
	json_t *status = h->status_of ? h->status_of(h->arg, run) : NULL;
	struct sl_history_seen *seen = status ? find(h, run) : NULL;

	if (status && !seen)
		seen = find(h, 0); /* a free one */
	if (!seen) {
		json_decref(status);
		return;
	}
	json_decref(seen->status);
	seen->run = run;
	seen->status = status;
	if (sl_clock_ns() - seen->written_ns >= WRITE_NS)
		write_seen(h, seen);
}

void sl_history_end_seen(struct sl_history *h, uint64_t run, bool crashed)
{
	struct sl_history_seen *seen = find(h, run);
	char path[1200];

	if (seen && crashed)
		write_seen(h, seen);
	if (seen)
		drop(seen);
	path_of(h, run, path, sizeof(path));
	if (!crashed && unlink(path) && errno != ENOENT)
		sl_debug("cannot remove '%s': %s", path, strerror(errno));
}

void sl_history_close_seen(struct sl_history *h)
{
	for (unsigned i = 0; i < SL_HISTORY_LIVE; i++) {
		if (h->seen[i].run)
			write_seen(h, &h->seen[i]);
		drop(&h->seen[i]);
	}
}

json_t *sl_history_last_seen(const struct sl_history *h, uint64_t run)
{
	char path[1200];
	json_t *json;

	path_of(h, run, path, sizeof(path));
	json = json_load_file(path, 0, NULL);
	if (json && !json_is_object(json)) {
		json_decref(json);
		return NULL;
	}
	return json;
}
