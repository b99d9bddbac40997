/* stored_test.c - environments, frames and ends as bytes: what is read is what was written; bytes
 * that were cut or changed are refused or harmless. */
#include "sink/testing.h"

#include <math.h>

#include "core/registry.h"
#include "sink/raw/stored_end.h"
#include "sink/raw/stored_frame.h"
#include "sink/raw/stored_run.h"

extern const struct sl_sink sl_sink_null;

static const struct sl_stored_choice image_of_all = {.image = 1, .all = true};

/* Reads what was written, writes that, and wants the same bytes. */
static void round_trip(const struct sl_env *env, const struct sl_stored_choice *choice,
		       struct sl_stored_run *run)
{
	struct sl_bytes first = {.used = 0}, second = {.used = 0};

	assert_int_equal(sl_stored_run_write(env, choice, &first), 0);
	assert_int_equal(sl_stored_run_read(first.data, first.used, run), 0);
	assert_int_equal(sl_stored_run_write(&run->env, &run->choice, &second), 0);
	assert_int_equal(first.used, second.used);
	assert_memory_equal(first.data, second.data, first.used);
	sl_bytes_free(&first);
	sl_bytes_free(&second);
}

static void pairs(void *arg, void (*one)(void *to, const char *key, const char *value), void *to)
{
	(void)arg;
	one(to, "sample", "lysozyme");
	one(to, "proposal", "");
}

enum { CHANGES = 3 };

static const struct sl_env_metadata_change changed[CHANGES] = {
	{5, "sample", "", "lysozyme"}, {6, "proposal", "p1", ""}, {7, "proposal", "", "p\n2"}};

static uint64_t
each_change(void *arg, void (*one)(void *to, const struct sl_env_metadata_change *change), void *to)
{
	(void)arg;
	for (unsigned i = 0; i < CHANGES; i++)
		one(to, &changed[i]);
	return 7;
}

static void compare_change(void *to, const struct sl_env_metadata_change *change)
{
	const struct sl_env_metadata_change *wanted = &changed[(*(unsigned *)to)++];

	assert_int_equal(change->unix_ns, wanted->unix_ns);
	assert_string_equal(change->key, wanted->key);
	assert_string_equal(change->from, wanted->from);
	assert_string_equal(change->to, wanted->to);
}

static const struct sl_env_metadata metadata = {.each = pairs, .changes = each_change};

static void count_pair(void *to, const char *key, const char *value)
{
	unsigned *n = to;

	if (*n == 0)
		assert_string_equal(value, "lysozyme");
	assert_string_equal(key, (*n)++ ? "proposal" : "sample");
}

/* An environment that has everything. */
struct full {
	struct bench bench;
	struct sl_plane plane[MODULES];
	uint8_t mask[PIXELS];
	float gain[1];
	struct sl_calibration calibration;
	struct sl_shape shape[4];
	float bins[5];
	struct sl_constant constant;
	struct sl_goniometer goniometer;
};

static void fill(struct full *f)
{
	struct sl_env *env = &f->bench.env;

	bench_init(&f->bench, &sl_sink_null);
	for (int i = 0; i < MODULES; i++)
		f->plane[i] = (struct sl_plane){{i, 2, 0.1}, {0, -1e-4, 0}, {-1e-4, 0, 1e-6 * i}};
	f->bench.geometry.plane = f->plane;
	f->bench.geometry.planes = MODULES;
	f->bench.geometry.layout = (struct sl_layout){
		.rows = 20,
		.columns = 30,
		.asic_rows = 2,
		.asic_columns = 3,
		.gap = 2,
		.beam_row = NAN,
		.beam_column = 7.5,
		.module = {{.row = 1, .column = 2}, {.row = 10, .column = 12, .turns = 1}}};
	for (int i = 0; i < PIXELS; i++)
		f->mask[i] = i % 5 == 0;
	f->calibration = (struct sl_calibration){
		.gain = {f->gain}, .mask = f->mask, .cells = 3, .measured = true};
	f->shape[0] = f->bench.shape[0];
	f->shape[0].image = 1;
	f->shape[1] = f->bench.shape[1];
	f->shape[1].image = 1;
	f->shape[2] = (struct sl_shape){.name = "peaks",
					.dtype = SL_F32,
					.rank = 2,
					.dim = {10, 3},
					.ragged = 1,
					.doc = "a line"};
	f->shape[3] = (struct sl_shape){.name = "sum", .dtype = SL_F64, .photons = 1};
	f->constant = (struct sl_constant){
		.shape = {.name = "q", .dtype = SL_F32, .rank = 1, .dim = {5}}, .data = f->bins};
	f->goniometer = (struct sl_goniometer){
		.axes = 1,
		.first_frame = 7,
		.axis = {{.name = "omega", .x = -1, .start_deg = 1, .increment_deg = 0.1}}};
	env->calibration = &f->calibration;
	env->result = f->shape;
	env->results = 4;
	env->constant = &f->constant;
	env->constants = 1;
	env->goniometer = &f->goniometer;
	env->metadata = &metadata;
	env->frames = 1000;
	env->name = "tiny.a";
	env->began_unix_ns = 1700000000000000000;
}

