/* conformance_test.c - what every unit must do. A new one is tested by adding it to the list.
 *
 * The stages here are chosen so that a mistake shows: `history` depends on the order of all frames
 * that a pixel ever saw, `tally` on every pixel being seen once and on clean scratch. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/bell.h"
#include "core/unit.h"
#include "lib/capture.h"

extern const struct sl_unit sl_unit_cpu;

static const struct sl_unit *const units[] = {&sl_unit_cpu};

#define FOR_EACH(ops)                                         \
	for (const struct sl_unit *const *each = units, *ops; \
	     each < units + sizeof(units) / sizeof(*units) && (ops = *each); each++)

enum { MODULES = 3, ROWS = 7, COLUMNS = 33, MODULE_PIXELS = ROWS * COLUMNS };
enum { PITCH = COLUMNS + 5 };
enum { PIXELS = MODULES * MODULE_PIXELS, BATCH = 8, BATCHES = 40, WORKERS = 14 };

/* --- stages --- */

struct history {
	uint32_t pixel[PIXELS];
};

static void history_tile(void *state, void *scratch, const struct sl_batch *batch,
			 const struct sl_tile *tile)
{
	uint32_t *pixel =
		&((struct history *)state)->pixel[tile->module * MODULE_PIXELS + tile->first];

	for (uint32_t f = 0; f < batch->frames; f++)
		for (uint32_t i = 0; i < tile->count; i++) {
			pixel[i] = pixel[i] * 31 + ((const uint16_t *)tile->in[f])[i];
			((uint32_t *)tile->out[f])[i] = pixel[i];
		}
}

static const struct sl_stage history = {
	.name = "history",
	.doc = "x",
	.input = "raw",
	.ordered = SL_ORDER_PARTS,
	.tile = history_tile,
};

struct tally {
	int finishes;
	uint64_t count; /* of frames so far */
};

static void tally_tile(void *state, void *scratch, const struct sl_batch *batch,
		       const struct sl_tile *tile)
{
	uint32_t *sum = scratch;

	for (uint32_t f = 0; f < batch->frames; f++)
		for (uint32_t i = 0; i < tile->count; i++)
			sum[f] += ((const uint32_t *)tile->in[f])[i] & 0xff;
}

static void tally_finish(void *state, void *const *scratch, unsigned workers,
			 struct sl_batch *batch)
{
	struct tally *tally = state;

	tally->finishes++;
	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_verdict *verdict = batch->frame[f]->verdict;
		uint32_t sum = 0;

		for (unsigned w = 0; w < workers; w++)
			sum += ((const uint32_t *)scratch[w])[f];
		verdict->score = (float)sum;
		verdict->keep = sum % 2;
		verdict->reason = (uint16_t)(tally->count++ % 1000);
	}
}

static const struct sl_stage tally = {
	.name = "tally",
	.doc = "x",
	.input = "history",
	.ordered = SL_ORDER_PARTS,
	.tile = tally_tile,
	.finish = tally_finish,
};

/* Looks at a frame as a whole: every row the other way round. */
static void mirror_frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const uint32_t *in = batch->frame[f]->result[0].host;
	uint32_t *out = batch->frame[f]->result[1].host;

	(*(uint32_t *)scratch)++; /* this frame's entry, and nobody else's */
	for (int i = 0; i < PIXELS; i++)
		out[i] = in[i / COLUMNS * COLUMNS + COLUMNS - 1 - i % COLUMNS];
}

/* Each frame was looked at once, whoever did it. */
static void mirror_finish(void *state, void *const *scratch, unsigned workers,
			  struct sl_batch *batch)
{
	for (uint32_t f = 0; f < batch->frames; f++) {
		uint32_t times = 0;

		for (unsigned w = 0; w < workers; w++)
			times += ((const uint32_t *)scratch[w])[f];
		*(uint32_t *)state += times == 1;
	}
}

static const struct sl_stage mirror = {
	.name = "mirror",
	.doc = "x",
	.input = "history",
	.ordered = SL_ORDER_PARTS,
	.frame = mirror_frame,
	.finish = mirror_finish,
};

/* Tiles of what came of whole frames. */
static void again_tile(void *state, void *scratch, const struct sl_batch *batch,
		       const struct sl_tile *tile)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		for (uint32_t i = 0; i < tile->count; i++)
			((uint32_t *)tile->out[f])[i] = ((const uint32_t *)tile->in[f])[i] * 3 + 1;
}

static const struct sl_stage again = {
	.name = "again", .doc = "x", .input = "mirror", .tile = again_tile};

