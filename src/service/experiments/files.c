/* files.c - experiment files: listed, read, and replaced as a whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "client/registry.h"
#include "client/text.h"
#include "service/experiments/private.h"

#define ENDING ".yaml"

/* ---- one file ---- */

static void path_of(const struct sl_experiments *x, const char *name, char path[1200])
{
	snprintf(path, 1200, "%s/%s" ENDING, x->folder, name);
}

int sl_experiments_file(const struct sl_experiments *x, const char *name, struct stat *st)
{
	char path[1200];
	int fd;

	path_of(x, name, path);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, st) && S_ISREG(st->st_mode))
		return fd;
	close(fd);
	return -ENOENT;
}

bool sl_experiments_path(struct sl_experiments *x, const char *name, char *path, size_t bytes)
{
	struct stat st;
	int fd = sl_experiments_file(x, name, &st);

	if (fd < 0)
		return false;
	close(fd);
	snprintf(path, bytes, "%s/%s" ENDING, x->folder, name);
	return true;
}

/* With a final zero; NULL: it cannot be read, or is too large. */
static char *read_all(int fd, size_t *bytes)
{
	char *text = malloc(SL_EXPERIMENT_FILE + 2);
	size_t have = 0;
	ssize_t n = text ? 1 : 0;

	while (text && n && have <= SL_EXPERIMENT_FILE) {
		n = read(fd, text + have, SL_EXPERIMENT_FILE + 1 - have);
		if (n < 0 && errno != EINTR)
			break;
		have += n > 0 ? (size_t)n : 0;
	}
	if (text && (n < 0 || have > SL_EXPERIMENT_FILE)) {
		free(text);
		return NULL;
	}
	if (text)
		text[have] = 0;
	*bytes = have;
	return text;
}

