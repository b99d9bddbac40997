/* runs.c - lists of runs, and a row for each: out of its folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sluice/outcome.h>

#include "client/text.h"
#include "service/history/private.h"

enum { JSON_BYTES = 8 << 20, PICTURE_S = 30 };

/* ---- files of a run ---- */

int sl_history_open_run(const struct sl_history *h, uint64_t run)
{
	char path[1100], name[32];
	int fd;

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", h->root, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_file(int folder, const char *name, uint64_t *bytes)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	*bytes = (uint64_t)st.st_size;
	return fd;
}

int sl_history_file(struct sl_history *h, uint64_t run, const char *name, uint64_t *bytes)
{
	int folder = sl_history_open_run(h, run), fd;

	if (folder < 0)
		return folder;
	fd = open_file(folder, name, bytes);
	close(folder);
	return fd;
}

static bool ends_with(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);

	return n >= m && !strcmp(name + n - m, ending);
}

static void find_in(int folder, const char *ending, char *name, size_t bytes)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	name[0] = 0;
	if (!list && fd >= 0)
		close(fd);
	while (list && (entry = readdir(list)))
		if (entry->d_name[0] != '.' && ends_with(entry->d_name, ending) &&
		    strlen(entry->d_name) < bytes && (!name[0] || strcmp(entry->d_name, name) < 0))
			snprintf(name, bytes, "%s", entry->d_name);
	if (list)
		closedir(list);
}

void sl_history_find(struct sl_history *h, uint64_t run, const char *ending, char *name,
		     size_t bytes)
{
	int folder = sl_history_open_run(h, run);

	name[0] = 0;
	if (folder < 0)
		return;
	find_in(folder, ending, name, bytes);
	close(folder);
}

json_t *sl_history_read_json(int folder, const char *name)
{
	uint64_t bytes;
	int fd = open_file(folder, name, &bytes);
	char *text = fd >= 0 && bytes && bytes <= JSON_BYTES ? malloc(bytes) : NULL;
	ssize_t n = text ? read(fd, text, bytes) : -1;
	json_t *json = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;

	free(text);
	if (fd >= 0)
		close(fd);
	if (json && !json_is_object(json)) {
		json_decref(json);
		return NULL;
	}
	return json;
}

enum sl_run_state sl_history_state(const struct sl_history *h, uint64_t run)
{
	int root = open(h->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum sl_run_state state = root < 0 ? SL_RUN_NONE : sl_run_folder_state(root, run);

	if (root >= 0)
		close(root);
	return state;
}

/* ---- the numbers ---- */

static int highest_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static int read_numbers(const struct sl_history *h, uint64_t **numbers, size_t *n)
{
	DIR *list = opendir(h->root);
	const struct dirent *entry;
	uint64_t *number = NULL;
	size_t room = 0;

	*n = 0;
	if (!list)
		return -errno;
	while ((entry = readdir(list))) {
		uint64_t one = sl_run_folder_number(entry->d_name);

		if (!one)
			continue;
		if (*n == room) {
			uint64_t *more = realloc(number, (room = 2 * room + 256) * sizeof(*more));

			if (!more)
				break;
			number = more;
		}
		number[(*n)++] = one;
	}
	closedir(list);
	if (*n)
		qsort(number, *n, sizeof(*number), highest_first);
	*numbers = number;
	return 0;
}

int sl_history_refresh(struct sl_history *h)
{
	struct timespec now;
	struct stat st;
	uint64_t *number = NULL;
	size_t n;
	int err;

	if (stat(h->root, &st))
		return -errno;
	clock_gettime(CLOCK_REALTIME, &now);
	/* A change within the same tick of the clock would not show: what is younger than a second
	 * is listed again. */
	if (h->number && st.st_mtim.tv_sec == h->listed.tv_sec &&
	    st.st_mtim.tv_nsec == h->listed.tv_nsec && now.tv_sec - st.st_mtim.tv_sec > 1)
		return 0;
	err = read_numbers(h, &number, &n);
	if (err)
		return err;
	free(h->number);
	h->number = number;
	h->numbers = n;
	h->listed = st.st_mtim;
	return 0;
}

/* ---- rows ---- */

static const char *state_name(enum sl_run_state state)
{
	return state == SL_RUN_LIVES ? "live" : state == SL_RUN_ENDED ? "over" : "crashed";
}

static void copy(json_t *to, const char *key, const json_t *from, const char *from_key)
{
	json_t *value = json_object_get(from, from_key);

	json_object_set(to, key, value ? value : json_null());
}

/* The sum over all transfers where a run has several. */
static json_int_t sum(const json_t *result, json_int_t (*one)(const json_t *result))
{
	json_t *transfers = json_object_get(result, "transfers"), *transfer;
	json_int_t total = 0;
	const char *name;

	if (!json_is_object(transfers))
		return one(result);
	json_object_foreach(transfers, name, transfer) total += one(transfer);
	return total;
}

/* null: the run has one, without a name. */
static json_t *transfers_of(const json_t *result)
{
	const json_t *transfers = json_object_get(result, "transfers");

	return json_is_object(transfers) ? json_integer((json_int_t)json_object_size(transfers))
					 : json_null();
}

static json_int_t frames_of_one(const json_t *result)
{
	return json_integer_value(json_object_get(json_object_get(result, "frames"), "settled"));
}

static json_int_t outcome_of(const json_t *result, enum sl_outcome outcome)
{
	const json_t *total = json_object_get(json_object_get(result, "ledger"), "total");

	return json_integer_value(
		json_object_get(json_object_get(total, "outcomes"), sl_outcome_name(outcome)));
}

static json_int_t lost_of_one(const json_t *result)
{
	return outcome_of(result, SL_LOST);
}

static json_int_t damaged_of_one(const json_t *result)
{
	json_int_t total = 0;

	for (int outcome = SL_INCOMPLETE; outcome < SL_LOST; outcome++)
		total += outcome_of(result, (enum sl_outcome)outcome);
	return total;
}

json_int_t sl_history_frames(const json_t *result)
{
	return sum(result, frames_of_one);
}

json_int_t sl_history_lost(const json_t *result)
{
	return sum(result, lost_of_one);
}

json_int_t sl_history_damaged(const json_t *result)
{
	return sum(result, damaged_of_one);
}

static json_t *pictured(int folder)
{
	char name[256];

	find_in(folder, "picture.png", name, sizeof(name));
	if (!name[0])
		find_in(folder, ".nxs", name, sizeof(name));
	return json_boolean(name[0] != 0);
}

/* "2026-01-31T12:34:56.789Z" of a time of the file system. */
static json_t *time_text(const struct timespec *time)
{
	char text[40];
	size_t n;
	struct tm utc;

	gmtime_r(&time->tv_sec, &utc);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + n, sizeof(text) - n, ".%03ldZ", time->tv_nsec / 1000000);
	return json_string(text);
}

