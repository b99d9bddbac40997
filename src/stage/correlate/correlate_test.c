/* correlate_test.c - g2 against the plainest program: every pixel, every lag, every pair of
 * samples, one after the other; over gaps, dark frames, missing modules, bad pixels and time that
 * goes back. All sums are compared as integers. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "lib/capture.h"
#include "lib/stage_rig.h"
#include "stage/correlate/correlate.h"

extern const struct sl_stage sl_stage_correlate;

enum { FRAMES = 240 };

static uint64_t random_state = 1;

static uint32_t dice(uint32_t sides)
{
	return rig_random(&random_state) % sides;
}

struct set {
	const char *option, *value;
};

struct scene {
	enum sl_dtype dtype;
	struct set set[8];
	uint32_t largest;  /* pixels are below it */
	uint32_t bad;	   /* one pixel of so many is none; 0: all are */
	bool gaps, masked; /* gaps of all kinds in time; pixels that the calibration masks */
	struct rig rig;
	struct rig_frame frame[FRAMES];
	uint8_t mask[RIG_PIXELS];
};

/* ---- frames ---- */

static void put_pixel(enum sl_dtype dtype, void *pixels, uint32_t i, uint32_t value, bool bad)
{
	switch (dtype) {
	case SL_U8:
		((uint8_t *)pixels)[i] = bad ? UINT8_MAX : (uint8_t)value;
		break;
	case SL_U16:
		((uint16_t *)pixels)[i] = bad ? UINT16_MAX : (uint16_t)value;
		break;
	case SL_U32:
		((uint32_t *)pixels)[i] = bad ? UINT32_MAX - dice(1000) : value;
		break;
	case SL_I16:
		((int16_t *)pixels)[i] = bad ? (dice(2) ? INT16_MIN : INT16_MAX)
					     : (int16_t)(value - value / 5 * 2);
		break;
	default:
		((float *)pixels)[i] = bad ? (dice(2) ? NAN : INFINITY)
					   : (float)value * 0.37f - 0.2f;
	}
}

static uint64_t step_of(const struct scene *s)
{
	uint32_t kind = s->gaps ? dice(40) : 40;

	return kind < 3 ? 2 + dice(5) : kind == 3 ? 20 + dice(60) : kind == 4 ? 2000 : 1;
}

static void make_frames(struct scene *s)
{
	uint64_t number = s->gaps ? 7 : 0;

	for (uint32_t f = 0; f < FRAMES; f++) {
		struct rig_frame *frame = &s->frame[f];

		rig_frame_init(frame, s->gaps && dice(11) == 0);
		frame->frame.number = number;
		if (s->gaps && dice(13) == 0)
			frame->frame.missing = 1 + dice(3);
		for (uint32_t i = 0; i < RIG_PIXELS; i++)
			put_pixel(s->dtype, frame->in, i, dice(s->largest),
				  s->bad && dice(s->bad) == 0);
		number += step_of(s);
		if (s->gaps && (f == 150 || f == 151))
			number = 30;
	}
}

/* ---- the plain program ---- */

/* Of frame f, or missing. */
static int64_t value_of(const struct scene *s, uint32_t f, uint32_t pixel)
{
	const struct sl_frame *frame = &s->frame[f].frame;
	const void *in = s->frame[f].in;
	int64_t v = 0, none = INT64_MIN;

	if (frame->flags & SL_FRAME_DARK || sl_frame_misses(frame, pixel / RIG_MODULE_PIXELS))
		return none;
	switch (s->dtype) {
	case SL_U8:
		v = ((const uint8_t *)in)[pixel];
		return v == UINT8_MAX ? none : v;
	case SL_U16:
		v = ((const uint16_t *)in)[pixel];
		return v == UINT16_MAX ? none : v;
	case SL_U32:
		v = ((const uint32_t *)in)[pixel];
		break;
	case SL_I16:
		v = ((const int16_t *)in)[pixel];
		return v == INT16_MIN || v == INT16_MAX ? none : v;
	default:
		if (!isfinite(((const float *)in)[pixel]))
			return none;
		v = llround((double)((const float *)in)[pixel] * 256);
	}
	return llabs(v) > ((struct sl_correlate *)s->rig.state)->limit ? none : v;
}

/* What a pixel counted by time, over frames from `from` to before `to`; time is that of the first.
 */
struct course {
	int64_t *value;
	uint64_t first, n;
};

