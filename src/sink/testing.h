/* testing.h - for tests of sinks: a tiny detector, the environment a pipeline would give, frames
 * of every kind, and a ledger that is kept the way the pipeline keeps it.
 *
 * Model:     bench_init() fills in options; bench_feed() makes frame number `sequence` of a
 *            kind, puts
 * it when the sink wants such, and settles it in the ledger, where kept frames stay pending.
 * Numbers, times and pixels are functions of the sequence. */
#ifndef SL_SINK_TESTING_H
#define SL_SINK_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/log.h"
#include "core/ledger.h"

enum { MODULES = 2, ROWS = 4, COLUMNS = 6, MODULE_PIXELS = ROWS * COLUMNS };
enum { PIXELS = MODULES * MODULE_PIXELS, MODULE_BYTES = MODULE_PIXELS * 2 };

enum kind {
	KEPT,
	VETOED,
	DARK,
	DAMAGED, /* module 1 lost packets, module 0 is its partner */
	LOST,	 /* nothing arrived */
	KINDS,
};

struct bench {
	const struct sl_sink *sink;
	void *state;
	int opened; /* what open() said */
	struct sl_geometry geometry;
	struct sl_shape shape[2];
	struct sl_env env;
	struct sl_ledger ledger;
	struct sl_frame frame;
	struct sl_view view[MODULES];
	struct sl_verdict verdict;
	uint16_t raw[PIXELS];
	int16_t image[PIXELS];
};

static inline uint16_t true_pixel(uint64_t frame, uint32_t module, uint32_t pixel, bool dark)
{
	return (uint16_t)((frame * 2654435761u) ^ (module * 977 + pixel * 31 + dark * 7));
}

static inline int tiny_render(void *state, uint64_t frame, uint32_t module, uint32_t flags,
			      void *buffer, const void **pixels)
{
	uint16_t *out = buffer;

	(void)state;
	for (uint32_t i = 0; i < MODULE_PIXELS; i++)
		out[i] = true_pixel(frame, module, i, flags & SL_RECORD_DARK);
	*pixels = buffer;
	return 0;
}

static inline uint64_t tiny_timestamp(void *state, uint64_t frame)
{
	(void)state;
	return 1000000 * frame + 17;
}

static const struct sl_detector tiny_detector = {
	.name = "tiny",
	.render = tiny_render,
	.timestamp = tiny_timestamp,
};

static inline int16_t image_pixel(uint64_t sequence, uint32_t pixel)
{
	return (int16_t)(sequence * 13 - pixel);
}

static inline void bench_init(struct bench *bench, const struct sl_sink *sink)
{
	*bench = (struct bench){
		.sink = sink,
		.geometry = {.detector = "tiny",
			     .modules = MODULES,
			     .rows = ROWS,
			     .columns = COLUMNS,
			     .dtype = SL_U16,
			     .bit_depth = 16,
			     .module_bytes = MODULE_BYTES,
			     .pixel_size_m = 75e-6,
			     .sensor_thickness_m = 320e-6,
			     .distance_m = 0.1,
			     .sensor_material = "Si",
			     .photon_energy_keV = 12.4},
		.shape = {{"raw", SL_U16, 3, {MODULES, ROWS, COLUMNS}},
			  {"image", SL_I16, 3, {MODULES, ROWS, COLUMNS}}},
		.env = {.detector = &tiny_detector,
			.results = 2,
			.batch_frames = 1,
			.link = "udp",
			.guard = "enforced, credited",
			.proof = "packet count",
			.experiment = "detector: {kind: tiny}\n",
			.frame_rate_Hz = 100},
	};
	bench->env.geometry = &bench->geometry;
	bench->env.result = bench->shape;
	bench->state = calloc(1, sink->state_bytes);
	assert_non_null(bench->state);
	sl_options_defaults(sink->options, bench->state);
	assert_int_equal(sl_ledger_init(&bench->ledger, MODULES), 0);
}

static inline void bench_set(struct bench *bench, const char *option, const char *value)
{
	const struct sl_option *row = sl_option_find(bench->sink->options, option);
	char why[256];

	assert_non_null(row);
	assert_int_equal(sl_option_set(row, bench->state, value, why, sizeof(why)), 0);
}

static inline int bench_open(struct bench *bench)
{
	bench->opened = bench->sink->open(bench->state, &bench->env);
	return bench->opened;
}

/* Frame numbers of the detector start at 1. */
static inline uint64_t number_of(uint64_t sequence)
{
	return sequence + 1;
}