/* Sums of doubles: what each worker has added up depends on the tiles that it took. */
static void weigh_tile(void *state, void *scratch, const struct sl_batch *batch,
		       const struct sl_tile *tile)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		for (uint32_t i = 0; i < tile->count; i++)
			((double *)scratch)[f] += 1.0 / (1 + ((const uint16_t *)tile->in[f])[i]);
}

static void weigh_finish(void *state, void *const *scratch, unsigned workers,
			 struct sl_batch *batch)
{
	double *weight = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		double sum = 0;

		for (unsigned w = 0; w < workers; w++)
			sum += ((const double *)scratch[w])[f];
		weight[batch->frame[f]->sequence] = sum;
		sl_frame_decide(batch->frame[f], 1, (float)sum, SL_REASON_SCORE);
	}
}

static const struct sl_stage weigh = {
	.name = "weigh", .doc = "x", .input = "raw", .tile = weigh_tile, .finish = weigh_finish};

/* --- frames --- */

struct item {
	struct sl_frame frame;
	struct sl_view view[MODULES];
	struct sl_verdict verdict;
	uint16_t raw[PIXELS];
	uint16_t pitched[MODULES * ROWS * PITCH]; /* the same, with a gap behind each row */
	uint32_t result[3][PIXELS];
};

struct load {
	struct item *item;
	struct sl_frame *frame[BATCHES * BATCH];
	struct sl_batch batch[BATCHES];
	bool back[BATCHES]; /* reaped */
};

/* Batches of 1 to BATCH frames. Modules lie apart, as in slots. */
static struct load *load_make(void)
{
	struct load *load = calloc(1, sizeof(*load));
	uint32_t used = 0;

	load->item = calloc(BATCHES * BATCH, sizeof(*load->item));
	for (uint32_t n = 0; n < BATCHES * BATCH; n++) {
		struct item *item = &load->item[n];

		item->frame = (struct sl_frame){.sequence = n,
						.number = 1000 + n,
						.timestamp = 5 * n,
						.flags = SL_FRAME_COMPLETE,
						.views = MODULES,
						.results = 3,
						.items = 1,
						.view = item->view,
						.verdict = &item->verdict};
		for (int r = 0; r < 3; r++)
			item->frame.result[r].host = item->result[r];
		memset(&item->verdict, 0xee, sizeof(item->verdict));
		for (int i = 0; i < PIXELS; i++)
			item->raw[i] = (uint16_t)((uint32_t)i * 40503u + n * 2654435761u);
		for (int m = 0; m < MODULES; m++) {
			item->view[m].module = (uint16_t)m;
			item->view[m].pixels.host = item->raw + m * MODULE_PIXELS;
		}
		load->frame[n] = &item->frame;
	}
	for (uint32_t b = 0; b < BATCHES; b++) {
		load->batch[b] = (struct sl_batch){.frame = load->frame + used,
						   .frames = b * 5 % BATCH + 1,
						   .capacity = BATCH,
						   .status = -1};
		used += load->batch[b].frames;
	}
	return load;
}

/* The same frames from a ring whose rows have a pitch. */
static void load_pitch(struct load *load)
{
	for (uint32_t n = 0; n < BATCHES * BATCH; n++) {
		struct item *item = &load->item[n];

		memset(item->pitched, 0xee, sizeof(item->pitched));
		for (int row = 0; row < MODULES * ROWS; row++)
			memcpy(item->pitched + row * PITCH, item->raw + row * COLUMNS, COLUMNS * 2);
		for (int m = 0; m < MODULES; m++) {
			item->view[m].pixels.host = item->pitched + m * ROWS * PITCH;
			item->view[m].pixels.pitch = PITCH * 2;
		}
	}
}

static void load_free(struct load *load)
{
	free(load->item);
	free(load);
}

/* --- a unit with its workers --- */

struct subject {
	const struct sl_unit *ops;
	void *state;
	struct sl_geometry geometry;
	struct sl_chain chain;
	struct history history;
	struct tally tally;
	uint32_t mirrored;
	struct sl_bell todo, done;
	unsigned workers;
	pthread_t thread[WORKERS];
	_Atomic int stop;
	bool any_order;
	struct sl_stage strict[4]; /* the stages again, if no call may come before its turn */
};

struct seat {
	struct subject *subject;
	unsigned worker;
};
static struct seat seats[WORKERS];

