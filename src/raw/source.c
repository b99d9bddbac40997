/* source.c - which data files a run has: by the names in its folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "raw/reader.h"

static bool is_open(const struct sl_raw_reader *r, uint32_t number)
{
	for (uint32_t i = r->sources; i-- > 0;)
		if (r->source[i].number == number)
			return true;
	return false;
}

static int make_room(struct sl_raw_reader *r)
{
	uint32_t room = r->source_room ? 2 * r->source_room : 16;
	struct raw_source *source;

	if (r->sources < r->source_room)
		return 0;
	source = realloc(r->source, room * sizeof(*source));
	if (!source)
		return -ENOMEM;
	r->source = source;
	r->source_room = room;
	return 0;
}

static bool is_empty(const uint8_t *block)
{
	return !block[0] && !memcmp(block, block + 1, RAW_BLOCK - 1);
}

/* 1: it belongs to this run; 0: it does not, or is not begun yet. */
static int is_ours(const struct sl_raw_reader *r, const char *path, int fd,
		   struct raw_data_head *head)
{
	uint8_t block[RAW_BLOCK];
	struct stat st;
	int e = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EBADMSG;

	if (!e)
		e = raw_read_at(path, fd, block, sizeof(block), 0);
	if (e)
		return e == -EBADMSG ? 0 : e; /* shorter than its head: as it was created */
	if (raw_read_data_head(block, head)) {
		if (!is_empty(block))
			sl_warn("%s: has the name of a data file, and is none; left out", path);
		return 0;
	}
	if (head->generation == r->head.generation)
		return 1;
	sl_warn("%s: belongs to another run; left out", path);
	return 0;
}

static int open_source(struct sl_raw_reader *r, uint32_t number, char *path)
{
	struct raw_data_head head;
	int fd, e = make_room(r);

	if (e)
		return e;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT) /* a rolling writer has just removed it */
		return 0;
	if (fd < 0) {
		e = -errno;
		sl_error("%s: cannot open: %s", path, strerror(-e));
		return e;
	}
	e = is_ours(r, path, fd, &head);
	if (e > 0 && head.number != number)
		e = raw_damaged(path, 0,
				"the file has another number in its head than in its name");
	if (e <= 0) {
		close(fd);
		return e;
	}
	r->source[r->sources] = (struct raw_source){.path = strdup(path),
						    .fd = fd,
						    .number = number,
						    .folder = head.folder,
						    .scanned = RAW_BLOCK};
	if (r->source[r->sources].path) {
		r->sources++;
		return 0;
	}
	close(fd);
	return -ENOMEM;
}

struct candidate {
	uint32_t number, folder;
};

struct candidates {
	struct candidate *list;
	size_t count, room;
};

static int note(struct candidates *c, uint32_t number, uint32_t folder)
{
	size_t room = c->room ? 2 * c->room : 64;
	struct candidate *list;

	if (c->count == c->room) {
		list = realloc(c->list, room * sizeof(*list));
		if (!list)
			return -ENOMEM;
		c->list = list;
		c->room = room;
	}
	c->list[c->count++] = (struct candidate){number, folder};
	return 0;
}

static int look_into(const struct sl_raw_reader *r, uint32_t folder, struct candidates *c)
{
	DIR *listing = opendir(*r->folder[folder] ? r->folder[folder] : ".");
	struct dirent *entry;
	uint32_t number;
	int e = 0;

	/* A folder that is gone: its data files are missing, or in the folder of the run file. */
	while (listing && !e && (entry = readdir(listing))) {
		number = raw_data_number(r->path, entry->d_name);
		if (number && !is_open(r, number))
			e = note(c, number, folder);
	}
	if (listing)
		closedir(listing);
	return e;
}

static int newest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->number != y->number)
		return x->number > y->number ? -1 : 1;
	return x->folder < y->folder ? -1 : x->folder > y->folder;
}

static int by_number(const void *a, const void *b)
{
	const struct raw_source *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* New ones are behind those that are known. The newest is opened first: a rolling writer removes
 * the oldest, so that no file between two open ones is missed. */
int raw_sources_find(struct sl_raw_reader *r)
{
	struct candidates c = {0};
	uint32_t known = r->sources;
	char *path;
	int e = 0;

	for (uint32_t i = 0; i < r->folders && !e; i++)
		e = look_into(r, i, &c);
	if (c.count)
		qsort(c.list, c.count, sizeof(*c.list), newest_first);
	for (size_t i = 0; i < c.count && !e; i++) {
		if (is_open(r, c.list[i].number))
			continue;
		path = raw_data_path(r->path, r->folder[c.list[i].folder], c.list[i].number);
		e = path ? open_source(r, c.list[i].number, path) : -ENOMEM;
		free(path);
	}
	free(c.list);
	if (r->sources > known)
		qsort(r->source + known, r->sources - known, sizeof(*r->source), by_number);
	return e;
}
