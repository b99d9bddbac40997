/* pump_test.c - frames of a recording reach a sink once each, in order, prepared on several
 * threads; errors of the sink, of the caller and of the recording end it. */
#include "sink/testing.h"

#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

#include "convert/pump.h"

extern const struct sl_sink sl_sink_raw;

enum { FRAMES = 200, WORKERS = 4 };

struct rig {
	char folder[32], path[64];
	struct sl_recorded recorded;
};

static enum kind kind_of(uint64_t sequence)
{
	return sequence < 5 ? DARK : (enum kind)(sequence % KINDS);
}

static void record(struct rig *rig, const char *frames)
{
	struct bench bench;

	strcpy(rig->folder, "/tmp/pump.XXXXXX");
	assert_non_null(mkdtemp(rig->folder));
	snprintf(rig->path, sizeof(rig->path), "%s/run.raw", rig->folder);
	bench_init(&bench, &sl_sink_raw);
	bench.shape[0].image = bench.shape[1].image = 1;
	bench_set(&bench, "path", rig->path);
	bench_set(&bench, "frames", frames);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < FRAMES; k++)
		assert_int_equal(bench_feed(&bench, k, kind_of(k)), 0);
	assert_int_equal(bench_close(&bench), 0);
	assert_int_equal(bench_figure(&bench, "rows_durable"), FRAMES);
	bench_fini(&bench);
	assert_int_equal(sl_recorded_open(rig->path, &rig->recorded), 0);
	assert_int_equal(rig->recorded.facts.chunks, FRAMES);
	assert_true(rig->recorded.ended);
}

static void forget(struct rig *rig)
{
	DIR *folder = opendir(rig->folder);
	struct dirent *entry;

	sl_recorded_close(&rig->recorded);
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(folder), entry->d_name, 0);
	closedir(folder);
	rmdir(rig->folder);
}

/* ---- a sink that remembers ---- */

struct memory {
	unsigned workers;
	uint64_t slot[2 * SL_SINK_WORKERS +
		      1]; /* sequence + 1 of the frame that is prepared there */
	_Atomic uint64_t prepared;
	uint64_t put, images, fails_at;
};

static unsigned workers_of(const void *state)
{
	return ((const struct memory *)state)->workers;
}

static void prepare(void *state, unsigned slot, struct sl_frame *frame)
{
	struct memory *m = state;

	m->slot[slot] = frame->sequence + 1;
	atomic_fetch_add(&m->prepared, 1);
}

static int put(void *state, struct sl_frame *frame)
{
	struct memory *m = state;
	const struct sl_array *image = sl_frame_result(frame, "image");

	if (m->put == m->fails_at)
		return -ENOSPC;
	assert_int_equal(frame->sequence, m->put++);
	if (image && image->host) {
		for (uint32_t i = 0; i < PIXELS; i++)
			assert_int_equal(((const int16_t *)image->host)[i],
					 image_pixel(frame->sequence, i));
		m->images++;
	}
	return 0;
}

static int put_prepared(void *state, unsigned slot, struct sl_frame *frame)
{
	struct memory *m = state;

	if (m->slot[slot]) /* those before `prepared` are not */
		assert_int_equal(m->slot[slot], frame->sequence + 1);
	m->slot[slot] = 0;
	return put(state, frame);
}

static const struct sl_sink remembering = {
	.name = "memory",
	.workers = workers_of,
	.prepare = prepare,
	.put = put,
	.put_prepared = put_prepared,
};

static int count(void *arg, uint64_t i, const struct sl_frame *frame)
{
	uint64_t *n = arg;

	assert_int_equal(i, frame->sequence);
	return ++*n == 150 ? -ECANCELED : 0;
}

static int pump(const struct rig *rig, struct memory *m, uint64_t end, uint64_t *after)
{
	const struct sl_pump pump = {.from = &rig->recorded,
				     .end = end,
				     .prepared = 10,
				     .sink = &remembering,
				     .state = m,
				     .after = count,
				     .arg = after};

	return sl_pump_run(&pump);
}

/* Kinds of five frames in a row: kept, vetoed, dark, damaged, lost; the first five are dark. */
static void frames_come_in_order(void **state)
{
	for (unsigned workers = 0; workers <= WORKERS; workers += WORKERS) {
		struct memory m = {.workers = workers, .fails_at = UINT64_MAX};
		uint64_t after = 0;
		struct rig rig;

		record(&rig, workers ? "kept" : "all");
		assert_int_equal(pump(&rig, &m, 100, &after), 0);
		assert_int_equal(m.put, 100);
		assert_int_equal(after, 100);
		assert_int_equal(m.prepared, workers ? 90 : 0);
		assert_int_equal(m.images, workers ? 19 : 38); /* kept; kept and vetoed */
		forget(&rig);
	}
}

static void errors_end_it(void **state)
{
	struct memory m = {.workers = WORKERS, .fails_at = 70};
	uint64_t after = 0;
	struct rig rig;

	record(&rig, "auto");
	assert_int_equal(pump(&rig, &m, FRAMES, &after), -ENOSPC);
	assert_int_equal(m.put, 70);
	m = (struct memory){.workers = WORKERS, .fails_at = UINT64_MAX};
	after = 0;
	assert_int_equal(pump(&rig, &m, FRAMES, &after), -ECANCELED);
	assert_int_equal(m.put, 150);
	forget(&rig);
}

/* One bit of a frame in the middle. */
static void damage_ends_it(void **state)
{
	struct memory m = {.workers = WORKERS, .fails_at = UINT64_MAX};
	const struct sl_raw_entry *entry;
	uint64_t after = 0;
	struct rig rig;
	uint8_t byte;
	FILE *data;

	record(&rig, "auto");
	entry = sl_raw_entry(rig.recorded.reader, 60);
	data = fopen(sl_raw_file(rig.recorded.reader, entry->file), "r+");
	assert_non_null(data);
	fseek(data, (long)(entry->offset + 200), SEEK_SET);
	assert_int_equal(fread(&byte, 1, 1, data), 1);
	byte ^= 1;
	fseek(data, -1, SEEK_CUR);
	assert_int_equal(fwrite(&byte, 1, 1, data), 1);
	fclose(data);
	assert_int_equal(pump(&rig, &m, FRAMES, &after), -EBADMSG);
	assert_int_equal(m.put, 60);
	forget(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_in_order),
		cmocka_unit_test(errors_end_it),
		cmocka_unit_test(damage_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
