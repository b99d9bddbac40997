/* child.h - this program again, as a child that does not outlive its purpose. */
#ifndef SL_CMD_RUN_CHILD_H
#define SL_CMD_RUN_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Start it with these arguments (argv[0] included, NULL at the end), in a process group of its
 * own: Ctrl-C reaches it through us. Its standard output goes to the file `output`, or where ours
 * goes when that is NULL. Logs and returns -errno. */
int sl_child_start(char *const *argv, const char *output, pid_t *child);

/* True while it lives, or when there is none (0). Once it has ended, *child is 0 and *status,
 * where not NULL, its exit status, or minus the number of the signal that killed it. */
bool sl_child_alive(pid_t *child, int *status);

/* Give it some seconds to end by itself, then kill it. */
void sl_child_end(pid_t *child, int *status);

#endif