static void subject_init(struct subject *s, const struct sl_unit *ops, unsigned stages)
{
	const uint32_t dim[] = {MODULES, ROWS, COLUMNS};
	struct sl_shape raw = {.name = "raw", .dtype = SL_U16, .rank = 3};
	struct sl_shape past = {.name = "history", .dtype = SL_U32, .rank = 3};

	memset(s, 0, sizeof(*s));
	memcpy(raw.dim, dim, sizeof(dim));
	memcpy(past.dim, dim, sizeof(dim));
	s->ops = ops;
	s->state = calloc(1, ops->state_bytes);
	sl_options_defaults(ops->options, s->state);
	s->geometry = (struct sl_geometry){
		.modules = MODULES, .rows = ROWS, .columns = COLUMNS, .dtype = SL_U16};
	s->chain = (struct sl_chain){
		.stages = stages, .geometry = &s->geometry, .batch_frames = BATCH};
	s->chain.stage[0] = (struct sl_chain_stage){
		&history, &s->history, SL_CHAIN_RAW, 0, raw, {.output = {past}, .outputs = 1}};
	s->chain.stage[1] = (struct sl_chain_stage){
		&tally,	       &s->tally, 0,
		SL_CHAIN_NONE, past,	  {.result = 1, .scratch_bytes = sizeof(uint32_t)}};
	s->chain.stage[2] = (struct sl_chain_stage){
		&mirror,
		&s->mirrored,
		0,
		SL_CHAIN_NONE,
		past,
		{.result = 1, .output = {past}, .outputs = 1, .scratch_bytes = sizeof(uint32_t)}};
	s->chain.stage[3] = (struct sl_chain_stage){
		&again, NULL, 1, 2, past, {.result = 2, .output = {past}, .outputs = 1}};
}

/* All calls for a batch before those for the next one. */
static void subject_make_strict(struct subject *s)
{
	for (unsigned i = 0; i < s->chain.stages; i++) {
		s->strict[i] = *s->chain.stage[i].ops;
		s->strict[i].ordered = SL_ORDER_BATCHES;
		s->chain.stage[i].ops = &s->strict[i];
	}
}

static void subject_set(struct subject *s, const char *name, const char *value)
{
	const struct sl_option *option = sl_option_find(s->ops->options, name);
	char why[128];

	if (option) /* units of other kinds have other options */
		assert_int_equal(sl_option_set(option, s->state, value, why, sizeof(why)), 0);
}

static void subject_open(struct subject *s)
{
	assert_int_equal(s->ops->open(s->state, &s->chain, &s->todo, &s->done, &s->workers), 0);
	assert_true(s->workers >= 1 && s->workers <= WORKERS);
	assert_int_equal(s->ops->workers ? s->ops->workers(s->state) : 1, s->workers);
}

static void *run_worker(void *arg)
{
	struct seat *seat = arg;
	struct subject *s = seat->subject;

	while (!s->stop) {
		uint32_t seen = sl_bell_read(&s->todo);

		if (!s->ops->work(s->state, seat->worker))
			sl_bell_wait(&s->todo, seen, 100000);
	}
	return NULL;
}

static void subject_start(struct subject *s)
{
	for (unsigned w = 0; w < s->workers; w++) {
		seats[w] = (struct seat){s, w};
		assert_int_equal(pthread_create(&s->thread[w], NULL, run_worker, &seats[w]), 0);
	}
}

static void subject_stop(struct subject *s)
{
	s->stop = 1;
	sl_bell_ring(&s->todo);
	for (unsigned w = 0; w < s->workers; w++)
		pthread_join(s->thread[w], NULL);
}

static void subject_close(struct subject *s)
{
	s->ops->close(s->state);
	free(s->state);
}

/* Everything through the unit, as the dispatcher would: submit while there is room, reap, sleep. */
static void subject_process(struct subject *s, struct load *load)
{
	unsigned submitted = 0, reaped = 0;

	while (reaped < BATCHES) {
		uint32_t seen = sl_bell_read(&s->done);
		struct sl_batch *batch;

		while (submitted < BATCHES &&
		       s->ops->submit(s->state, &load->batch[submitted]) == 0)
			submitted++;
		if (!s->ops->reap(s->state, &batch)) {
			sl_bell_wait(&s->done, seen, 100000);
			continue;
		}
		if (!s->any_order)
			assert_ptr_equal(batch, &load->batch[reaped]);
		assert_true(batch->status == 0 && !load->back[batch - load->batch]);
		load->back[batch - load->batch] = true;
		reaped++;
	}
}

