/* sessions.c - the list of sessions on a screen, as they come and go. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "board/board.h"

enum { MOST = 1000, CLOSED_S = 60 };

static bool is_wanted(const struct sl_board *b, const char *name)
{
	for (size_t i = 0; i < b->onlys; i++)
		if (!strcmp(b->only[i], name))
			return true;
	return !b->onlys;
}

/* By name; NULL: it is not watched, or there is no memory. */
static struct sl_board_session *find(struct sl_board *b, const char *name)
{
	struct sl_board_session *more;
	size_t i = 0;

	if (!name[0] || strlen(name) >= sizeof(more->name) || !is_wanted(b, name))
		return NULL;
	while (i < b->sessions && strcmp(b->session[i].name, name) < 0)
		i++;
	if (i < b->sessions && !strcmp(b->session[i].name, name))
		return &b->session[i];
	more = b->sessions < MOST ? realloc(b->session, (b->sessions + 1) * sizeof(*more)) : NULL;
	if (!more)
		return NULL;
	b->session = more;
	memmove(more + i + 1, more + i, (b->sessions - i) * sizeof(*more));
	memset(&more[i], 0, sizeof(*more));
	strcpy(more[i].name, name);
	b->chosen += b->sessions && i <= b->chosen; /* the chosen one stays so */
	b->sessions++;
	return &more[i];
}

static void set_state(const struct sl_board *b, struct sl_board_session *s, const char *state)
{
	bool closed = !strcmp(state, "closed");

	/* A detector side or a session that said how it ended keeps that beside. */
	snprintf(s->state, sizeof(s->state), "%s", state);
	s->closed_unix_s = !closed ? 0 : s->closed_unix_s > 0 ? s->closed_unix_s : b->now_unix_s;
}

void sl_board_take_state(struct sl_board *b, const char *name, const char *state)
{
	struct sl_board_session *s = find(b, name);

	if (s)
		set_state(b, s, state);
}

int sl_board_take_status(struct sl_board *b, const char *json, size_t bytes)
{
	json_t *root = json_loadb(json, bytes, 0, NULL);
	const json_t *status = json_object_get(root, "status");
	const char *name = json_string_value(json_object_get(status, "session"));
	struct sl_board_session *s = name ? find(b, name) : NULL;
	int err = name ? 0 : -EINVAL;

	json_decref(root);
	if (!s || sl_view_read(&s->view, json, bytes))
		return s ? -EINVAL : err;
	set_state(b, s, "");
	return 0;
}

static bool is_in(const json_t *list, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *text = json_string_value(json_object_get(one, "name"));

		if (text && !strcmp(text, name))
			return true;
	}
	return false;
}

int sl_board_take_list(struct sl_board *b, const char *json, size_t bytes)
{
	json_t *root = json_loadb(json, bytes, 0, NULL);
	const json_t *list = json_object_get(root, "sessions"), *one;
	int err = json_is_array(list) ? 0 : -EINVAL;
	size_t i;

	for (size_t k = 0; !err && k < b->sessions; k++)
		if (!is_in(list, b->session[k].name))
			set_state(b, &b->session[k], "closed");
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		bool crashed = json_is_true(json_object_get(one, "crashed"));
		bool silent = json_is_false(json_object_get(one, "answers"));

		if (!err && name)
			sl_board_take_state(b, name, crashed ? "crashed" : silent ? "silent" : "");
	}
	json_decref(root);
	return err;
}

void sl_board_tidy(struct sl_board *b)
{
	for (size_t i = 0; i < b->sessions && !b->onlys;) {
		double closed = b->session[i].closed_unix_s;

		if (closed <= 0 || b->now_unix_s < closed + CLOSED_S || b->sessions == 1) {
			i++;
			continue;
		}
		b->sessions--;
		memmove(b->session + i, b->session + i + 1,
			(b->sessions - i) * sizeof(b->session[0]));
		b->chosen -= b->chosen > i || b->chosen == b->sessions;
	}
}

void sl_board_choose(struct sl_board *b, int step)
{
	if (step < 0 && b->chosen)
		b->chosen--;
	if (step > 0 && b->chosen + 1 < b->sessions)
		b->chosen++;
}

void sl_board_fini(struct sl_board *b)
{
	free(b->session);
	b->session = NULL;
	b->sessions = b->chosen = 0;
}
