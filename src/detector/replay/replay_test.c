/* replay_test.c - files as a detector: which image a frame is, and where it comes from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice/detector.h>

#include "hdf5/file.h"
#include "hdf5/testing.h"

extern const struct sl_detector sl_detector_replay;
static const struct sl_detector *const ops = &sl_detector_replay;

enum { ROWS = 6, COLUMNS = 8, PIXELS = ROWS * COLUMNS, IMAGES = 10 };

static char scratch[256], bright[512], dark[512], h5[512];

static uint16_t pixel(unsigned image, unsigned i)
{
	return (uint16_t)(image << 8 | i);
}

static void write_raw(const char *path, unsigned first)
{
	FILE *file = fopen(path, "w");

	for (unsigned k = 0; k < IMAGES * PIXELS; k++) {
		uint16_t value = pixel(first + k / PIXELS, k % PIXELS);

		fwrite(&value, sizeof(value), 1, file);
	}
	fclose(file);
}

/* [image][2 modules][rows / 2][columns]: the same bytes as the raw file. */
static void write_h5(void)
{
	struct sl_h5_shape shape = {SL_H5_U16, 4, {IMAGES, 2, ROWS / 2, COLUMNS}};
	static uint16_t data[IMAGES * PIXELS];
	struct sl_h5 *file;

	for (unsigned k = 0; k < IMAGES * PIXELS; k++)
		data[k] = pixel(k / PIXELS, k % PIXELS);
	assert_int_equal(sl_h5_create(h5, &file), 0);
	sl_h5_write(file, "/images", &shape, data);
	assert_int_equal(sl_h5_finish(file), 0);
}

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(bright, sizeof(bright), "%s/bright.raw", scratch);
	snprintf(dark, sizeof(dark), "%s/dark.raw", scratch);
	snprintf(h5, sizeof(h5), "%s/bright.h5", scratch);
	write_raw(bright, 0);
	write_raw(dark, 100);
	write_h5();
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

struct player {
	void *state;
	struct sl_geometry geometry;
	uint8_t *buffer;
};

static void set(void *state, const char *name, const char *value)
{
	const struct sl_option *option = sl_option_find(ops->options, name);
	char why[200];

	assert_non_null(option);
	assert_int_equal(sl_option_set(option, state, value, why, sizeof(why)), 0);
}

/* Names and values, NULL at the end. */
static int play(struct player *p, const char *file, const struct sl_detector_options *run,
		const char *const *settings)
{
	int err;

	*p = (struct player){.state = calloc(1, ops->state_bytes)};
	sl_options_defaults(ops->options, p->state);
	set(p->state, "file", file);
	if (strstr(file, ".raw")) {
		set(p->state, "rows", "6");
		set(p->state, "columns", "8");
	}
	for (; settings && *settings; settings += 2)
		set(p->state, settings[0], settings[1]);
	err = ops->open(p->state, run, &p->geometry);
	p->buffer = malloc(err ? 1 : p->geometry.module_bytes);
	return err;
}

static void end(struct player *p)
{
	ops->close(p->state);
	free(p->state);
	free(p->buffer);
}

/* The image that a frame is. */
static int shown(struct player *p, uint64_t frame, uint32_t flags)
{
	const void *pixels;
	int image = -1;

	for (uint32_t m = 0; m < p->geometry.modules; m++) {
		uint32_t count = (uint32_t)sl_geometry_pixels(&p->geometry);
		int err = ops->render(p->state, frame, m, flags, p->buffer, &pixels);

		if (err)
			return err;
		if (image < 0)
			image = ((const uint16_t *)pixels)[0] >> 8;
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(((const uint16_t *)pixels)[i],
					 pixel((unsigned)image, m * count + i));
	}
	return image;
}

static void test_once_from_any_image_on(void **state)
{
	struct sl_detector_options run = {.modules = 1, .frames = 10};
	const char *first[] = {"first", "4", NULL};
	struct player p;

	assert_int_equal(play(&p, bright, &run, NULL), 0);
	assert_string_equal(p.geometry.detector, "replay");
	assert_int_equal(p.geometry.rows, ROWS);
	assert_int_equal(p.geometry.dtype, SL_U16);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(shown(&p, i, 0), i);
	assert_int_equal(shown(&p, 10, 0), -ENODATA);
	end(&p);
	run.frames = 6;
	assert_int_equal(play(&p, bright, &run, first), 0);
	assert_int_equal(shown(&p, 0, 0), 4);
	assert_int_equal(shown(&p, 5, 0), 9);
	assert_int_equal(shown(&p, 6, 0), -ENODATA);
	end(&p);
}

static void test_more_frames_than_images_need_a_loop(void **state)
{
	struct sl_detector_options run = {.modules = 1, .frames = 11};
	const char *loop[] = {"loop", "true", "first", "7", NULL}, *late[] = {"first", "10", NULL};
	struct player p;

	assert_int_equal(play(&p, bright, &run, NULL), -EINVAL);
	end(&p);
	assert_int_equal(play(&p, bright, &run, late), -EINVAL);
	end(&p);
	assert_int_equal(play(&p, bright, &run, loop), 0);
	for (uint64_t k = 0; k < 25; k++)
		assert_int_equal(shown(&p, k, 0), (7 + k) % 10);
	assert_int_equal(shown(&p, UINT64_C(1000000000003), 0), 0);
	assert_int_equal(ops->prepare(p.state), 0);
	for (uint64_t k = 0; k < 25; k++)
		assert_int_equal(shown(&p, k, 0), (7 + k) % 10);
	end(&p);
}

