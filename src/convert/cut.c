/* cut.c - a window of a recording. */
#include "convert/cut.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "convert/convert.h"
#include "convert/pump.h"
#include "sink/nexus/nexus.h"
#include "sink/row.h"

enum { LOOK_NS = 20 * 1000 * 1000 };
enum { GAPS_NAMED = 4 };

struct cut {
	const struct sl_cut_options *o;
	struct sl_recorded recorded;
	uint64_t first, end; /* entries */
	struct sl_status *status;
	struct sl_cut_made *made;
	char asked[SL_CUT_TEXT];
};

static const struct sl_raw_entry *entry(const struct cut *c, uint64_t i)
{
	return sl_raw_entry(c->recorded.reader, i);
}

static void add_missing(struct cut *c, const char *text)
{
	size_t used = strlen(c->made->missing);

	snprintf(c->made->missing + used, SL_CUT_TEXT - used, "%s%s", used ? "; " : "", text);
}

/* ---- the window ---- */

static void find_last(struct cut *c)
{
	uint64_t newest = entry(c, c->recorded.facts.chunks - 1)->key.arrived_ns;
	uint64_t long_ns = (uint64_t)(c->o->last_s * 1e9);
	uint64_t from = newest > long_ns ? newest - long_ns : 0;
	uint64_t oldest = entry(c, 0)->key.arrived_ns;
	char text[SL_CUT_TEXT];

	c->end = c->recorded.facts.chunks;
	if (sl_raw_find(c->recorded.reader, SL_RAW_BY_ARRIVAL, from, &c->first))
		c->first = c->end;
	snprintf(c->asked, sizeof(c->asked), "the last %g s", c->o->last_s);
	if (c->first || !c->recorded.facts.first || oldest <= from)
		return;
	snprintf(text, sizeof(text),
		 "the first %.3f s of the window: the buffer begins with frame %" PRIu64,
		 (double)(oldest - from) * 1e-9, entry(c, 0)->key.number);
	add_missing(c, text);
}

/* The first entry with this frame number or a greater one. */
static uint64_t find_number(const struct cut *c, uint64_t number)
{
	uint64_t i;

	return sl_raw_find(c->recorded.reader, SL_RAW_BY_NUMBER, number, &i)
		       ? c->recorded.facts.chunks
		       : i;
}

static uint64_t newest_number(const struct cut *c)
{
	return c->recorded.facts.chunks ? entry(c, c->recorded.facts.chunks - 1)->key.number : 0;
}

/* Until that frame is there, the run has ended, or the time is over. */
static int wait_for(struct cut *c, uint64_t number)
{
	uint64_t until = sl_clock_ns() + (uint64_t)(c->o->wait_s * 1e9);
	struct sl_recorded *r = &c->recorded;
	int err = 0;

	while (r->facts.state == SL_RAW_WRITING &&
	       (!r->facts.chunks || newest_number(c) < number) && sl_clock_ns() < until && !err) {
		sl_clock_sleep_until(sl_clock_ns() + LOOK_NS);
		err = sl_raw_refresh(r->reader);
		sl_raw_facts(r->reader, &r->facts);
	}
	return err;
}

static int find_around(struct cut *c)
{
	uint32_t items = sl_geometry_frame_items(&c->recorded.run.geometry);
	uint64_t number = c->o->around / items, least, most, newest;
	char text[SL_CUT_TEXT];
	int r;

	least = number > c->o->before ? number - c->o->before : 0;
	most = number + c->o->after < number ? UINT64_MAX - 1 : number + c->o->after;
	r = wait_for(c, most);
	if (r || !c->recorded.facts.chunks)
		return r;
	c->first = find_number(c, least);
	c->end = find_number(c, most + 1);
	newest = newest_number(c);
	snprintf(c->asked, sizeof(c->asked), "frames %" PRIu64 " to %" PRIu64, least, most);
	if (!c->first && c->recorded.facts.first && entry(c, 0)->key.number > least) {
		snprintf(text, sizeof(text), "frames before %" PRIu64 ": they have left the buffer",
			 entry(c, 0)->key.number);
		add_missing(c, text);
	}
	if (newest < most) {
		snprintf(text, sizeof(text), "frames after %" PRIu64 ": %s", newest,
			 c->recorded.facts.state == SL_RAW_WRITING ? "they have not come yet"
								   : "the run has no more");
		add_missing(c, text);
	}
	return 0;
}

/* Gaps between entries: data files that went while this one was opened, frames that the buffer
 * could not take, or left out since its disk was slow. The first of them are named. */
