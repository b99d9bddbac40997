/* metadata.c - the metadata of a session. */
#include "session/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/env.h>
#include <sluice/sluice.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/private.h"

void sl_session_metadata_init(struct sl_session_metadata *metadata)
{
	pthread_mutex_init(&metadata->lock, NULL);
}

void sl_session_metadata_fini(struct sl_session_metadata *metadata)
{
	pthread_mutex_destroy(&metadata->lock);
}

/* ---- between runs ---- */

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* What differs between two sections, and what is locked, in `next`. */
static int merge(struct sl_metadata *next, const struct sl_metadata *before,
		 const struct sl_metadata_section *section)
{
	const struct sl_metadata *now = &section->table;
	int err = 0;

	for (uint32_t i = 0; i < before->n; i++)
		if (!sl_metadata_get(now, before->entry[i].key))
			sl_metadata_set(next, before->entry[i].key, NULL);
	for (uint32_t i = 0; i < now->n && !err; i++) {
		const char *key = now->entry[i].key, *value = now->entry[i].value;

		if (section->locked >> i & 1 || !same(sl_metadata_get(before, key), value))
			err = sl_metadata_set(next, key, value);
	}
	return err;
}

int sl_session_read_metadata(struct sl_session *s, const struct sl_metadata_section *section)
{
	struct sl_session_metadata *m = &s->metadata;
	struct sl_metadata *next = malloc(sizeof(*next));
	struct sl_metadata_known known;
	char why[256];
	int err;

	if (!next)
		return -ENOMEM;
	pthread_mutex_lock(&m->lock);
	*next = m->next;
	err = merge(next, &m->section.table, section);
	sl_metadata_read_known(next, &known);
	if (!err &&
	    sl_metadata_check_exposure(known.exposure_s, section->frame_rate_Hz, why, sizeof(why)))
		err = -EINVAL;
	if (!err) {
		m->section = *section;
		m->next = m->table = *next;
	}
	pthread_mutex_unlock(&m->lock);
	free(next);
	if (err == -EINVAL)
		sl_error("metadata: exposure_s of this session: %s", why);
	else if (err)
		sl_error("metadata of the experiment and of the session are more than %d keys: "
			 "remove some (sluice ctl NAME metadata KEY=)",
			 SL_METADATA_KEYS);
	return err;
}

void sl_session_begin_metadata(struct sl_session *s)
{
	pthread_mutex_lock(&s->metadata.lock);
	s->metadata.table = s->metadata.next;
	s->metadata.changes = 0;
	s->metadata.in_run = true;
	pthread_mutex_unlock(&s->metadata.lock);
}

void sl_session_end_metadata(struct sl_session *s)
{
	pthread_mutex_lock(&s->metadata.lock);
	s->metadata.in_run = false;
	pthread_mutex_unlock(&s->metadata.lock);
}

/* ---- copies ---- */

void sl_session_copy_metadata(struct sl_session *s, struct sl_metadata *copy)
{
	pthread_mutex_lock(&s->metadata.lock);
	*copy = s->metadata.table;
	pthread_mutex_unlock(&s->metadata.lock);
}

void sl_session_copy_next_metadata(struct sl_session *s, struct sl_metadata *copy)
{
	pthread_mutex_lock(&s->metadata.lock);
	*copy = s->metadata.in_run ? s->metadata.table : s->metadata.next;
	pthread_mutex_unlock(&s->metadata.lock);
}

static void each(void *arg, void (*one)(void *to, const char *key, const char *value), void *to)
{
	struct sl_metadata *copy = malloc(sizeof(*copy));

	if (!copy) {
		sl_warn("no memory for the metadata: they are left out");
		return;
	}
	sl_session_copy_metadata(arg, copy);
	for (uint32_t i = 0; i < copy->n; i++)
		one(to, copy->entry[i].key, copy->entry[i].value);
	free(copy);
}

static uint64_t
changes(void *arg, void (*one)(void *to, const struct sl_env_metadata_change *change), void *to)
{
	struct sl_session_metadata *m = &((struct sl_session *)arg)->metadata;
	struct sl_metadata_change *copy = malloc(sizeof(m->change));
	uint64_t first, end;

	if (!copy) {
		sl_warn("no memory for the changes of metadata: they are left out");
		return 0;
	}
	pthread_mutex_lock(&m->lock);
	memcpy(copy, m->change, sizeof(m->change));
	end = m->changes;
	pthread_mutex_unlock(&m->lock);
	first = end > SL_METADATA_CHANGES ? end - SL_METADATA_CHANGES : 0;
	for (uint64_t i = first; i < end; i++) {
		const struct sl_metadata_change *c = &copy[i % SL_METADATA_CHANGES];
		const struct sl_env_metadata_change shown = {c->unix_ns, c->key, c->from, c->to};

		one(to, &shown);
	}
	free(copy);
	return first;
}

