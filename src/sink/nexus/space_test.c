/* space_test.c - a disk or a size limit that ends before the run does: what was accepted
 * is in the file, and the file ends well. */
#include "hdf5/file.h"
#include "hdf5/testing.h"
#include "sink/testing.h"

extern const struct sl_sink sl_sink_nexus;

enum { BIG_ROWS = 128, BIG_COLUMNS = 256, BIG_PIXELS = MODULES * BIG_ROWS * BIG_COLUMNS };

static char scratch[200];
static int16_t pixels[BIG_PIXELS];

/* What a run left behind. */
struct tale {
	int opened, closed, refusal;
	uint64_t accepted, given, refused;
};

static void fill(uint64_t sequence)
{
	for (uint32_t i = 0; i < BIG_PIXELS; i++)
		pixels[i] = (int16_t)(sequence * 7919 + i * 3);
}

static int feed(struct bench *bench, uint64_t sequence, enum kind kind)
{
	struct sl_frame *frame = bench_frame(bench, sequence, kind);
	int said;

	fill(sequence);
	frame->result[1].host = pixels;
	said = sl_sink_nexus.put(bench->state, frame);
	bench_settle(bench, sequence, kind, said);
	return said;
}

/* Every third frame is kept; goes on for a while after the first refusal. */
static void run(const char *path, uint64_t most, struct tale *tale)
{
	struct bench bench;
	uint64_t k, after = 0;

	*tale = (struct tale){0};
	bench_init(&bench, &sl_sink_nexus);
	bench.shape[1] = (struct sl_shape){"image", SL_I16, 2, {MODULES * BIG_ROWS, BIG_COLUMNS}};
	bench_set(&bench, "path", path);
	bench_set(&bench, "overwrite", "true");
	tale->opened = bench_open(&bench);
	for (k = 0; k < most && after < 100 && !tale->opened; k++) {
		int said = feed(&bench, k, k % 3 ? VETOED : KEPT);

		if (!said && !tale->refusal)
			tale->accepted = k + 1;
		if (said && !tale->refusal)
			tale->refusal = said;
		after += said != 0;
		if (!said && tale->refusal)
			tale->refusal = 1; /* it must go on refusing */
	}
	tale->given = k;
	tale->refused = bench_figure(&bench, "frames_refused");
	tale->closed = bench_close(&bench);
	bench_fini(&bench);
}

/* The line of the first thing that is wrong, or 0. */
static int check_images(struct sl_h5 *file, uint64_t images)
{
	static int16_t read[BIG_PIXELS];
	struct sl_h5_shape shape;

	if (sl_h5_describe(file, "/entry/data/data", &shape) || shape.dim[0] != images)
		return __LINE__;
	for (uint64_t n = 0; n < images; n++) {
		uint64_t k;

		if (sl_h5_read_row(file, "/entry/data/sequence", n, SL_H5_U64, &k, 8) || k != 3 * n)
			return __LINE__;
		if (sl_h5_read_row(file, "/entry/data/data", n, SL_H5_I16, read, sizeof(read)))
			return __LINE__;
		fill(k);
		if (memcmp(read, pixels, sizeof(read)))
			return __LINE__;
	}
	return 0;
}

static int check_tables(struct sl_h5 *file, const struct tale *tale)
{
	uint64_t outcomes[MODULES][SL_OUTCOMES], images = (tale->accepted + 2) / 3, refused;
	struct sl_h5_shape shape;
	uint8_t closed;

	if (sl_h5_describe(file, "/entry/sluice/frames/outcome", &shape) ||
	    shape.dim[0] != tale->accepted)
		return __LINE__;
	if (sl_h5_describe(file, "/entry/results/raw", &shape) || shape.dim[0] != tale->accepted)
		return __LINE__; /* of rejected frames, too */
	if (sl_h5_read(file, "/entry/sluice/ledger/outcomes", SL_H5_U64, outcomes,
		       sizeof(outcomes)))
		return __LINE__;
	if (outcomes[0][SL_STORED] != images ||
	    outcomes[1][SL_UNWRITTEN] != (tale->given + 2) / 3 - images)
		return __LINE__;
	if (sl_h5_read(file, "/entry/sluice/ledger/closed", SL_H5_U8, &closed, 1) || !closed)
		return __LINE__;
	if (sl_h5_read(file, "/entry/sluice/frames_refused", SL_H5_U64, &refused, 8) ||
	    refused != tale->refused)
		return __LINE__;
	return 0;
}

static int check(const char *path, const struct tale *tale, int refusal)
{
	struct sl_h5 *file;
	int wrong;

	if (tale->opened || tale->closed || tale->refusal != refusal)
		return __LINE__;
	if (tale->refused != tale->given - tale->accepted || tale->refused != 100)
		return __LINE__;
	if (sl_h5_open(path, &file))
		return __LINE__;
	wrong = check_images(file, (tale->accepted + 2) / 3);
	if (!wrong)
		wrong = check_tables(file, tale);
	sl_h5_close(file);
	return wrong;
}

static void a_size_limit_costs_only_what_comes_after(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/limited.nxs", scratch);
	for (uint64_t limit = 4 << 20; limit < 24 << 20; limit += 1777777) {
		struct tale tale;

		limit_file_size(limit);
		run(path, 100000, &tale);
		limit_file_size(0);
		assert_int_equal(check(path, &tale, -EFBIG), 0);
	}
}

static void a_limit_too_small_for_the_headers_is_an_error_at_open(void **state)
{
	struct tale tale;
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/tiny.nxs", scratch);
	limit_file_size(100000);
	run(path, 10, &tale);
	limit_file_size(0);
	assert_int_equal(tale.opened, -EFBIG);
	assert_int_equal(tale.closed, 0);
	assert_int_equal(access(path, F_OK), -1);
}

/* On a small tmpfs that gets a little fuller from round to round. */
static int tmpfs_check(const char *folder)
{
	int wrong = 0;

	for (unsigned round = 0; round < 10 && !wrong; round++) {
		char path[512];
		struct tale tale;
		int fd;

		snprintf(path, sizeof(path), "%s/full.nxs", folder);
		run(path, 100000, &tale);
		wrong = check(path, &tale, -ENOSPC);
		unlink(path);
		snprintf(path, sizeof(path), "%s/full_data_000001.h5", folder);
		unlink(path);
		snprintf(path, sizeof(path), "%s/ballast%u", folder, round);
		fd = open(path, O_CREAT | O_WRONLY, 0666);
		if (fd < 0 || fallocate(fd, 0, 0, 20480 * (off_t)(round + 1)))
			wrong = wrong ? wrong : __LINE__;
		close(fd);
	}
	if (wrong)
		fprintf(stderr, "nexus/space_test.c:%d: wrong\n", wrong);
	return wrong;
}

static void a_full_disk_costs_only_what_comes_after(void **state)
{
	int status;

	(void)state;
	status = run_on_tmpfs(scratch, "16m");
	if (status == TESTING_NOT_ALLOWED) {
		print_message("# skipped: no mount namespace with a tmpfs is allowed here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	scratch_make(scratch, sizeof(scratch));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scratch_remove(scratch);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_limit_costs_only_what_comes_after),
		cmocka_unit_test(a_limit_too_small_for_the_headers_is_an_error_at_open),
		cmocka_unit_test(a_full_disk_costs_only_what_comes_after),
	};

	tmpfs_child(argc, argv, tmpfs_check);
	return cmocka_run_group_tests(tests, setup, teardown);
}
