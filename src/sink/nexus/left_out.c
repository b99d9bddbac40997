/* left_out.c - what a slow disk cost, in the file. */
#include "sink/nexus/left_out.h"

#include <string.h>

#include <sluice/sink.h>

#define GROUP "/entry/sluice/on_slow"

/* The status has the beginning of a long path. */
static bool is_at(const struct sl_status_addon *addon, const char *where)
{
	return !strncmp(addon->where, where, sizeof(addon->where) - 1);
}

/* The add-on of this sink, or NULL. */
static const struct sl_status_pace *find(const struct sl_status *status, const char *sink,
					 const char *where, uint32_t *addon)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < status->addons; i++) {
		const struct sl_status_addon *one = &status->addon[i];

		if (!one->is_sink || strcmp(one->name, sink) || (where && !is_at(one, where)))
			continue;
		*addon = i;
		found++;
	}
	return found == 1 ? &status->pace[*addon] : NULL;
}

static void write_changes(struct sl_h5 *file, const struct sl_status *status, uint32_t addon)
{
	uint64_t sequence[SL_STATUS_CHANGES];
	uint32_t factor[SL_STATUS_CHANGES], n = 0;

	for (uint32_t i = 0; i < status->changes && i < SL_STATUS_CHANGES; i++) {
		if (status->change[i].addon != addon)
			continue;
		sequence[n] = status->change[i].sequence;
		factor[n++] = status->change[i].factor;
	}
	if (!n)
		return;
	sl_h5_write(file, GROUP "/sequence", &(struct sl_h5_shape){SL_H5_U64, 1, {n}}, sequence);
	sl_h5_write(file, GROUP "/factor", &(struct sl_h5_shape){SL_H5_U32, 1, {n}}, factor);
	sl_h5_attribute_text(file, GROUP "/factor", "long_name",
			     "from the frame of this sequence on, one of so many kept frames was "
			     "stored");
}

void sl_left_out_write(struct sl_h5 *file, const char *sink, const char *where,
		       const struct sl_status *status)
{
	uint32_t addon = 0;
	const struct sl_status_pace *pace = find(status, sink, where, &addon);

	if (!pace || !pace->left_out)
		return;
	sl_h5_group(file, GROUP, "NXcollection");
	sl_h5_write_text(file, GROUP "/policy", sl_on_slow_name(pace->on_slow));
	sl_h5_write_u64(file, GROUP "/frames_left_out", pace->left_out);
	sl_h5_write_u64(file, GROUP "/changes", pace->changes);
	write_changes(file, status, addon);
}