/* What the stages say when nothing is cut and nobody is in a hurry. */
static void check_load(struct load *load, bool images)
{
	static uint32_t pixel[PIXELS];
	uint32_t n = 0;

	memset(pixel, 0, sizeof(pixel));
	for (int b = 0; b < BATCHES; b++)
		for (uint32_t f = 0; f < load->batch[b].frames; f++, n++) {
			struct item *item = &load->item[n];
			uint32_t sum = 0;

			for (int i = 0; i < PIXELS; i++) {
				pixel[i] = pixel[i] * 31 + item->raw[i];
				sum += pixel[i] & 0xff;
			}
			if (images)
				assert_memory_equal(item->result[0], pixel, sizeof(pixel));
			assert_true(item->verdict.score == (float)sum);
			assert_int_equal(item->verdict.keep, sum % 2);
			assert_int_equal(item->verdict.reason, n % 1000);
			assert_int_equal(item->verdict.number, 1000 + n);
			assert_int_equal(item->verdict.timestamp, 5 * n);
		}
}

static void check_results(struct load *load)
{
	check_load(load, true);
}

static void check_verdicts(struct load *load)
{
	check_load(load, false);
}

static void check_whole_frames(struct load *load, const struct subject *s)
{
	uint32_t n = 0;

	for (int b = 0; b < BATCHES; b++)
		for (uint32_t f = 0; f < load->batch[b].frames; f++, n++)
			for (int i = 0; i < PIXELS; i++) {
				struct item *item = &load->item[n];
				int other = i / COLUMNS * COLUMNS + COLUMNS - 1 - i % COLUMNS;

				assert_int_equal(item->result[1][i], item->result[0][other]);
				assert_int_equal(item->result[2][i],
						 item->result[0][other] * 3 + 1);
			}
	assert_int_equal(s->mirrored, n);
}

/* --- cases --- */

static void test_names_docs_and_options(void **arg)
{
	FOR_EACH(ops)
	{
		assert_true(strlen(ops->name) > 0 && strlen(ops->doc) > 0);
		for (const struct sl_option *o = ops->options; o->name; o++) {
			assert_true(strlen(o->doc) > 0);
			assert_true(o->offset + o->size <= ops->state_bytes);
		}
	}
}

static void check_stores(const struct sl_unit *ops, const char *workers, const char *tile,
			 bool pitched, const char *stores, bool strict)
{
	struct load *load = load_make();
	struct subject s;

	if (pitched)
		load_pitch(load);
	subject_init(&s, ops, 4);
	if (strict)
		subject_make_strict(&s);
	subject_set(&s, "workers", workers);
	subject_set(&s, "tile_pixels", tile);
	subject_set(&s, "stores", stores);
	subject_open(&s);
	subject_start(&s);
	subject_process(&s, load);
	subject_stop(&s);
	check_results(load);
	check_whole_frames(load, &s);
	assert_int_equal(s.tally.finishes, BATCHES);
	subject_close(&s);
	load_free(load);
}

static void check_exact(const struct sl_unit *ops, const char *workers, const char *tile,
			bool pitched)
{
	check_stores(ops, workers, tile, pitched, "cached", false);
	check_stores(ops, workers, tile, pitched, "streamed", false);
	check_stores(ops, workers, tile, pitched, "cached", true);
}

/* The image that only the next stage reads: it is judged as ever, wherever it is kept. */
static void check_unread(const struct sl_unit *ops, const char *workers, unsigned stages)
{
	struct load *load = load_make();
	struct subject s;

	subject_init(&s, ops, stages);
	s.chain.stage[0].unread = 1;
	subject_set(&s, "workers", workers);
	subject_set(&s, "tile_pixels", "10");
	subject_open(&s);
	subject_start(&s);
	subject_process(&s, load);
	subject_stop(&s);
	if (stages > 2) { /* frames are looked at, for which it must be whole */
		check_results(load);
		check_whole_frames(load, &s);
	} else {
		check_verdicts(load);
	}
	subject_close(&s);
	load_free(load);
}

static void double_tile(void *state, void *scratch, const struct sl_batch *batch,
			const struct sl_tile *tile)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		for (uint32_t i = 0; i < tile->count; i++) {
			((uint32_t *)tile->out[f])[i] = 2u * ((const uint16_t *)tile->in[f])[i];
			((uint32_t *)scratch)[f] += ((const uint16_t *)tile->in[f])[i] & 0xff;
		}
}

static void double_finish(void *state, void *const *scratch, unsigned workers,
			  struct sl_batch *batch)
{
	for (uint32_t f = 0; f < batch->frames; f++) {
		uint32_t sum = 0;

		for (unsigned w = 0; w < workers; w++)
			sum += ((const uint32_t *)scratch[w])[f];
		sl_frame_decide(batch->frame[f], sum % 2, (float)sum, SL_REASON_SCORE);
	}
}

static const struct sl_stage doubled = {.name = "doubled",
					.doc = "x",
					.input = "raw",
					.tile = double_tile,
					.finish = double_finish};