/* Frames 0 and 1 are dark, and of those that follow every third. */
static void test_dark_frames_lie_in_the_file_or_in_their_own(void **state)
{
	struct sl_detector_options run = {
		.modules = 1, .frames = 8, .dark_frames = 2, .dark_every = 3};
	struct sl_darks darks = sl_detector_darks(&run);
	const char *own[] = {"darks", dark, NULL};
	struct player p;
	int next = 0;

	assert_int_equal(play(&p, bright, &run, NULL), 0);
	for (uint64_t k = 0; k < 10; k++)
		assert_int_equal(shown(&p, k, sl_darks_has(&darks, k) ? SL_RECORD_DARK : 0), k);
	end(&p);
	assert_int_equal(play(&p, bright, &run, own), 0);
	assert_int_equal(ops->prepare(p.state), 0);
	for (uint64_t k = 0; k < 10; k++)
		if (sl_darks_has(&darks, k))
			assert_int_equal(shown(&p, k, SL_RECORD_DARK), 100 + k % 10);
		else
			assert_int_equal(shown(&p, k, 0), next++);
	assert_int_equal(next, 6);
	end(&p);
}

static void test_memory_scratch_and_file_give_the_same(void **state)
{
	struct sl_detector_options run = {.modules = 2, .frames = 9};
	const char *const ways[][5] = {{"cache", "1", NULL},
				       {"cache", "0", "scratch", scratch, NULL}};
	const char *const files[] = {bright, h5};
	struct player p, q;

	for (int file = 0; file < 2; file++) {
		assert_int_equal(play(&q, files[file], &run, NULL), 0);
		for (int way = 0; way < 2; way++) {
			assert_int_equal(play(&p, files[file], &run, ways[way]), 0);
			assert_int_equal(p.geometry.rows, ROWS / 2);
			assert_int_equal(ops->prepare(p.state), 0);
			for (uint64_t k = 0; k < 9; k++) {
				assert_int_equal(shown(&p, 8 - k, 0), 8 - k);
				assert_int_equal(shown(&q, k, 0), k);
			}
			end(&p);
		}
		end(&q);
	}
}

static void test_modules_must_fit(void **state)
{
	struct sl_detector_options run = {.modules = 3, .frames = 9};
	struct player p;

	assert_int_equal(play(&p, h5, &run, NULL), -EINVAL); /* has an axis of 2 */
	end(&p);
	assert_int_equal(play(&p, bright, &run, NULL), 0);
	assert_int_equal(shown(&p, 5, 0), 5);
	assert_int_equal(ops->render(p.state, 0, 3, 0, p.buffer, NULL), -EINVAL);
	end(&p);
	run.modules = 4;
	assert_int_equal(play(&p, bright, &run, NULL), -EINVAL);
	end(&p);
}

static void test_what_cannot_be_played_is_refused(void **state)
{
	struct sl_detector_options run = {.modules = 1, .frames = 2};
	const char *columns[] = {"columns", "9", NULL}, *rows[] = {"rows", "7", NULL};
	const char *other[] = {"darks", h5, NULL}, *set_hdf5[] = {"format", "hdf5", NULL};
	struct player p;

	assert_int_equal(play(&p, "", &run, NULL), -EINVAL);
	end(&p);
	assert_int_equal(play(&p, bright, &run, columns), -EINVAL);
	end(&p);
	assert_int_equal(play(&p, h5, &run, rows), -EINVAL);
	end(&p);
	assert_int_equal(play(&p, bright, &run, other), -EINVAL);
	end(&p);
	assert_true(play(&p, bright, &run, set_hdf5) < 0);
	end(&p);
}

/* In memory a file may do what it likes; where it is read as it goes, it is refused. */
static void test_a_file_that_shrinks(void **state)
{
	struct sl_detector_options run = {.modules = 1, .frames = 10};
	const char *none[] = {"cache", "0", NULL};
	struct player memory, direct;

	assert_int_equal(play(&memory, bright, &run, NULL), 0);
	assert_int_equal(ops->prepare(memory.state), 0);
	assert_int_equal(play(&direct, bright, &run, none), 0);
	assert_int_equal(ops->prepare(direct.state), 0);
	assert_int_equal(shown(&direct, 9, 0), 9);
	assert_int_equal(truncate(bright, 5 * PIXELS * 2), 0);
	assert_int_equal(shown(&memory, 9, 0), 9);
	assert_int_equal(shown(&direct, 9, 0), -ESTALE);
	assert_int_equal(shown(&direct, 1, 0), -ESTALE);
	end(&memory);
	end(&direct);
}

static void test_no_room_to_unpack_is_said(void **state)
{
	struct sl_detector_options run = {.modules = 2, .frames = 10};
	const char *nowhere[] = {"cache", "0", "scratch", "/nothing/there", NULL};
	struct player p;

	assert_int_equal(play(&p, h5, &run, nowhere), 0);
	assert_int_equal(ops->prepare(p.state), -ENOENT);
	end(&p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_once_from_any_image_on),
		CASE(test_more_frames_than_images_need_a_loop),
		CASE(test_dark_frames_lie_in_the_file_or_in_their_own),
		CASE(test_memory_scratch_and_file_give_the_same),
		CASE(test_modules_must_fit),
		CASE(test_what_cannot_be_played_is_refused),
		CASE(test_a_file_that_shrinks),
		CASE(test_no_room_to_unpack_is_said),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
