/* check.c - whether a plug-in is of this ABI and its descriptors are complete: a mistake is told
 * when the plug-in is loaded, not by a crash in the middle of a run. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/registry.h"
#include "plugin/plugin.h"

struct report {
	char *why;
	size_t bytes;
	const char *kind, *name; /* of the descriptor that is looked at */
};

#define REFUSE(report, err, ...) (snprintf((report)->why, (report)->bytes, __VA_ARGS__), err)

static int check_abi(const struct sl_plugin *p, struct report *r)
{
	static const struct {
		const char *name;
		size_t offset, bytes;
	} sizes[] = {
#define SIZE(field, type) {#type, offsetof(struct sl_plugin, field), sizeof(type)}
		SIZE(option_bytes, struct sl_option),
		SIZE(env_bytes, struct sl_env),
		SIZE(geometry_bytes, struct sl_geometry),
		SIZE(frame_bytes, struct sl_frame),
		SIZE(view_bytes, struct sl_view),
		SIZE(batch_bytes, struct sl_batch),
		SIZE(detector_bytes, struct sl_detector),
		SIZE(detector_options_bytes, struct sl_detector_options),
		SIZE(stage_bytes, struct sl_stage),
		SIZE(stage_terms_bytes, struct sl_stage_terms),
		SIZE(tile_bytes, struct sl_tile),
		SIZE(sink_bytes, struct sl_sink),
#undef SIZE
	};

	if (p->abi != SL_PLUGIN_ABI)
		return REFUSE(r, -EPROTONOSUPPORT,
			      "it was built for plug-in ABI %u, this is sluice %s with ABI %d: "
			      "build it again with the headers of this version",
			      p->abi, SL_VERSION, SL_PLUGIN_ABI);
	if (p->bytes != sizeof(*p))
		return REFUSE(
			r, -EPROTONOSUPPORT,
			"its sl_plugin has %u bytes, not %zu: build it again with the headers "
			"of sluice %s",
			p->bytes, sizeof(*p), SL_VERSION);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t bytes;

		memcpy(&bytes, (const char *)p + sizes[i].offset, sizeof(bytes));
		if (bytes != sizes[i].bytes)
			return REFUSE(r, -EPROTONOSUPPORT,
				      "its %s has %u bytes, not %zu: build it again with the "
				      "headers of sluice %s",
				      sizes[i].name, bytes, sizes[i].bytes, SL_VERSION);
	}
	return 0;
}

static bool is_name(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return length && !name[length] && length < SL_NAME_BYTES && name[0] > '9';
}

/* What detectors, stages and sinks have in common. */
static int check_common(const char *name, const char *doc, size_t state_bytes,
			const struct sl_option *options, struct report *r)
{
	char why[400];
	int err;

	if (!name || !is_name(name))
		return REFUSE(r, -EINVAL,
			      "a %s is called '%s'; names have lower-case letters, digits and _, "
			      "begin with a letter and are shorter than %d",
			      r->kind, name ? name : "", SL_NAME_BYTES);
	r->name = name;
	if (!doc || !doc[0])
		return REFUSE(r, -EINVAL, "%s '%s' has no doc", r->kind, name);
	if (!options)
		return REFUSE(
			r, -EINVAL,
			"%s '%s' has no table of options; one without rows is {SL_OPTION_END}",
			r->kind, name);
	err = sl_options_check(options, state_bytes, why, sizeof(why));
	return err ? REFUSE(r, err, "%s '%s': %s", r->kind, name, why) : 0;
}

static int lacks(struct report *r, const char *what)
{
	return REFUSE(r, -EINVAL, "%s '%s' has no %s", r->kind, r->name, what);
}

