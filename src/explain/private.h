/* private.h - what is known of a run that is to be explained, and what the files of this folder
 * make of it.
 *
 * Files:     read.c the result or status; read_flight.c flight.json; measure.c what follows from
 *            both; packets.c how many packets are missing, and where; rules.c the table of rules
 *            and the order of what they find; path.c, wire.c, host.c, room.c, sinks.c the rules;
 *            commands.c commands that several rules give; print.c sentences for people and JSON;
 *            remains.c what a run has left that has neither a result nor a record. */
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
	uint64_t sent, skipped, offered, outcome[SL_OUTCOMES], cause[SL_CAUSES];
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
	bool has_result, has_flight, is_live, is_unclosed;
	char experiment[512];
	/* For commands, as words of the shell; empty: not known. */
	char result_word[SL_EXPLAIN_PATH], log_word[SL_EXPLAIN_PATH], pcapng_word[SL_EXPLAIN_PATH],
		session[128];
	char file_word[SL_EXPLAIN_PATH];

	/* The ledger. */
	uint64_t sent, skipped, outcome[SL_OUTCOMES], cause[SL_CAUSES];
	unsigned modules, vanished;
	uint64_t misuse;
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
	/* What an emulated front end does on purpose: shares of packets, and of blocks. */
	double inject_drop, inject_corrupt, inject_skip;
	uint64_t first_loss_ns;
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

/* What sockets had no room for. The kernel counts a batch once: packets that their sender (GSO), or
 * the kernel on the way in (GRO), keeps together. */
struct sl_case_full {
	uint64_t counted; /* receive-queue drops */
	unsigned batch;	  /* packets in one of them, at most; 1: each is a packet */
	double most;	  /* packets, no more than are missing */
};
struct sl_case_full sl_case_full(const struct sl_case *c);
/* "the kernel counts 291 receive-queue drops, each of 1 to 15 packets; 4359 packets are missing" */
const char *sl_case_full_words(const struct sl_case *c, char *text, size_t bytes);

/* How much the counters of the interface grew that tell of packets that it had no room for, or
 * that were damaged; of the kernel's queues before sockets; 0: not by enough to explain a tenth of
 * what is missing. These counters are of the whole host. */
uint64_t sl_case_nic_missed(const struct sl_case *c);
uint64_t sl_case_nic_errors(const struct sl_case *c);
uint64_t sl_case_backlog_dropped(const struct sl_case *c);
/* Packets that came and were turned away since they do not fit the plan. */
uint64_t sl_case_refused(const struct sl_case *c);

/* Packets that went missing between front ends and this host, as far as the numbers prove it. */
struct sl_case_on_the_way {
	double damaged;	       /* that arrived so */
	double gone;	       /* that did not arrive; at least */
	uint64_t quiet_frames; /* module-frames that were damaged while no queue here was full */
};
struct sl_case_on_the_way sl_case_on_the_way(const struct sl_case *c);

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
	sl_rule_busy_link_thread, sl_rule_overflowed_buffer, sl_rule_nic_ring,
	sl_rule_kernel_backlog; /* host */
sl_rule_fn sl_rule_wrong_mtu, sl_rule_congested_port, sl_rule_lossy_cable,
	sl_rule_nothing_arrives; /* wire */
sl_rule_fn sl_rule_late_front_end, sl_rule_vanished_front_end, sl_rule_skipped,
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
/* It explains no more module-frames than packets. */
void sl_finding_packets(struct sl_finding *f, double packets);

/* Why there is nothing to explain a run folder by, and what is known of it: never fails. */
void sl_explain_remains(const char *folder, char *why, size_t why_bytes);

/* ---- words and commands ---- */

typedef bool sl_hurt_fn(const struct sl_case_module *m);

/* Modules that are hurt: "module 3", "modules 1, 4", "all modules". */
void sl_case_modules(const struct sl_case *c, sl_hurt_fn *is_hurt, char *text, size_t bytes);
sl_hurt_fn sl_case_misses;
uint64_t sl_case_missing_of(const struct sl_case_module *m);

/* A path as a word of the shell; empty where it is too long. */
void sl_shell_word(const char *path, char *text, size_t bytes);
/* Fills in the words of the case. */
void sl_case_words(struct sl_case *c, const struct sl_explain_texts *texts);
/* Shows a count of each module, from the result or of the live session. */
void sl_command_by_module(const struct sl_case *c, struct sl_finding *f, const char *count);
/* Shows the warnings and errors of the run's log. */
void sl_command_log(const struct sl_case *c, struct sl_finding *f);
/* Shows the first packets of the flight record, or packets as they come. */
void sl_command_packets(const struct sl_case *c, struct sl_finding *f);
/* The experiment's file, as a word of the shell. */
const char *sl_case_file(const struct sl_case *c);
/* "any", which tcpdump takes, where it is not known. */
const char *sl_case_interface(const struct sl_case *c);
/* Data come from this host: there is no cable, and no NIC. */
bool sl_case_is_loopback(const struct sl_case *c);

#endif
