/* points.c - the points of a scan. */
#include "session/points/points.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/env.h>

#include "base/clock.h"
#include "base/log.h"

enum { FIRST_ROOM = 64 };

void sl_points_init(struct sl_points *p)
{
	pthread_mutex_init(&p->lock, NULL);
}

/* With `lock` held, or no other thread. */
static void forget(struct sl_points *p)
{
	free(p->first);
	free(p->frames);
	free(p->unix_ns);
	for (uint32_t v = 0; v < SL_REQUEST_VALUES; v++) {
		free(p->value[v]);
		p->value[v] = NULL;
	}
	p->first = p->frames = p->unix_ns = NULL;
	p->n = p->room = p->values = 0;
}

void sl_points_fini(struct sl_points *p)
{
	forget(p);
	pthread_mutex_destroy(&p->lock);
}

void sl_points_begin(struct sl_points *p)
{
	pthread_mutex_lock(&p->lock);
	forget(p);
	p->in_run = true;
	pthread_mutex_unlock(&p->lock);
}

void sl_points_end(struct sl_points *p)
{
	pthread_mutex_lock(&p->lock);
	p->in_run = false;
	pthread_mutex_unlock(&p->lock);
}

/* ---- one more ---- */

static uint32_t find(const struct sl_points *p, const char *name)
{
	uint32_t v = 0;

	while (v < p->values && strcmp(p->name[v], name) != 0)
		v++;
	return v;
}

/* The first point says which values there are. */
static int take_names(struct sl_points *p, const struct sl_request *r, char *why, size_t why_bytes)
{
	for (uint32_t i = 0; i < r->values; i++) {
		uint32_t v = find(p, r->value[i].name);

		if (v < p->values)
			continue;
		if (p->n) {
			snprintf(why, why_bytes,
				 "values.%.63s: the first point of this run has none",
				 r->value[i].name);
			return -EINVAL;
		}
		snprintf(p->name[p->values++], sizeof(p->name[0]), "%s", r->value[i].name);
	}
	return 0;
}

static bool grow(uint64_t **column, uint64_t room)
{
	uint64_t *more = realloc(*column, room * sizeof(*more));

	*column = more ? more : *column;
	return more != NULL;
}

static bool grow_values(double **column, uint64_t room)
{
	double *more = realloc(*column, room * sizeof(*more));

	*column = more ? more : *column;
	return more != NULL;
}

static int make_room(struct sl_points *p)
{
	uint64_t room = p->room ? 2 * p->room : FIRST_ROOM;
	bool done;

	if (p->n < p->room)
		return 0;
	done = grow(&p->first, room) && grow(&p->frames, room) && grow(&p->unix_ns, room);
	for (uint32_t v = 0; v < p->values && done; v++)
		done = grow_values(&p->value[v], room);
	if (done)
		p->room = room;
	return done ? 0 : -ENOMEM;
}

static int add(struct sl_points *p, const struct sl_request *r, char *why, size_t why_bytes)
{
	int err;

	snprintf(why, why_bytes, "%s", "no run is under way");
	if (!p->in_run)
		return -EPROTO;
	if (p->n == SL_POINTS_MOST) {
		snprintf(why, why_bytes, "a run has at most %d points", SL_POINTS_MOST);
		return -E2BIG;
	}
	err = take_names(p, r, why, why_bytes);
	if (err)
		return err;
	snprintf(why, why_bytes, "%s", strerror(ENOMEM));
	err = make_room(p);
	if (err)
		return err;
	p->first[p->n] = r->first;
	p->frames[p->n] = r->frames;
	p->unix_ns[p->n] = sl_clock_unix_ns();
	for (uint32_t v = 0; v < p->values; v++)
		p->value[v][p->n] = NAN;
	for (uint32_t i = 0; i < r->values; i++)
		p->value[find(p, r->value[i].name)][p->n] = r->value[i].value;
	p->n++;
	return 0;
}

int sl_points_add(struct sl_points *p, const struct sl_request *r, uint64_t *number, char *why,
		  size_t why_bytes)
{
	int err;

	pthread_mutex_lock(&p->lock);
	err = add(p, r, why, why_bytes);
	if (!err)
		*number = p->n - 1;
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* ---- for sinks ---- */

static void *copied(const void *column, uint64_t n)
{
	void *copy = malloc(n * 8 + 1);

	if (copy && n)
		memcpy(copy, column, n * 8);
	return copy;
}

/* A copy of all columns: a sink may write for a long time, and clients must not wait for it. */
static bool copy_points(struct sl_points *p, struct sl_points *copy)
{
	bool done;

	pthread_mutex_lock(&p->lock);
	copy->n = p->n;
	copy->values = p->values;
	memcpy(copy->name, p->name, sizeof(copy->name));
	copy->first = copied(p->first, p->n);
	copy->frames = copied(p->frames, p->n);
	copy->unix_ns = copied(p->unix_ns, p->n);
	done = copy->first && copy->frames && copy->unix_ns;
	for (uint32_t v = 0; v < p->values; v++) {
		copy->value[v] = copied(p->value[v], p->n);
		done = done && copy->value[v];
	}
	pthread_mutex_unlock(&p->lock);
	return done;
}

void sl_points_all(struct sl_points *p, void (*all)(void *to, const struct sl_env_points *points),
		   void *to)
{
	struct sl_points copy = {.n = 0};
	const char *name[SL_REQUEST_VALUES];
	const double *value[SL_REQUEST_VALUES];

	if (copy_points(p, &copy)) {
		const struct sl_env_points points = {.n = copy.n,
						     .first = copy.first,
						     .frames = copy.frames,
						     .unix_ns = copy.unix_ns,
						     .values = copy.values,
						     .name = name,
						     .value = value};

		for (uint32_t v = 0; v < copy.values; v++) {
			name[v] = copy.name[v];
			value[v] = copy.value[v];
		}
		all(to, &points);
	} else {
		sl_warn("no memory for the points of the scan: they are left out");
	}
	forget(&copy);
}
