/* veto.h - between the stage and its GPU side. */
#ifndef SL_STAGE_VETO_VETO_H
#define SL_STAGE_VETO_VETO_H

#include <sluice/stage.h>

struct sl_veto {
	uint32_t threshold, min_pixels;

	enum sl_dtype dtype;
	float threshold_f32; /* in the image's unit */
};

extern const struct sl_gpu sl_gpu_veto;

#endif
