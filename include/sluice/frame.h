/* frame.h - a frame on its way: views of its modules, results of stages, the verdict.
 *
 * Model:     a frame is a vector of module views, never one slot: modules may lie in one slot of
 *            one ring, or each elsewhere. Every sequence becomes a frame, whole or not, and travels
 *            the whole pipeline, so that the place where outcomes are settled sees each exactly
 *            once and in order. Stages add named results, which outlive the slot. A frame whose
 *            modules do not share a sequence has one of its own, which counts frames, and each
 *            view says where in its module's stream it was. Where an experiment has several
 *            detectors, a frame is an event: its views are those of the detector that defines
 *            events, and those of the others follow them.
 * Threads:   a frame has one owner at a time: assembler, unit, sinks. Handing it on is the
 *            synchronisation.
 * Ownership: frames, views, results and verdicts belong to the pipeline's pool. A view's pixels are
 *            valid until the unit gives the frame back (pixels.host is NULL afterwards); results
 *            until the last sink has returned. */
#ifndef SLUICE_FRAME_H
#define SLUICE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/outcome.h>
#include <sluice/record.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_region;

/* Of pixels, SL_DTYPES of them; and two more that results may have. */
enum sl_dtype { SL_U8, SL_U16, SL_U32, SL_I16, SL_I32, SL_F32, SL_DTYPES, SL_I64, SL_F64 };

size_t sl_dtype_bytes(enum sl_dtype dtype);
const char *sl_dtype_name(enum sl_dtype dtype); /* "uint16", ... as numpy spells it */

enum { SL_RESULTS = 32, SL_RANK = 4, SL_NAME_BYTES = 32 };

/* The type and extent of an array; slowest dimension first, contiguous. */
struct sl_shape {
	char name[SL_NAME_BYTES];
	enum sl_dtype dtype;
	uint32_t rank;
	uint32_t dim[SL_RANK];
	uint32_t ragged;  /* 1: dim[0] is the most rows that there can be; sl_array.rows are */
	uint32_t image;	  /* 1: one element per pixel, as the raw pixels lie; tile() writes it */
	uint32_t photons; /* 1: floats that are photons; else they are keV */
	const char *doc;  /* a line about it for the file, or NULL */
};

/* What a photon counts in an image of this shape: 1, or its energy. */
static inline double sl_shape_photon(const struct sl_shape *shape, double photon_energy_keV)
{
	return shape->dtype == SL_F32 && !shape->photons ? photon_energy_keV : 1;
}

uint64_t sl_shape_elements(const struct sl_shape *shape);
uint64_t sl_shape_bytes(const struct sl_shape *shape);

/* An array somewhere: in host or device memory. `host` is NULL where the CPU cannot read it. */
struct sl_array {
	struct sl_shape shape;
	struct sl_region *region;
	uint64_t offset;
	void *host;
	uint64_t pitch; /* raw pixels: bytes from one row to the next; 0: rows follow each other */
	uint32_t rows;	/* of a ragged shape: how many there are in this frame, set by its stage */
};

/* Points in the life of a frame; the differences are the latency per hop. All CLOCK_MONOTONIC of
 * this host, but EMIT, which is the source's clock and only comparable when source and receiver
 * share a host. */
enum sl_hop {
	SL_HOP_EMIT,	  /* the source began to send the frame (earliest module) */
	SL_HOP_EVENT,	  /* the last module's event was raised */
	SL_HOP_ASSEMBLED, /* the assembler gave it out */
	SL_HOP_PROCESSED, /* the unit gave it back */
	SL_HOPS,
};

/* Why a verdict is what it is. A stage that decides sets its own. */
enum sl_reason {
	SL_REASON_UNJUDGED, /* no stage decided: kept */
	SL_REASON_DARK,
	SL_REASON_BRIGHT_PIXELS, /* veto: enough (or not) pixels over the threshold */
	SL_REASON_NO_PEDESTAL,	 /* correct: no dark frame came before this one */
	SL_REASON_SCORE,	 /* any other stage: its score decided */
	SL_REASON_SPOTS,	 /* spots: enough (or not) spots */
	SL_REASON_PEAKS,	 /* peaks: enough (or not) peaks */
	SL_REASON_PRESCALED,	 /* prescale: rejected, but kept as a sample of what is */
	SL_REASON_RINGS,	 /* rings: they are (or not) those that are looked for */
	SL_REASON_TRACKS,	 /* tracks: enough (or not) candidates */
	SL_REASONS,
};

