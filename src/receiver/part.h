/* part.h - the stage that the pipeline adds for each detector that attaches to events (part.c). */
#ifndef SL_RECEIVER_PART_H
#define SL_RECEIVER_PART_H

#include <sluice/stage.h>

struct sl_part_stage {				/* its state */
	const struct sl_env_detector *detector; /* set before open() */
	int result;
};
extern const struct sl_stage sl_part_stage;

#endif