static void an_environment_comes_back(void **state)
{
	struct full f = {.bins = {1, 2, 3, 4, 5}};
	struct sl_stored_run run;
	const struct sl_env *env = &run.env;
	unsigned n = 0;

	fill(&f);
	round_trip(&f.bench.env, &image_of_all, &run);
	assert_int_equal(run.choice.image, 1);
	assert_true(run.choice.all);
	assert_string_equal(env->geometry->detector, "tiny");
	assert_int_equal(env->geometry->planes, MODULES);
	assert_memory_equal(env->geometry->plane, f.plane, sizeof(f.plane));
	assert_int_equal(env->geometry->layout.module[1].turns, 1);
	assert_true(isnan(env->geometry->layout.beam_row));
	assert_true(sl_calibration_has_gains(env->calibration));
	assert_memory_equal(env->calibration->mask, f.mask, sizeof(f.mask));
	assert_int_equal(env->results, 4);
	assert_string_equal(env->result[2].doc, "a line");
	assert_null(env->result[3].doc);
	assert_memory_equal(env->constant[0].data, f.bins, sizeof(f.bins));
	assert_string_equal(env->experiment, "detector: {kind: tiny}\n");
	assert_string_equal(env->name, "tiny.a");
	assert_int_equal(env->goniometer->first_frame, 7);
	assert_true(env->frame_rate_Hz == 100 && env->frames == 1000);
	assert_int_equal(env->began_unix_ns, 1700000000000000000);
	env->metadata->each(env->metadata->arg, count_pair, &n);
	assert_int_equal(n, 2);
	sl_stored_run_free(&run);
	bench_fini(&f.bench);
}

/* Every kind that the program knows, as an experiment without options has it. */
static void every_detector_comes_back(void **state)
{
	unsigned opened = 0;

	for (size_t i = 0; sl_detectors[i]; i++) {
		const struct sl_detector *d = sl_detectors[i];
		struct sl_detector_options options;
		struct sl_calibration calibration = {.cells = 0};
		struct sl_geometry geometry = {.modules = 0};
		struct sl_shape raw = {.name = "raw", .rank = 2, .image = 1};
		struct sl_env env = {.geometry = &geometry, .result = &raw, .batch_frames = 1};
		struct sl_stored_choice choice = {.image = 0};
		struct sl_stored_run run;
		void *own = calloc(1, d->state_bytes + 1);

		if (d->files) { /* it needs one */
			free(own);
			continue;
		}
		sl_options_defaults(sl_detector_options, &options);
		sl_options_defaults(d->options, own);
		assert_int_equal(d->open(own, &options, &geometry), 0);
		raw.dtype = geometry.dtype;
		raw.dim[0] = geometry.modules * geometry.rows;
		raw.dim[1] = geometry.columns;
		env.results = 1;
		if (d->calibration && !d->calibration(own, &calibration))
			env.calibration = &calibration;
		round_trip(&env, &choice, &run);
		assert_string_equal(run.env.geometry->detector, geometry.detector);
		assert_int_equal(sl_geometry_frame_items(run.env.geometry),
				 sl_geometry_frame_items(&geometry));
		assert_int_equal(sl_calibration_has_gains(run.env.calibration),
				 sl_calibration_has_gains(env.calibration));
		sl_stored_run_free(&run);
		d->close(own);
		free(own);
		opened++;
	}
	assert_true(opened >= 4);
}

/* What a file may say: nothing of it may be believed unseen. */
static void damaged_environments_are_refused(void **state)
{
	struct full f = {.bins = {0}};
	struct sl_bytes whole = {.used = 0};
	struct sl_stored_run run;
	unsigned accepted = 0;

	fill(&f);
	assert_int_equal(sl_stored_run_write(&f.bench.env, &image_of_all, &whole), 0);
	for (size_t bytes = 0; bytes < whole.used; bytes++)
		if (!sl_stored_run_read(whole.data, bytes, &run)) {
			accepted++; /* at the end of a section that may be absent */
			sl_stored_run_free(&run);
		}
	assert_true(accepted <= 5);
	for (size_t i = 0; i < whole.used; i++) {
		uint8_t was = whole.data[i];

		whole.data[i] = (uint8_t)(was ^ (1u << i % 8));
		if (!sl_stored_run_read(whole.data, whole.used, &run))
			sl_stored_run_free(&run);
		whole.data[i] = was;
	}
	whole.data[0]++;
	assert_int_equal(sl_stored_run_read(whole.data, whole.used, &run), -EPROTO);
	sl_bytes_free(&whole);
	bench_fini(&f.bench);
}