static inline void fill_views(struct bench *bench, uint64_t sequence, enum kind kind)
{
	for (uint16_t m = 0; m < MODULES; m++) {
		struct sl_view *view = &bench->view[m];

		*view = (struct sl_view){
			.module = m,
			.sequence = sequence,
			.record = {.sequence = sequence,
				   .frame = number_of(sequence),
				   .timestamp = tiny_timestamp(NULL, number_of(sequence)),
				   .flags = kind == DARK ? SL_RECORD_DARK : 0,
				   .module = m}};
		if (kind == DAMAGED) {
			view->outcome = SL_INCOMPLETE;
			view->cause = m ? SL_CAUSE_DAMAGED : SL_CAUSE_PARTNER;
		} else if (kind == LOST) {
			view->outcome = SL_LOST;
			view->cause = SL_CAUSE_NO_ARRIVAL;
			view->record = (struct sl_record){0};
		}
	}
}

static inline void fill_pixels(struct bench *bench, uint64_t sequence, bool dark)
{
	for (uint32_t i = 0; i < PIXELS; i++) {
		bench->raw[i] =
			true_pixel(number_of(sequence), i / MODULE_PIXELS, i % MODULE_PIXELS, dark);
		bench->image[i] = image_pixel(sequence, i);
	}
}

static inline struct sl_frame *bench_frame(struct bench *bench, uint64_t sequence, enum kind kind)
{
	bool whole = kind == KEPT || kind == VETOED || kind == DARK;
	uint64_t number = kind == LOST ? 0 : number_of(sequence);

	fill_views(bench, sequence, kind);
	fill_pixels(bench, sequence, kind == DARK);
	bench->verdict = (struct sl_verdict){.number = number,
					     .score = (float)sequence / 2,
					     .keep = kind == KEPT,
					     .reason = kind == DARK ? SL_REASON_DARK
								    : SL_REASON_BRIGHT_PIXELS};
	bench->frame = (struct sl_frame){
		.sequence = sequence,
		.number = number,
		.timestamp = kind == LOST ? 0 : tiny_timestamp(NULL, number),
		.flags = (whole ? SL_FRAME_COMPLETE : 0) | (kind == DARK ? SL_FRAME_DARK : 0),
		.views = MODULES,
		.missing = kind == DAMAGED ? 2
			   : kind == LOST  ? (1 << MODULES) - 1
					   : 0,
		.results = whole ? 2 : 0,
		.items = 1,
		.view = bench->view,
		.result = {{.shape = bench->shape[0], .host = bench->raw},
			   {.shape = bench->shape[1], .host = bench->image}},
		.verdict = &bench->verdict};
	return &bench->frame;
}

static inline bool bench_wants(const struct bench *bench, enum kind kind)
{
	static const uint32_t want[KINDS] = {[KEPT] = SL_WANT_KEPT,
					     [VETOED] = SL_WANT_REJECTED,
					     [DARK] = SL_WANT_REJECTED,
					     [DAMAGED] = SL_WANT_BROKEN,
					     [LOST] = SL_WANT_BROKEN};

	return bench->sink->wants & want[kind];
}

static inline void bench_settle(struct bench *bench, uint64_t sequence, enum kind kind, int said)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		struct sl_view *view = &bench->view[m];

		if (kind == KEPT && !said)
			sl_ledger_settle_pending(&bench->ledger, m, sequence, false);
		else if (kind == KEPT)
			sl_ledger_settle(&bench->ledger, m, sequence, SL_UNWRITTEN, SL_CAUSE_SINK);
		else if (kind == VETOED || kind == DARK)
			sl_ledger_settle(&bench->ledger, m, sequence, SL_VETOED,
					 kind == DARK ? SL_CAUSE_DARK : SL_CAUSE_STAGE);
		else
			sl_ledger_settle(&bench->ledger, m, sequence, view->outcome, view->cause);
		sl_ledger_report(&bench->ledger, m, sequence + 1);
	}
}

/* What put() said, or 0 when the sink does not want such a frame. */
static inline int bench_feed(struct bench *bench, uint64_t sequence, enum kind kind)
{
	struct sl_frame *frame = bench_frame(bench, sequence, kind);
	int said = bench_wants(bench, kind) ? bench->sink->put(bench->state, frame) : 0;

	bench_settle(bench, sequence, kind, said);
	return said;
}

static inline int bench_close(struct bench *bench)
{
	static struct sl_status status;

	status = (struct sl_status){.result = -1};
	sl_ledger_status(&bench->ledger, &status);
	return bench->sink->close(bench->state, &status);
}

static inline void bench_fini(struct bench *bench)
{
	sl_ledger_fini(&bench->ledger);
	free(bench->state);
}

struct wanted_figure {
	const char *name;
	uint64_t value, sum;
	int failed, found;
};

static inline void find_figure(void *arg, const char *name, uint64_t value, int failed)
{
	struct wanted_figure *wanted = arg;

	wanted->sum += value;
	if (!strcmp(name, wanted->name)) {
		wanted->value = value;
		wanted->failed = failed;
		wanted->found++;
	}
}

static inline uint64_t bench_figure(const struct bench *bench, const char *name)
{
	struct wanted_figure wanted = {.name = name};

	bench->sink->figures(bench->state, find_figure, &wanted);
	assert_int_equal(wanted.found, 1);
	return wanted.value;
}

#endif
