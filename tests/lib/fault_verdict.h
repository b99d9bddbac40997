/* fault_verdict.h - what must become of every module-frame, held against what became of it.
 *
 * From what arrived (fault_oracle.h) everything follows: blocks that belong together are those of
 * lowest keys, as far as the window goes, one of each module at most; a frame is complete when all
 * modules are in it and whole. Three things are not in the fault log, because only time decides
 * them. Of those the log of outcomes is believed, as far as it can be true, and all else must
 * follow from that:
 *
 * - Where a source cannot be made to wait (open loop), any block may be turned away, lost,
 *   overwritten or damaged for want of room. Whatever the log says was hurt is still hurt, and what
 *   is called good had good partners. (Its pixels are looked at elsewhere: fault_pixels.h.)
 * - ring.overrun drop_oldest gives back frames that would have been good: whole frames, and no
 *   others.
 * - How many frames are given out while a front end is away. Its blocks of those are late: all of
 *   them up to some key and none after it, and none further than the other front ends could have
 *   been by then (mix.limit holds them back, so that often it is known to be none at all). */
#ifndef TESTS_LIB_FAULT_VERDICT_H
#define TESTS_LIB_FAULT_VERDICT_H

#include "lib/fault_mix_align.h"
#include "lib/fault_oracle.h"

enum verdict_of {
	NO_VERDICT,
	STORED,
	DARK,
	PARTNER,
	LATE,
	OLDEST,
	OVERWRITTEN,
	NO_SLOT,
	LOST,
	DAMAGED,
	RECORD,
	CHECKSUM,
	UNPROVEN_RECORD,
	UNPROVEN_CHECKSUM,
	VERDICTS,
};

static const char *const verdict_name[VERDICTS] = {
	[NO_VERDICT] = "nothing",
	[STORED] = "stored none",
	[DARK] = "vetoed dark",
	[PARTNER] = "incomplete partner",
	[LATE] = "incomplete late",
	[OLDEST] = "overrun oldest",
	[OVERWRITTEN] = "overrun overwritten",
	[NO_SLOT] = "overrun no_slot",
	[LOST] = "lost no_arrival",
	[DAMAGED] = "incomplete damaged",
	[RECORD] = "incomplete record",
	[CHECKSUM] = "incomplete checksum",
	[UNPROVEN_RECORD] = "unproven record",
	[UNPROVEN_CHECKSUM] = "unproven checksum",
};

struct verdict {
	const struct mix *mix;
	const struct oracle *o;
	uint8_t *seen, *says; /* [modules][frames], enum verdict_of */
	uint64_t count[MIX_MODULES][VERDICTS];
	int64_t late_to[MIX_MODULES]; /* blocks of who came back are late up to this key */
	char problem[256];
};

static inline enum verdict_of verdict_code(const char *text)
{
	for (unsigned i = 1; i < VERDICTS; i++)
		if (!strcmp(text, verdict_name[i]))
			return (enum verdict_of)i;
	return NO_VERDICT;
}

static inline bool verdict_init(struct verdict *v, const struct mix *mix, const struct oracle *o)
{
	*v = (struct verdict){.mix = mix, .o = o};
	for (uint32_t m = 0; m < MIX_MODULES; m++)
		v->late_to[m] = INT64_MIN;
	v->seen = calloc((size_t)o->modules * o->frames, 1);
	v->says = calloc((size_t)o->modules * o->frames, 1);
	return v->seen && v->says;
}

static inline void verdict_fini(struct verdict *v)
{
	free(v->seen);
	free(v->says);
}

static inline bool verdict_wrong(struct verdict *v, uint32_t module, uint64_t sequence,
				 const char *what, const char *more)
{
	snprintf(v->problem, sizeof(v->problem), "module %u, sequence %llu: %s%s", module,
		 (unsigned long long)sequence, what, more);
	return false;
}

