/* stored_fuzz.c - any bytes as what the sink `raw` stores: an environment, a frame, an end. What is
 * accepted is written again, and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sink/raw/stored_end.h"
#include "sink/raw/stored_frame.h"
#include "sink/raw/stored_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A run whose frames are read: small, with a ragged result, a number and an image. */
static struct sl_shape shape[] = {
	{.name = "image", .dtype = SL_I16, .rank = 2, .dim = {8, 4}, .image = 1},
	{.name = "peaks", .dtype = SL_F32, .rank = 2, .dim = {10, 3}, .ragged = 1},
	{.name = "sum", .dtype = SL_F64},
};
static const struct sl_geometry geometry = {
	.modules = 2, .rows = 4, .columns = 4, .dtype = SL_U16, .module_bytes = 32};
static const struct sl_env env = {.geometry = &geometry, .result = shape, .results = 3};
static const struct sl_stored_choice choice = {.image = 0, .all = true};

static void touch(const struct sl_array *array, uint64_t bytes)
{
	volatile uint8_t sum = 0;

	for (uint64_t i = 0; array->host && i < bytes; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)array->host)[i]);
}

static void read_frame(const uint8_t *data, size_t bytes)
{
	uint64_t most = sl_stored_frame_most(&env, &choice);
	void *copy = aligned_alloc(64, (bytes + 127) / 64 * 64);
	struct sl_frame_room room;

	if (bytes)
		memcpy(copy, data, bytes);
	if (!sl_frame_room_open(&room, &env) && bytes <= most &&
	    !sl_stored_frame_read(&env, &choice, copy, bytes, &room)) {
		for (uint32_t i = 0; i < room.frame.results; i++) {
			const struct sl_array *a = &room.frame.result[i];

			touch(a, i == 1 ? a->rows * 12ull : sl_shape_bytes(&a->shape));
		}
		for (uint32_t i = 0; i < room.frame.views; i++)
			if (room.frame.view[i].module >= geometry.modules)
				abort();
	}
	sl_frame_room_close(&room);
	free(copy);
}

static void read_run(const uint8_t *data, size_t bytes)
{
	struct sl_bytes again = {.used = 0};
	struct sl_stored_run run, second;

	if (sl_stored_run_read(data, bytes, &run))
		return;
	if (sl_stored_run_write(&run.env, &run.choice, &again) ||
	    sl_stored_run_read(again.data, again.used, &second))
		abort(); /* what was accepted must be writable and readable */
	sl_stored_run_free(&second);
	sl_stored_run_free(&run);
	sl_bytes_free(&again);
}

static void read_end(const uint8_t *data, size_t bytes)
{
	static struct sl_status status;
	struct sl_stored_run run = {.geometry = {.modules = 2}};

	if (!sl_stored_end_read(data, bytes, &run, &status) && status.modules != 2)
		abort();
	sl_stored_run_free(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!bytes)
		return 0;
	switch (data[0] % 3) {
	case 0:
		read_run(data + 1, bytes - 1);
		break;
	case 1:
		read_frame(data + 1, bytes - 1);
		break;
	default:
		read_end(data + 1, bytes - 1);
		break;
	}
	return 0;
}
