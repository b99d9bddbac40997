/* others.c - groups and links for detectors that attach to events. */
#include "sink/nexus/others.h"

#include <stdio.h>

#define RESULTS "/entry/results"
#define EVENTS	"/entry/events"

enum { PATH = 128 };

static void add_link(struct sl_h5 *file, const char *group, const char *name, const char *target)
{
	char path[PATH];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	sl_h5_link(file, path, target);
}

static void add_detector(struct sl_h5 *file, const struct sl_env_detector *d)
{
	char group[PATH], path[PATH + 32], pixels[PATH], frame[PATH];

	snprintf(group, sizeof(group), "/entry/instrument/detector_%s", d->name);
	snprintf(pixels, sizeof(pixels), RESULTS "/%s", d->name);
	snprintf(frame, sizeof(frame), RESULTS "/%s_frame", d->name);
	sl_h5_group(file, group, "NXdetector");
	snprintf(path, sizeof(path), "%s/local_name", group);
	sl_h5_write_text(file, path, d->name);
	if (d->geometry->detector) {
		snprintf(path, sizeof(path), "%s/description", group);
		sl_h5_write_text(file, path, d->geometry->detector);
	}
	if (d->geometry->pixel_size_m > 0) {
		snprintf(path, sizeof(path), "%s/x_pixel_size", group);
		sl_h5_write_f64(file, path, d->geometry->pixel_size_m, "m");
		snprintf(path, sizeof(path), "%s/y_pixel_size", group);
		sl_h5_write_f64(file, path, d->geometry->pixel_size_m, "m");
	}
	add_link(file, group, "data", pixels);
	add_link(file, group, "frame_number", frame);
	add_link(file, EVENTS, d->name, frame);
}

void sl_nexus_others_open(struct sl_h5 *file, const struct sl_env *env)
{
	if (!env->others)
		return;
	sl_h5_group(file, EVENTS, "NXcollection");
	sl_h5_write_text(file, EVENTS "/description",
			 "a row for each event, in the order of " RESULTS
			 ": which frame of each detector belongs to it; -1: none");
	add_link(file, EVENTS, "sequence", RESULTS "/sequence");
	add_link(file, EVENTS, "number", RESULTS "/frame_number");
	for (uint32_t i = 0; i < env->others; i++)
		add_detector(file, &env->other[i]);
}