/* Every sequence of every module has one outcome. */
static inline bool verdict_read(struct verdict *v, const char *path)
{
	FILE *file = fopen(path, "r");
	char outcome[32], cause[32], both[72];
	unsigned long long k;
	unsigned m;
	bool good = true;

	while (good && file && fscanf(file, "%llu %u %31s %31s", &k, &m, outcome, cause) == 4) {
		snprintf(both, sizeof(both), "%s %s", outcome, cause);
		if (m >= v->o->modules || k >= v->o->stream[m].sequences)
			good = verdict_wrong(v, m, k, "an outcome of what there was not: ", both);
		else if (v->seen[oracle_at(v->o, m, k)])
			good = verdict_wrong(v, m, k, "has two outcomes, one is ", both);
		else if (!(v->seen[oracle_at(v->o, m, k)] = verdict_code(both)))
			good = verdict_wrong(v, m, k, "nothing can be ", both);
		else
			v->count[m][verdict_code(both)]++;
	}
	for (m = 0; good && m < v->o->modules; m++)
		for (k = 0; good && k < v->o->stream[m].sequences; k++)
			if (!v->seen[oracle_at(v->o, m, k)])
				good = verdict_wrong(v, m, k, "has no outcome", "");
	if (file)
		fclose(file);
	return good;
}

/* ---- each by itself ---- */

static inline bool verdict_trespassed(const struct verdict *v, uint32_t module, uint64_t sequence)
{
	for (uint32_t i = 0; i < v->mix->trespasses; i++)
		if (v->mix->trespass_module[i] == module && v->mix->trespass[i] == sequence)
			return true;
	return false;
}

/* A source that cannot be made to wait: what more may have become of a block that was hurt so. */
static inline bool verdict_may_be(const struct verdict *v, enum verdict_of hurt,
				  enum verdict_of seen)
{
	bool nic = v->mix->link == MIX_VERBS;

	if (hurt == LOST)
		return false; /* what was not there was not turned away */
	if (seen == NO_SLOT || seen == LOST)
		return true;
	if (seen == DAMAGED)
		return !nic;
	if (!nic || (hurt == DAMAGED))
		return false;
	return seen == OVERWRITTEN || seen == UNPROVEN_RECORD || seen == UNPROVEN_CHECKSUM;
}

static inline enum verdict_of verdict_own(const struct verdict *v, uint32_t module,
					  uint64_t sequence)
{
	const char *text = oracle_hurt(v->o, module, sequence);
	enum verdict_of hurt = text ? verdict_code(text) : NO_VERDICT;
	enum verdict_of seen = v->seen[oracle_at(v->o, module, sequence)];

	if ((hurt == LOST || hurt == DAMAGED) && verdict_trespassed(v, module, sequence))
		return NO_SLOT;
	if (mix_is_loose(v->mix) && verdict_may_be(v, hurt, seen))
		return seen;
	return hurt;
}

/* ---- who was away ---- */

static inline bool verdict_is_back(const struct verdict *v, uint32_t module, uint64_t sequence)
{
	const struct oracle_stream *s = &v->o->stream[module];

	return s->restarted && sequence >= s->plan_at;
}

static inline int64_t verdict_key(const struct verdict *v, uint32_t module, uint64_t sequence)
{
	return mix_key(v->mix, module, v->o->frame[oracle_at(v->o, module, sequence)]);
}

/* No frame further than that can have been given out while the module was away: nobody else has
 * sent more. */
static inline int64_t verdict_late_limit(const struct verdict *v, uint32_t away)
{
	int64_t most = INT64_MIN;

	for (uint32_t m = 0; m < v->o->modules; m++) {
		uint64_t end = v->o->stream[m].sequences;

		end = end < v->mix->limit ? end : v->mix->limit;
		if (m != away && end && verdict_key(v, m, end - 1) > most)
			most = verdict_key(v, m, end - 1);
	}
	return most == INT64_MIN ? most : most + (int64_t)v->mix->window;
}

static inline bool verdict_find_late(struct verdict *v)
{
	for (uint32_t m = 0; m < v->o->modules; m++)
		for (uint64_t k = 0; k < v->o->stream[m].sequences; k++) {
			if (v->seen[oracle_at(v->o, m, k)] != LATE)
				continue;
			if (!verdict_is_back(v, m, k) ||
			    verdict_key(v, m, k) > verdict_late_limit(v, m))
				return verdict_wrong(v, m, k, "cannot be late", "");
			if (verdict_key(v, m, k) > v->late_to[m])
				v->late_to[m] = verdict_key(v, m, k);
		}
	return true;
}

