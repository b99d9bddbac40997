/* ends.c - what is written of a file when its rows are over. */
#include <limits.h>
#include <stdio.h>

#include "hdf5/rolled/rolled.h"
#include "sink/nexus/nexus.h"

void sl_nexus_set_state(struct sl_h5 *file, const char *state)
{
	sl_h5_remove(file, SL_NEXUS_STATE);
	sl_h5_write_text(file, SL_NEXUS_STATE, state);
}

void sl_nexus_link_data(struct sl_h5 *file, const char *path, uint32_t files)
{
	char link[64], name[NAME_MAX + 1];
	struct sl_h5_shape shape;

	if (sl_h5_describe(file, "/entry/data/data", &shape))
		return;
	for (uint32_t i = 1; i <= files; i++) {
		snprintf(link, sizeof(link), "/entry/data/data_%06u", i);
		if (!sl_h5_data_name(path, i, name, sizeof(name)))
			sl_h5_link_file(file, link, name, "/entry/data/data");
	}
}