static int check_detector(const struct sl_detector *d, struct report *r)
{
	int err = check_common(d->name, d->doc, d->state_bytes, d->options, r);
	uint32_t columns = 0;

	if (err)
		return err;
	if (!d->open || !d->close)
		return lacks(r, "open() or close()");
	if (!d->render || !d->truth || !d->timestamp)
		return lacks(r, "render(), truth() or timestamp()");
	if (!d->truth_rows != !d->truth_columns)
		return lacks(r, d->truth_rows ? "truth_columns" : "truth_rows()");
	while (d->truth_columns && columns <= SL_TRUTH_COLUMNS && d->truth_columns[columns].name)
		if (!d->truth_columns[columns++].unit)
			return lacks(r, "unit for a column of its truth");
	if (columns > SL_TRUTH_COLUMNS)
		return REFUSE(r, -EINVAL, "detector '%s' has more than %d columns of truth",
			      d->name, SL_TRUTH_COLUMNS);
	return 0;
}

static int check_stage(const struct sl_stage *s, struct report *r)
{
	int err = check_common(s->name, s->doc, s->state_bytes, s->options, r);

	if (err)
		return err;
	if (!s->input || !s->input[0])
		return lacks(r, "input");
	if (!s->open || !s->close)
		return lacks(r, "open() or close()");
	if (!s->tile && !s->frame && !s->finish)
		return lacks(r, "tile(), frame() or finish()");
	if (s->gpu)
		return REFUSE(r, -EINVAL,
			      "stage '%s' sets gpu, which is not open to plug-ins: leave it NULL",
			      s->name);
	return 0;
}

static int check_sink(const struct sl_sink *s, struct report *r)
{
	int err = check_common(s->name, s->doc, s->state_bytes, s->options, r);

	if (err)
		return err;
	if (!s->open || !s->put || !s->close)
		return lacks(r, "open(), put() or close()");
	return 0;
}

/* `there`: an add-on of that name that the program has already. */
static int check_new(const char *name, const void *there, bool twice, struct report *r)
{
	const char *path = NULL;

	if (twice)
		return REFUSE(r, -EEXIST, "it has two of the %s '%s'", r->kind, name);
	if (!there)
		return 0;
	if (sl_plugin_of(there, &path))
		return REFUSE(r, -EEXIST,
			      "there is a %s '%s' already, of the plug-in %s: load one of them, or "
			      "give it another name",
			      r->kind, name, path);
	return REFUSE(r, -EEXIST, "there is a built-in %s '%s' already: give it another name",
		      r->kind, name);
}

/* Every descriptor of one kind: complete, and its name new. */
#define CHECK_KIND(kind_)                                                                          \
	static int check_##kind_##s(const struct sl_##kind_ *const *table, struct report *r)       \
	{                                                                                          \
		r->kind = #kind_;                                                                  \
		for (size_t i = 0; table && table[i]; i++) {                                       \
			int err = check_##kind_(table[i], r);                                      \
			bool twice = false;                                                        \
                                                                                                   \
			for (size_t k = 0; !err && k < i; k++)                                     \
				twice |= !strcmp(table[k]->name, table[i]->name);                  \
			if (!err)                                                                  \
				err = check_new(table[i]->name, sl_##kind_##_find(table[i]->name), \
						twice, r);                                         \
			if (err)                                                                   \
				return err;                                                        \
		}                                                                                  \
		return 0;                                                                          \
	}
CHECK_KIND(detector)
CHECK_KIND(stage)
CHECK_KIND(sink)

int sl_plugin_check(const struct sl_plugin *p, char *why, size_t bytes)
{
	struct report r = {.why = why, .bytes = bytes};
	int err = check_abi(p, &r);

	if (err)
		return err;
	if (!p->name || !is_name(p->name) || !p->doc || !p->doc[0])
		return REFUSE(&r, -EINVAL,
			      "sl_plugin needs a name (lower-case letters, digits, _) and a doc");
	if (!(p->detectors && p->detectors[0]) && !(p->stages && p->stages[0]) &&
	    !(p->sinks && p->sinks[0]))
		return REFUSE(&r, -EINVAL, "it has no detector, stage or sink");
	err = check_detectors(p->detectors, &r);
	if (!err)
		err = check_stages(p->stages, &r);
	return err ? err : check_sinks(p->sinks, &r);
}
