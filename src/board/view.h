/* view.h - what a screen shows of a session: out of its status, as JSON.
 *
 * Model:     fields that are absent or of another type are unknown: 0, "", or below 0 where that
 *            says so. Any bytes are fine: tests/fuzz/board_fuzz.c.
 * Threads:   one at a time.
 * Cost:      20 KiB for each session, half of it the history of the last minutes. */
#ifndef SL_BOARD_VIEW_H
#define SL_BOARD_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/outcome.h>

enum {
	SL_VIEW_MODULES = 16,
	SL_VIEW_HOPS = 8,
	SL_VIEW_SINKS = 8,
	SL_VIEW_DISKS = 4,
	SL_VIEW_DROPS = 8,
	SL_VIEW_RATES = 600,
};

struct sl_view_column { /* of the ledger */
	uint64_t sent, settled, skipped, pending, outcome[SL_OUTCOMES], cause[SL_CAUSES];
};

struct sl_view_hop {
	char name[16];
	double p50_us, p99_us, max_us;
};

struct sl_view_gauge {
	uint64_t now, most, of; /* of 0: no limit */
};

struct sl_view_sink {
	char name[32], where[256], error[160];
	bool required;
	int64_t frames, bytes; /* of its figures; below 0: it has none */
	uint64_t left_out;
	bool has_pace;
	struct sl_view_gauge waiting;
	uint64_t mark;
};

struct sl_view_disk {
	char path[256];
	uint64_t free_bytes, frames_fit;
	bool fits;
};

struct sl_view {
	char name[64], state[16], result[16], experiment[256], transfer[64], folder[256];
	char error[300], hint[256], early[160], stopped_by[32], flight[256], link[16];
	bool is_detector, has_status, drained, closed;
	uint64_t run, frames, expected, kept, misuse;
	double frames_per_s, bytes_per_s;			/* below 0: not known */
	double age_s, begun_unix_s, ended_unix_s, taken_unix_s; /* age below 0: not known */
	uint64_t alive, gone;
	unsigned modules; /* of which there is a column */
	struct sl_view_column total, module[SL_VIEW_MODULES];
	unsigned hops;
	struct sl_view_hop hop[SL_VIEW_HOPS];
	struct sl_view_gauge slots, unit, at_sinks;
	unsigned drops;
	struct {
		char name[32];
		uint64_t packets;
	} drop[SL_VIEW_DROPS];
	unsigned sinks;
	struct sl_view_sink sink[SL_VIEW_SINKS];
	unsigned disks;
	struct sl_view_disk disk[SL_VIEW_DISKS];

	/* Of the last statuses, this one last: frames/s, module-frames lost since the one before,
	 * slots of the ring, seconds since the one before. */
	size_t rates;
	float rate[SL_VIEW_RATES], loss[SL_VIEW_RATES], slots_used[SL_VIEW_RATES],
		since_s[SL_VIEW_RATES];
};

/* The status, or a reply that has one. -EINVAL: it is neither, and nothing has changed. The history
 * of `view` goes on. */
int sl_view_read(struct sl_view *view, const char *json, size_t bytes);

/* Module-frames that were lost or damaged. */
uint64_t sl_view_lost(const struct sl_view_column *column);
bool sl_view_is_loss(enum sl_outcome outcome);

#endif
