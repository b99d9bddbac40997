/* check.c - experiments are checked by a process of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "client/text.h"
#include "service/experiments/private.h"
#include "service/process/process.h"

enum { TIMEOUT_MS = 30000, CPU_S = 20, OUTPUT_BYTES = 4 << 20, SETS = 200, FIXED = 12 };
#define MEMORY_BYTES (UINT64_C(8) << 30)

/* ---- what it says ---- */

static json_t *failed(const char *message)
{
	return json_pack("{s:i, s:b, s:[{s:s, s:o, s:n, s:n, s:n}], s:[], s:[], s:[]}", "schema", 1,
			 "valid", 0, "errors", "code", "system", "message", sl_json_text(message),
			 "where", "line", "hint", "warnings", "transfers", "parameters");
}

static json_t *understand(const struct sl_process_result *r)
{
	json_t *found = json_loadb(r->out, r->out_bytes, 0, NULL);
	char message[600];

	if (json_is_object(found) && json_is_boolean(json_object_get(found, "valid")))
		return found;
	json_decref(found);
	if (r->timed_out)
		snprintf(message, sizeof(message), "the check took longer than %d s",
			 TIMEOUT_MS / 1000);
	else if (r->status < 0)
		snprintf(message, sizeof(message), "the check was ended by signal %d", -r->status);
	else
		snprintf(message, sizeof(message), "the check failed: %.400s", r->err);
	return failed(message);
}

static json_t *run(struct sl_experiments *x, const char *file, const char *const *set, size_t sets,
		   enum sl_distrust distrust)
{
	static const char *const words[] = {"nothing", "set", "file"};
	const char *argv[2 * SETS + FIXED + 1] = {x->program,	   "check",	   file,
						  "--json",	   "--quiet",	   "--distrust",
						  words[distrust], "--data_roots", x->data_roots};
	const struct sl_process p = {.argv = argv,
				     .folder = x->folder,
				     .most_bytes = OUTPUT_BYTES,
				     .timeout_ms = TIMEOUT_MS,
				     .cpu_s = CPU_S,
				     .memory_bytes = MEMORY_BYTES};
	struct sl_process_result result;
	json_t *found;
	size_t n = 9;
	int err;

	if (sets > SETS)
		return failed("too many overrides");
	for (size_t i = 0; i < sets; i++) {
		argv[n++] = "--set";
		argv[n++] = set[i];
	}
	err = sl_process_run(&p, &result);
	if (err) {
		sl_warn("cannot start '%s check': %s", x->program, strerror(-err));
		return failed("the check could not be started");
	}
	found = understand(&result);
	sl_process_free(&result);
	return found;
}

/* ---- of a text: in a folder of its own, so that the file has its right name ---- */

/* "/.../check-Ab12/name.yaml:3" becomes "name.yaml:3". */
static void cut_folder(json_t *of, const char *key, const char *folder)
{
	const char *text = json_string_value(json_object_get(of, key));
	const char *at = text ? strstr(text, folder) : NULL;
	size_t length = strlen(folder) + 1;
	char *cut;

	if (!at || asprintf(&cut, "%.*s%s", (int)(at - text), text, at + length) < 0)
		return;
	json_object_set_new(of, key, sl_json_text(cut));
	free(cut);
}

static void cut_folders(json_t *found, const char *list, const char *folder)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(found, list), i, one)
	{
		cut_folder(one, "where", folder);
		cut_folder(one, "message", folder);
	}
}

static int write_file(const char *path, const char *text, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err = 0;

	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < bytes && !err;) {
		ssize_t n = write(fd, text + at, bytes - at);

		if (n < 0 && errno != EINTR)
			err = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static json_t *cannot_write(int err)
{
	char message[200];

	snprintf(message, sizeof(message),
		 "the service cannot write to its folder in the root of the runs: %s",
		 strerror(-err));
	return failed(message);
}

static json_t *run_text(struct sl_experiments *x, const char *name, const char *text, size_t bytes,
			const char *const *set, size_t sets, enum sl_distrust distrust)
{
	char folder[1100], path[1200];
	json_t *found;
	int err;

	snprintf(folder, sizeof(folder), "%s/check-XXXXXX", x->temporary);
	if (!mkdtemp(folder))
		return cannot_write(-errno);
	snprintf(path, sizeof(path), "%s/%s.yaml", folder, name);
	err = write_file(path, text, bytes);
	found = err ? cannot_write(err) : run(x, path, set, sets, distrust);
	cut_folders(found, "errors", folder);
	cut_folders(found, "warnings", folder);
	unlink(path);
	rmdir(folder);
	return found;
}

static json_t *run_file(struct sl_experiments *x, const char *name, const char *const *set,
			size_t sets, enum sl_distrust distrust)
{
	char path[1200];
	json_t *found;

	snprintf(path, sizeof(path), "%s/%s.yaml", x->folder, name);
	found = run(x, path, set, sets, distrust);
	cut_folders(found, "errors", x->folder);
	cut_folders(found, "warnings", x->folder);
	return found;
}

json_t *sl_experiments_check(struct sl_experiments *x, const char *name, const char *text,
			     size_t bytes, const char *const *set, size_t sets,
			     enum sl_distrust distrust)
{
	return text ? run_text(x, name, text, bytes, set, sets, distrust)
		    : run_file(x, name, set, sets, distrust);
}

/* ---- what is known of files ---- */

static bool is_of(const struct sl_kept_check *k, const char *name, const struct stat *st)
{
	return k->found && !strcmp(k->name, name) && k->inode == st->st_ino &&
	       k->bytes == st->st_size && k->modified.tv_sec == st->st_mtim.tv_sec &&
	       k->modified.tv_nsec == st->st_mtim.tv_nsec;
}

static json_t *from_memory(struct sl_experiments *x, const char *name, const struct stat *st)
{
	json_t *found = NULL;

	pthread_mutex_lock(&x->lock);
	for (unsigned i = 0; i < SL_EXPERIMENTS_KEPT && !found; i++)
		if (is_of(&x->kept[i], name, st))
			found = json_incref(x->kept[i].found);
	pthread_mutex_unlock(&x->lock);
	return found;
}

static void keep(struct sl_experiments *x, const char *name, const struct stat *st, json_t *found)
{
	struct sl_kept_check *k = NULL;

	pthread_mutex_lock(&x->lock);
	for (unsigned i = 0; i < SL_EXPERIMENTS_KEPT && !k; i++)
		if (x->kept[i].found && !strcmp(x->kept[i].name, name))
			k = &x->kept[i];
	if (!k)
		k = &x->kept[x->next++ % SL_EXPERIMENTS_KEPT];
	json_decref(k->found);
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->inode = st->st_ino;
	k->bytes = st->st_size;
	k->modified = st->st_mtim;
	k->found = json_incref(found);
	pthread_mutex_unlock(&x->lock);
}

json_t *sl_experiments_known(struct sl_experiments *x, const char *name, const struct stat *st)
{
	json_t *found = from_memory(x, name, st);

	if (!found) {
		found = sl_experiments_check(x, name, NULL, 0, NULL, 0, SL_DISTRUST_NOTHING);
		if (found)
			keep(x, name, st, found);
	}
	return found;
}