static void points(void *arg, void (*all)(void *to, const struct sl_env_points *points), void *to)
{
	sl_points_all(&((struct sl_session *)arg)->points, all, to);
}

void sl_session_init_env_metadata(struct sl_session *s, struct sl_env_metadata *env)
{
	*env = (struct sl_env_metadata){
		.each = each, .arg = s, .changes = changes, .points = points};
}

/* ---- changes ---- */

/* Not within a character of several bytes. */
static void cut(const char *text, char out[SL_METADATA_CHANGE_TEXT])
{
	size_t length = strlen(text);

	if (length >= SL_METADATA_CHANGE_TEXT)
		length = SL_METADATA_CHANGE_TEXT - 1;
	while (text[length] && length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	memcpy(out, text, length);
	out[length] = 0;
}

static void note(struct sl_session_metadata *m, const char *key, const char *from, const char *to)
{
	struct sl_metadata_change *c = &m->change[m->changes++ % SL_METADATA_CHANGES];

	c->unix_ns = sl_clock_unix_ns();
	snprintf(c->key, sizeof(c->key), "%s", key);
	cut(from ? from : "", c->from);
	cut(to ? to : "", c->to);
}

/* Two tables with the changes, or none of them. */
struct edit {
	struct sl_metadata table, next;
};

static int change_one(const struct sl_session_metadata *m, struct edit *edit, const char *key,
		      const char *value, bool keep, char *why, size_t why_bytes)
{
	char text[SL_METADATA_VALUE];
	const char *name, *stored;
	int err = sl_metadata_check(&m->section, key, value, &name, text, why, why_bytes);

	if (err)
		return err;
	stored = text[0] ? text : NULL;
	err = sl_metadata_set(&edit->table, name, stored);
	if (!err && keep)
		err = sl_metadata_set(&edit->next, name, stored);
	if (err)
		snprintf(why, why_bytes, "a session has at most %d keys", SL_METADATA_KEYS);
	return err;
}

/* What is different now. */
static void note_all(struct sl_session_metadata *m, const struct sl_metadata *now)
{
	for (uint32_t i = 0; i < m->table.n; i++)
		if (!sl_metadata_get(now, m->table.entry[i].key))
			note(m, m->table.entry[i].key, m->table.entry[i].value, NULL);
	for (uint32_t i = 0; i < now->n; i++) {
		const char *from = sl_metadata_get(&m->table, now->entry[i].key);

		if (!same(from, now->entry[i].value))
			note(m, now->entry[i].key, from, now->entry[i].value);
	}
}

int sl_session_change_metadata(struct sl_session *s, const char *const *key,
			       const char *const *value, size_t n, bool keep, size_t *bad,
			       char *why, size_t why_bytes)
{
	struct sl_session_metadata *m = &s->metadata;
	struct edit *edit = malloc(sizeof(*edit));
	int err = 0;

	*bad = 0;
	snprintf(why, why_bytes, "%s", strerror(ENOMEM));
	if (!edit)
		return -ENOMEM;
	pthread_mutex_lock(&m->lock);
	edit->table = m->table;
	edit->next = m->next;
	for (size_t i = 0; i < n && !err; i++) {
		*bad = i;
		err = change_one(m, edit, key[i], value[i], keep || !m->in_run, why, why_bytes);
	}
	if (!err && m->in_run)
		note_all(m, &edit->table);
	if (!err) {
		m->table = edit->table;
		m->next = edit->next;
	}
	pthread_mutex_unlock(&m->lock);
	free(edit);
	return err;
}

int sl_session_set_metadata(struct sl_session *s, const char *key, const char *value)
{
	const struct sl_log_target *before = sl_log_target();
	char why[300];
	size_t bad;
	int err = sl_session_change_metadata(s, &key, &value, 1, false, &bad, why, sizeof(why));

	if (err) {
		sl_log_set_target(&s->log);
		sl_warn("metadata: '%.70s': %s", key, why);
		sl_log_set_target(before);
	}
	return err;
}