const char *sl_reason_name(enum sl_reason reason);

struct sl_verdict {
	uint64_t number, timestamp; /* of the item judged: events count through all frames */
	float score;
	uint16_t keep, reason;
};

struct sl_view {		 /* one module of the frame */
	struct sl_array pixels;	 /* raw, in the slot; a fill where the module is missing */
	struct sl_record record; /* a copy: the slot may be gone */
	uint64_t sequence;	 /* of this module's stream */
	uint16_t module;
	uint8_t outcome; /* enum sl_outcome; SL_NO_OUTCOME while the module is whole and undecided,
			    and for one that has nothing in this frame */
	uint8_t cause;	 /* enum sl_cause */
	uint8_t held;	 /* its cell of the ring is this frame's, until the unit gives it back */
	uint32_t packets_arrived;
};

enum sl_frame_flags {
	SL_FRAME_DARK = 1 << 0,
	/* Every module whole and proven; so is every part of another detector that the event
	 * needs. */
	SL_FRAME_COMPLETE = 1 << 1,
	/* Some are, and by the experiment's wish it goes on all the same: `missing` says which are
	 * not. Never together with SL_FRAME_COMPLETE. */
	SL_FRAME_PARTIAL = 1 << 2,
};
enum { SL_FILL_BYTE = 0xff }; /* of the pixels of a missing module: 65535, NaN; int16: -32768 */

struct sl_frame {
	uint64_t sequence, number, timestamp;
	uint64_t hop_ns[SL_HOPS];
	uint32_t flags;
	uint32_t views, results, items;
	uint64_t missing; /* a bit per module: its pixels are not here */
	/* 1: kept, and the sink that numbers images (sluice/sink.h) is not given this one, since it
	 * cannot keep pace. */
	uint32_t unnumbered;
	/* Views behind those, of detectors that attach to events (env.h); their bits in `missing`
	 * say which of them this event has not. It may be complete without them. */
	uint32_t others;
	struct sl_view *view;		    /* [views + others] */
	struct sl_array result[SL_RESULTS]; /* [results], in the order of the chain's outputs */
	struct sl_verdict
		*verdict; /* [items]; one for an image, one per event in a trigger batch */
};

struct sl_batch {
	struct sl_frame **frame; /* in sequence order */
	uint32_t frames, capacity;
	uint64_t deadline_ns; /* 0: none */
	int status;	      /* set by the unit: 0 or -errno */
};

/* Stages and sinks get it: complete, or kept although it is not. */
static inline int sl_frame_goes_on(const struct sl_frame *frame)
{
	return !!(frame->flags & (SL_FRAME_COMPLETE | SL_FRAME_PARTIAL));
}

/* Of all detectors. */
static inline uint32_t sl_frame_all_views(const struct sl_frame *frame)
{
	return frame->views + frame->others;
}

static inline int sl_frame_misses(const struct sl_frame *frame, uint32_t module)
{
	return (int)(frame->missing >> module & 1);
}

/* Nobody has rejected it so far. */
static inline int sl_frame_is_kept(const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < frame->items; i++)
		if (frame->verdict[i].keep)
			return 1;
	return 0;
}

/* Kept, but only as a sample of what is rejected. */
static inline int sl_frame_is_prescaled(const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < frame->items; i++)
		if (frame->verdict[i].keep && frame->verdict[i].reason != SL_REASON_PRESCALED)
			return 0;
	return sl_frame_is_kept(frame);
}

/* How a stage judges a frame as a whole: what an earlier one rejected stays rejected, with that
 * one's score and reason; so does what is kept as a sample of these. */
static inline void sl_frame_decide(struct sl_frame *frame, int keep, float score,
				   enum sl_reason reason)
{
	for (uint32_t i = 0; i < frame->items; i++) {
		struct sl_verdict *verdict = &frame->verdict[i];

		if (!verdict->keep || verdict->reason == SL_REASON_PRESCALED)
			continue;
		verdict->keep = !!keep;
		verdict->score = score;
		verdict->reason = (uint16_t)reason;
	}
}

/* The result of that name, or NULL. */
struct sl_array *sl_frame_result(struct sl_frame *frame, const char *name);

#ifdef __cplusplus
}
#endif

#endif
