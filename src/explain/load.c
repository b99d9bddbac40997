/* load.c - the files of a run: its result, and the flight record beside it. */
#include "explain/load.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "explain/private.h"

enum { MOST_BYTES = 64 << 20, PATH = 2048, TRANSFERS = 16 };

struct texts { /* NULL: there is none */
	char *result, *flight;
	size_t result_bytes, flight_bytes;
	char result_path[PATH], flight_path[PATH]; /* empty: not known */
	const char *session;
};

/* 0, -ENOENT, or another -errno. */
static int read_file(const char *path, char **text, size_t *bytes)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	int err = 0;

	if (!file)
		return -errno;
	if (fstat(fileno(file), &st) || !S_ISREG(st.st_mode))
		err = -EINVAL;
	else if (st.st_size > MOST_BYTES)
		err = -EFBIG;
	*text = err ? NULL : malloc((size_t)st.st_size + 1);
	if (!err && !*text)
		err = -ENOMEM;
	if (!err)
		*bytes = fread(*text, 1, (size_t)st.st_size, file);
	fclose(file);
	return err;
}

static struct sl_explanation *another(struct sl_explanation **list, size_t n)
{
	struct sl_explanation *more = realloc(*list, (n + 1) * sizeof(**list));

	if (!more)
		return NULL;
	*list = more;
	return &more[n];
}

static int add(const struct texts *t, const char *run, const char *transfer,
	       struct sl_explanation **list, size_t *n, char *why, size_t why_bytes)
{
	struct sl_explanation *e = another(list, *n);
	struct sl_explain_texts texts = {
		.result = t->result,
		.flight = t->flight,
		.result_bytes = t->result_bytes,
		.flight_bytes = t->flight_bytes,
		.result_path = t->result_path[0] ? t->result_path : NULL,
		.flight_path = t->flight_path[0] ? t->flight_path : NULL,
		.session = t->session,
	};
	int err;

	if (!e)
		return -ENOMEM;
	err = sl_explain(&texts, e, why, why_bytes);
	if (err)
		return err;
	snprintf(e->run, sizeof(e->run), "%s", run);
	snprintf(e->transfer, sizeof(e->transfer), "%s", transfer);
	++*n;
	return 0;
}

/* A record that is damaged is as good as none. */
static void drop_bad_flight(struct texts *t)
{
	json_t *json = t->flight ? json_loadb(t->flight, t->flight_bytes, 0, NULL) : NULL;

	if (t->flight && !json) {
		free(t->flight);
		t->flight = NULL;
	}
	json_decref(json);
}

/* Beside the result, under the name that goes with its own, or where it says. */
static void find_flight(const char *beside, const json_t *result, struct texts *t)
{
	const char *path = json_string_value(json_object_get(result, "flight"));

	if (!read_file(beside, &t->flight, &t->flight_bytes))
		snprintf(t->flight_path, sizeof(t->flight_path), "%s", beside);
	else if (path && !read_file(path, &t->flight, &t->flight_bytes))
		snprintf(t->flight_path, sizeof(t->flight_path), "%s", path);
	drop_bad_flight(t);
}

/* "DIR/flight[.NAME].json" for results of a run folder, "S.flight.json" for the summary "S.json".
 */
static void name_flight(const char *result, const char *transfer, char *path, size_t bytes)
{
	const char *slash = strrchr(result, '/'), *name = slash ? slash + 1 : result;
	int folder = (int)(name - result), length = (int)strlen(name);

	if (!strcmp(name, "result.json"))
		snprintf(path, bytes, "%.*sflight%s%s.json", folder, result, transfer[0] ? "." : "",
			 transfer);
	else if (!strncmp(name, "result.", 7))
		snprintf(path, bytes, "%.*sflight.%s", folder, result, name + 7);
	else
		snprintf(path, bytes, "%.*s%.*s%s%s.flight.json", folder, result,
			 length > 5 && !strcmp(name + length - 5, ".json") ? length - 5 : length,
			 name, transfer[0] ? "." : "", transfer);
}

/* The other way round. */
static void name_result(const char *flight, char *path, size_t bytes)
{
	const char *slash = strrchr(flight, '/'), *name = slash ? slash + 1 : flight;
	int folder = (int)(name - flight), length = (int)strlen(name);
	const int ending = (int)strlen(".flight.json");

	if (!strncmp(name, "flight.", 7))
		snprintf(path, bytes, "%.*sresult.%s", folder, flight, name + 7);
	else
		snprintf(path, bytes, "%.*s%.*s.json", folder, flight,
			 length > ending ? length - ending : length, name);
}

/* ---- one file ---- */

static int add_transfers(const char *path, const char *run, json_t *transfers,
			 struct sl_explanation **list, size_t *n, char *why, size_t why_bytes)
{
	const char *name;
	json_t *result;
	int err = 0;

