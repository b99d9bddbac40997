/* thread_counts.h - how many threads take data, run stages and send, where the experiment file
 * leaves that to the program (link.pollers, unit.workers, threads.senders: auto).
 *
 * Model:     a function of the cpus that there are for them, of the modules, of what link, unit and
 *            detector can use, and of who else wants the cpus: a front end on the receiver's host.
 *            Numbers that the file gives are taken as they are; the others share what is left.
 *            Where each thread then runs is placement.h's business.
 * Threads:   no state.
 * Ownership: plain data. */
#ifndef SL_EXPERIMENT_THREAD_COUNTS_H
#define SL_EXPERIMENT_THREAD_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

struct sl_thread_terms {
	unsigned cpus; /* for all threads that are counted here */
	unsigned modules;
	bool stages;	    /* there are some */
	bool receiver_here; /* its threads run on these cpus */
	bool source_here;   /* so do those of a front end with all modules */
	/* Most that can be used, at least 1. */
	unsigned most_pollers, most_workers, most_senders;
	unsigned pollers, workers, senders; /* as the file says; 0: auto */
};

struct sl_thread_counts {
	unsigned pollers, workers, senders; /* each at least 1 */
};

void sl_thread_counts_choose(const struct sl_thread_terms *terms, struct sl_thread_counts *counts);

/* "1 poller (as set), 4 workers and 2 senders (chosen for 8 cpus)". */
void sl_thread_counts_describe(const struct sl_thread_terms *terms,
			       const struct sl_thread_counts *counts, char *text, size_t bytes);

#endif
