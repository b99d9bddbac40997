/* darks.h - which frames of a stream are dark: those at its beginning, and those that a chopper
 * makes.
 *
 * Model:     frames of the stream are counted from 0. The first `first` are dark; later on one in
 *            `every` is, when the chopper's count of its own frames, phase + k * step, says so. */
#ifndef SLUICE_DARKS_H
#define SLUICE_DARKS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_darks {
	uint64_t first;
	uint32_t every; /* 0: no chopper */
	uint32_t phase, step;
};

static inline bool sl_darks_has(const struct sl_darks *darks, uint64_t k)
{
	if (k < darks->first)
		return true;
	return darks->every &&
	       (darks->phase + k % darks->every * darks->step) % darks->every == darks->every - 1;
}

#ifdef __cplusplus
}
#endif

#endif
