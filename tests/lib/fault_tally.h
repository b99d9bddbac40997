/* fault_tally.h - what the seeds of a run covered: how often each thing was drawn, and in how many
 * of them each outcome was seen. */
#ifndef TESTS_LIB_FAULT_TALLY_H
#define TESTS_LIB_FAULT_TALLY_H

#include <stdatomic.h>

#include "lib/fault_verdict.h"

enum { TALLY_KINDS = 64 };

struct tally {
	struct tally_kind {
		const char *group, *name; /* literals: the same in all processes */
		uint64_t mixes;
	} kind[TALLY_KINDS];
	unsigned kinds;
	_Atomic uint64_t outcome[VERDICTS]; /* seeds that had one */
};

/* Asked in the same order every time, so that the list is the same. */
static inline void tally_one(struct tally *t, unsigned *at, const char *group, const char *name,
			     bool drawn)
{
	struct tally_kind *kind = &t->kind[(*at)++];

	kind->group = group;
	kind->name = name;
	kind->mixes += drawn;
	t->kinds = *at;
}

static inline bool tally_offsets(const struct mix *mix)
{
	bool any = false;

	for (uint32_t m = 0; m < mix->modules; m++)
		any |= mix->offset[m] != 0;
	return any;
}

/* How the clocks of a mix come out of the window: inside in all frames, in some, or in none. */
static inline unsigned tally_frames_inside(const struct mix *mix)
{
	unsigned inside = 0;

	for (uint64_t f = 0; f < mix->frames; f++) {
		int64_t low = INT64_MAX, high = INT64_MIN;

		for (uint32_t m = 0; m < mix->modules; m++) {
			int64_t key = mix_key(mix, m, f);

			low = key < low ? key : low;
			high = key > high ? key : high;
		}
		inside += high - low <= (int64_t)mix->window;
	}
	return inside;
}

static inline void tally_align(struct tally *t, unsigned *at, const struct mix *mix)
{
	bool clocks = mix->align == MIX_TIMESTAMP && mix->modules > 1 && !mix->apart &&
		      (mix->drift_ppm || mix->clock_offset);
	unsigned inside = clocks ? tally_frames_inside(mix) : 0;

	tally_one(t, at, "align", "sequence", mix->align == MIX_SEQUENCE);
	tally_one(t, at, "align", "frame", mix->align == MIX_FRAME);
	tally_one(t, at, "align", "timestamp", mix->align == MIX_TIMESTAMP);
	tally_one(t, at, "clocks", "inside the window", clocks && inside == mix->frames);
	tally_one(t, at, "clocks", "outside", clocks && !inside);
	tally_one(t, at, "clocks", "both in turn", clocks && inside && inside < mix->frames);
	tally_one(t, at, "numbers", "wrap", mix->wrap_bits < 64 && mix->align == MIX_FRAME);
	tally_one(t, at, "numbers", "timestamps wrap",
		  mix->wrap_bits < 64 && mix->align == MIX_TIMESTAMP);
	tally_one(t, at, "numbers", "offsets", tally_offsets(mix));
	tally_one(t, at, "numbers", "apart by frames", mix->apart > 0);
}

static inline void tally_policies(struct tally *t, unsigned *at, const struct mix *mix)
{
	bool back = mix->restarts && mix->restart_after + mix->restart_frames < mix->frames;

	tally_one(t, at, "incomplete", "drop", !mix->keep);
	tally_one(t, at, "incomplete", "keep", mix->keep);
	tally_one(t, at, "overrun", "stop", mix->overrun == MIX_STOP);
	tally_one(t, at, "overrun", "drop_newest", mix->overrun == MIX_NEWEST);
	tally_one(t, at, "overrun", "drop_oldest", mix->overrun == MIX_OLDEST);
	tally_one(t, at, "overrun", "pause", mix->overrun == MIX_PAUSE);
	tally_one(t, at, "front ends", "one", mix->fronts == 1);
	tally_one(t, at, "front ends", "several", mix->fronts > 1);
	tally_one(t, at, "front ends", "some come back", back);
	tally_one(t, at, "front ends", "some stay away", mix->restarts && !back);
}

