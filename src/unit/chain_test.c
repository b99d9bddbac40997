/* chain_test.c - the demo's chain, without links and sinks: a jungfrau's dark frames, then its
 * bright ones, through correct and veto on the cpu unit. The veto must agree with the truth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bell.h"
#include "core/unit.h"

extern const struct sl_detector sl_detector_jungfrau;
extern const struct sl_stage sl_stage_copy, sl_stage_correct, sl_stage_veto;
extern const struct sl_unit sl_unit_cpu;

enum { DARKS = 64, BRIGHTS = 31, BATCH = 8, PIXELS = 512 * 1024, STAGES = 3 };

struct chain_rig {
	void *detector, *unit;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	struct sl_env env;
	struct sl_chain chain;
	struct sl_bell todo, done;
	/* One batch, used again and again. */
	struct sl_frame frame[BATCH], *pointer[BATCH];
	struct sl_view view[BATCH];
	struct sl_verdict verdict[BATCH];
	struct sl_batch batch;
	uint16_t *raw;	/* [BATCH][PIXELS] */
	int16_t *image; /* [BATCH][PIXELS] */
};

static void *make_state(size_t bytes, const struct sl_option *options)
{
	void *state = calloc(1, bytes);

	sl_options_defaults(options, state);
	return state;
}

static void add_stage(struct chain_rig *r, const struct sl_stage *ops, int input, int output)
{
	struct sl_chain_stage *stage = &r->chain.stage[r->chain.stages++];

	*stage = (struct sl_chain_stage){.ops = ops, .input = input, .output = output};
	stage->state = make_state(ops->state_bytes, ops->options);
	stage->in = input < 0 ? (struct sl_shape){"raw", SL_U16, 3, {1, 512, 1024}}
			      : (struct sl_shape){"image", SL_I16, 3, {1, 512, 1024}};
	stage->terms.input = input;
	stage->terms.result = output < 0 ? 2 : output;
	assert_int_equal(ops->open(stage->state, &r->env, &stage->in, &stage->terms), 0);
}

static void make_frames(struct chain_rig *r)
{
	r->raw = calloc((size_t)BATCH * PIXELS, sizeof(*r->raw));
	r->image = calloc((size_t)BATCH * PIXELS, sizeof(*r->image));
	for (int f = 0; f < BATCH; f++) {
		r->frame[f] = (struct sl_frame){.views = 1,
						.results = 2,
						.items = 1,
						.view = &r->view[f],
						.verdict = &r->verdict[f]};
		r->frame[f].result[0].host = r->raw + (size_t)f * PIXELS;
		r->frame[f].result[1].host = r->image + (size_t)f * PIXELS;
		r->pointer[f] = &r->frame[f];
	}
	r->batch = (struct sl_batch){.frame = r->pointer, .capacity = BATCH};
}

static void rig_open(struct chain_rig *r)
{
	struct sl_detector_options run = {.modules = 1, .frames = BRIGHTS, .seed = 1};
	const struct sl_detector *d = &sl_detector_jungfrau;
	unsigned workers;

	memset(r, 0, sizeof(*r));
	r->detector = make_state(d->state_bytes, d->options);
	assert_int_equal(d->open(r->detector, &run, &r->geometry), 0);
	assert_int_equal(d->calibration(r->detector, &r->calibration), 0);
	r->env = (struct sl_env){
		.geometry = &r->geometry, .calibration = &r->calibration, .batch_frames = BATCH};
	r->chain.geometry = &r->geometry;
	r->chain.batch_frames = BATCH;
	add_stage(r, &sl_stage_copy, SL_CHAIN_RAW, 0);
	add_stage(r, &sl_stage_correct, SL_CHAIN_RAW, 1);
	add_stage(r, &sl_stage_veto, 1, SL_CHAIN_NONE);
	r->unit = make_state(sl_unit_cpu.state_bytes, sl_unit_cpu.options);
	assert_int_equal(sl_unit_cpu.open(r->unit, &r->chain, &r->todo, &r->done, &workers), 0);
	make_frames(r);
}