/* ---- together ---- */

/* Its number is known, and its frame was not given out before. */
static inline bool verdict_has_key(const struct verdict *v, uint32_t module, uint64_t sequence)
{
	enum verdict_of own = v->says[oracle_at(v->o, module, sequence)];

	return own == NO_VERDICT || own == CHECKSUM || own == UNPROVEN_CHECKSUM;
}

struct verdict_group {
	uint64_t members, whole, overwritten; /* a bit per module */
	uint64_t at[MIX_MODULES];	      /* their sequences */
	bool dark, oldest;
};

static inline void verdict_judge(struct verdict *v, const struct verdict_group *g)
{
	uint64_t all = (UINT64_C(1) << v->o->modules) - 1;
	bool goes_on = g->whole == all || (v->mix->keep && g->whole);
	enum verdict_of good = g->dark ? DARK : STORED;

	for (uint32_t m = 0; m < v->o->modules; m++) {
		uint8_t *says;

		if (!(g->whole >> m & 1))
			continue;
		says = &v->says[oracle_at(v->o, m, g->at[m])];
		if (!goes_on)
			*says = PARTNER;
		else if (g->oldest && v->mix->overrun == MIX_OLDEST)
			*says = OLDEST;
		else if (g->overwritten)
			*says = g->overwritten >> m & 1 ? OVERWRITTEN : PARTNER;
		else
			*says = good;
	}
}

/* The lowest key of what is next of each module. */
static inline bool verdict_lowest(const struct verdict *v, uint64_t next[], int64_t *lowest)
{
	bool any = false;

	for (uint32_t m = 0; m < v->o->modules; m++) {
		while (next[m] < v->o->stream[m].sequences && !verdict_has_key(v, m, next[m]))
			next[m]++;
		if (next[m] == v->o->stream[m].sequences)
			continue;
		if (!any || verdict_key(v, m, next[m]) < *lowest)
			*lowest = verdict_key(v, m, next[m]);
		any = true;
	}
	return any;
}

static inline void verdict_merge(struct verdict *v)
{
	uint64_t next[MIX_MODULES] = {0};
	int64_t lowest = 0;

	while (verdict_lowest(v, next, &lowest)) {
		struct verdict_group g = {0};

		for (uint32_t m = 0; m < v->o->modules; m++) {
			uint64_t bit = UINT64_C(1) << m, k = next[m];
			size_t at = oracle_at(v->o, m, k);

			if (k == v->o->stream[m].sequences ||
			    verdict_key(v, m, k) > lowest + (int64_t)v->mix->window)
				continue;
			g.at[m] = next[m]++;
			g.members |= bit;
			if (v->says[at] != NO_VERDICT)
				continue;
			g.whole |= bit;
			g.overwritten |= verdict_trespassed(v, m, k + v->mix->slots) ? bit : 0;
			g.dark |= mix_is_dark(v->mix, v->o->frame[at]);
			g.oldest |= v->seen[at] == OLDEST;
		}
		verdict_judge(v, &g);
	}
}

static inline bool verdict_compare(struct verdict *v)
{
	if (!verdict_find_late(v))
		return false;
	for (uint32_t m = 0; m < v->o->modules; m++)
		for (uint64_t k = 0; k < v->o->stream[m].sequences; k++) {
			enum verdict_of own = verdict_own(v, m, k);

			if (own == NO_VERDICT && verdict_is_back(v, m, k) &&
			    verdict_key(v, m, k) <= v->late_to[m])
				own = LATE;
			v->says[oracle_at(v->o, m, k)] = own;
		}
	verdict_merge(v);
	for (uint32_t m = 0; m < v->o->modules; m++)
		for (uint64_t k = 0; k < v->o->stream[m].sequences; k++) {
			size_t at = oracle_at(v->o, m, k);
			char text[120];

			if (v->seen[at] == v->says[at])
				continue;
			snprintf(text, sizeof(text), "%s, but the fault log implies %s",
				 verdict_name[v->seen[at]], verdict_name[v->says[at]]);
			return verdict_wrong(v, m, k, text, "");
		}
	return true;
}

#endif
