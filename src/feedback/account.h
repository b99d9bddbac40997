/* account.h - the front end hears what was decided: exactly one answer for every event it sent.
 *
 * Model:     the sender says which frame it begins, and when (sl_feedback_account_sent). Packets
 *            of answers (docs/reference/feedback.md) tick events off; those of the frame that are
 *            left when the end has come, or when a later frame needs its place, are missing. An
 *            answer to an event that has one is a duplicate, to one that was never sent unknown;
 *            but "no data" is a true word about what was not sent, and where this front end has
 *            some of the modules, the others may have sent it. A frame that one sender left out
 *            may have such an answer before another sender's module of it begins to leave: then
 *            it is the one answer of its event. Where modules have events of their own, those of
 *            others' modules are theirs to hear of. How long after its event each answer came is
 *            kept.
 * Threads:   sent() on data threads, each with a number of its own as sender; all else on one
 *            other, or when all have ended.
 *            outstanding and heard_ns may be read by anybody.
 * Ownership: owns its tables.
 * Cost:      sent() writes 16 bytes; an answer costs a bit and a place in a histogram. */
#ifndef SL_FEEDBACK_ACCOUNT_H
#define SL_FEEDBACK_ACCOUNT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "feedback/wire.h"

enum { SL_FEEDBACK_ACCOUNT_NOTES = 1 << 14 };

struct sl_feedback_account_count {
	uint64_t frames, events; /* sent */
	uint64_t kept, rejected, no_data;
	uint64_t missing, duplicate, unknown;
	uint64_t not_sent; /* answers to what was not sent, and rightly so */
	uint64_t late;	   /* after the deadline */
	uint64_t packets, packets_lost, malformed;
};

struct sl_feedback_account_frame {
	uint64_t number, event_ns; /* event_ns 0: answered, and nothing of it was sent so far */
	uint32_t left;		   /* events without an answer */
	uint32_t early[SL_FEEDBACK_DECISIONS]; /* answers before it was sent, by decision */
	bool used;
};

struct sl_feedback_account_note {
	uint64_t number, ns; /* ns 0: it is left out */
};

struct sl_feedback_account_notes {	   /* of one sender */
	alignas(64) _Atomic uint64_t head; /* the sender's */
	alignas(64) _Atomic uint64_t tail; /* the other thread's */
	struct sl_feedback_account_note note[SL_FEEDBACK_ACCOUNT_NOTES];
};

struct sl_feedback_account {
	uint32_t items;		 /* events of a frame */
	uint64_t step;		 /* between frame numbers */
	bool part;		 /* of the modules are elsewhere */
	uint32_t own_first, own; /* events of a frame that are sent from here, where modules have
				  * events of their own; else all */
	uint64_t deadline_ns;

	uint32_t window, words;			 /* frames that are watched; of bits, for each */
	struct sl_feedback_account_frame *frame; /* [window], by number */
	uint64_t *bits;		/* [window][words]: events that have their answer */
	bool begun;		/* there are: */
	uint64_t first, newest; /* frame numbers, of those left out, too */
	uint64_t next_packet;
	struct sl_feedback_account_count count;
	struct sl_histogram delay; /* ns from event to answer */
	_Atomic uint64_t outstanding, heard_ns;

	unsigned senders;
	struct sl_feedback_account_notes *notes; /* [senders] */
};

/* window 0: as many frames as can be under way, and then some. There is one sender. */
int sl_feedback_account_init(struct sl_feedback_account *account, uint32_t items, uint64_t step,
			     uint32_t window, bool part, uint64_t deadline_ns);
/* Of the events of a frame, only these are sent from here. Before anything is. */
void sl_feedback_account_own(struct sl_feedback_account *account, uint32_t first, uint32_t n);
/* So many threads call sent(). Before any does. */
int sl_feedback_account_senders(struct sl_feedback_account *account, unsigned senders);
void sl_feedback_account_fini(struct sl_feedback_account *account);

/* A module of this frame begins to leave now; ns 0: it never will. False: there is no room, the
 * other thread is behind. */
bool sl_feedback_account_sent(struct sl_feedback_account *account, unsigned sender, uint64_t number,
			      uint64_t ns);

/* All notes were taken. */
bool sl_feedback_account_absorbed(const struct sl_feedback_account *account);

/* Take the senders' notes: after a packet was received, before it is looked at. */
void sl_feedback_account_absorb(struct sl_feedback_account *account);

/* What came at this time: any bytes. */
void sl_feedback_account_packet(struct sl_feedback_account *account, const uint8_t *packet,
				size_t bytes, uint64_t now_ns);

/* Nothing more comes: what has no answer by now has none. */
void sl_feedback_account_end(struct sl_feedback_account *account);

/* Each event has its one answer, and nothing else came. */
bool sl_feedback_account_agree(const struct sl_feedback_account *account);

#endif
