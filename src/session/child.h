/* child.h - the program sluice as a child that does not outlive its purpose. */
#ifndef SL_SESSION_CHILD_H
#define SL_SESSION_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct sl_child_options {
	const char *program; /* a path, or a name to look for in PATH */
	const char *output;  /* the file of its standard output; NULL: where ours goes */
	int errors_fd;	     /* its stderr; -1: where ours goes */
	int keep_fd;	     /* a descriptor that it gets, too; -1: none */
	const char *uses;    /* a path of its experiment that may name a descriptor; NULL: none */
	const char *own;     /* for sl_experiment_set_own() there; NULL: nothing */
};

/* Start it with these arguments (argv[0] included, NULL at the end), in a process group of its
 * own: Ctrl-C reaches it through us. It gets stdin, stdout and stderr, keep_fd, and the descriptors
 * that its arguments, `uses` and SLUICE_SITE name as /dev/fd/N or /proc/self/fd/N; no other, not
 * even those that a library has opened without O_CLOEXEC. Logs and returns -errno. */
int sl_child_start(const struct sl_child_options *options, char *const *argv, pid_t *child);

/* In the program sluice, first of all: if it was started by sl_child_start(), it gets SIGTERM when
 * the thread that started it ends, however that happens; and ends now if that has happened. */
void sl_child_bind(void);

/* The program that runs, if it is sluice itself. Inside a library that would be an interpreter. */
const char *sl_child_self(void);

/* True while it lives, or when there is none (0). Once it has ended, *child is 0 and *status,
 * where not NULL, its exit status, or minus the number of the signal that killed it. */
bool sl_child_alive(pid_t *child, int *status);

/* Give it some seconds to end by itself, then kill it. */
void sl_child_end(pid_t *child, int *status);

#endif