static void rig_close(struct chain_rig *r)
{
	sl_unit_cpu.close(r->unit);
	for (int s = 0; s < STAGES; s++) {
		r->chain.stage[s].ops->close(r->chain.stage[s].state);
		free(r->chain.stage[s].state);
	}
	sl_detector_jungfrau.close(r->detector);
	free(r->unit);
	free(r->detector);
	free(r->raw);
	free(r->image);
}

/* Frames first.. of the run: the dark ones come before the bright ones. */
static void rig_process(struct chain_rig *r, uint64_t first, uint32_t frames)
{
	struct sl_batch *batch;

	for (uint32_t f = 0; f < frames; f++) {
		uint64_t number = first + f;
		bool dark = number < DARKS;
		const void *pixels;

		assert_int_equal(sl_detector_jungfrau.render(r->detector, number, 0,
							     dark ? SL_RECORD_DARK : 0, NULL,
							     &pixels),
				 0);
		r->frame[f].number = number;
		r->frame[f].flags = SL_FRAME_COMPLETE | (dark ? SL_FRAME_DARK : 0);
		r->view[f].pixels.host = (void *)pixels;
	}
	r->batch.frames = frames;
	assert_int_equal(sl_unit_cpu.submit(r->unit, &r->batch), 0);
	while (sl_unit_cpu.work(r->unit, 0))
		;
	assert_int_equal(sl_unit_cpu.reap(r->unit, &batch), 1);
}

static void check_frame(struct chain_rig *r, uint32_t f)
{
	const struct sl_verdict *verdict = &r->verdict[f];
	struct sl_truth truth;

	assert_memory_equal(r->frame[f].result[0].host, r->view[f].pixels.host,
			    PIXELS * sizeof(uint16_t));
	if (r->frame[f].flags & SL_FRAME_DARK) {
		assert_int_equal(verdict->keep, 0);
		assert_int_equal(verdict->reason, SL_REASON_DARK);
		return;
	}
	sl_detector_jungfrau.truth(r->detector, r->frame[f].number, 0, &truth);
	assert_int_equal(verdict->keep, truth.hit);
	assert_int_equal(verdict->reason, SL_REASON_BRIGHT_PIXELS);
	assert_true(truth.hit ? verdict->score >= 100 : verdict->score <= 4);
}

static void test_veto_agrees_with_the_truth(void **arg)
{
	struct chain_rig r;
	int kept = 0;

	rig_open(&r);
	for (uint32_t first = 0; first < DARKS + BRIGHTS; first += BATCH) {
		uint32_t rest = DARKS + BRIGHTS - first, n = rest < BATCH ? rest : BATCH;

		rig_process(&r, first, n);
		for (uint32_t f = 0; f < n; f++) {
			check_frame(&r, f);
			kept += r.verdict[f].keep;
		}
	}
	assert_int_equal(kept, 2);
	rig_close(&r);
}

/* Whole photons, most of them none: the measured pedestal is right to a small part of a photon. */
static void test_images_are_photons(void **arg)
{
	struct chain_rig r;
	int bad = 0, negative = 0;
	double sum = 0, expected = 0;

	rig_open(&r);
	for (uint32_t first = 0; first < DARKS; first += BATCH)
		rig_process(&r, first, BATCH);
	rig_process(&r, DARKS, 1);
	for (int i = 0; i < PIXELS; i++) {
		bad += r.image[i] == INT16_MIN;
		negative += r.image[i] < 0 && r.image[i] != INT16_MIN;
		if (r.image[i] == INT16_MIN || r.raw[i] >> 14)
			continue; /* the expectation below is that of G0 */
		sum += r.image[i];
		expected += (r.raw[i] - r.calibration.pedestal[0][i]) /
			    (r.calibration.gain[0][i] * r.geometry.photon_energy_keV);
	}
	assert_int_equal(bad, 24); /* the jungfrau's bad_pixels */
	assert_int_equal(negative, 0);
	assert_true(expected / PIXELS > 0.1); /* there are photons, fewer than one in a pixel */
	assert_true(expected / PIXELS < 1);
	assert_true(sum > expected * 0.99 && sum < expected * 1.01);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_veto_agrees_with_the_truth),
		cmocka_unit_test(test_images_are_photons),
	};

	return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
