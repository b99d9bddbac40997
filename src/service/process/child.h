/* child.h - what a child does between fork() and exec(): only what is safe there in a program with
 * threads. */
#ifndef SL_SERVICE_PROCESS_CHILD_H
#define SL_SERVICE_PROCESS_CHILD_H

#include <stdint.h>

/* 0: no limit. */
void sl_child_limits(unsigned cpu_s, uint64_t memory_bytes, int nicer);
/* Report errno to the parent and end. */
_Noreturn void sl_child_fail(int error_fd);
/* Signals as a new program expects them; stdin, stdout, stderr and keep_fd (-1: none) stay open. */
_Noreturn void sl_child_execute(const char *const *argv, int error_fd, int keep_fd);

/* In the parent: 0 once it is another program, or -errno of what failed before. */
int sl_child_started(int error_fd);

#endif
