/* cells_test.c - kernel tracks_cells_forever beside a program that looks at one cell after another:
 * maps of every kind and size, results of every length, several groups, sectors with holes, events
 * that are lapped or too long. On OpenCL, which PoCL emulates, and on CUDA, where there are such
 * devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/events.h>

#include "core/device.h"
#include "gpu/dialect/kernels.h"
#include "gpu/ring/tagged.h"
#include "gpu/table.h"
#include "stage/tracks/kernel.h"
#include "stage/tracks/stage.h"

enum {
	EVENTS = 32,
	BYTES = SL_STUBS * SL_STUB_BYTES,
	THREADS = 672, /* what the kernel is made for */
	CELL = 3,      /* bytes */
	CELLS = 64 * 64,
	RANDOM_MAPS = 40,
};

static const struct sl_platform *const platforms[] = {&sl_platform_opencl, &sl_platform_cuda};

/* Some of what PoCL allocates is left when all is closed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\n";
}

static uint64_t state;

static uint32_t number_below(uint32_t most)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % most;
}

/* ---- what is asked for ---- */

struct map {
	uint32_t cells, columns, rows, min_layers, bend, chunks, groups;
};

struct events {
	uint8_t stubs[EVENTS][BYTES];
	uint32_t outcome[EVENTS];
	char *data; /* tagged buffers */
	uint32_t enable[EVENTS];
};

/* Some sectors are full, some end early, some have stubs behind one that is none; some have phi all
 * over the place, others near the middle, where more of them meet. */
static void make_stubs(uint8_t *stubs, uint32_t e)
{
	uint32_t after = number_below(3) ? SL_STUBS : number_below(SL_STUBS + 1), k;
	int middle = number_below(3) > 0;

	for (uint32_t s = 0; s < SL_STUBS; s++) {
		uint64_t stub = (uint64_t)number_below(1u << 31) << 24 ^ number_below(1u << 31);

		if (middle) {
			uint64_t phi = (number_below(4096) - 2048u) & 0x3fff;

			stub = (stub & 0x3ffffffff) | phi << 34;
		}
		stub = (stub & ~1ull) | (s < after || (e % 4 == 1 && number_below(2)));
		for (k = 0; k < SL_STUB_BYTES; k++)
			stubs[s * SL_STUB_BYTES + k] = (uint8_t)(stub >> 8 * k);
	}
}

static void make_events(struct events *events)
{
	uint32_t bytes = sl_tagged_buffer_bytes(BYTES);

	events->data = aligned_alloc(SL_TAGGED_LINE, (size_t)EVENTS * bytes);
	assert_non_null(events->data);
	for (uint32_t e = 0; e < EVENTS; e++) {
		char *at = events->data + (size_t)e * bytes;
		uint32_t turn = e + 1;

		make_stubs(events->stubs[e], e);
		sl_tagged_put(at, bytes, events->stubs[e], BYTES, turn, false);
		events->outcome[e] = SL_DEVICE_RING_GOOD;
		if (e % 9 == 5) {
			events->outcome[e] = SL_DEVICE_RING_WRONG;
			sl_tagged_words(at, BYTES + 1, 0, 0, turn);
		}
		if (e % 11 == 7) { /* a chunk of a later event */
			uint32_t later = turn + EVENTS;

			events->outcome[e] = SL_DEVICE_RING_LAPPED;
			memcpy(at + number_below(BYTES / 12 + 1) * 16 + 12, &later, sizeof(later));
		}
		events->enable[e] = turn;
	}
}

/* ---- what must come of it ---- */

