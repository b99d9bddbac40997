/* json.c - sessions as JSON, for answers and events. */
#include "client/text.h"
#include "service/sessions/private.h"

static json_t *text_or_null(const char *text)
{
	return text[0] ? sl_json_text(text) : json_null();
}

json_t *sl_seen_json(const struct sl_seen *seen, bool with_status)
{
	const struct sl_remote_info *i = &seen->info;
	json_t *json = json_pack("{s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:I, s:o, s:o, s:I}", "name",
				 i->name, "kind", i->detector ? "detector" : "session", "alive",
				 i->alive, "crashed", !i->alive, "answers", seen->answers, "state",
				 text_or_null(seen->state), "experiment",
				 text_or_null(i->experiment), "run", (json_int_t)i->run, "root",
				 text_or_null(i->root), "folder", text_or_null(i->folder),
				 "started_unix_ns", (json_int_t)i->started_unix_ns);

	if (with_status)
		json_object_set_new(json, "status",
				    seen->status ? json_incref(seen->status) : json_null());
	return json;
}

json_t *sl_sessions_json(const struct sl_sessions *s, bool with_status)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < s->entries; i++)
		json_array_append_new(list, sl_seen_json(&s->entry[i].seen, with_status));
	return json_pack("{s:o}", "sessions", list);
}

json_t *sl_sessions_list(struct sl_sessions *s)
{
	json_t *json;

	pthread_mutex_lock(&s->lock);
	json = sl_sessions_json(s, true);
	pthread_mutex_unlock(&s->lock);
	return json;
}

json_t *sl_sessions_one(struct sl_sessions *s, const char *name)
{
	json_t *json = NULL;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->entries && !json; i++)
		if (!strcmp(s->entry[i].seen.info.name, name))
			json = sl_seen_json(&s->entry[i].seen, true);
	pthread_mutex_unlock(&s->lock);
	return json;
}

void sl_sessions_each(struct sl_sessions *s, void (*each)(void *arg, const struct sl_seen *seen),
		      void *arg)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->entries; i++)
		each(arg, &s->entry[i].seen);
	pthread_mutex_unlock(&s->lock);
}
