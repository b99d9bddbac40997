/* recover.c - the end of a run that did not come to it. */
#include "sink/nexus/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hdf5/rolled/old_files.h"
#include "hdf5/rolled/recover.h"
#include "sink/nexus/account.h"
#include "sink/nexus/audit.h"
#include "sink/nexus/nexus.h"
#include "sink/nexus/nxmx.h"

/* The master as it is: what the run wrote when it began, or in the end. */
static int look(const char *path, char *state, size_t bytes)
{
	struct sl_h5 *file;
	int r = sl_h5_open(path, &file);

	if (r)
		return r;
	r = sl_h5_read_text(file, SL_NEXUS_STATE, 0, state, bytes);
	if (r == -ENOENT)
		sl_error("%s: does not say that it is a run's file with data files", path);
	sl_h5_close(file);
	return r;
}

static uint64_t rows_of(struct sl_h5 *file, const char *path)
{
	struct sl_h5_shape shape = {.rank = 0};

	return sl_h5_describe(file, path, &shape) || !shape.rank ? 0 : shape.dim[0];
}

int sl_nexus_recover(const char *path, struct sl_nexus_recovered *recovered)
{
	struct sl_nexus_recovered found = {.files = 0};
	struct sl_h5_recovered data;
	struct sl_h5 *file;
	char state[16];
	int r = sl_h5_old_bring_back(path, &found.brought_back), finished;

	if (!r)
		r = sl_h5_old_release(path, &found.released);
	if (!r && found.released) {
		*recovered = found;
		return 0;
	}
	if (!r)
		r = look(path, state, sizeof(state));
	if (r)
		return r;
	found.complete = strcmp(state, "writing") != 0;
	if (found.complete) {
		*recovered = found;
		return 0;
	}
	r = sl_h5_recover(path, &data, &file);
	if (r)
		return r;
	found.files = data.files;
	found.mended = data.mended;
	found.images = rows_of(file, "/entry/data/sequence");
	found.rows = rows_of(file, SL_ACCOUNT_FRAMES "/sequence");
	sl_nexus_link_data(file, path, data.files);
	r = sl_account_recover(file);
	r = r ? r : sl_nexus_audit_recover(file, path, data.files);
	if (r || sl_h5_read_text(file, SL_AUDIT_ROOT, 0, found.root, sizeof(found.root)))
		found.root[0] = 0;
	sl_nexus_set_state(file, "recovered");
	sl_nxmx_end(file, found.images, 0);
	finished = sl_h5_finish(file);
	r = r ? r : finished;
	if (!r)
		*recovered = found;
	return r;
}