	json_object_foreach(transfers, name, result)
	{
		char flight[PATH];
		struct texts t = {.result = json_dumps(result, JSON_COMPACT)};

		if (err || !t.result || !json_is_object(result) || *n == TRANSFERS) {
			free(t.result);
			continue;
		}
		t.result_bytes = strlen(t.result);
		snprintf(t.result_path, sizeof(t.result_path), "%s", path);
		name_flight(path, name, flight, sizeof(flight));
		find_flight(flight, result, &t);
		err = add(&t, run, name, list, n, why, why_bytes);
		free(t.result);
		free(t.flight);
	}
	if (!err && !*n) {
		snprintf(why, why_bytes, "no transfer has a result");
		err = -ENODATA;
	}
	return err;
}

static int add_file(const char *path, const char *run, struct sl_explanation **list, size_t *n,
		    char *why, size_t why_bytes)
{
	struct texts t = {NULL};
	char flight[PATH];
	json_error_t error;
	json_t *json;
	int err = read_file(path, &t.result, &t.result_bytes);

	if (err) {
		snprintf(why, why_bytes, "cannot read '%s': %s", path, strerror(-err));
		return err;
	}
	json = json_loadb(t.result, t.result_bytes, 0, &error);
	if (!json) {
		snprintf(why, why_bytes, "'%s' is no JSON: line %d: %s", path, error.line,
			 error.text);
		err = -EINVAL;
	} else if (json_is_object(json_object_get(json, "transfers"))) {
		err = add_transfers(path, run, json_object_get(json, "transfers"), list, n, why,
				    why_bytes);
	} else if (json_is_array(json_object_get(json, "series"))) {
		struct texts both = {.flight = t.result, .flight_bytes = t.result_bytes};

		snprintf(both.flight_path, sizeof(both.flight_path), "%s", path);
		name_result(path, both.result_path, sizeof(both.result_path));
		read_file(both.result_path, &both.result, &both.result_bytes);
		err = add(&both, run, "", list, n, why, why_bytes);
		free(both.result);
	} else {
		name_flight(path, "", flight, sizeof(flight));
		snprintf(t.result_path, sizeof(t.result_path), "%s", path);
		find_flight(flight, json, &t);
		err = add(&t, run, "", list, n, why, why_bytes);
	}
	json_decref(json);
	free(t.result);
	free(t.flight);
	return err;
}

/* ---- a folder ---- */

static bool is_flight(const char *name)
{
	size_t length = strlen(name);

	return !strncmp(name, "flight.", 7) && length > 11 && !strcmp(name + length - 5, ".json");
}

/* A run that crashed, or that still goes on, has no result. */
static int add_flights(const char *folder, struct sl_explanation **list, size_t *n, char *why,
		       size_t why_bytes)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int err = 0;

	while (dir && !err && *n < TRANSFERS && (entry = readdir(dir))) {
		char path[PATH];

		if (strcmp(entry->d_name, "flight.json") != 0 && !is_flight(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		err = add_file(path, folder, list, n, why, why_bytes);
	}
	if (dir)
		closedir(dir);
	if (err || *n)
		return err;
	sl_explain_remains(folder, why, why_bytes);
	return -ENOENT;
}

static int add_folder(const char *folder, struct sl_explanation **list, size_t *n, char *why,
		      size_t why_bytes)
{
	char path[PATH];
	struct stat st;

	snprintf(path, sizeof(path), "%s/result.json", folder);
	if (!stat(path, &st))
		return add_file(path, folder, list, n, why, why_bytes);
	return add_flights(folder, list, n, why, why_bytes);
}

int sl_explain_path(const char *path, struct sl_explanation **list, size_t *n, char *why,
		    size_t why_bytes)
{
	struct stat st;
	int err;

	*list = NULL;
	*n = 0;
	if (stat(path, &st)) {
		err = -errno;
		snprintf(why, why_bytes, "cannot open '%s': %s", path, strerror(-err));
		return err;
	}
	err = S_ISDIR(st.st_mode) ? add_folder(path, list, n, why, why_bytes)
				  : add_file(path, path, list, n, why, why_bytes);
	if (err) {
		free(*list);
		*list = NULL;
		*n = 0;
	}
	return err;
}

int sl_explain_reply(const char *name, const char *reply, struct sl_explanation **list, size_t *n,
		     char *why, size_t why_bytes)
{
	struct texts t = {.result = (char *)reply, .result_bytes = strlen(reply), .session = name};
	json_t *json = json_loads(reply, 0, NULL);
	const json_t *status = json_object_get(json, "status");
	const char *flight = json_string_value(json_object_get(status, "flight"));
	int err;

	*list = NULL;
	*n = 0;
	if (flight && !read_file(flight, &t.flight, &t.flight_bytes)) {
		snprintf(t.flight_path, sizeof(t.flight_path), "%s", flight);
		drop_bad_flight(&t);
	}
	json_decref(json);
	err = add(&t, name, "", list, n, why, why_bytes);
	free(t.flight);
	if (err) {
		free(*list);
		*list = NULL;
	}
	return err;
}