static void hash(const char *text, size_t bytes, char hex[65])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, bytes, (const uint8_t *)text);
	sha256_digest(&sha, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static json_int_t modified_ns(const struct stat *st)
{
	return (json_int_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void copy(json_t *to, const char *key, const json_t *from)
{
	json_t *value = json_object_get(from, key);

	json_object_set(to, key, value ? value : json_null());
}

json_t *sl_experiments_get(struct sl_experiments *x, const char *name)
{
	struct stat st;
	int fd = sl_experiments_file(x, name, &st);
	json_t *json = NULL, *found, *string;
	char sha256[65], *text;
	size_t bytes;

	if (fd < 0)
		return NULL;
	text = read_all(fd, &bytes);
	close(fd);
	if (!text)
		return NULL;
	hash(text, bytes, sha256);
	found = sl_experiments_known(x, name, &st);
	/* NULL where it is no UTF-8, or has zeros: such a file is not valid either. */
	string = json_stringn(text, bytes);
	json = json_pack("{s:s, s:o, s:s, s:I, s:i}", "name", name, "text",
			 string ? string : json_null(), "sha256", sha256, "modified_unix_ns",
			 modified_ns(&st), "bytes", (int)bytes);
	copy(json, "title", found);
	copy(json, "valid", found);
	copy(json, "errors", found);
	copy(json, "warnings", found);
	copy(json, "transfers", found);
	copy(json, "parameters", found);
	json_decref(found);
	free(text);
	return json;
}

/* ---- the list ---- */

static json_t *row_of(struct sl_experiments *x, const char *name)
{
	struct stat st;
	int fd = sl_experiments_file(x, name, &st);
	json_t *found, *row;

	if (fd < 0)
		return NULL;
	close(fd);
	found = sl_experiments_known(x, name, &st);
	row = json_pack("{s:s, s:I, s:I}", "name", name, "modified_unix_ns", modified_ns(&st),
			"bytes", (json_int_t)st.st_size);
	copy(row, "title", found);
	copy(row, "valid", found);
	json_object_set(row, "error", json_null());
	if (json_array_size(json_object_get(found, "errors")))
		json_object_set(row, "error", json_array_get(json_object_get(found, "errors"), 0));
	copy(row, "detector", found);
	copy(row, "transfers", found);
	copy(row, "parameters", found);
	json_decref(found);
	return row;
}

/* A file that cannot be addressed, with the reason; NULL: it is no file. */
static json_t *row_of_misnamed(const struct sl_experiments *x, const char *name)
{
	char path[1400];
	struct stat st;
	json_t *error;

	snprintf(path, sizeof(path), "%s/%.255s" ENDING, x->folder, name);
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	error = json_pack("{s:s, s:s, s:n, s:n, s:s}", "code", "name", "message",
			  "the name of the file is no name of an experiment: 1 to 63 of "
			  "A-Z a-z 0-9 . _ -, and no '.' or '-' at the beginning",
			  "where", "line", "hint", "rename the file");
	return json_pack("{s:o, s:I, s:I, s:n, s:b, s:o, s:n, s:n, s:n}", "name",
			 sl_json_text(name), "modified_unix_ns", modified_ns(&st), "bytes",
			 (json_int_t)st.st_size, "title", "valid", 0, "error", error, "detector",
			 "transfers", "parameters");
}

/* Hidden files are none, as those that editors make. */
static int is_experiment(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name), ending = strlen(ENDING);

	return n > ending && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - ending, ENDING);
}

json_t *sl_experiments_list(struct sl_experiments *x)
{
	struct dirent **entry = NULL;
	int n = scandir(x->folder, &entry, is_experiment, alphasort);
	json_t *list = n < 0 ? NULL : json_array(), *row;

	for (int i = 0; i < n; i++) {
		char *name = entry[i]->d_name;

		name[strlen(name) - strlen(ENDING)] = 0;
		row = sl_registry_name_is_valid(name) ? row_of(x, name) : row_of_misnamed(x, name);
		if (row)
			json_array_append_new(list, row);
		free(entry[i]);
	}
	free(entry);
	return list ? json_pack("{s:o}", "experiments", list) : NULL;
}

/* ---- replaced ---- */

/* Whether a header If-Match names this hash: "*", or a list of tags. */
static bool matches(const char *header, const char *sha256)
{
	char tag[70];

	snprintf(tag, sizeof(tag), "\"%s\"", sha256);
	return sha256[0] && (!strcmp(header, "*") || strstr(header, tag));
}

static int write_all(int fd, const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = write(fd, text + at, bytes - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) && errno != EINVAL ? -errno : 0;
}

/* Whole and on disk under another name, then under its own. */
static int replace(const struct sl_experiments *x, const char *name, const char *text, size_t bytes,
		   mode_t mode)
{
	char path[1200], part[1200];
	int fd, folder, err;

	path_of(x, name, path);
	snprintf(part, sizeof(part), "%s/.%s.XXXXXX", x->folder, name);
	fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_all(fd, text, bytes);
	if (!err && fchmod(fd, mode))
		err = -errno;
	close(fd);
	if (!err && rename(part, path))
		err = -errno;
	if (err) {
		unlink(part);
		return err;
	}
	folder = open(x->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0) {
		fsync(folder);
		close(folder);
	}
	return 0;
}

/* Its hash; "" : it is not there. */
static void hash_there(const struct sl_experiments *x, const char *name, char sha256[65],
		       mode_t *mode)
{
	struct stat st;
	int fd = sl_experiments_file(x, name, &st);
	char *text;
	size_t bytes;

	sha256[0] = 0;
	if (fd < 0)
		return;
	*mode = st.st_mode & 0777;
	text = read_all(fd, &bytes);
	close(fd);
	if (text)
		hash(text, bytes, sha256);
	else
		snprintf(sha256, 65, "unknown");
	free(text);
}

static enum sl_put put(struct sl_experiments *x, const char *name, const char *text, size_t bytes,
		       const char *match, bool fresh, char *sha256, char *why, size_t why_bytes)
{
	mode_t mode = 0644;
	char before[65];
	int err;

	hash_there(x, name, before, &mode);
	if ((match && !matches(match, before)) || (fresh && before[0])) {
		snprintf(why, why_bytes, "%s" ENDING " %s", name,
			 before[0] ? "has been changed since it was read" : "is not there");
		snprintf(sha256, 65, "%s", before);
		return SL_PUT_CONFLICT;
	}
	err = replace(x, name, text, bytes, mode);
	if (err) {
		snprintf(why, why_bytes, "%s" ENDING " cannot be written: %s", name,
			 strerror(-err));
		return SL_PUT_FAILED;
	}
	hash(text, bytes, sha256);
	return before[0] ? SL_PUT_REPLACED : SL_PUT_MADE;
}

enum sl_put sl_experiments_put(struct sl_experiments *x, const char *name, const char *text,
			       size_t bytes, const char *match, bool fresh, char *sha256,
			       json_t **found, char *why, size_t why_bytes)
{
	enum sl_put done;

	*found = sl_experiments_check(x, name, text, bytes, NULL, 0, SL_DISTRUST_FILE);
	if (!json_is_true(json_object_get(*found, "valid")))
		return SL_PUT_INVALID;
	pthread_mutex_lock(&x->change);
	done = put(x, name, text, bytes, match, fresh, sha256, why, why_bytes);
	pthread_mutex_unlock(&x->change);
	return done;
}

/* ---- open and close ---- */

int sl_experiments_open(const struct sl_experiments_options *o, struct sl_experiments **experiments)
{
	struct sl_experiments *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	snprintf(x->program, sizeof(x->program), "%s", o->program);
	snprintf(x->folder, sizeof(x->folder), "%s", o->folder);
	snprintf(x->temporary, sizeof(x->temporary), "%s", o->temporary);
	snprintf(x->data_roots, sizeof(x->data_roots), "%s", o->data_roots);
	pthread_mutex_init(&x->lock, NULL);
	pthread_mutex_init(&x->change, NULL);
	*experiments = x;
	return 0;
}

void sl_experiments_close(struct sl_experiments *x)
{
	if (!x)
		return;
	for (unsigned i = 0; i < SL_EXPERIMENTS_KEPT; i++)
		json_decref(x->kept[i].found);
	pthread_mutex_destroy(&x->change);
	pthread_mutex_destroy(&x->lock);
	free(x);
}