/* ---- frames ---- */

struct carried {
	_Alignas(64) uint8_t data[64 << 10];
	size_t bytes;
	struct sl_frame_room room;
};

static void join(struct carried *c, const struct iovec *part, unsigned parts)
{
	assert_true(parts <= SL_FRAME_PARTS);
	c->bytes = 0;
	for (unsigned i = 0; i < parts; i++) {
		assert_true(c->bytes + part[i].iov_len <= sizeof(c->data));
		memcpy(c->data + c->bytes, part[i].iov_base, part[i].iov_len);
		c->bytes += part[i].iov_len;
	}
}

static const struct sl_frame *carry(const struct sl_env *env, const struct sl_frame *frame,
				    bool image, struct carried *c)
{
	struct iovec part[SL_FRAME_PARTS];
	struct sl_frame_room room;

	assert_int_equal(sl_frame_room_open(&room, env), 0);
	join(c, part, sl_stored_frame_write(env, &image_of_all, frame, image, &room, part));
	sl_frame_room_close(&room);
	assert_true(c->bytes <= sl_stored_frame_most(env, &image_of_all));
	assert_int_equal(sl_stored_frame_read(env, &image_of_all, c->data, c->bytes, &c->room), 0);
	return &c->room.frame;
}

static void same_views(const struct sl_frame *a, const struct sl_frame *b)
{
	assert_int_equal(a->views, b->views);
	for (uint32_t i = 0; i < a->views; i++) {
		assert_memory_equal(&a->view[i].record, &b->view[i].record, SL_RECORD_BYTES);
		assert_int_equal(a->view[i].sequence, b->view[i].sequence);
		assert_int_equal(a->view[i].module, b->view[i].module);
		assert_int_equal(a->view[i].outcome, b->view[i].outcome);
		assert_int_equal(a->view[i].cause, b->view[i].cause);
		assert_int_equal(a->view[i].packets_arrived, b->view[i].packets_arrived);
	}
}

static void same_frame(const struct sl_frame *a, const struct sl_frame *b)
{
	assert_int_equal(a->sequence, b->sequence);
	assert_int_equal(a->number, b->number);
	assert_int_equal(a->timestamp, b->timestamp);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->missing, b->missing);
	assert_memory_equal(a->hop_ns, b->hop_ns, sizeof(a->hop_ns));
	assert_int_equal(a->items, b->items);
	assert_memory_equal(a->verdict, b->verdict, a->items * sizeof(*a->verdict));
	same_views(a, b);
}

static void frames_of_every_kind_come_back(void **state)
{
	static struct carried c;
	struct full f = {.bins = {0}};
	float peaks[10][3];
	double sum = 17.25;

	fill(&f);
	for (int i = 0; i < 30; i++)
		peaks[i / 3][i % 3] = (float)i;
	assert_int_equal(sl_frame_room_open(&c.room, &f.bench.env), 0);
	for (int kind = 0; kind < KINDS; kind++)
		for (uint32_t rows = 0; rows <= 10; rows += 5) {
			struct sl_frame *frame = bench_frame(&f.bench, 3 + rows, kind);
			bool goes_on = sl_frame_goes_on(frame), image = goes_on && rows;
			const struct sl_frame *back;

			frame->hop_ns[SL_HOP_EVENT] = 12345;
			frame->results = goes_on ? 4 : 0;
			frame->result[0].shape.image = frame->result[1].shape.image = 1;
			frame->result[2] =
				(struct sl_array){.shape = f.shape[2], .host = peaks, .rows = rows};
			frame->result[3] = (struct sl_array){.shape = f.shape[3], .host = &sum};
			back = carry(&f.bench.env, frame, image, &c);
			same_frame(frame, back);
			assert_int_equal(back->results, goes_on ? 4 : 0);
			if (!goes_on)
				continue;
			assert_null(back->result[0].host); /* another image */
			assert_int_equal(back->result[2].rows, rows);
			assert_memory_equal(back->result[2].host, peaks, rows * sizeof(peaks[0]));
			assert_true(*(double *)back->result[3].host == sum);
			if (!image) {
				assert_null(back->result[1].host);
				continue;
			}
			assert_int_equal((uintptr_t)back->result[1].host % 64, 0);
			assert_memory_equal(back->result[1].host, f.bench.image,
					    sizeof(f.bench.image));
		}
	sl_frame_room_close(&c.room);
	bench_fini(&f.bench);
}

