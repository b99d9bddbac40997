/* error.c - HDF5's error stack in one line of ours.
 *
 * HDF5 forgets an error with its next call, so it is noted when it happens: on every failure HDF5
 * calls back, where it would otherwise print. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "hdf5/handle.h"

/* HDF5 tells from the inner function to the outer one. The innermost says what went wrong, and for
 * system calls the errno. */
struct story {
	char innermost[128];
	int error;
};

static _Thread_local struct story last; /* as HDF5's error stacks are, one per thread */

static herr_t listen(unsigned n, const H5E_error2_t *entry, void *arg)
{
	struct story *story = arg;
	const char *number;
	char *end;

	if (!entry->desc)
		return 0;
	if (!story->innermost[0]) {
		snprintf(story->innermost, sizeof(story->innermost), "%s", entry->desc);
		end = strstr(story->innermost, ": time = "); /* details over several lines */
		if (end)
			*end = '\0';
	}
	number = strstr(entry->desc, "errno = ");
	if (number && !story->error)
		sscanf(number, "errno = %d", &story->error);
	return 0;
}

static herr_t note(hid_t stack, void *arg)
{
	herr_t status;

	last = (struct story){.error = 0};
	status = H5Ewalk2(stack, H5E_WALK_UPWARD, listen, &last);
	/* A thread that ends would leave what its stack holds. */
	H5Eclear2(stack);
	return status;
}

void sl_h5_prepare(void)
{
	/* What HDF5 does at exit after a failed write is to crash. Must precede its first call;
	 * says no when it was said before. */
	H5dont_atexit();
	H5Eset_auto2(H5E_DEFAULT, note, NULL);
}

/* The name that the file has at the moment. */
static const char *name_of(const struct sl_h5 *file)
{
	return file->disk.part ? file->disk.part : file->path;
}

static int stick(struct sl_h5 *file, int status)
{
	if (file->disk.part && !file->status)
		file->status = status;
	return status;
}

int sl_h5_stop(struct sl_h5 *file, int status, const char *verb, const char *path)
{
	sl_error("%s: cannot %s %s: %s", name_of(file), verb, path, strerror(-status));
	return stick(file, status);
}

int sl_h5_failed(struct sl_h5 *file, const char *verb, const char *path)
{
	struct story story = last;

	last = (struct story){.error = 0};
	sl_error("%s: cannot %s %s: HDF5: %s%s%s", name_of(file), verb, path,
		 story.innermost[0] ? story.innermost : "no reason given",
		 story.error > 0 ? ": " : "", story.error > 0 ? strerror(story.error) : "");
	file->broken = true;
	return stick(file, story.error > 0 ? -story.error : -EIO);
}
