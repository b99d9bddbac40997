/* placement.h - how many data threads an experiment has, which cpus they get, and which node its
 * memory.
 *
 * Model:     the file says how many link threads, workers and senders there are, or they are chosen
 *            for the cpus of this host (thread_counts.h). All data threads of the experiment that
 *            run on this host stand in one line: link-0, ..., dispatcher, worker-0, ..., settler,
 *            then the front end's; with threads.together data, settler, then the front end's. The
 *            cpus stand in another, best first (base/cpu.h), near the interface that has
 *            link.listen. The n-th thread gets the n-th cpu. Receiver and front end read the same
 *            file and make the same lines, so that on one host they do not meet on a cpu. With no
 *            cpu to spare no thread is pinned: a thread that may not move waits for the others on
 *            its cpu, and the scheduler knows better which is in need.
 * Threads:   made before they start, and read only.
 * Ownership: plain data. */
#ifndef SL_EXPERIMENT_PLACEMENT_H
#define SL_EXPERIMENT_PLACEMENT_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idle.h"
#include "experiment/experiment.h"
#include "experiment/thread_counts.h"

enum sl_role {
	SL_ROLE_LINK, /* with threads.together also the dispatcher and the worker */
	SL_ROLE_DISPATCHER,
	SL_ROLE_WORKER,
	SL_ROLE_SETTLER,
	SL_ROLE_SOURCE, /* the front end's */
};

enum { SL_PLACEMENT_THREADS = 256 };

struct sl_placement {
	unsigned pollers, workers, sources; /* on this host; sources: senders of front ends */
	bool together;			    /* one thread for link, dispatcher and worker */
	char counts[200];		    /* how many, and whether the file says so, in words */
	unsigned first, threads;	    /* in the line: those of this process */
	unsigned line;			    /* all that are on this host */
	unsigned cpus;			    /* that there are for them */
	bool pinned;			    /* each of our threads has its own cpu */
	bool shared;			    /* ours share the cpus that they were told to have */
	bool crowded;			    /* fewer cpus than threads */
	bool fills; /* by choice: where the file leaves numbers to the program, it takes all cpus */
	int cpu[SL_PLACEMENT_THREADS]; /* of the n-th of our threads, where pinned */
	cpu_set_t set;		       /* all of ours */
	char interface[IF_NAMESIZE];   /* empty: none is known */
	int interface_node;	       /* -1: unknown */
	unsigned nodes;
	int node; /* where memory should be; -1: no matter */
};

/* For the receiver. root: see base/sysfile.h. -EINVAL: threads.cpus names one that this process may
 * not use; logged. */
int sl_placement_receiver(const struct sl_experiment *experiment, const char *root,
			  struct sl_placement *placement);

/* For a front end with these modules: `threads` of them send. */
int sl_placement_source(const struct sl_experiment *experiment, const char *root,
			uint32_t first_module, uint32_t end_module, struct sl_placement *placement);

/* The cpus of one thread; NULL: any. */
const cpu_set_t *sl_placement_of(const struct sl_placement *placement, enum sl_role role,
				 unsigned index, cpu_set_t *set);

/* How a thread waits. */
void sl_placement_idle(const struct sl_placement *placement, const struct sl_experiment *experiment,
		       struct sl_idle *idle);

/* In words, for the log. */
void sl_placement_describe(const struct sl_placement *placement, char *text, size_t bytes);

#endif