static struct course course_of(const struct scene *s, uint32_t from, uint32_t to, uint32_t pixel)
{
	uint64_t first = s->frame[from].frame.number & ~UINT64_C(16383);
	struct course c = {.first = first, .n = s->frame[to - 1].frame.number + 1 - first};

	c.value = malloc(c.n * sizeof(*c.value));
	for (uint64_t t = 0; t < c.n; t++)
		c.value[t] = INT64_MIN;
	for (uint32_t f = from; f < to; f++)
		c.value[s->frame[f].frame.number - first] = value_of(s, f, pixel);
	return c;
}

/* Each pair of neighbours becomes one sample. */
static void coarsen(struct course *c)
{
	c->n /= 2;
	for (uint64_t j = 0; j < c->n; j++) {
		int64_t a = c->value[2 * j], b = c->value[2 * j + 1];

		c->value[j] = a == INT64_MIN || b == INT64_MIN ? INT64_MIN : a + b;
	}
}

struct oracle {
	__int128 products;
	int64_t left, right;
	uint64_t pairs;
};

static void correlate_course(const struct sl_correlate *s, struct course *c, struct oracle *o)
{
	for (uint32_t level = 0; level < s->levels; level++, coarsen(c))
		for (uint32_t k = level ? s->channels / 2 : 0; k < s->channels; k++, o++)
			for (uint64_t j = k; j < c->n; j++) {
				int64_t a = c->value[j - k], b = c->value[j];

				if (a == INT64_MIN || b == INT64_MIN)
					continue;
				o->products += (__int128)a * b;
				o->left += a;
				o->right += b;
				o->pairs++;
			}
}

/* All frames before `to`: time that goes back begins another run. */
static struct oracle *oracle_of(const struct scene *s, uint32_t to)
{
	const struct sl_correlate *state = s->rig.state;
	struct oracle *all = calloc((size_t)state->count * state->lags, sizeof(*all));

	for (uint32_t pixel = 0; pixel < RIG_PIXELS; pixel++) {
		uint32_t region = state->region[pixel], from = 0;

		if (region == SL_CORRELATE_NONE)
			continue;
		for (uint32_t f = 1; f <= to; f++) {
			struct course c;

			if (f < to && s->frame[f].frame.number >= s->frame[f - 1].frame.number + 1)
				continue;
			c = course_of(s, from, f, pixel);
			correlate_course(state, &c, all + (size_t)region * state->lags);
			free(c.value);
			from = f;
		}
	}
	return all;
}

static void compare(const struct scene *s, const struct sl_correlate_sum *have,
		    const struct oracle *want, const char *what)
{
	const struct sl_correlate *state = s->rig.state;
	uint64_t pairs = 0;

	for (uint64_t i = 0; i < (uint64_t)state->count * state->lags; i++) {
		__int128 products = (__int128)((unsigned __int128)have[i].high << 64 | have[i].low);

		if (products != want[i].products || have[i].left != want[i].left ||
		    have[i].right != want[i].right || have[i].pairs != want[i].pairs)
			fail_msg("%s: region %u, lag %u: %llu pairs, sums %lld and %lld instead "
				 "of %llu, %lld and %lld",
				 what, (unsigned)(i / state->lags), state->lag[i % state->lags],
				 (unsigned long long)have[i].pairs, (long long)have[i].left,
				 (long long)have[i].right, (unsigned long long)want[i].pairs,
				 (long long)want[i].left, (long long)want[i].right);
		pairs += want[i].pairs;
	}
	assert_true(pairs > 1000);
}

/* ---- runs ---- */

static void open_scene(struct scene *s)
{
	rig_init(&s->rig, &sl_stage_correlate, s->dtype);
	for (const struct set *set = s->set; set->option; set++)
		rig_set(&s->rig, set->option, set->value);
	for (uint32_t i = 0; i < RIG_PIXELS && s->masked; i++)
		s->mask[i] = dice(5) == 0 || i < 70;
	if (s->masked)
		s->rig.calibration.mask = s->mask;
	rig_open(&s->rig);
}

static void run_scene(struct scene *s, uint32_t batch, uint32_t tile, unsigned workers)
{
	struct oracle *want;

	open_scene(s);
	make_frames(s);
	rig_run(&s->rig, s->frame, FRAMES, batch, tile, workers);
	want = oracle_of(s, FRAMES);
	compare(s, ((struct sl_correlate *)s->rig.state)->total, want, s->set[0].value);
	free(want);
	rig_close(&s->rig);
	for (uint32_t f = 0; f < FRAMES; f++)
		rig_frame_fini(&s->frame[f]);
}

