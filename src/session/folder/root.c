/* root.c - the runs of a root: their numbers, which of them live, and which have crashed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "session/folder/folder.h"

enum { NAMES_MOST = 8, CRASHES_MOST = 5, DIGITS_MOST = 18, LOOK_BACK = 1000 };

void sl_run_folder_digits(uint64_t number, char *name, size_t bytes)
{
	snprintf(name, bytes, "%06" PRIu64, number);
}

uint64_t sl_run_folder_number(const char *name)
{
	size_t length = strspn(name, "0123456789");

	/* "0000012" is another folder than "000012", and none of ours. */
	if (name[length] || length < 6 || length > DIGITS_MOST || (length > 6 && name[0] == '0'))
		return 0;
	return strtoull(name, NULL, 10);
}

/* A descriptor of its own for readdir(). */
static DIR *open_list(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list && fd >= 0)
		close(fd);
	return list;
}

int sl_run_folder_highest(int root, uint64_t *number)
{
	DIR *list = open_list(root);
	const struct dirent *entry;
	uint64_t highest = 0;

	if (!list)
		return -errno;
	while ((entry = readdir(list))) {
		uint64_t n = sl_run_folder_number(entry->d_name);

		highest = n > highest ? n : highest;
	}
	closedir(list);
	*number = highest;
	return 0;
}

/* The order matters: a run writes its result before it frees the lock. */
static enum sl_run_state state_of(int folder)
{
	int lock = openat(folder, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool held;

	if (lock < 0)
		return SL_RUN_NONE;
	held = flock(lock, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(lock);
	if (held)
		return SL_RUN_LIVES;
	return faccessat(folder, "result.json", F_OK, AT_SYMLINK_NOFOLLOW) ? SL_RUN_CRASHED
									   : SL_RUN_ENDED;
}

static int open_run(int root, uint64_t number)
{
	char name[32];

	sl_run_folder_digits(number, name, sizeof(name));
	return openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

enum sl_run_state sl_run_folder_state(int root, uint64_t number)
{
	int folder = open_run(root, number);
	enum sl_run_state state = folder < 0 ? SL_RUN_NONE : state_of(folder);

	if (folder >= 0)
		close(folder);
	return state;
}

/* ---- what a crash has left ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "lock") != 0 &&
	       strcmp(entry->d_name, "result.json.part") != 0;
}

/* "run.log (312 bytes), run.nxs.part (4194304 bytes)" */
static void list_files(int folder, char *text, size_t bytes)
{
	struct dirent **entry = NULL;
	int n = scandirat(folder, ".", &entry, is_shown, by_name);
	size_t used = 0;

	snprintf(text, bytes, "nothing");
	for (int i = 0; i < n; i++) {
		struct stat st;

		if (i < NAMES_MOST && used < bytes &&
		    !fstatat(folder, entry[i]->d_name, &st, AT_SYMLINK_NOFOLLOW))
			used += (size_t)snprintf(text + used, bytes - used, "%s%.64s (%lld bytes)",
						 used ? ", " : "", entry[i]->d_name,
						 (long long)st.st_size);
		free(entry[i]);
	}
	if (n > NAMES_MOST && used < bytes)
		snprintf(text + used, bytes - used, ", and %d more", n - NAMES_MOST);
	free(entry);
}

static void warn_of_crash(const char *root, int folder, uint64_t number)
{
	char files[1024];

	list_files(folder, files, sizeof(files));
	sl_warn("run %" PRIu64 " did not end: '%s/%06" PRIu64 "' has no result.json, and its lock "
		"is free; its session crashed or was killed. The folder has %s; run.log says how "
		"far it came, and 'sluice recover' makes its data readable",
		number, root, number, files);
}

static int highest_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* The numbers of a root, the highest first (malloc'ed). */
static size_t list_numbers(int root, uint64_t **numbers)
{
	DIR *list = open_list(root);
	const struct dirent *entry;
	size_t n = 0, room = 0;

	*numbers = NULL;
	while (list && (entry = readdir(list))) {
		uint64_t number = sl_run_folder_number(entry->d_name);

		if (number && n == room) {
			uint64_t *more = realloc(*numbers, (room = 2 * room + 64) * sizeof(*more));

			if (!more)
				break;
			*numbers = more;
		}
		if (number)
			(*numbers)[n++] = number;
	}
	if (list)
		closedir(list);
	if (n)
		qsort(*numbers, n, sizeof(**numbers), highest_first);
	return n;
}

unsigned sl_run_folder_warn_of_crashes(const char *root)
{
	int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum sl_run_state state = SL_RUN_NONE;
	uint64_t *number = NULL;
	size_t n = at < 0 ? 0 : list_numbers(at, &number);
	unsigned crashed = 0;

	for (size_t i = 0; i < n && i < LOOK_BACK && state != SL_RUN_ENDED; i++) {
		int folder = open_run(at, number[i]);

		state = folder < 0 ? SL_RUN_NONE : state_of(folder);
		if (state == SL_RUN_CRASHED && crashed++ < CRASHES_MOST)
			warn_of_crash(root, folder, number[i]);
		if (folder >= 0)
			close(folder);
	}
	if (crashed > CRASHES_MOST)
		sl_warn("%u more runs before these did not end", crashed - CRASHES_MOST);
	free(number);
	if (at >= 0)
		close(at);
	return crashed;
}
