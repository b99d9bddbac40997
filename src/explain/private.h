/* private.h - what is known of a run that is to be explained, and what the files of this folder
 * make of it.
 *
 * Files:     read.c the result or status; read_flight.c flight.json; measure.c what follows from
 *            both; rules.c the table of rules and the order of what they find; path.c, host.c,
 *            room.c, sinks.c the rules; print.c sentences for people and JSON. */
#ifndef SL_EXPLAIN_PRIVATE_H
#define SL_EXPLAIN_PRIVATE_H

#include <jansson.h>

#include <sluice/status.h>

#include "explain/explain.h"

enum { SL_CASE_MODULES = SL_STATUS_MODULES, SL_CASE_SINKS = 16 };
#define SL_NO_VALUE UINT64_MAX

struct sl_case_series {
	const char *name; /* the text's */
	size_t n;
	uint64_t constant; /* with n 0: of all samples */
	uint64_t *value;   /* [n]; SL_NO_VALUE: absent */
};

struct sl_case_module {
	uint64_t sent, skipped, outcome[SL_OUTCOMES], cause[SL_CAUSES];
	bool vanished;
	uint64_t sampled;	  /* packets in the flight record */
	uint32_t longest_payload; /* of these */
};

struct sl_case_sink {
	char name[64], where[512], error[160], on_slow[16];
	bool required;
	uint64_t waited_ns, waiting_most, mark, left_out;
};

struct sl_case {
	bool has_result, has_flight, is_live;
	char experiment[512];

	/* The ledger. */
	uint64_t sent, skipped, outcome[SL_OUTCOMES], cause[SL_CAUSES];
	unsigned modules, vanished;
	struct sl_case_module module[SL_CASE_MODULES];

	/* The link. */
	char link[16];
	uint64_t packets, bytes, drop[SL_DROPS], marked, notified, receive_buffer;

	/* The rest of the receiver. */
	uint64_t slots, slots_most, frames;
	double seconds, unit_busy; /* unit_busy below 0: not known */
	bool crowded;
	unsigned sinks;
	struct sl_case_sink sink[SL_CASE_SINKS];

	/* flight.json */
	char interface[16], overrun[16], align[16], listen[64];
	bool credits, one_way;
	uint32_t mtu, longest_packet, pmtu;
	uint64_t block_packets, block_bytes, late_timeout_us, late_frames, receive_buffer_wanted;
	int cpus_allowed, cpus_online;
	uint64_t pid, first_loss_ns;
	size_t samples;
	uint64_t *at_ns; /* [samples] */
	size_t n_series;
	struct sl_case_series *series;
	json_t *flight; /* keeps names alive */
};

/* read.c, read_flight.c */
int sl_case_read(struct sl_case *c, const char *text, size_t bytes, char *why, size_t why_bytes);
int sl_case_read_flight(struct sl_case *c, const char *text, size_t bytes, char *why,
			size_t why_bytes);
void sl_case_free(struct sl_case *c);
/* Members of JSON objects; 0, or what is given, where there is none. */
uint64_t sl_member(const json_t *object, const char *key);
void sl_member_text(const json_t *object, const char *key, char *text, size_t bytes);

/* The experiment's file, for commands. */
const char *sl_case_file(const struct sl_case *c);

/* ---- series ---- */

const struct sl_case_series *sl_case_find(const struct sl_case *c, const char *name);
/* At a sample; SL_NO_VALUE: absent. series NULL: absent. */
uint64_t sl_series_of(const struct sl_case_series *series, size_t sample);
/* How much a counter grew in the whole record, and between two samples; 0 where it is absent. */
uint64_t sl_case_grew(const struct sl_case *c, const char *name);
uint64_t sl_case_grew_between(const struct sl_case *c, const char *name, size_t from, size_t to);

/* ---- measures ---- */

/* Module-frames of the losses of each group. */
uint64_t sl_case_lost(const struct sl_case *c);
uint64_t sl_case_missing(const struct sl_case *c); /* damaged, or nothing came; less the skipped */
/* Packets that front ends sent and that were not placed; 0: not known. */
double sl_case_missing_packets(const struct sl_case *c);
/* Of the module-frames that came near the first loss, the share that found no room. */
double sl_case_share_without_room(const struct sl_case *c);

struct sl_case_stop { /* a time in which no thread of the process ran or wanted to */
	double seconds;
	size_t sample; /* the one after it */
};
bool sl_case_stopped(const struct sl_case *c, struct sl_case_stop *stop);

/* Of the threads whose names begin so, near the first loss. Only sums of a sample are known: a wait
 * was at least wait_ms long, the average of its sample, and the longest at most longest_ms, which
 * is the sum less what the other waits of the sample usually take. waited_ms of of_ms: the sample
 * with that sum. Shares are of a sample, the largest; mean_share: of all these samples. */
struct sl_case_threads {
	double wait_ms, longest_ms, waited_ms, of_ms, wait_share, mean_share, run_share;
};
bool sl_case_threads(const struct sl_case *c, const char *prefix, struct sl_case_threads *t);

/* What a receive buffer holds: bytes of payload, and milliseconds at the rate of the loss; 0: not
 * known. */
double sl_case_buffer_bytes(const struct sl_case *c);
double sl_case_buffer_ms(const struct sl_case *c);
/* Bytes of pixels a second that front ends sent, at most in a sample. */
double sl_case_rate(const struct sl_case *c);

/* ---- findings ---- */

/* A rule: false where nothing speaks for it. */
typedef bool sl_rule_fn(const struct sl_case *c, struct sl_finding *f);

sl_rule_fn sl_rule_stopped_receiver, sl_rule_small_receive_buffer, sl_rule_starved_core,
	sl_rule_busy_link_thread, sl_rule_nic_ring, sl_rule_kernel_backlog; /* host */
sl_rule_fn sl_rule_wrong_mtu, sl_rule_congested_port, sl_rule_lossy_cable, sl_rule_late_front_end,
	sl_rule_nothing_arrives, sl_rule_vanished_front_end, sl_rule_skipped,
	sl_rule_foreign_packets, sl_rule_spoilt_memory, sl_rule_wrong_record; /* path */
sl_rule_fn sl_rule_overrun_policy, sl_rule_slow_sink_room, sl_rule_stopped_room,
	sl_rule_starved_room, sl_rule_overwritten, sl_rule_unit_failed; /* room */
sl_rule_fn sl_rule_full_disk, sl_rule_disk_quota, sl_rule_file_size_limit, sl_rule_failed_sink,
	sl_rule_slow_disk; /* sinks */

void sl_finding_say(struct sl_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void sl_finding_advise(struct sl_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void sl_finding_command(struct sl_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void sl_finding_prove(struct sl_finding *f, const char *name, double value, const char *unit);

#endif
