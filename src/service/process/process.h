/* process.h - other programs: run to their end within limits, or started so that they outlive us.
 *
 * Model:     sl_process_run() is for short work on bytes of clients: the program has limits of
 *            time, memory and output, and is killed with its children when it exceeds them.
 *            sl_process_detach() starts a program that is no child of ours: it has a session of its
 *            own (setsid), and init takes its exit status.
 * Threads:   any. The program has the nice value of the calling thread, and more where asked for.
 * Ownership: output is the caller's, sl_process_free().
 * Errors:    0 or -errno; nothing is logged. */
#ifndef SL_SERVICE_PROCESS_H
#define SL_SERVICE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_process {
	/* argv[0]: its path, or a name to look for in PATH; NULL at the end */
	const char *const *argv;
	const char *folder; /* where it runs; NULL: where we do */
	const char *input;  /* on its stdin; NULL: nothing */
	size_t input_bytes;
	size_t most_bytes; /* of stdout, and of stderr; more is cut off */
	unsigned timeout_ms, cpu_s;
	uint64_t memory_bytes; /* address space; 0: no limit */
	int nicer;	       /* added to the nice value */
	bool goes_on;	       /* it is not killed when we are, nor by `stop` */
	int held; /* a descriptor that the program has, too: its lock lasts as long; 0: none */
	/* Looked at now and then; true: kill it, or with goes_on, leave it alone. NULL: never. */
	bool (*stop)(void *arg);
	void *arg;
};

struct sl_process_result {
	int status; /* exit status; below 0: the signal that killed it */
	bool timed_out, stopped;
	char *out, *err; /* with a final zero */
	size_t out_bytes, err_bytes;
};

int sl_process_run(const struct sl_process *process, struct sl_process_result *result);
void sl_process_free(struct sl_process_result *result);

struct sl_detached {
	const char *const *argv;
	const char *folder;
	const char *log; /* file for stdout and stderr; a former one is replaced */
};

/* *alive: a descriptor that ends (poll: POLLHUP) when the program does. -errno also when it cannot
 * be executed. */
int sl_process_detach(const struct sl_detached *detached, int *alive);
/* Whether the program behind that descriptor still runs; waits for its end, timeout_ms at most. */
bool sl_process_lives(int alive, int timeout_ms);

#endif