static inline void tally_links(struct tally *t, unsigned *at, const struct mix *mix)
{
	static const char *const names[] = {"udp uc", "udp rc",	  "shm",
					    NULL,     "verbs uc", "verbs rc"};
	static const char *const loose[] = {"udp uc", "udp rc", NULL, NULL, "verbs uc", "verbs rc"};
	unsigned drawn = mix->link * 2 + mix->rc;

	for (unsigned i = 0; i < 6; i++)
		if (names[i] && (i < 4 || sl_link_find("verbs")))
			tally_one(t, at, "link", names[i], drawn == i);
	for (unsigned i = 0; i < 6; i++)
		if (loose[i] && (i < 4 || (sl_link_find("verbs") && MIX_MAY_RACE)))
			tally_one(t, at, "open loop", loose[i], drawn == i && mix->open_loop);
	tally_one(t, at, "parts", "rectangles",
		  mix->left || mix->right || mix->above || mix->below);
	tally_one(t, at, "parts", "in larger ones", mix->ring_x || mix->ring_y);
	tally_one(t, at, "parts", "one frame in N", mix->every > 1);
	tally_one(t, at, "parts", "not the first", mix->phase > 0);
	tally_one(t, at, "parts", "stacks", mix->stack > 1);
	tally_one(t, at, "also", "a chopper", mix->chop > 0);
	tally_one(t, at, "also", "sources that trespass", mix->trespasses > 0);
	tally_one(t, at, "also", "slow sinks", mix->nap_us > 0);
	tally_one(t, at, "also", "one data thread", mix->together);
}

static inline void tally_faults(struct tally *t, unsigned *at, const struct mix *mix)
{
	static const char *const names[] = {"drop",  "corrupt",	  "duplicate", "reorder",
					    "burst", "wrong_key", "spoil",     "skip",
					    "delay", "drift_ppm"};
	char word[32];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(word, sizeof(word), ", %s: ", names[i]);
		tally_one(t, at, "faults", names[i], strstr(mix->faults, word));
	}
	tally_one(t, at, "faults", "skip without a gap", mix->skips && mix->align != MIX_SEQUENCE);
	tally_one(t, at, "faults", "loss on a NIC's wire", mix->drop_on_wire > 0);
}

static inline void tally_mix(struct tally *t, const struct mix *mix)
{
	unsigned at = 0;

	tally_align(t, &at, mix);
	tally_policies(t, &at, mix);
	tally_links(t, &at, mix);
	tally_faults(t, &at, mix);
}

static inline void tally_outcomes(struct tally *t, const struct verdict *v)
{
	for (unsigned i = STORED; i < VERDICTS; i++) {
		uint64_t n = 0;

		for (uint32_t m = 0; m < v->o->modules; m++)
			n += v->count[m][i];
		atomic_fetch_add(&t->outcome[i], n > 0);
	}
}

/* What never was; NULL: there is nothing. */
static inline const char *tally_print(const struct tally *t, FILE *file, uint64_t first,
				      uint64_t count)
{
	const char *missing = NULL;

	fprintf(file, "seeds %llu to %llu", (unsigned long long)first,
		(unsigned long long)(first + count - 1));
	for (unsigned i = 0; i < t->kinds; i++) {
		const struct tally_kind *kind = &t->kind[i];
		bool same = i && !strcmp(kind->group, kind[-1].group);

		fprintf(file, same ? ", " : "\n  %s: ", kind->group);
		fprintf(file, "%llu %s", (unsigned long long)kind->mixes, kind->name);
		missing = kind->mixes ? missing : kind->name;
	}
	fprintf(file, "\n  seen in: ");
	for (unsigned i = STORED; i < VERDICTS; i++)
		fprintf(file, "%s%llu %s", i == STORED ? "" : ", ",
			(unsigned long long)t->outcome[i], verdict_name[i]);
	fprintf(file, "\n");
	return missing;
}

#endif