static void note_gaps(struct cut *c)
{
	uint64_t gaps = 0;
	char text[SL_CUT_TEXT], names[SL_CUT_TEXT / 2] = "";
	unsigned n = 0;
	size_t at = 0;

	for (uint64_t i = c->first; i + 1 < c->end; i++) {
		uint64_t before = entry(c, i)->key.sequence, next = entry(c, i + 1)->key.sequence;

		if (next <= before + 1)
			continue;
		gaps += next - before - 1;
		if (n++ < GAPS_NAMED)
			at += (size_t)snprintf(names + at, sizeof(names) - at,
					       "%s%" PRIu64 " to %" PRIu64, at ? ", " : "",
					       before + 1, next - 1);
	}
	if (!gaps)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " frames in between (sequences %s%s)", gaps, names,
		 n > GAPS_NAMED ? ", ..." : "");
	add_missing(c, text);
}

static int find_window(struct cut *c)
{
	int r = 0;

	if (!c->recorded.facts.chunks && c->o->last_s == 0)
		r = find_around(c);
	else if (c->recorded.facts.chunks && c->o->last_s > 0)
		find_last(c);
	else if (c->recorded.facts.chunks)
		r = find_around(c);
	if (r)
		return r;
	if (c->first >= c->end) {
		sl_error("%s: has no frame of %s%s%s", c->o->raw,
			 c->asked[0] ? c->asked : "this window: it is empty",
			 c->made->missing[0] ? ": " : "", c->made->missing);
		return -ENOENT;
	}
	note_gaps(c);
	return 0;
}

/* ---- the file ---- */

static int after(void *arg, uint64_t i, const struct sl_frame *frame)
{
	struct cut *c = arg;

	(void)i;
	sl_convert_count(c->status, frame);
	c->made->frames++;
	c->made->kept += sl_row_kept(frame);
	return 0;
}

static void find_images(void *arg, const char *name, uint64_t value, int failed)
{
	(void)failed;
	if (!strcmp(name, "frames"))
		*(uint64_t *)arg = value;
}

/* The run that the file is of begins with the first frame of the window. */
static int write_file(struct cut *c, void *state)
{
	char text[3 * SL_CUT_TEXT];
	const struct sl_nexus_rebuild rebuild = {
		.all_images = true, .cut = text, .recorder = "raw"};
	const struct sl_pump pump = {.from = &c->recorded,
				     .first = c->first,
				     .end = c->end,
				     .sink = &sl_sink_nexus,
				     .state = state,
				     .after = after,
				     .arg = c};
	struct sl_env env = c->recorded.run.env;
	int r;

	snprintf(text, sizeof(text), "%s of %s%s%s", c->asked, c->o->raw,
		 c->made->missing[0] ? "; missing: " : "", c->made->missing);
	env.began_unix_ns = entry(c, c->first)->key.arrived_ns;
	env.frames = 0;
	if (c->o->metadata)
		env.metadata = c->o->metadata;
	c->status->modules = c->recorded.run.geometry.modules;
	c->status->ended_unix_ns = entry(c, c->end - 1)->key.arrived_ns;
	sl_nexus_set_rebuild(state, &rebuild);
	r = sl_sink_nexus.open(state, &env);
	if (r) {
		sl_sink_nexus.close(state, NULL);
		return r;
	}
	r = sl_pump_run(&pump);
	if (r) {
		sl_nexus_leave(state);
		return r;
	}
	sl_sink_nexus.figures(state, find_images, &c->made->images);
	return sl_sink_nexus.close(state, c->status);
}

static int cut(struct cut *c)
{
	void *state;
	int r = find_window(c);

	if (r)
		return r;
	c->made->first = entry(c, c->first)->key.number;
	c->made->last = entry(c, c->end - 1)->key.number;
	c->made->seconds = (double)(entry(c, c->end - 1)->key.arrived_ns -
				    entry(c, c->first)->key.arrived_ns) *
			   1e-9;
	state = sl_convert_sink(&c->recorded, c->o->out, c->o->overwrite, c->o->set, c->o->sets);
	if (!state)
		return -EINVAL;
	r = write_file(c, state);
	free(state);
	return r;
}

int sl_cut(const struct sl_cut_options *o, struct sl_cut_made *made)
{
	struct cut *c = calloc(1, sizeof(*c));
	int r;

	*made = (struct sl_cut_made){.frames = 0};
	if (!c)
		return -ENOMEM;
	c->o = o;
	c->made = made;
	c->status = calloc(1, sizeof(*c->status));
	r = c->status ? sl_recorded_open(o->raw, &c->recorded) : -ENOMEM;
	if (!r)
		r = cut(c);
	if (c->status)
		sl_recorded_close(&c->recorded);
	free(c->status);
	free(c);
	return r;
}
