/* bring_back.c - a run that was set aside for another one, which was killed before it had a
 * chunk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "raw/reader.h"

struct names { /* of a data file, as it was and as it is now */
	char data[PATH_MAX], aside[PATH_MAX];
};

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

bool sl_raw_is_run(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct raw_run_head head;
	uint8_t block[RAW_BLOCK];
	bool is = false;

	if (fd < 0)
		return false;
	if (pread(fd, block, sizeof(block), 0) == RAW_BLOCK)
		is = raw_read_run_head(block, &head) != -EPROTO;
	close(fd);
	return is;
}

/* A data file of this run; or, with `empty`, one that has no head yet. */
static bool is_of(const char *path, uint64_t generation, bool empty)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct raw_data_head head;
	uint8_t block[RAW_BLOCK] = {0};
	bool is = false;

	if (fd < 0)
		return false;
	if (pread(fd, block, sizeof(block), 0) < 0)
		is = false;
	else if (!raw_read_data_head(block, &head))
		is = head.generation == generation;
	else
		is = empty && !block[0] && !memcmp(block, block + 1, RAW_BLOCK - 1);
	close(fd);
	return is;
}

/* Calls one() for each name of a data file of the run at `path`, with `ending` behind it, in the
 * folders of this run file. */
static int each_data(const struct sl_raw_reader *r, const char *path, const char *ending,
		     int (*one)(void *arg, const struct names *names), void *arg)
{
	int e = 0;

	for (uint32_t i = 0; i < r->folders && !e; i++) {
		const char *in = r->folder[i];
		DIR *folder = opendir(in[0] ? in : ".");
		struct dirent *entry;

		while (folder && !e && (entry = readdir(folder))) {
			size_t length = strlen(entry->d_name), more = strlen(ending);
			struct names n;

			if (length <= more || strcmp(entry->d_name + length - more, ending) ||
			    (size_t)snprintf(n.aside, sizeof(n.aside), "%s%s%s", in,
					     in[0] && in[strlen(in) - 1] != '/' ? "/" : "",
					     entry->d_name) >= sizeof(n.aside))
				continue;
			entry->d_name[length - more] = 0;
			if (!raw_data_number(path, entry->d_name))
				continue;
			memcpy(n.data, n.aside, sizeof(n.data));
			n.data[strlen(n.data) - more] = 0;
			e = one(arg, &n);
		}
		if (folder)
			closedir(folder);
	}
	return e;
}

struct bringing {
	uint64_t generation; /* of the run that comes back, or of the one that goes */
	uint32_t files;
};

static int remove_one(void *arg, const struct names *names)
{
	const struct bringing *b = arg;

	if (is_of(names->data, b->generation, true))
		unlink(names->data);
	return 0;
}

static int rename_back(const char *aside, const char *name)
{
	int r = sl_rename_new(aside, name);

	if (r)
		sl_error("%s: cannot get its name %s back: %s", aside, name, strerror(-r));
	return r;
}

static int bring_one(void *arg, const struct names *names)
{
	struct bringing *b = arg;
	int r = is_of(names->aside, b->generation, false) ? rename_back(names->aside, names->data)
							  : 0;

	b->files += !r;
	return r;
}

/* The run at `path` goes if it was killed and has no chunk. -EEXIST: it has some. */
static int remove_killed(const char *path)
{
	struct sl_raw_reader *killed;
	struct sl_raw_facts facts;
	struct bringing b = {.files = 0};
	int r;

	if (!is_there(path))
		return 0;
	r = sl_raw_open(path, SL_RAW_DAMAGED, &killed);
	if (r)
		return r;
	sl_raw_facts(killed, &facts);
	if (facts.state == SL_RAW_WRITING) {
		sl_error("%s: is being written by another run", path);
		r = -EBUSY;
	} else if (facts.state != SL_RAW_KILLED || facts.chunks) {
		sl_error("%s: has frames, and stays; so does the run that it replaced, under names "
			 "that end in .replaced: remove those when you do not need them",
			 path);
		r = -EEXIST;
	}
	b.generation = facts.generation;
	if (!r)
		r = each_data(killed, path, "", remove_one, &b);
	sl_raw_close(killed);
	if (!r && unlink(path))
		r = -errno;
	return r;
}

/* Its data files have other names: nothing but the head is looked at. */
static int open_head(const char *path, struct sl_raw_reader **reader)
{
	struct sl_raw_reader *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->path = strdup(path);
	e = r->path ? raw_run_open(r) : -ENOMEM;
	if (e)
		sl_raw_close(r);
	else
		*reader = r;
	return e;
}

int sl_raw_bring_back(const char *path, const char *ending, uint32_t *files)
{
	struct sl_raw_reader *old;
	struct bringing b = {.files = 0};
	char aside[PATH_MAX];
	int r;

	*files = 0;
	if ((size_t)snprintf(aside, sizeof(aside), "%s%s", path, ending) >= sizeof(aside))
		return -ENAMETOOLONG;
	if (!is_there(aside))
		return 0;
	r = remove_killed(path);
	if (r)
		return r;
	r = open_head(aside, &old);
	if (r)
		return r;
	b.generation = old->head.generation;
	r = each_data(old, path, ending, bring_one, &b);
	sl_raw_close(old);
	if (!r)
		r = rename_back(aside, path);
	if (!r)
		*files = b.files + 1;
	return r;
}