static void damaged_frames_are_refused(void **state)
{
	static struct carried c;
	struct full f = {.bins = {0}};
	double sum = 1;
	struct sl_frame *frame;
	size_t bytes;

	fill(&f);
	assert_int_equal(sl_frame_room_open(&c.room, &f.bench.env), 0);
	frame = bench_frame(&f.bench, 1, KEPT);
	frame->results = 4;
	frame->result[0].shape.image = frame->result[1].shape.image = 1;
	frame->result[2] = (struct sl_array){.shape = f.shape[2], .host = f.bins, .rows = 1};
	frame->result[3] = (struct sl_array){.shape = f.shape[3], .host = &sum};
	carry(&f.bench.env, frame, true, &c);
	bytes = c.bytes;
	for (size_t n = 0; n < bytes; n++)
		assert_int_equal(
			sl_stored_frame_read(&f.bench.env, &image_of_all, c.data, n, &c.room),
			-EBADMSG);
	/* A result that every sink counts on is said not to be there. */
	c.data[112 + 2 * 80 + 24 + 3 * 16] = 0;
	assert_int_equal(sl_stored_frame_read(&f.bench.env, &image_of_all, c.data, bytes, &c.room),
			 -EBADMSG);
	c.data[112 + 2 * 80 + 24 + 3 * 16] = 1;
	assert_int_equal(sl_stored_frame_read(&f.bench.env, &image_of_all, c.data, bytes, &c.room),
			 0);
	for (size_t i = 0; i < bytes; i++)
		for (int bit = 0; bit < 8; bit++) {
			c.data[i] ^= (uint8_t)(1 << bit);
			sl_stored_frame_read(&f.bench.env, &image_of_all, c.data, bytes, &c.room);
			c.data[i] ^= (uint8_t)(1 << bit);
		}
	sl_frame_room_close(&c.room);
	bench_fini(&f.bench);
}

/* ---- ends ---- */

static void an_end_comes_back(void **state)
{
	static struct sl_status status, back;
	struct full f = {.bins = {0}};
	struct sl_bytes b = {.used = 0};
	struct sl_stored_run run;
	unsigned n = 0;

	fill(&f);
	round_trip(&f.bench.env, &image_of_all, &run);
	status = (struct sl_status){.bytes = sizeof(status),
				    .modules = MODULES,
				    .addons = 1,
				    .figures = 2,
				    .frames = 77,
				    .ended_unix_ns = 5};
	status.addon[0].first_figure = 1;
	status.addon[0].figures = 1;
	status.column[1].pending = 12;
	assert_int_equal(sl_stored_end_write(&status, "/data/run.raw", &metadata, &b), 0);
	assert_int_equal(sl_stored_end_read(b.data, b.used, &run, &back), 0);
	assert_memory_equal(&status, &back, sizeof(back));
	assert_string_equal(run.where, "/data/run.raw");
	run.env.metadata->each(run.env.metadata->arg, count_pair, &n);
	assert_int_equal(n, 2);
	n = 0;
	assert_int_equal(run.env.metadata->changes(run.env.metadata->arg, compare_change, &n), 7);
	assert_int_equal(n, CHANGES);
	for (size_t bytes = 0; bytes < b.used; bytes += 997)
		assert_true(sl_stored_end_read(b.data, bytes, &run, &back) < 0);
	sl_bytes_free(&b);
	b = (struct sl_bytes){.used = 0};
	status.addon[0].figures = 2; /* of which one is not there */
	assert_int_equal(sl_stored_end_write(&status, "", NULL, &b), 0);
	assert_int_equal(sl_stored_end_read(b.data, b.used, &run, &back), -EBADMSG);
	sl_bytes_free(&b);
	b = (struct sl_bytes){.used = 0};
	status.addon[0].figures = 1;
	status.modules = MODULES + 1;
	assert_int_equal(sl_stored_end_write(&status, "", NULL, &b), 0);
	assert_int_equal(sl_stored_end_read(b.data, b.used, &run, &back), -EBADMSG);
	sl_bytes_free(&b);
	sl_stored_run_free(&run);
	bench_fini(&f.bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_environment_comes_back),
		cmocka_unit_test(every_detector_comes_back),
		cmocka_unit_test(damaged_environments_are_refused),
		cmocka_unit_test(frames_of_every_kind_come_back),
		cmocka_unit_test(damaged_frames_are_refused),
		cmocka_unit_test(an_end_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
