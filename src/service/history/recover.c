/* recover.c - after a crash: `sluice recover` on the files that a run has left, one run at a time,
 * with low priority. What it said is kept in ROOT/.service/recovered/NNNNNN.json. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/text.h"
#include "service/history/private.h"
#include "service/process/process.h"

enum {
	FILES = 32,
	DEPTH = 3,
	NICER = 9,
	SAID_BYTES = 4000,
	TIMEOUT_MS = 3600000,
	LOCK_MS = 50,
	NAME = 512
};

struct files {
	char name[FILES][NAME]; /* relative to the run's folder */
	unsigned n;
};

/* Masters of runs: data files are found through them. */
static bool is_master(const char *name)
{
	size_t n = strlen(name);

	return (n > 4 && !strcmp(name + n - 4, ".nxs")) ||
	       (n > 3 && !strcmp(name + n - 3, ".h5") && !strstr(name, "_data_"));
}

static void find_masters(int folder, const char *before, struct files *files, unsigned depth)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!list && fd >= 0)
		close(fd);
	while (list && (entry = readdir(list)) && files->n < FILES) {
		char name[NAME];
		struct stat st;
		int below;

		if (entry->d_name[0] == '.' ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    snprintf(name, sizeof(name), "%s%s", before, entry->d_name) >= NAME - 1)
			continue;
		if (S_ISREG(st.st_mode) && is_master(entry->d_name)) {
			snprintf(files->name[files->n++], NAME, "%s", name);
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH) {
			below = openat(folder, entry->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			strcat(name, "/");
			if (below >= 0) {
				find_masters(below, name, files, depth + 1);
				close(below);
			}
		}
	}
	if (list)
		closedir(list);
}

/* ---- one run ---- */

static bool is_stopping(void *arg)
{
	struct sl_history *h = arg;
	bool stop;

	pthread_mutex_lock(&h->lock);
	stop = h->stop;
	pthread_mutex_unlock(&h->lock);
	return stop;
}

/* The program that recovers holds this lock, too: it goes on when its service is killed, and the
 * next service waits for it. *fd: -1: it could not be opened. False: we are to end. */
static bool lock_recovery(struct sl_history *h, int *fd)
{
	char path[1200];

	snprintf(path, sizeof(path), "%s/recovered/lock", h->own);
	*fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fd < 0)
		sl_warn("cannot open '%s': %s", path, strerror(errno));
	while (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB)) {
		if (is_stopping(h)) {
			close(*fd);
			return false;
		}
		sl_clock_sleep_until(sl_clock_ns() + LOCK_MS * UINT64_C(1000000));
	}
	return true;
}

/* held: the lock; -1: none. NULL: we are to end; it goes on by itself. */
static json_t *recover_file(struct sl_history *h, const char *folder, const char *name, int held)
{
	const char *const argv[] = {h->program, "recover", name, NULL};
	const struct sl_process p = {.held = held > 0 ? held : 0,
				     .argv = argv,
				     .folder = folder,
				     .most_bytes = SAID_BYTES,
				     .timeout_ms = TIMEOUT_MS,
				     .nicer = NICER,
				     .goes_on = true,
				     .stop = is_stopping,
				     .arg = h};
	struct sl_process_result result;
	int err = sl_process_run(&p, &result);
	json_t *json;

	if (err)
		return json_pack("{s:o, s:b, s:s}", "file", sl_json_text(name), "recovered", 0,
				 "said", strerror(-err));
	if (result.stopped) {
		sl_process_free(&result);
		return NULL;
	}
	result.out[strcspn(result.out, "\n")] = 0;
	json = json_pack("{s:o, s:b, s:o}", "file", sl_json_text(name), "recovered",
			 result.status == 0, "said",
			 sl_json_text(result.status ? result.err : result.out));
	sl_process_free(&result);
	return json;
}

static void record_path(const struct sl_history *h, uint64_t run, char *path, size_t bytes)
{
	char name[32];

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(path, bytes, "%s/recovered/%s.json", h->own, name);
}

json_t *sl_history_recovered(const struct sl_history *h, uint64_t run)
{
	char path[1200];
	json_t *json;

	record_path(h, run, path, sizeof(path));
	json = json_load_file(path, 0, NULL);
	if (json && !json_is_object(json)) {
		json_decref(json);
		return NULL;
	}
	return json;
}

static void write_record(const struct sl_history *h, uint64_t run, const json_t *record)
{
	char path[1200], part[1208];

	record_path(h, run, path, sizeof(path));
	snprintf(part, sizeof(part), "%s.part", path);
	if (json_dump_file(record, part, JSON_INDENT(1)) || rename(part, path))
		sl_warn("cannot write '%s': %s; run %llu will be looked at again", path,
			strerror(errno), (unsigned long long)run);
}

/* What recovery says of each file; NULL: we are to end, or there is no memory. */
static json_t *recover_files(struct sl_history *h, const char *folder, const struct files *files,
			     int lock)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < files->n && list; i++) {
		json_t *one = recover_file(h, folder, files->name[i], lock);

		if (one) {
			json_array_append_new(list, one);
		} else {
			json_decref(list);
			list = NULL;
		}
	}
	return list;
}

static void note_recovered(struct sl_history *h, uint64_t run, json_t *list)
{
	json_t *record = json_pack("{s:I, s:o}", "when_unix_ns", (json_int_t)sl_clock_unix_ns(),
				   "files", list);

	sl_info("run %llu had crashed: %zu of its files were looked at", (unsigned long long)run,
		json_array_size(list));
	write_record(h, run, record);
	json_decref(record);
	sl_history_forget(h, run);
	sl_history_publish(h, run);
}

static void recover_run(struct sl_history *h, uint64_t run)
{
	struct files *files = calloc(1, sizeof(*files));
	int at = sl_history_open_run(h, run), lock = -1;
	char folder[1100], number[32];
	json_t *list = NULL;

	sl_run_folder_digits(run, number, sizeof(number));
	snprintf(folder, sizeof(folder), "%s/%s", h->root, number);
	if (files && at >= 0 && lock_recovery(h, &lock)) {
		find_masters(at, "", files, 0);
		list = recover_files(h, folder, files, lock);
		if (lock >= 0)
			close(lock);
	}
	if (list)
		note_recovered(h, run, list);
	if (at >= 0)
		close(at);
	free(files);
}

/* ---- the thread ---- */

void sl_history_to_recover(struct sl_history *h, uint64_t run)
{
	json_t *before;

	if (!h->recovers || h->crashes == SL_HISTORY_CRASHED)
		return;
	before = sl_history_recovered(h, run);
	if (!before) {
		h->crashed[h->crashes++] = run;
		pthread_cond_broadcast(&h->wake);
	}
	json_decref(before);
}

void *sl_history_recover(void *arg)
{
	struct sl_history *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		uint64_t run;

		if (!h->crashes) {
			pthread_cond_wait(&h->wake, &h->lock);
			continue;
		}
		run = h->crashed[--h->crashes];
		pthread_mutex_unlock(&h->lock);
		recover_run(h, run);
		pthread_mutex_lock(&h->lock);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}