/* Of a run without a result: when its lock was made, and last written to its log. */
static void add_times(json_t *row, int folder, bool live)
{
	struct stat st;

	if (!fstatat(folder, "lock", &st, AT_SYMLINK_NOFOLLOW))
		json_object_set_new(row, "started", time_text(&st.st_mtim));
	if (!live && !fstatat(folder, "run.log", &st, AT_SYMLINK_NOFOLLOW))
		json_object_set_new(row, "ended", time_text(&st.st_mtim));
}

/* Its log begins with "TIME info    run N of EXPERIMENT, sluice VERSION". */
static void add_experiment(json_t *row, int folder)
{
	char name[256], head[1024], *from, *to;
	uint64_t bytes;
	ssize_t n;
	int fd;

	find_in(folder, ".log", name, sizeof(name));
	fd = name[0] ? open_file(folder, name, &bytes) : -1;
	n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
	if (fd >= 0)
		close(fd);
	head[n > 0 ? n : 0] = 0;
	head[strcspn(head, "\n")] = 0;
	from = strstr(head, " of ");
	to = from ? strstr(from, ", sluice ") : NULL;
	if (!to)
		return;
	*to = 0;
	json_object_set_new(row, "experiment", sl_json_text(from + strlen(" of ")));
}

static void set_if(json_t *row, const char *key, json_t *value)
{
	if (value)
		json_object_set_new(row, key, value);
}

static json_t *make_row(struct sl_history *h, uint64_t run, int folder, enum sl_run_state state)
{
	json_t *result = state == SL_RUN_ENDED ? sl_history_read_json(folder, "result.json") : NULL,
	       *row, *origin;
	char path[1100], name[32];

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", h->root, name);
	row = json_pack("{s:I, s:s, s:o, s:b}", "run", (json_int_t)run, "state", state_name(state),
			"folder", sl_json_text(path), "readable", state != SL_RUN_ENDED || result);
	copy(row, "result", result, "result");
	copy(row, "experiment", result, "experiment");
	copy(row, "started", result, "started");
	copy(row, "ended", result, "ended");
	copy(row, "error", result, "error");
	copy(row, "metadata", result, "metadata");
	origin = json_object_get(result, "origin");
	copy(row, "file", origin, "file");
	json_object_set_new(row, "transfers", transfers_of(result));
	json_object_set_new(row, "frames",
			    result ? json_integer(sl_history_frames(result)) : json_null());
	json_object_set_new(row, "lost",
			    result ? json_integer(sl_history_lost(result)) : json_null());
	json_object_set_new(row, "damaged",
			    result ? json_integer(sl_history_damaged(result)) : json_null());
	json_object_set_new(row, "picture",
			    state == SL_RUN_LIVES ? json_false() : pictured(folder));
	if (!result) {
		add_times(row, folder, state == SL_RUN_LIVES);
		add_experiment(row, folder);
	}
	json_object_set_new(row, "recovered", json_null());
	json_object_set_new(row, "last_seen", json_null());
	if (state == SL_RUN_CRASHED) {
		set_if(row, "recovered", sl_history_recovered(h, run));
		set_if(row, "last_seen", sl_history_last_seen(h, run));
	}
	json_decref(result);
	return row;
}

