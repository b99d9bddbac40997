/* thread_counts.c - cpus shared out among the threads of a run. */
#include "experiment/thread_counts.h"

#include <stdio.h>

/* Where the figures below come from: sweeps over all three numbers on 2, 4, 8 and 16 cores, udp
 * and shm, with and without stages (docs/how-to/tuning.md). */
enum {
	/* Cpus: with fewer, one thread of each kind, since more would only take turns. But stages
	 * have two workers from two cpus on: while one of them has no cpu, the other goes on with
	 * the batch. On two cpus that is 1.2 times as fast over udp and 1.6 over shm. */
	FEW = 4,
	FEW_WORKERS = 2,
	/* Cpus, of which one stays free for dispatcher, settler, sinks and the rest of the host; of
	 * fewer, those take the gaps. At most SPARE stay free. */
	FREE_OF = 8,
	SPARE = 2,
};

static unsigned at_least_1(unsigned n)
{
	return n ? n : 1;
}

/* A kind of thread that is busy, and how many parts of the cpus it takes. */
struct kind {
	unsigned set, most, parts; /* parts 0: it has next to nothing to do, and one will do */
	unsigned count;
};

/* Its share of so many cpus that `parts` parts are made of: rounded, or, for the last kind, down
 * and at least what the others have left (else 0). At least two where there is work for two:
 * threads that wait for each other leave gaps, even on four cpus. */
static unsigned share_of(const struct kind *kind, unsigned cpus, unsigned parts, unsigned left)
{
	unsigned half = left ? 0 : parts, n = (2 * cpus * kind->parts + half) / (2 * parts);

	n = n < left ? left : n;
	n = n < 2 ? 2 : n;
	return n < kind->most ? n : kind->most;
}

/* Those whose number is set take theirs first; the others share what is left, and the last of them
 * takes what the rest has not. */
static void share_out(struct kind *kind, unsigned kinds, unsigned cpus)
{
	unsigned parts = 0, left;

	for (unsigned i = 0; i < kinds; i++) {
		unsigned set = kind[i].parts ? kind[i].set : 0;

		cpus -= set < cpus ? set : cpus;
		parts += kind[i].set ? 0 : kind[i].parts;
	}
	left = cpus;
	for (unsigned i = 0; i < kinds; i++) {
		kind[i].count = at_least_1(kind[i].set);
		if (kind[i].set || !kind[i].parts)
			continue;
		kind[i].count = share_of(&kind[i], cpus, parts, i == kinds - 1 ? left : 0);
		left -= kind[i].count < left ? kind[i].count : left;
	}
}

/* A link thread that copies, or checks, what comes has as much to do as a thread that sends it;
 * where packets come from a NIC, the kernel has that much to do. A link that takes one thread has
 * little to do for it: the source, or a NIC, has placed the data. What stages cost is not known
 * beforehand: they get half of the cpus, or three quarters where link threads need none. */
void sl_thread_counts_choose(const struct sl_thread_terms *t, struct sl_thread_counts *counts)
{
	bool few = t->cpus < FEW, light = t->most_pollers == 1;
	bool pollers = t->receiver_here && !few && !light;
	bool workers = t->receiver_here && !few && t->stages;
	unsigned modules = at_least_1(t->modules), spare = t->cpus / FREE_OF;
	struct kind kind[] = {
		{t->pollers, modules < t->most_pollers ? modules : t->most_pollers, pollers, 0},
		{t->source_here ? t->senders : 0,
		 modules < t->most_senders ? modules : t->most_senders,
		 (t->source_here && !few) || pollers, 0},
		{t->workers, t->most_workers, workers ? light ? 3 : 2 : 0, 0},
	};

	spare = !workers ? 0 : spare < SPARE ? spare : SPARE; /* else there is little beside them */
	share_out(kind, 3, t->cpus - spare);
	*counts = (struct sl_thread_counts){
		.pollers = kind[0].count,
		.senders = t->source_here ? kind[1].count : at_least_1(t->senders),
		.workers = kind[2].count,
	};
	if (few && t->cpus >= FEW_WORKERS && t->receiver_here && t->stages && !t->workers &&
	    t->most_workers >= FEW_WORKERS)
		counts->workers = FEW_WORKERS;
}

static int describe_one(char *text, size_t bytes, const char *name, unsigned count, unsigned set)
{
	return snprintf(text, bytes, "%u %s%s (%s)", count, name, count == 1 ? "" : "s",
			set ? "as set" : "auto");
}

void sl_thread_counts_describe(const struct sl_thread_terms *t,
			       const struct sl_thread_counts *counts, char *text, size_t bytes)
{
	char part[3][64];

	describe_one(part[0], sizeof(part[0]), "poller", counts->pollers, t->pollers);
	describe_one(part[1], sizeof(part[1]), "worker", counts->workers, t->workers);
	describe_one(part[2], sizeof(part[2]), "sender", counts->senders, t->senders);
	if (t->receiver_here && t->source_here)
		snprintf(text, bytes, "%s, %s and %s on %u cpu%s", part[0], part[1], part[2],
			 t->cpus, t->cpus == 1 ? "" : "s");
	else if (t->receiver_here)
		snprintf(text, bytes, "%s and %s on %u cpu%s", part[0], part[1], t->cpus,
			 t->cpus == 1 ? "" : "s");
	else
		snprintf(text, bytes, "%s on %u cpu%s", part[2], t->cpus, t->cpus == 1 ? "" : "s");
}