/* Bits of the layers that a cell has, one cell after another. */
static void fill(const struct sl_tracks_plan *p, const uint8_t *stubs, uint8_t layers[64][64])
{
	int32_t rows = (int32_t)p->set.rows;
	struct sl_stub stub;

	for (uint32_t s = 0; s < SL_STUBS && sl_stub_unpack(stubs + s * SL_STUB_BYTES, &stub);
	     s++) {
		uint32_t bend = (uint32_t)stub.bend & 15, step = stub.r * SL_TRACKS_BEND_R / 4096;
		int32_t r = (int32_t)stub.r, steep = r * p->reach - p->reach_at;
		int32_t reach = sl_tracks_reach(p->set.cells, steep < 0 ? -steep : steep);
		uint32_t first = p->first[bend][step], last = first + p->after[bend][step];

		for (uint32_t c = first; stub.layer && c <= last; c++) {
			int32_t line = sl_tracks_line(stub.phi * p->turn, r, p->slope[c]), low,
				high;

			if (p->set.cells == SL_TRACKS_ONE_HEXAGON)
				low = high = sl_tracks_one_hexagon(line + p->offset[c],
								   line + p->side[c] - reach,
								   line + p->side[c] + reach);
			else {
				low = sl_tracks_row(line + p->offset[c] - reach) +
				      (p->set.cells == SL_TRACKS_HEXAGONS);
				high = sl_tracks_row(line + p->offset[c] + reach);
			}
			for (int32_t y = low > 0 ? low : 0; y <= high && y < rows; y++)
				layers[c][y] |= (uint8_t)(1u << stub.layer);
		}
	}
}

static uint32_t list(const struct sl_tracks_plan *p, const uint8_t *stubs, uint8_t (*cell)[CELL])
{
	uint8_t layers[64][64] = {{0}};
	uint32_t n = 0;

	fill(p, stubs, layers);
	for (uint32_t most = 7; most >= p->set.min_layers; most--)
		for (uint32_t c = 0; c < p->set.columns; c++)
			for (uint32_t y = 0; y < p->set.rows; y++)
				if ((uint32_t)__builtin_popcount(layers[c][y]) == most) {
					cell[n][0] = (uint8_t)c;
					cell[n][1] = (uint8_t)y;
					cell[n++][2] = layers[c][y];
				}
	return n;
}

/* ---- what came ---- */

struct answers {
	uint32_t completion[EVENTS][4];
	uint32_t (*result)[4]; /* [EVENTS * chunks] */
};

/* What the kernel is given, in the order of its arguments; and what it is worked out from. */
struct on_device {
	struct sl_device_queue *queue;
	struct sl_device_memory data, result, completion, enable, stop, plan, track;
	struct sl_kernel_tracks rules;
	struct sl_kernel_tracks_plan table;
	uint32_t buffers, buffer_bytes, slot_bytes, backoff_ns;
};

static void put(struct sl_device *device, struct on_device *d, const void *from, uint64_t bytes,
		struct sl_device_memory *to)
{
	assert_int_equal(sl_device_table(device, d->queue, from, bytes, to), 0);
}

static void zeros(struct sl_device *device, struct on_device *d, uint64_t bytes,
		  struct sl_device_memory *to)
{
	assert_int_equal(device->platform->memory_open(device, bytes, to), 0);
	assert_int_equal(device->platform->zero(d->queue, to, 0, bytes), 0);
}

static void open_all(struct sl_device *device, struct on_device *d, const struct map *map,
		     const struct sl_tracks_plan *p, const struct events *events)
{
	static const uint32_t stop[4] = {1};
	struct sl_tracks *stage = calloc(1, sizeof(*stage));

	assert_non_null(stage);
	stage->events = stage->sectors = stage->modules = 1;
	stage->plan = *p;
	sl_tracks_for_kernels(stage, &d->rules, &d->table);
	free(stage);
	d->buffers = EVENTS;
	d->buffer_bytes = sl_tagged_buffer_bytes(BYTES);
	d->slot_bytes = map->chunks * 16;
	assert_int_equal(device->platform->queue_open(device, &d->queue), 0);
	put(device, d, events->data, (uint64_t)EVENTS * d->buffer_bytes, &d->data);
	put(device, d, events->enable, sizeof(events->enable), &d->enable);
	put(device, d, stop, sizeof(stop), &d->stop);
	put(device, d, &d->table, sizeof(d->table), &d->plan);
	zeros(device, d, (uint64_t)EVENTS * d->slot_bytes, &d->result);
	zeros(device, d, sizeof(((struct answers *)0)->completion), &d->completion);
	zeros(device, d, sizeof(struct sl_kernel_track), &d->track);
}

