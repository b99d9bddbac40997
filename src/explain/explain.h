/* explain.h - why a run lost frames: one sentence, the numbers that prove it, and the command that
 * mends it.
 *
 * Model:     a pure function of two texts: the result of a run (or its summary, or the status of a
 *            live one), whose ledger says what was lost, and flight.json of the flight recorder
 *            (flight/recorder.h), which says what the host did meanwhile. Either may be missing.
 *            Losses are sorted into groups by what the ledger calls them; for each group the rules
 *            of a table (rules.c) look at the evidence, and say how well it fits. Where no rule
 *            fits, the cause is not known, and what was looked at is said.
 * Threads:   no state.
 * Ownership: an explanation is plain data of the caller, without pointers to the texts.
 * Errors:    -EINVAL, with the reason: a text is no such JSON. Values that are missing or make no
 *            sense count as absent. */
#ifndef SL_EXPLAIN_EXPLAIN_H
#define SL_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SL_FINDINGS = 28, SL_EVIDENCE = 12, SL_EXPLAIN_PATH = 1200 };

struct sl_evidence {
	char name[64]; /* a constant of the reference page: "receive_buffer_holds" */
	char unit[12];
	double value;
};

struct sl_finding {	   /* a cause that fits */
	const char *cause; /* a word of the table of causes */
	const char *group; /* of losses: docs/reference/flight-recorder.md lists them */
	/* That the group has lost; of groups that are about packets at most, since what is missing
	 * may be shared out among several of them. */
	uint64_t module_frames;
	bool at_most;
	double score; /* how well the evidence fits, up to 1 */
	char sentence[640];
	char advice[320];   /* what to do, in words */
	char command[1400]; /* that does it, or finds what is to be done */
	unsigned evidence;
	struct sl_evidence proof[SL_EVIDENCE];
};

struct sl_explanation {
	uint64_t lost; /* module-frames; 0: nothing was */
	uint64_t sent;
	bool has_result, has_flight, is_live;
	/* Frames may be missing that no ledger counts: a front end vanished, or the ledger does not
	 * close. */
	bool is_unclosed;
	unsigned findings; /* the best first; 0: not known, or nothing was lost */
	struct sl_finding finding[SL_FINDINGS];
	char looked_at[640];	   /* in words, where no cause is known */
	char run[SL_EXPLAIN_PATH]; /* what it is about: a folder, a file or a session */
	char transfer[64];	   /* empty: none */
};

struct sl_explain_texts {
	const char *result, *flight; /* NULL: not there; but not both */
	size_t result_bytes, flight_bytes;
	/* For commands: where the texts were read from, and the session that gave the result. NULL:
	 * not known, or from no file, or from no session. */
	const char *result_path, *flight_path, *session;
};

int sl_explain(const struct sl_explain_texts *texts, struct sl_explanation *explanation, char *why,
	       size_t why_bytes);

/* For people: the best cause first; others of other losses, and what is less likely, briefly. */
void sl_explain_print(FILE *out, const struct sl_explanation *explanation);

/* The same as JSON (malloc'ed): docs/reference/flight-recorder.md lists the fields. NULL: no
 * memory. */
char *sl_explain_json(const struct sl_explanation *explanation, size_t n);

/* All causes that there are, with a line about each; ends with a NULL name. */
struct sl_cause_word {
	const char *name, *doc;
};
extern const struct sl_cause_word sl_explain_causes[];

#endif