static const struct sl_stage mirror_alone = {
	.name = "mirror", .doc = "x", .input = "doubled", .frame = mirror_frame};

/* Stages that remember nothing: doubled, then its rows the other way round. */
static void forget_history(struct subject *s)
{
	s->chain.stage[0].ops = &doubled;
	s->chain.stage[0].terms.scratch_bytes = sizeof(uint32_t);
	s->chain.stage[1] = s->chain.stage[2];
	s->chain.stage[1].ops = &mirror_alone;
	s->chain.stages = 2;
	s->any_order = true;
}

static void check_doubled(struct load *load)
{
	uint32_t n = 0;

	for (int b = 0; b < BATCHES; b++)
		for (uint32_t f = 0; f < load->batch[b].frames; f++, n++) {
			struct item *item = &load->item[n];
			uint32_t sum = 0;

			for (int i = 0; i < PIXELS; i++) {
				int other = i / COLUMNS * COLUMNS + COLUMNS - 1 - i % COLUMNS;

				assert_int_equal(item->result[0][i], 2 * item->raw[i]);
				assert_int_equal(item->result[1][i], 2 * item->raw[other]);
				sum += item->raw[i] & 0xff;
			}
			assert_true(item->verdict.score == (float)sum);
			assert_int_equal(item->verdict.keep, sum % 2);
		}
}

/* Each batch on its own: stages that remember nothing, on as many workers as there are. Verdicts
 * then are those of the frame alone. */
static void test_without_order_every_batch_comes_back(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct subject s;

		if (!sl_option_find(ops->options, "order"))
			continue;
		subject_init(&s, ops, 3);
		forget_history(&s);
		subject_set(&s, "workers", "4");
		subject_set(&s, "order", "any");
		subject_open(&s);
		assert_true(ops->batches(s.state, BATCH) > 1);
		subject_start(&s);
		subject_process(&s, load);
		subject_stop(&s);
		check_doubled(load);
		subject_close(&s);
		load_free(load);
	}
}

static void test_stages_that_learn_need_order(void **arg)
{
	FOR_EACH(ops)
	{
		struct sl_stage learner = history;
		struct subject s;

		if (!sl_option_find(ops->options, "order"))
			continue;
		learner.ordered = 1;
		subject_init(&s, ops, 1);
		s.chain.stage[0].ops = &learner;
		subject_set(&s, "order", "any");
		capture_begin();
		assert_int_equal(ops->open(s.state, &s.chain, &s.todo, &s.done, &s.workers),
				 -EINVAL);
		assert_non_null(strstr(capture_end(), "'history' learns from frame to frame"));
		subject_close(&s);
	}
}

static void test_images_that_no_sink_reads_are_judged(void **arg)
{
	FOR_EACH(ops)
	{
		check_unread(ops, "1", 2);
		check_unread(ops, "2", 2);
		check_unread(ops, "2", 4);
	}
}

static void test_one_worker_is_exact(void **arg)
{
	FOR_EACH(ops)
	{
		check_exact(ops, "1", "0", false);
		check_exact(ops, "1", "0", true);
		check_exact(ops, "1", "10", false);
		check_exact(ops, "1", "10", true);
		check_exact(ops, "1", "231", false);
		check_exact(ops, "1", "231", true);
	}
}

static void test_two_workers_are_exact(void **arg)
{
	FOR_EACH(ops)
	{
		check_exact(ops, "2", "64", false);
		check_exact(ops, "2", "64", true);
		check_exact(ops, "2", "1", false);
		check_exact(ops, "2", "1", true);
	}
}

static void test_four_workers_are_exact(void **arg)
{
	FOR_EACH(ops)
	{
		check_exact(ops, "4", "10", false);
		check_exact(ops, "4", "10", true);
		check_exact(ops, "4", "1000", false);
		check_exact(ops, "4", "1000", true); /* fewer tiles than workers */
	}
}

/* More than this host may have cores: a worker can stop anywhere for long. 14 is what a host of 16
 * cores has left for them. */
static void test_many_workers_are_exact(void **arg)
{
	static const char *const many[] = {"8", "14"};

	FOR_EACH(ops)
	for (int i = 0; i < 2; i++) {
		check_exact(ops, many[i], "10", false);
		check_exact(ops, many[i], "10", true);
		check_exact(ops, many[i], "100", false);
		check_exact(ops, many[i], "1000", true); /* fewer tiles than workers */
		check_unread(ops, many[i], 4);
	}
}