static void close_all(struct sl_device *device, struct on_device *d)
{
	struct sl_device_memory *const all[] = {&d->data, &d->result, &d->completion, &d->enable,
						&d->stop, &d->plan,   &d->track};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		device->platform->memory_close(device, all[i]);
	device->platform->queue_close(d->queue);
}

static int launch(struct sl_device *device, const struct map *map, struct on_device *d,
		  struct sl_device_kernel *kernel)
{
	const struct sl_device_range range = {{map->groups}, THREADS};
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(&d->data),   SL_ARG_MEMORY(&d->data),
		SL_ARG_MEMORY(&d->result), SL_ARG_MEMORY(&d->completion),
		SL_ARG_MEMORY(&d->enable), SL_ARG_MEMORY(&d->stop),
		SL_ARG(d->buffers),	   SL_ARG(d->buffer_bytes),
		SL_ARG(d->slot_bytes),	   SL_ARG(d->backoff_ns),
		SL_ARG(d->rules),	   SL_ARG_MEMORY(&d->plan),
		SL_ARG_MEMORY(&d->track)};

	return device->platform->launch(d->queue, kernel, &range, argument,
					sizeof(argument) / sizeof(argument[0]));
}

/* The kernel is told to stop before it begins: it does what is there, and ends. */
static void run(struct sl_device *device, const struct map *map, const struct sl_tracks_plan *p,
		const struct events *events, struct answers *answers)
{
	static const char *const name = "tracks_cells_forever";
	const struct sl_platform *platform = device->platform;
	struct on_device *d = calloc(1, sizeof(*d));
	struct sl_device_program *program;
	struct sl_device_kernel *kernel;

	assert_non_null(d);
	open_all(device, d, map, p, events);
	assert_int_equal(
		sl_device_kernels(device, &sl_kernels_tracks_ring, &name, 1, &program, &kernel), 0);
	assert_int_equal(launch(device, map, d, kernel), 0);
	assert_int_equal(platform->read(d->queue, answers->completion, &d->completion, 0,
					sizeof(answers->completion)),
			 0);
	assert_int_equal(platform->read(d->queue, answers->result, &d->result, 0,
					(uint64_t)EVENTS * d->slot_bytes),
			 0);
	assert_int_equal(sl_device_finish(device, d->queue), 0);
	sl_device_kernels_close(device, program, &kernel, 1);
	close_all(device, d);
	free(d);
}

static bool is_right(const struct map *map, const struct sl_tracks_plan *p,
		     const struct events *events, const struct answers *answers, uint32_t e)
{
	static uint8_t cell[CELLS][CELL];
	bool good = events->outcome[e] == SL_DEVICE_RING_GOOD;
	uint32_t cells = good ? list(p, events->stubs[e], cell) : 0, most = 4 * map->chunks, i;
	const uint32_t *completion = answers->completion[e];

	most = most < 4 * BYTES / 12 ? most : 4 * BYTES / 12;
	most = cells < most ? cells : most;
	if (completion[0] != (events->outcome[e] | (cells ? SL_DEVICE_RING_KEEP : 0)) ||
	    completion[1] != CELL * most || completion[2] != cells || completion[3] != e + 1)
		return false;
	for (i = 0; i < map->chunks; i++) {
		const uint32_t *chunk = answers->result[(size_t)e * map->chunks + i];
		uint32_t here = 4 * i < most ? (most - 4 * i < 4 ? most - 4 * i : 4) : 0;

		if (chunk[3] != (here ? e + 1 : 0) ||
		    (here && memcmp(chunk, cell[4 * i], here * CELL) != 0))
			return false;
	}
	return true;
}

