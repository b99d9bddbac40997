/* goniometer.h - how the sample turns during a run.
 *
 * Model:     axes from the sample outwards: each turns with all that stand behind it in the list.
 *            An axis is at start + increment * n in frame n, counted from the run's first frame
 *            after the dark ones that begin it; in between it turns on at the same speed.
 *            Directions are NeXus's: x to the left when looking along the beam, y up, z along the
 *            beam.
 * Ownership: plain data. */
#ifndef SLUICE_GONIOMETER_H
#define SLUICE_GONIOMETER_H

#include <stdint.h>

#include <sluice/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_AXES = 6 };

struct sl_axis {
	char name[SL_NAME_BYTES];
	double x, y, z; /* a unit vector: the direction about which it turns, right-handed */
	double start_deg, increment_deg; /* increment 0: it stands still */
};

struct sl_goniometer {
	uint32_t axes;
	struct sl_axis axis[SL_AXES];
	uint64_t first_frame; /* the number of frame 0 of these angles, from 0 on */
};

/* frame: its number in the run, from 0 on, the dark ones counted. */
static inline double sl_axis_angle_deg(const struct sl_goniometer *goniometer, uint32_t axis,
				       uint64_t frame)
{
	const struct sl_axis *a = &goniometer->axis[axis];
	double n = (double)frame - (double)goniometer->first_frame;

	return a->start_deg + a->increment_deg * n;
}

#ifdef __cplusplus
}
#endif

#endif