static void every_type_is_exact(void **arg)
{
	static const struct scene scenes[] = {
		{.dtype = SL_U8, .largest = 250, .bad = 300},
		{.dtype = SL_U16, .largest = 9, .bad = 0},
		{.dtype = SL_U16, .largest = 65535, .bad = 40},
		{.dtype = SL_U32, .largest = 4000, .bad = 200},
		{.dtype = SL_U32, .largest = 1 << 25, .bad = 200},
		{.dtype = SL_I16, .largest = 7, .bad = 500},
		{.dtype = SL_I16, .largest = 32000, .bad = 20},
		{.dtype = SL_F32, .largest = 12, .bad = 100},
	};

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		for (int gaps = 0; gaps < 2; gaps++) {
			struct scene s = scenes[i];

			s.gaps = s.masked = gaps;
			s.set[0] = (struct set){"levels", "4"};
			s.set[1] = (struct set){"channels", gaps ? "8" : "16"};
			run_scene(&s, gaps ? 7 : 32, gaps ? 100 : 304, gaps ? 3 : 1);
		}
}

static void every_kind_of_region_is_exact(void **arg)
{
	static const struct set sets[][3] = {
		{{"regions", "image"}, {"levels", "14"}, {"channels", "8"}},
		{{"regions", "rings"}, {"rings", "9"}, {"levels", "3"}},
		{{"regions", "rings"}, {"unit", "r_pixels"}, {"low", "7"}},
		{{"regions", "pixels"}, {"levels", "2"}, {"channels", "24"}},
		{{"regions", "pixels"}, {"levels", "1"}, {"channels", "64"}},
	};
	static const char *const vectors[] = {"auto", "avx2", "baseline"};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct scene s = {.dtype = SL_I16, .largest = 5, .bad = 30, .gaps = true};

		memcpy(s.set, sets[i], sizeof(sets[i]));
		s.set[3] = (struct set){"vectors", vectors[i % 3]};
		s.masked = i != 2;
		run_scene(&s, 1 + 7 * (uint32_t)i, 61, 4);
	}
}

/* Two labels, 3 and 900, in modules one below the other. */
static void write_labels(char *path, uint16_t second)
{
	static const char header[] =
		"{'descr': '<u2', 'fortran_order': False, 'shape': (10, 61), }   \n";
	uint8_t head[10] = "\x93NUMPY\x01";
	uint16_t label[RIG_PIXELS];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	head[8] = sizeof(header) - 1;
	for (uint32_t i = 0; i < RIG_PIXELS; i++)
		label[i] = i % 61 < 20 ? 3 : i % 61 < 41 ? 0 : second;
	assert_int_equal(write(fd, head, 10), 10);
	assert_int_equal(write(fd, header, sizeof(header) - 1), sizeof(header) - 1);
	assert_int_equal(write(fd, label, sizeof(label)), sizeof(label));
	close(fd);
}

static void labels_of_a_file_are_regions(void **arg)
{
	char path[] = "/tmp/sluice-test-XXXXXX";
	struct scene s = {.dtype = SL_U16,
			  .largest = 4,
			  .gaps = true,
			  .set = {{"regions", "labels"}, {"labels", path}, {"levels", "3"}}};
	struct sl_correlate *state;

	write_labels(path, 900);
	open_scene(&s);
	state = s.rig.state;
	assert_int_equal(state->count, 2);
	assert_true(state->axis[0] == 3 && state->axis[1] == 900);
	assert_int_equal(state->number[0], 20 * 10);
	assert_int_equal(state->number[1], 20 * 10);
	rig_close(&s.rig);
	run_scene(&s, 16, 128, 2);
	unlink(path);
}