static void check_map(struct sl_device *device, const struct map *map)
{
	const struct sl_tracks_settings set = {.min_pt_GeV = 3,
					       .columns = map->columns,
					       .rows = map->rows,
					       .min_layers = map->min_layers,
					       .cells = map->cells,
					       .bend = map->bend,
					       .common = 3,
					       .sector_tracks = 32};
	struct sl_tracks_plan *plan = calloc(1, sizeof(*plan));
	struct events *events = calloc(1, sizeof(*events));
	struct answers answers = {.result = calloc((size_t)EVENTS * map->chunks, 16)};

	assert_non_null(plan);
	assert_non_null(events);
	assert_non_null(answers.result);
	sl_tracks_plan(plan, &set);
	make_events(events);
	run(device, map, plan, events, &answers);
	for (uint32_t e = 0; e < EVENTS; e++)
		if (!is_right(map, plan, events, &answers, e))
			fail_msg("%s, kind %u, %u x %u, %u layers, bend %u, %u chunks, %u groups: "
				 "event %u: outcome %#x, %u bytes, %u cells, turn %u",
				 device->platform->name, map->cells, map->columns, map->rows,
				 map->min_layers, map->bend, map->chunks, map->groups, e,
				 answers.completion[e][0], answers.completion[e][1],
				 answers.completion[e][2], answers.completion[e][3]);
	free(events->data);
	free(events);
	free(answers.result);
	free(plan);
}

/* ---- tests ---- */

static struct sl_device *open_device(const struct sl_platform *platform)
{
	struct sl_device *device;

	return platform->unavailable() || platform->open(0, &device) ? NULL : device;
}

static void on_all(void (*test)(struct sl_device *device))
{
	bool any = false;

	for (unsigned i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
		struct sl_device *device = open_device(platforms[i]);

		if (!device)
			continue;
		any = true;
		state = 1;
		test(device);
		platforms[i]->close(device);
	}
	if (!any) {
		print_message("# skip: neither OpenCL nor CUDA is here\n");
		skip();
	}
}

static void chosen(struct sl_device *device)
{
	static const struct map maps[] = {
		{
			SL_TRACKS_RECTANGLES,
			32,
			32,
			5,
			0,
			16,
			1,
		},
		{SL_TRACKS_RECTANGLES, 32, 32, 1, 0, 80, 1},
		{SL_TRACKS_HEXAGONS, 32, 32, 5, 3, 16, 1},
		{SL_TRACKS_HEXAGONS, 31, 5, 1, 3, 80, 2},
		{SL_TRACKS_RECTANGLES, 1, 1, 1, 0, 1, 1},
		{SL_TRACKS_RECTANGLES, 33, 32, 5, 0, 16, 1},
		{SL_TRACKS_RECTANGLES, 32, 33, 2, 3, 100, 3},
		{SL_TRACKS_RECTANGLES, 64, 64, 1, 0, 100, 1},
		{SL_TRACKS_HEXAGONS, 64, 64, 1, 3, 80, 1},
		{SL_TRACKS_ONE_HEXAGON, 64, 64, 3, 0, 80, 1},
		{SL_TRACKS_ONE_HEXAGON, 32, 32, 4, 0, 16, 1},
		{SL_TRACKS_HEXAGONS, 8, 64, 7, 0, 3, 1},
	};

	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		check_map(device, &maps[i]);
}

static void any(struct sl_device *device)
{
	static const uint32_t chunks[] = {1, 3, 16, 79, 80, 81};

	for (unsigned i = 0; i < RANDOM_MAPS; i++) {
		struct map map = {.cells = number_below(3),
				  .columns = 2 + number_below(number_below(2) ? 63 : 31),
				  .rows = 1 + number_below(number_below(2) ? 64 : 32),
				  .min_layers = 1 + number_below(7),
				  .bend = number_below(2) * number_below(5),
				  .chunks = chunks[number_below(6)],
				  .groups = 1 + number_below(3)};

		check_map(device, &map);
	}
}

static void cells_of_chosen_maps_are_those_of_a_program_that_looks_at_each(void **arg)
{
	(void)arg;
	on_all(chosen);
}

static void cells_of_any_map_are_too(void **arg)
{
	(void)arg;
	on_all(any);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_of_chosen_maps_are_those_of_a_program_that_looks_at_each),
		cmocka_unit_test(cells_of_any_map_are_too),
	};

	return cmocka_run_group_tests_name("tracks_cells", tests, NULL, NULL);
}
