/* list.c - the sessions of this user on this host. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/private.h"
#include "client/registry.h"
#include "client/text.h"

struct list {
	struct sl_remote_info *info;
	size_t n;
	int err;
};

static void fill(struct sl_remote_info *info, const struct sl_registry_facts *facts, bool alive)
{
	memset(info, 0, sizeof(*info));
	info->alive = alive;
	info->pid = (int32_t)facts->pid;
	info->started_unix_ns = facts->started_unix_ns;
	info->run = facts->run;
	info->detector = !strcmp(facts->kind, "detector");
	snprintf(info->name, sizeof(info->name), "%s", facts->name);
	snprintf(info->experiment, sizeof(info->experiment), "%s", facts->experiment);
	snprintf(info->root, sizeof(info->root), "%s", facts->root);
	snprintf(info->folder, sizeof(info->folder), "%s", facts->folder);
}

static bool add(void *arg, int folder, const char *name)
{
	struct sl_registry_facts facts;
	struct sl_remote_info *more;
	struct list *list = arg;
	bool alive;

	if (sl_registry_look(folder, name, &facts, &alive))
		return true; /* it has ended since */
	more = realloc(list->info, (list->n + 1) * sizeof(*more));
	if (!more) {
		list->err = -ENOMEM;
		return false;
	}
	list->info = more;
	fill(&more[list->n++], &facts, alive);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sl_remote_info *)a)->name,
		      ((const struct sl_remote_info *)b)->name);
}

/* A function for every session of every folder. -EPERM: this user's folder is refused. */
static int each_session(bool (*each)(void *arg, int folder, const char *name), void *arg)
{
	int folder[SL_REGISTRY_PLACES];
	char why[SL_REGISTRY_PATH];
	unsigned places = sl_registry_places(folder, why, sizeof(why));

	for (unsigned i = 0; i < places; i++) {
		sl_registry_each(folder[i], each, arg);
		close(folder[i]);
	}
	return why[0] ? -EPERM : 0;
}

int sl_remote_list(struct sl_remote_info **info, size_t *n)
{
	struct list list = {NULL};

	int err = each_session(add, &list);

	if (list.err || err) {
		free(list.info);
		return list.err ? list.err : err;
	}
	if (list.n)
		qsort(list.info, list.n, sizeof(*list.info), by_name);
	*info = list.info;
	*n = list.n;
	return 0;
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? sl_json_text(text) : json_null();
}

/* NULL: it does not answer. */
static json_t *status_of(const char *name, int timeout_ms)
{
	struct sl_remote *remote;
	json_t *reply = NULL, *status;

	if (sl_remote_open(name, timeout_ms, &remote, NULL))
		return NULL;
	sl_remote_ask(remote, json_pack("{s:s}", "call", "status"), timeout_ms, &reply, NULL);
	sl_remote_close(remote);
	status = json_incref(json_object_get(reply, "status"));
	json_decref(reply);
	return status;
}

static json_t *session_json(const struct sl_remote_info *info, int timeout_ms)
{
	json_t *status = info->alive ? status_of(info->name, timeout_ms) : NULL;

	return json_pack("{s:s, s:s, s:b, s:i, s:I, s:I, s:o, s:o, s:o, s:o}", "name", info->name,
			 "kind", info->detector ? "detector" : "session", "crashed", !info->alive,
			 "pid", (int)info->pid, "started_unix_ns",
			 (json_int_t)info->started_unix_ns, "run", (json_int_t)info->run,
			 "experiment", text_or_null(info->experiment), "root",
			 text_or_null(info->root), "folder", text_or_null(info->folder), "status",
			 status ? status : json_null());
}

int sl_remote_list_json(int timeout_ms, char **json)
{
	uint64_t end_ms = sl_remote_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
	struct sl_remote_info *info;
	json_t *array;
	size_t n;
	int err = sl_remote_list(&info, &n);

	if (err)
		return err;
	array = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			array, session_json(&info[i], sl_remote_left_ms(end_ms, timeout_ms)));
	free(info);
	*json = json_dumps(array, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	json_decref(array);
	return *json ? 0 : -ENOMEM;
}

/* Taken as a session takes its name, and let go: a session that begins just now keeps it. */
static bool forget(void *arg, int folder, const char *name)
{
	struct sl_claim claim;
	int *forgotten = arg;
	char why[64];

	if (sl_registry_claim(folder, name, &claim, why, sizeof(why)) == 0) {
		*forgotten += claim.crashed;
		sl_registry_release(&claim);
	}
	return true;
}

int sl_remote_forget_crashed(void)
{
	int forgotten = 0, err = each_session(forget, &forgotten);

	return err ? err : forgotten;
}