/* Rows of frames in the middle of batches are those of the frames up to there. */
static void rows_are_of_all_frames_so_far(void **arg)
{
	struct scene s = {.dtype = SL_I16,
			  .largest = 6,
			  .bad = 50,
			  .gaps = true,
			  .set = {{"regions", "rings"}, {"every", "5"}, {"levels", "3"}}};
	const struct sl_correlate *state;
	uint64_t rows = 0;

	open_scene(&s);
	state = s.rig.state;
	make_frames(&s);
	rig_run(&s.rig, s.frame, FRAMES, 32, 99, 3);
	for (uint32_t f = 0; f < FRAMES; f++) {
		const struct sl_array *result = &s.frame[f].frame.result[0];
		const struct sl_frame *frame = &s.frame[f].frame;
		struct oracle *want;

		assert_int_equal(result->rows,
				 !(frame->flags & SL_FRAME_DARK) && frame->number % 5 == 4);
		rows += result->rows;
		if (!result->rows || rows % 7)
			continue;
		want = oracle_of(&s, f + 1);
		for (uint64_t i = 0; i < (uint64_t)state->count * state->lags; i++) {
			double g2 = (double)want[i].products * (double)want[i].pairs /
				    ((double)want[i].left * (double)want[i].right);
			double have = ((const double *)result->host)[i];

			assert_true(want[i].pairs && want[i].left && want[i].right ? have == g2
										   : isnan(have));
		}
		free(want);
	}
	assert_int_equal(state->rows, rows);
	assert_true(state->restarts > 0 && state->skipped > 0 && state->frames < FRAMES);
	rig_close(&s.rig);
	for (uint32_t f = 0; f < FRAMES; f++)
		rig_frame_fini(&s.frame[f]);
}

/* Light that flickers with a period of 4 frames, the same in all pixels: known by heart. */
static void a_known_course_has_its_g2(void **arg)
{
	static const int16_t course[] = {1, 3, 1, 3};
	struct scene s = {.dtype = SL_I16, .set = {{"levels", "2"}, {"channels", "8"}}};
	const struct sl_correlate *state;

	open_scene(&s);
	state = s.rig.state;
	for (uint32_t f = 0; f < FRAMES; f++) {
		rig_frame_init(&s.frame[f], false);
		s.frame[f].frame.number = f;
		for (uint32_t i = 0; i < RIG_PIXELS; i++)
			((int16_t *)s.frame[f].in)[i] = course[f % 4];
	}
	rig_run(&s.rig, s.frame, FRAMES, 32, 64, 2);
	s.rig.ops->conclude(s.rig.state);
	assert_int_equal(state->lags, 12);
	assert_int_equal(state->lag[8], 8);
	assert_int_equal(state->lag[11], 14);
	assert_true(state->numerator[0] == 5 && state->left[0] == 2 && state->g2[0] == 1.25);
	assert_true(state->numerator[1] == 3);
	assert_true(fabs(state->g2[2] - 1.25) < 1e-15); /* 238 frames are whole periods of two */
	assert_true(state->numerator[9] == 4 && state->g2[9] == 1); /* of two frames each */
	assert_int_equal(state->pairs[9], (120 - 5) * RIG_PIXELS);
	rig_close(&s.rig);
	for (uint32_t f = 0; f < FRAMES; f++)
		rig_frame_fini(&s.frame[f]);
}

static void refused(const struct set *set, const char *message)
{
	struct rig rig;
	const char *said;

	rig_init(&rig, &sl_stage_correlate, SL_U16);
	for (; set->option; set++)
		rig_set(&rig, set->option, set->value);
	capture_begin();
	assert_int_equal(rig_try_open(&rig), -EINVAL);
	said = capture_end();
	if (!strstr(said, message))
		fail_msg("'%s' instead of '%s'", said, message);
	rig_close(&rig);
}

static void nonsense_is_refused(void **arg)
{
	char path[] = "/tmp/sluice-test-XXXXXX";

	write_labels(path, 0);
	refused((struct set[]){{"channels", "12"}, {NULL, NULL}}, "no multiple of 8");
	refused((struct set[]){{"regions", "labels"}, {NULL, NULL}}, "go together");
	refused((struct set[]){{"labels", path}, {NULL, NULL}}, "go together");
	refused((struct set[]){{"regions", "pixels"}, {"every", "3"}, {NULL, NULL}}, "every");
	refused((struct set[]){{"regions", "rings"}, {"low", "900"}, {"high", "901"}, {NULL, NULL}},
		"no pixel");
	refused((struct set[]){{"regions", "rings"}, {"low", "9"}, {"high", "8"}, {NULL, NULL}},
		"no pixel lies between");
	refused(
		(struct set[]){
			{"regions", "rings"}, {"rings", "10000"}, {"channels", "64"}, {NULL, NULL}},
		"fewer regions");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_exact),
		cmocka_unit_test(every_kind_of_region_is_exact),
		cmocka_unit_test(labels_of_a_file_are_regions),
		cmocka_unit_test(rows_are_of_all_frames_so_far),
		cmocka_unit_test(a_known_course_has_its_g2),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("stage correlate", tests, NULL, NULL);
}