void sl_history_forget(struct sl_history *h, uint64_t run)
{
	pthread_mutex_lock(&h->lock);
	if (h->kept[run % SL_HISTORY_ROWS].run == run)
		h->kept[run % SL_HISTORY_ROWS].run = 0;
	pthread_mutex_unlock(&h->lock);
}

static json_t *kept_row(struct sl_history *h, uint64_t run)
{
	json_t *row = NULL;

	pthread_mutex_lock(&h->lock);
	if (h->kept[run % SL_HISTORY_ROWS].run == run)
		row = json_incref(h->kept[run % SL_HISTORY_ROWS].row);
	pthread_mutex_unlock(&h->lock);
	return row;
}

static void keep_row(struct sl_history *h, uint64_t run, json_t *row)
{
	pthread_mutex_lock(&h->lock);
	json_decref(h->kept[run % SL_HISTORY_ROWS].row);
	h->kept[run % SL_HISTORY_ROWS].row = json_incref(row);
	h->kept[run % SL_HISTORY_ROWS].run = run;
	pthread_mutex_unlock(&h->lock);
}

/* A session draws the picture of a run after its result is written. */
static bool may_get_a_picture(int folder, const json_t *row)
{
	struct stat st;

	return !json_is_true(json_object_get(row, "picture")) &&
	       !fstatat(folder, "result.json", &st, AT_SYMLINK_NOFOLLOW) &&
	       time(NULL) - st.st_mtim.tv_sec < PICTURE_S;
}

json_t *sl_history_row(struct sl_history *h, uint64_t run)
{
	int folder = sl_history_open_run(h, run);
	enum sl_run_state state;
	json_t *row;

	if (folder < 0)
		return NULL; /* also where one was kept: its folder has been moved away */
	row = kept_row(h, run);
	if (!row) {
		state = sl_history_state(h, run);
		row = state == SL_RUN_NONE ? NULL : make_row(h, run, folder, state);
		/* A crashed run gets what its recovery said. */
		if (row &&
		    (state == SL_RUN_ENDED || !json_is_null(json_object_get(row, "recovered"))) &&
		    !may_get_a_picture(folder, row))
			keep_row(h, run, row);
	}
	close(folder);
	return row;
}

json_t *sl_history_result(struct sl_history *h, uint64_t run)
{
	int folder = sl_history_open_run(h, run);
	json_t *result;

	if (folder < 0)
		return NULL;
	result = sl_history_read_json(folder, "result.json");
	close(folder);
	return result ? result : sl_history_row(h, run);
}

/* ---- lists ---- */

/* Numbers below `before`, the highest first; one more than `most` where there are more. */
static size_t choose(struct sl_history *h, uint64_t before, size_t most, uint64_t *chosen)
{
	size_t n = 0;

	pthread_mutex_lock(&h->lock);
	if (sl_history_refresh(h)) {
		pthread_mutex_unlock(&h->lock);
		return SIZE_MAX;
	}
	for (size_t i = 0; i < h->numbers && n <= most; i++)
		if (!before || h->number[i] < before)
			chosen[n++] = h->number[i];
	pthread_mutex_unlock(&h->lock);
	return n;
}

json_t *sl_history_list(struct sl_history *h, uint64_t before, unsigned limit)
{
	uint64_t *chosen = calloc((size_t)limit + 1, sizeof(*chosen));
	size_t n = chosen ? choose(h, before, limit, chosen) : SIZE_MAX;
	json_t *runs = n == SIZE_MAX ? NULL : json_array();

	for (size_t i = 0; runs && i < n && i < limit; i++) {
		json_t *row = sl_history_row(h, chosen[i]);

		if (row)
			json_array_append_new(runs, row);
	}
	free(chosen);
	return runs ? json_pack("{s:o, s:b}", "runs", runs, "more", n > limit) : NULL;
}