static void check_weights(const struct sl_unit *ops, const char *workers)
{
	static double weight[BATCHES * BATCH];
	struct load *load = load_make();
	struct subject s;
	uint32_t frames = 0;

	subject_init(&s, ops, 1);
	s.chain.stage[0] = (struct sl_chain_stage){&weigh,
						   weight,
						   SL_CHAIN_RAW,
						   SL_CHAIN_NONE,
						   s.chain.stage[0].in,
						   {.scratch_bytes = sizeof(double)}};
	subject_set(&s, "workers", workers);
	subject_set(&s, "tile_pixels", "10");
	subject_open(&s);
	subject_start(&s);
	subject_process(&s, load);
	subject_stop(&s);
	for (uint32_t b = 0; b < BATCHES; b++)
		frames += load->batch[b].frames;
	for (uint32_t n = 0; n < frames; n++) {
		double sum = 0;

		for (int i = 0; i < PIXELS; i++)
			sum += 1.0 / (1 + load->item[n].raw[i]);
		/* Each of PIXELS additions is wrong by half of the last bit of the sum at most. */
		assert_true(fabs(weight[n] - sum) <= PIXELS * DBL_EPSILON * sum);
	}
	subject_close(&s);
	load_free(load);
}

/* The exception to "exact": additions of doubles in another order differ in their last bits, and
 * by no more (docs/reference/stages.md). */
static void test_sums_of_doubles_differ_in_their_last_bits_alone(void **arg)
{
	FOR_EACH(ops)
	{
		check_weights(ops, "1");
		check_weights(ops, "8");
		check_weights(ops, "14");
	}
}

/* ---- several batches in flight ---- */

enum { FOREVER_S = 20 };

/* Which calls a stage has had, of all batches; the batches of a load are numbered. */
struct calls {
	const struct load *load;
	_Atomic int tiles[BATCHES], frames[BATCHES], finishes;
	_Atomic int early; /* calls that came before their turn */
	_Atomic int stuck; /* frames that waited in vain for the next batch to begin */
	bool waits;
};

static int number_of(const struct calls *calls, const struct sl_batch *batch)
{
	return (int)(batch - calls->load->batch);
}

static bool comes_true(const _Atomic int *count)
{
	time_t end = time(NULL) + FOREVER_S;

	while (!*count && time(NULL) < end)
		sched_yield();
	return *count;
}

/* The first tile of a batch takes long: another worker has time to come too early. */
static void calls_tile(void *state, void *scratch, const struct sl_batch *batch,
		       const struct sl_tile *tile)
{
	struct calls *calls = state;
	int b = number_of(calls, batch);

	calls->tiles[b]++;
	calls->early += calls->finishes < b;
	if (!tile->module && !tile->first)
		for (int i = 0; i < 20; i++)
			sched_yield();
}

/* The first frame of an even batch goes on when the batch behind it has been begun. */
static void calls_frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	struct calls *calls = state;
	int b = number_of(calls, batch);

	calls->frames[b]++;
	if (calls->waits && f == 0 && b % 2 == 0)
		calls->stuck += !comes_true(&calls->tiles[b + 1]);
}

static void calls_finish(void *state, void *const *scratch, unsigned workers,
			 struct sl_batch *batch)
{
	struct calls *calls = state;

	calls->early += calls->finishes != number_of(calls, batch);
	calls->finishes++;
}

static struct calls *process_with_calls(const struct sl_unit *ops, int ordered, bool waits)
{
	static struct calls calls;
	const struct sl_stage stage = {.name = "calls",
				       .doc = "x",
				       .input = "raw",
				       .ordered = ordered,
				       .tile = calls_tile,
				       .frame = calls_frame,
				       .finish = calls_finish};
	struct load *load = load_make();
	struct subject s;

	memset(&calls, 0, sizeof(calls));
	calls.load = load;
	calls.waits = waits;
	subject_init(&s, ops, 1);
	s.chain.stage[0] = (struct sl_chain_stage){
		&stage, &calls, SL_CHAIN_RAW, SL_CHAIN_NONE, s.chain.stage[0].in, {.result = 0}};
	subject_set(&s, "workers", "4");
	subject_set(&s, "tile_pixels", "100");
	subject_open(&s);
	subject_start(&s);
	subject_process(&s, load);
	subject_stop(&s);
	assert_int_equal(calls.stuck, 0);
	assert_int_equal(calls.finishes, BATCHES);
	for (int b = 0; b < BATCHES; b++) {
		assert_int_equal(calls.tiles[b], 3 * MODULES);
		assert_int_equal(calls.frames[b], load->batch[b].frames);
	}
	subject_close(&s);
	load_free(load);
	return &calls;
}

/* Tiles of a batch are worked on while a frame of the one before is not done yet: else this would
 * not come to its end. */
