/* fault_mix.h - an experiment and its faults, as drawn from a seed (fault_mix_draw.h). */
#ifndef TESTS_LIB_FAULT_MIX_H
#define TESTS_LIB_FAULT_MIX_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIX_MODULES = 4, MIX_TRESPASSES = 3 };

/* Where a source without credits writes while the receiver copies, as RDMA does, no checker of
 * threads can be content. */
#if defined(__SANITIZE_THREAD__)
enum { MIX_MAY_RACE = 0 };
#else
enum { MIX_MAY_RACE = 1 };
#endif
enum mix_link { MIX_UDP, MIX_SHM, MIX_VERBS };
enum mix_align { MIX_SEQUENCE, MIX_FRAME, MIX_TIMESTAMP };
enum mix_overrun { MIX_STOP, MIX_NEWEST, MIX_OLDEST, MIX_PAUSE };

struct mix {
	uint64_t seed, state; /* of the generator */
	enum mix_link link;
	bool rc, crc, send, stacked, keep;
	bool open_loop;	     /* the source takes no credits: what has no room is refused */
	const char *message; /* per packet, line or module */
	uint32_t modules, rows, columns, pitch, pmtu;
	uint32_t packets, message_packets; /* of a block, of a message */
	uint32_t record_packet;		   /* of a block: where its record begins */
	uint32_t slots, late, workers, batch, pollers, senders, hold;
	uint32_t frames, darks; /* of the receiver, darks among them */
	uint32_t every, phase, stack;
	uint32_t chop; /* a chopper makes one in so many of the detector's frames dark; 0: none */
	/* What is sent is a rectangle: pixels of the detector's modules to its left, right, above
	 * and below; and where it begins in the ring's lines. */
	uint32_t left, right, above, below, ring_x, ring_y;
	uint32_t nap_us; /* of the sink, at every frame */
	bool together;	 /* one data thread on the receiving side */
	enum mix_overrun overrun;

	/* Alignment. The detector runs already: the first frame that is sent is its `first`. */
	enum mix_align align;
	uint64_t first, window;
	uint32_t wrap_bits;
	int64_t offset[MIX_MODULES];
	uint32_t apart; /* frames that offsets put between modules */
	int32_t drift_ppm;
	int64_t clock_offset;

	/* Front ends: from which module on each has them, and a bit for each that goes away and
	 * comes back. */
	uint32_t fronts, front_at[MIX_MODULES + 1];
	uint32_t restarts, restart_after, restart_frames;
	uint32_t limit; /* sequences that the others may come to meanwhile */

	/* Sources that announce blocks before there is room, on links that cannot refuse. */
	uint32_t trespasses, trespass_module[MIX_TRESPASSES], trespass[MIX_TRESPASSES];

	int fault_module; /* the only one that is hurt; -1: all are */
	uint64_t fault_seed;
	double drop_on_wire; /* where the link cannot be told to drop */
	uint32_t delay;
	bool loses, skips;
	char faults[512]; /* of the front end's section */
	size_t faults_bytes;
};

static inline uint64_t mix_bits(struct mix *mix)
{
	uint64_t x = mix->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* first..last, all as likely. */
static inline uint32_t mix_range(struct mix *mix, uint32_t first, uint32_t last)
{
	return first + (uint32_t)(mix_bits(mix) % (last - first + 1));
}

static inline bool mix_one_in(struct mix *mix, uint32_t n)
{
	return mix_range(mix, 1, n) == 1;
}

static inline void mix_say(struct mix *mix, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	mix->faults_bytes += (size_t)vsnprintf(mix->faults + mix->faults_bytes,
					       sizeof(mix->faults) - mix->faults_bytes, format,
					       list);
	va_end(list);
}

/* A share that hits a few of `all`, or many, or now and then every one. */
static inline double mix_share(struct mix *mix, double all, double most)
{
	static const double hits[] = {1, 2, 5, 20, 100};
	double share = hits[mix_range(mix, 0, 4)] / all;

	if (mix_one_in(mix, 40))
		share = 1;
	return share < most ? share : most;
}

/* Frames of the detector that make one of the receiver's. */
static inline uint32_t mix_step(const struct mix *mix)
{
	return mix->every * mix->stack;
}

/* The detector's own count of a frame of the run, with which a stack begins. */
static inline uint64_t mix_number(const struct mix *mix, uint64_t index)
{
	return index * mix_step(mix) + mix->phase;
}

/* Dark frames that the detector has at its beginning: the run's, and all before them. */
static inline uint64_t mix_darks(const struct mix *mix)
{
	return mix->darks ? (mix->darks + mix->first) * mix_step(mix) : 0;
}

static inline bool mix_is_dark(const struct mix *mix, uint64_t frame)
{
	uint64_t number = mix_number(mix, mix->first + frame), first = mix_darks(mix);

	return number < first || (mix->chop && (number - first) % mix->chop == mix->chop - 1);
}

/* A source whose data cannot be kept from being too much: the account is exact of what arrived. */
static inline bool mix_is_loose(const struct mix *mix)
{
	return mix->open_loop && !(mix->link == MIX_UDP && mix->rc);
}

static inline uint32_t mix_front_of(const struct mix *mix, uint32_t module)
{
	uint32_t f = 0;

	while (module >= mix->front_at[f + 1])
		f++;
	return f;
}

/* Whether the front ends hurt this module. */
static inline bool mix_hurts(const struct mix *mix, uint32_t module)
{
	return mix->fault_module < 0 || mix->fault_module == (int)module;
}

#endif
