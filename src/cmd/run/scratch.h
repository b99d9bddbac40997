/* scratch.h - a folder in /tmp for as long as this process lives. What a process that was killed
 * has left is removed by the next one: its lock is free. */
#ifndef SL_CMD_RUN_SCRATCH_H
#define SL_CMD_RUN_SCRATCH_H

struct sl_scratch {
	char path[64];
	int lock; /* held; -1: there is no folder */
};

int sl_scratch_make(struct sl_scratch *scratch); /* 0700. Logs */
void sl_scratch_remove(struct sl_scratch *scratch);

#endif