static void test_the_next_batch_begins_before_this_one_ends(void **arg)
{
	FOR_EACH(ops)
	{
		if (!sl_option_find(ops->options, "workers"))
			continue;
		process_with_calls(ops, SL_ORDER_NONE, true);
		process_with_calls(ops, SL_ORDER_PARTS, true);
	}
}

static void test_a_strict_stage_sees_one_batch_after_the_other(void **arg)
{
	FOR_EACH(ops)
	for (int i = 0; i < 20; i++)
		assert_int_equal(process_with_calls(ops, SL_ORDER_BATCHES, false)->early, 0);
}

/* Sums of a batch are those of this batch, whichever worker begins it. */
static void test_scratch_begins_with_zeros_for_each_batch(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct sl_batch *batch;
		struct subject s;

		if (!sl_option_find(ops->options, "workers"))
			continue;
		subject_init(&s, ops, 2);
		subject_set(&s, "workers", "2");
		subject_set(&s, "tile_pixels", "100");
		subject_open(&s);
		/* One thread plays both workers in turn; odd batches are begun by worker 1. */
		for (int b = 0; b < BATCHES; b++) {
			assert_int_equal(ops->submit(s.state, &load->batch[b]), 0);
			for (int i = 0; ops->work(s.state, (unsigned)(i + b) % 2); i++)
				;
			assert_int_equal(ops->reap(s.state, &batch), 1);
		}
		check_verdicts(load);
		subject_close(&s);
		load_free(load);
	}
}

static void test_idle_units_do_nothing(void **arg)
{
	FOR_EACH(ops)
	{
		struct sl_batch *batch = NULL;
		struct subject s;

		subject_init(&s, ops, 2);
		subject_open(&s);
		assert_int_equal(ops->work(s.state, 0), 0);
		assert_int_equal(ops->reap(s.state, &batch), 0);
		assert_null(batch);
		subject_close(&s);
	}
}

/* Back-pressure, and what was refused was not taken. */
static void test_a_full_unit_says_again(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct subject s;
		struct sl_batch *batch;
		int n = 0, err;

		subject_init(&s, ops, 2);
		subject_open(&s);
		while (!(err = ops->submit(s.state, &load->batch[n])))
			assert_true(++n < BATCHES);
		assert_int_equal(err, -EAGAIN);
		assert_true(n >= 1);
		assert_int_equal(ops->reap(s.state, &batch), 0);
		while (ops->work(s.state, 0))
			;
		/* Done is not reaped: still full. */
		assert_int_equal(ops->submit(s.state, &load->batch[n]), -EAGAIN);
		for (int i = 0; i < n; i++) {
			assert_int_equal(ops->reap(s.state, &batch), 1);
			assert_ptr_equal(batch, &load->batch[i]);
		}
		assert_int_equal(ops->reap(s.state, &batch), 0);
		assert_int_equal(ops->submit(s.state, &load->batch[n]), 0);
		subject_close(&s); /* with a batch inside */
		load_free(load);
	}
}

static void test_work_is_done_in_bites(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct subject s;
		struct sl_batch *batch;
		int bites = 0;

		subject_init(&s, ops, 2);
		subject_set(&s, "tile_pixels", "100");
		subject_open(&s);
		assert_int_equal(ops->submit(s.state, &load->batch[0]), 0);
		while (ops->work(s.state, 0))
			bites++;
		/* Three tiles for each module of 231 pixels. */
		assert_int_equal(bites, 3 * MODULES);
		assert_int_equal(ops->reap(s.state, &batch), 1);
		subject_close(&s);
		load_free(load);
	}
}

static void test_bells_ring(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct subject s;
		uint32_t todo, done;

		subject_init(&s, ops, 2);
		subject_open(&s);
		todo = sl_bell_read(&s.todo);
		done = sl_bell_read(&s.done);
		ops->submit(s.state, &load->batch[0]);
		assert_true(sl_bell_read(&s.todo) != todo);
		assert_true(sl_bell_read(&s.done) == done);
		while (ops->work(s.state, 0))
			;
		assert_true(sl_bell_read(&s.done) != done);
		subject_close(&s);
		load_free(load);
	}
}

/* A worker that found no tile of this batch may sleep when the next one can be begun. */
static void test_the_next_batch_wakes_the_workers(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct sl_batch *batch;
		struct subject s;
		uint32_t todo;

		subject_init(&s, ops, 2);
		subject_set(&s, "workers", "2");
		subject_open(&s);
		ops->submit(s.state, &load->batch[0]);
		ops->submit(s.state, &load->batch[1]);
		todo = sl_bell_read(&s.todo);
		while (!ops->reap(s.state, &batch))
			assert_int_equal(ops->work(s.state, 0), 1);
		assert_true(s.workers == 1 || sl_bell_read(&s.todo) != todo);
		subject_close(&s);
		load_free(load);
	}
}

static void test_without_stages_frames_are_kept_and_pass(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct subject s;

		subject_init(&s, ops, 0);
		subject_set(&s, "workers", "2");
		subject_open(&s);
		subject_start(&s);
		subject_process(&s, load);
		subject_stop(&s);
		for (uint32_t f = 0; f < load->batch[0].frames; f++) {
			struct sl_verdict *verdict = &load->item[f].verdict;

			assert_int_equal(verdict->keep, 1);
			assert_int_equal(verdict->reason, SL_REASON_UNJUDGED);
			assert_true(verdict->score == 0);
			assert_int_equal(verdict->number, 1000 + f);
		}
		subject_close(&s);
		load_free(load);
	}
}

static void test_every_item_of_a_frame_is_judged(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct sl_verdict verdicts[3];
		struct sl_batch *batch;
		struct subject s;

		memset(verdicts, 0xee, sizeof(verdicts));
		load->item[0].frame.items = 3;
		load->item[0].frame.verdict = verdicts;
		subject_init(&s, ops, 0);
		subject_open(&s);
		ops->submit(s.state, &load->batch[0]);
		while (ops->work(s.state, 0))
			;
		assert_int_equal(ops->reap(s.state, &batch), 1);
		for (int i = 0; i < 3; i++)
			assert_int_equal(verdicts[i].keep, 1);
		subject_close(&s);
		load_free(load);
	}
}

static void test_an_empty_batch_comes_back(void **arg)
{
	FOR_EACH(ops)
	{
		struct sl_batch empty = {.frames = 0, .status = -1}, *batch;
		struct subject s;

		subject_init(&s, ops, 2);
		subject_open(&s);
		assert_int_equal(ops->submit(s.state, &empty), 0);
		while (ops->work(s.state, 0))
			;
		assert_int_equal(ops->reap(s.state, &batch), 1);
		assert_ptr_equal(batch, &empty);
		assert_int_equal(empty.status, 0);
		subject_close(&s);
	}
}

static void test_too_large_a_batch_is_refused(void **arg)
{
	FOR_EACH(ops)
	{
		struct load *load = load_make();
		struct subject s;

		load->batch[0].frames = BATCH + 1;
		subject_init(&s, ops, 2);
		subject_open(&s);
		assert_int_equal(ops->submit(s.state, &load->batch[0]), -EINVAL);
		subject_close(&s);
		load_free(load);
	}
}

static void test_arrays_of_another_shape_are_refused(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s;
		const char *said;
		int err;

		subject_init(&s, ops, 2);
		s.chain.stage[0].terms.output[0].dim[2]--;
		capture_begin();
		err = ops->open(s.state, &s.chain, &s.todo, &s.done, &s.workers);
		said = capture_end();
		assert_int_equal(err, -EINVAL);
		assert_non_null(strstr(said, "history"));
		subject_close(&s); /* also when open() failed */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_docs_and_options),
		cmocka_unit_test(test_one_worker_is_exact),
		cmocka_unit_test(test_images_that_no_sink_reads_are_judged),
		cmocka_unit_test(test_without_order_every_batch_comes_back),
		cmocka_unit_test(test_stages_that_learn_need_order),
		cmocka_unit_test(test_two_workers_are_exact),
		cmocka_unit_test(test_four_workers_are_exact),
		cmocka_unit_test(test_many_workers_are_exact),
		cmocka_unit_test(test_sums_of_doubles_differ_in_their_last_bits_alone),
		cmocka_unit_test(test_the_next_batch_begins_before_this_one_ends),
		cmocka_unit_test(test_a_strict_stage_sees_one_batch_after_the_other),
		cmocka_unit_test(test_scratch_begins_with_zeros_for_each_batch),
		cmocka_unit_test(test_idle_units_do_nothing),
		cmocka_unit_test(test_a_full_unit_says_again),
		cmocka_unit_test(test_work_is_done_in_bites),
		cmocka_unit_test(test_bells_ring),
		cmocka_unit_test(test_the_next_batch_wakes_the_workers),
		cmocka_unit_test(test_without_stages_frames_are_kept_and_pass),
		cmocka_unit_test(test_every_item_of_a_frame_is_judged),
		cmocka_unit_test(test_an_empty_batch_comes_back),
		cmocka_unit_test(test_too_large_a_batch_is_refused),
		cmocka_unit_test(test_arrays_of_another_shape_are_refused),
	};

	return cmocka_run_group_tests_name("unit conformance", tests, NULL, NULL);
}
