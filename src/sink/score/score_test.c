/* score_test.c - rings and tracks that are known, some found and some not, and what the sink makes
 * of them. */
#include <math.h>

#include "lib/capture.h"
#include "sink/conformance.h"
#include "sink/score/score.h"

extern const struct sl_sink sl_sink_score;

/* ---- a detector whose truth the test says ---- */

enum { TRUTH_WIDE = 9, TRUTHS = 8 };
static double truth[TRUTHS][TRUTH_WIDE];
static uint32_t truths;
static uint8_t bytes[MODULES][SL_TRACKER_ROW_BYTES]; /* what it sends */

static uint32_t say_truth(void *state, uint64_t frame, uint32_t flags, double *table, uint32_t most)
{
	(void)state, (void)frame, (void)flags;
	for (uint32_t i = 0; i < truths && i < most; i++)
		memcpy(table + i * TRUTH_WIDE, truth[i], sizeof(truth[i]));
	return truths;
}

static int send_bytes(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		      const void **pixels)
{
	(void)state, (void)frame, (void)flags, (void)buffer;
	*pixels = bytes[module];
	return 0;
}

/* In another order than the kinds name them. */
static const struct sl_truth_column ring_columns[] = {
	{"event", ""}, {"x", "mm"},	 {"hits", ""}, {"y", "mm"}, {"radius", "mm"},
	{"more", ""},  {"momentum", ""}, {"a", ""},    {"b", ""},   {NULL, NULL}};
static const struct sl_truth_column track_columns[] = {
	{"event", ""},	{"pt", "GeV/c"}, {"phi0", "rad"}, {"eta", ""},	 {"z0", "cm"},
	{"charge", ""}, {"sector", ""},	 {"sectors", ""}, {"stubs", ""}, {NULL, NULL}};

static const struct sl_detector rings_detector = {.name = "rings here",
						  .truth_columns = ring_columns,
						  .truth_rows = say_truth,
						  .render = send_bytes};
static const struct sl_detector tracks_detector = {.name = "tracks here",
						   .truth_columns = track_columns,
						   .truth_rows = say_truth,
						   .render = send_bytes};
/* For the suite of all sinks, which has bytes of its own. */
static const struct sl_detector suite_detector = {.name = "suite",
						  .truth_columns = ring_columns,
						  .truth_rows = say_truth,
						  .render = tiny_render};

/* ---- a frame of events ---- */

enum { RING = 7, TRACK = 13, ROOM = 8 };

struct stage {
	struct bench bench;
	struct sl_shape shape[4];
	struct sl_constant constant;
	struct sl_rings_wanted rings;
	struct sl_tracks_wanted tracks;
	struct sl_verdict verdict[MODULES];
	float found[ROOM * TRACK];
	uint16_t stub[ROOM * 16];
	uint32_t count[MODULES * 8];
	uint8_t raw[MODULES][SL_TRACKER_ROW_BYTES];
	uint32_t rows, stubs;
};

/* Two modules with an event each. */
static void init_rings(struct stage *s)
{
	*s = (struct stage){.rows = 0};
	truths = 0;
	memset(bytes, 7, sizeof(bytes));
	memcpy(s->raw, bytes, sizeof(bytes));
	bench_init(&s->bench, &sl_sink_score);
	s->rings = (struct sl_rings_wanted){
		.max_rings = 4, .radius_max_mm = INFINITY, .distance_mm = INFINITY};
	s->constant = (struct sl_constant){
		{.name = "rings_wanted", .dtype = SL_F32, .rank = 1, .dim = {8}}, &s->rings};
	s->shape[0] = (struct sl_shape){
		.name = "raw", .dtype = SL_U8, .rank = 2, .dim = {MODULES, sizeof(bytes[0])}};
	s->shape[1] = (struct sl_shape){
		.name = "rings", .dtype = SL_F32, .rank = 2, .dim = {ROOM, RING}, .ragged = 1};
	s->shape[2] =
		(struct sl_shape){.name = "rings_found", .dtype = SL_U32, .rank = 1, .dim = {8}};
	s->bench.geometry.items = s->bench.geometry.rows = 1;
	s->bench.geometry.module_bytes = sizeof(bytes[0]);
	s->bench.env.detector = &rings_detector;
	s->bench.env.result = s->shape;
	s->bench.env.results = 3;
	s->bench.env.constant = &s->constant;
	s->bench.env.constants = 1;
}

/* One event of two sectors. */
static void init_tracks(struct stage *s)
{
	init_rings(s);
	s->tracks = (struct sl_tracks_wanted){.min_tracks = 1, .pt_GeV = 10};
	s->constant = (struct sl_constant){
		{.name = "tracks_wanted", .dtype = SL_F32, .rank = 1, .dim = {2}}, &s->tracks};
	s->shape[1] = (struct sl_shape){
		.name = "tracks", .dtype = SL_F32, .rank = 2, .dim = {ROOM, TRACK}, .ragged = 1};
	s->shape[2] = (struct sl_shape){
		.name = "tracks_found", .dtype = SL_U32, .rank = 2, .dim = {1, 8}};
	s->shape[3] = (struct sl_shape){.name = "tracks_stubs",
					.dtype = SL_U16,
					.rank = 1,
					.dim = {ROOM * 16},
					.ragged = 1};
	s->bench.env.results = 4;
	s->bench.geometry.items_shared = true;
	s->bench.env.detector = &tracks_detector;
	memset(bytes, 0, sizeof(bytes));
}

static void expect_ring(uint32_t event, double x, double y, double radius, double hits)
{
	const double row[TRUTH_WIDE] = {event, x, hits, y, radius};

	memcpy(truth[truths++], row, sizeof(row));
}

static void find_ring(struct stage *s, uint32_t event, double x, double y, double radius)
{
	float *row = s->found + (size_t)s->rows++ * RING;

	row[0] = (float)event;
	row[1] = (float)x;
	row[2] = (float)y;
	row[3] = (float)radius;
	s->count[0] = s->rows;
}

static void put(struct stage *s)
{
	struct sl_frame *frame = bench_frame(&s->bench, 0, KEPT);
	void *const host[] = {s->raw, s->found, s->count, s->stub};

	frame->items = s->bench.geometry.items_shared ? 1 : MODULES;
	frame->verdict = s->verdict;
	frame->results = s->bench.env.results;
	frame->missing = s->bench.frame.missing;
	for (uint32_t i = 0; i < frame->results; i++)
		frame->result[i] = (struct sl_array){.shape = s->shape[i], .host = host[i]};
	frame->result[1].rows = s->rows;
	frame->result[3].rows = s->stubs;
	assert_int_equal(s->bench.sink->put(s->bench.state, frame), 0);
}

static void expect(struct stage *s, const char *name, uint64_t value)
{
	uint64_t have = bench_figure(&s->bench, name);

	if (have != value)
		fail_msg("%s: %llu, expected %llu", name, (unsigned long long)have,
			 (unsigned long long)value);
}

static void end(struct stage *s)
{
	capture_begin();
	assert_int_equal(bench_close(&s->bench), 0);
	capture_end();
	bench_fini(&s->bench);
}

/* ---- rings ---- */

static void rings_are_paired_the_nearest_first(void **state)
{
	struct stage s;

	(void)state;
	init_rings(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	/* Of the first event one ring is exact, one too far in radius, one is not to be found. */
	expect_ring(0, 0, 0, 100, 12);
	expect_ring(0, 50, 0, 150, 9);
	expect_ring(0, -50, 10, 120, 6);
	find_ring(&s, 0, 0, 0, 100);
	find_ring(&s, 0, 50, 0, 170.5);
	find_ring(&s, 0, -50, 10, 121);
	/* In the second, the one found is near to both, but nearer to the second, which alone can
	 * be found; and something far off. */
	expect_ring(1, 0, 0, 150, 6);
	expect_ring(1, 10, 0, 150, 20);
	find_ring(&s, 1, 6, 0, 150);
	find_ring(&s, 1, 6, 26, 150);
	put(&s);
	expect(&s, "events", 2);
	expect(&s, "rings3_events", 1);
	expect(&s, "rings3_findable", 2);
	expect(&s, "rings3_found", 1);
	expect(&s, "rings3_fakes", 1);
	expect(&s, "rings3_counted", 1);
	expect(&s, "rings2_events", 1);
	expect(&s, "rings2_findable", 1);
	expect(&s, "rings2_found", 1);
	expect(&s, "rings2_fakes", 1);
	expect(&s, "rings2_counted", 1);
	expect(&s, "rings1_events", 0);
	expect(&s, "unlisted", 0);
	end(&s);
}

/* Each true ring has one partner: the second of the same is a fake. */
static void a_ring_is_found_once(void **state)
{
	struct stage s;
	const char *said;

	(void)state;
	init_rings(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	expect_ring(0, 0, 0, 150, 12);
	find_ring(&s, 0, 1, 0, 150);
	find_ring(&s, 0, 0, 0, 152);
	s.count[0] = 4; /* one more than there is room for, and one beyond three */
	s.count[5] = 1;
	put(&s);
	expect(&s, "rings1_found", 1);
	expect(&s, "rings1_fakes", 1);
	expect(&s, "rings1_counted", 0);
	expect(&s, "unlisted", 1);
	capture_begin();
	assert_int_equal(bench_close(&s.bench), 0);
	said = capture_end();
	assert_non_null(strstr(said, "1 events with 1 ring: found 100.0 % of 1 with 7 hits"));
	assert_non_null(strstr(said, "1.000 fakes an event, the right number in 0.0 %"));
	/* The second event, of which nothing is known, is an event without rings. */
	assert_non_null(strstr(said, "of 2 events that truth would keep"));
	assert_non_null(strstr(said, "had no room in the table"));
	bench_fini(&s.bench);
}

/* What is to be kept is the stage's own condition, of true rings. */
static void the_condition_is_applied_to_the_truth(void **state)
{
	static const struct {
		struct sl_rings_wanted wanted;
		double radius, hits;
		const char *figure; /* that counts this event, and not the other */
	} cases[] = {
		{{1, 1, 1, 140, 160, 0, 0, INFINITY}, 150, 9, "findable"},
		{{1, 1, 1, 140, 160, 0, 0, INFINITY}, 150, 6, "wanted"},
		{{1, 1, 1, 140, 160, 0, 0, INFINITY}, 139, 9, "others"},
		{{1, 1, 1, 140, 160, 0, 0, INFINITY}, 161, 9, "others"},
		{{1, 1, 1, 140, 160, 30, 40, 51}, 150, 9, "findable"},
		{{1, 1, 1, 140, 160, 30, 40, 49}, 150, 9, "others"},
		{{2, 4, 0, 0, INFINITY, 0, 0, INFINITY}, 150, 9, "others"},
		{{0, 0, 0, 0, INFINITY, 0, 0, INFINITY}, 150, 9, "others"},
		{{0, 1, 0, 0, INFINITY, 0, 0, INFINITY}, 150, 9, "findable"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct stage s;
		uint64_t before;

		init_rings(&s);
		s.bench.geometry.items_shared = true; /* one event */
		s.rings = cases[i].wanted;
		assert_int_equal(bench_open(&s.bench), 0);
		expect_ring(0, 0, 0, cases[i].radius, cases[i].hits);
		s.verdict[0].keep = 1;
		put(&s);
		s.verdict[0].keep = 0;
		put(&s);
		s.verdict[0].keep = 1; /* a sample of what is rejected */
		s.verdict[0].reason = SL_REASON_PRESCALED;
		put(&s);
		before = bench_figure(&s.bench, cases[i].figure);
		assert_int_equal(before, 3);
		if (!strcmp(cases[i].figure, "others")) {
			expect(&s, "wanted", 0);
			expect(&s, "others_rejected", 2);
		} else {
			expect(&s, "wanted", 3);
			expect(&s, "wanted_kept", 1);
			expect(&s, "findable", cases[i].hits >= 7 ? 3 : 0);
			expect(&s, "findable_kept", cases[i].hits >= 7);
		}
		end(&s);
	}
}

static void events_of_a_missing_module_are_left_out(void **state)
{
	struct stage s;
	struct sl_frame *frame;

	(void)state;
	init_rings(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	expect_ring(0, 0, 0, 150, 9);
	expect_ring(1, 0, 0, 150, 9);
	find_ring(&s, 0, 0, 0, 150);
	put(&s);
	expect(&s, "rings1_events", 2);
	expect(&s, "rings1_found", 1);
	memset(s.raw[1], 0xff, sizeof(s.raw[1]));
	frame = &s.bench.frame;
	frame->missing = 2;
	frame->flags = SL_FRAME_PARTIAL;
	assert_int_equal(s.bench.sink->put(s.bench.state, frame), 0);
	expect(&s, "events", 3);
	expect(&s, "rings1_found", 2);
	expect(&s, "rings1_findable", 3);
	expect(&s, "frames_without_truth", 0);
	end(&s);
}

/* ---- tracks ---- */

/* A stub of a track with that x = q/pT, from the beam at phi 0 in the middle of its sector. */
static void put_stub(struct stage *s, uint32_t sector, uint32_t index, uint32_t layer, double r_cm,
		     double x)
{
	struct sl_stub stub = {
		.phi = (int32_t)lrint(-asin(SL_TRACKER_K * r_cm * x) / SL_STUB_PHI_RAD),
		.r = (uint32_t)lrint(r_cm / SL_STUB_R_CM),
		.layer = layer};

	sl_stub_pack(&stub, bytes[sector] + index * SL_STUB_BYTES);
	memcpy(s->raw, bytes, sizeof(bytes));
}

static void expect_track(double pt, uint32_t sector, double sectors)
{
	const double row[TRUTH_WIDE] = {0,	 pt, sl_tracker_sector_phi(sector), 0, 0, 1, sector,
					sectors, 5};

	memcpy(truth[truths++], row, sizeof(row));
}

/* A candidate with the stubs first, first + 1, ... of a sector. */
static void find_track(struct stage *s, uint32_t sector, double x, uint32_t first, uint32_t stubs)
{
	float *row = s->found + (size_t)s->rows++ * TRACK;

	row[1] = (float)sector;
	row[2] = (float)x;
	row[4] = (float)(sl_tracker_sector_phi(sector) - asin(SL_TRACKER_K * SL_TRACKER_R_PHI * x));
	row[7] = (float)stubs;
	for (uint32_t i = 0; i < stubs; i++)
		s->stub[s->stubs++] = (uint16_t)(first + i);
}

/* Both sectors are of the first wedge, so phi is the same. */
static void make_tracks(struct stage *s)
{
	init_tracks(s);
	s->bench.geometry.rows = 1;
	for (uint32_t i = 0; i < 5; i++) {
		put_stub(s, 0, i, i + 1, 25. + 20 * i, 1 / 20.); /* a track of 20 GeV */
		put_stub(s, 0, 5 + i, i + 1, 25. + 20 * i, 1 / 4.);
		put_stub(s, 1, i, i + 1, 25. + 20 * i, 1 / 4.); /* one of 4, in both sectors */
	}
	expect_track(20, 0, 1);
	expect_track(4, 0, 2);
	expect_track(30, 1, 0); /* of which there are too few stubs */
}

static void tracks_are_known_by_their_stubs(void **state)
{
	struct stage s;
	const char *said;

	(void)state;
	make_tracks(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	find_track(&s, 0, 1 / 20., 0, 5);
	find_track(&s, 0, 1 / 4., 5, 5);
	find_track(&s, 0, 1 / 4., 4, 4); /* three of one track and one of another: none */
	find_track(&s, 1, 1 / 4., 0, 4); /* once more, in four layers */
	put(&s);
	expect(&s, "tracks_findable", 2);
	expect(&s, "tracks_found", 2);
	expect(&s, "tracks_fakes", 1);
	expect(&s, "tracks_duplicates", 1);
	expect(&s, "fast_findable", 1);
	expect(&s, "fast_found", 1);
	expect(&s, "fast_fakes", 0);
	expect(&s, "fast_duplicates", 0);
	expect(&s, "findable", 1);
	expect(&s, "findable_kept", 0);
	capture_begin();
	assert_int_equal(bench_close(&s.bench), 0);
	said = capture_end();
	assert_non_null(strstr(said, "tracks: found 100.0 % of 2"));
	assert_non_null(strstr(said, "1.000 fakes and 1.000 duplicates"));
	assert_non_null(strstr(said, "tracks of 10 GeV or more: found 100.0 % of 1"));
	assert_non_null(strstr(said, "kept 0.0 % of 1 events that truth would keep (0.0 % of 1"));
	bench_fini(&s.bench);
}

static void a_track_too_few_stubs_of_can_be_wanted_but_not_found(void **state)
{
	struct stage s;

	(void)state;
	make_tracks(&s);
	s.tracks.min_tracks = 2;
	assert_int_equal(bench_open(&s.bench), 0);
	s.verdict[0].keep = 1;
	put(&s);
	expect(&s, "wanted", 1);
	expect(&s, "wanted_kept", 1);
	expect(&s, "findable", 0);
	expect(&s, "tracks_found", 0);
	end(&s);
	make_tracks(&s);
	s.tracks.min_tracks = 3;
	assert_int_equal(bench_open(&s.bench), 0);
	put(&s);
	expect(&s, "others", 1);
	expect(&s, "others_rejected", 1);
	end(&s);
}

static void tracks_that_decide_nothing_are_counted_all_the_same(void **state)
{
	struct stage s;
	struct wanted_figure wanted = {.name = "wanted"};

	(void)state;
	make_tracks(&s);
	s.tracks = (struct sl_tracks_wanted){0, 0};
	assert_int_equal(bench_open(&s.bench), 0);
	find_track(&s, 0, 1 / 20., 0, 5);
	put(&s);
	expect(&s, "tracks_found", 1);
	sl_sink_score.figures(s.bench.state, find_figure, &wanted);
	assert_int_equal(wanted.found, 0);
	end(&s);
}

/* Of an event without some of its sectors nobody can say what should have been found. */
static void an_event_that_lacks_a_module_is_not_scored(void **state)
{
	struct stage s;

	(void)state;
	make_tracks(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	put(&s);
	s.bench.frame.missing = 1;
	s.bench.frame.flags = SL_FRAME_PARTIAL;
	assert_int_equal(s.bench.sink->put(s.bench.state, &s.bench.frame), 0);
	expect(&s, "events", 1);
	expect(&s, "frames_partial", 1);
	end(&s);
}

/* ---- what has no truth ---- */

static void what_the_emulator_did_not_send_has_no_truth(void **state)
{
	struct wanted_figure wanted = {.name = "frames_without_truth"};
	struct stage s;
	const char *said;

	(void)state;
	init_rings(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	expect_ring(0, 0, 0, 150, 9);
	s.raw[1][17] ^= 1;
	capture_begin();
	put(&s);
	put(&s);
	said = capture_end();
	assert_non_null(strstr(said, "is not what the emulator makes"));
	assert_null(strstr(strstr(said, "emulator") + 1, "emulator")); /* said once */
	expect(&s, "events", 0);
	sl_sink_score.figures(s.bench.state, find_figure, &wanted);
	assert_true(wanted.value == 2 && wanted.failed);
	end(&s);
}

static void dark_frames_are_not_scored(void **state)
{
	struct stage s;

	(void)state;
	init_rings(&s);
	assert_int_equal(bench_open(&s.bench), 0);
	put(&s);
	s.bench.frame.flags |= SL_FRAME_DARK;
	assert_int_equal(s.bench.sink->put(s.bench.state, &s.bench.frame), 0);
	expect(&s, "frames", 1);
	expect(&s, "frames_dark", 1);
	end(&s);
}

static void refuse(struct stage *s, const char *words)
{
	const char *said;
	int err;

	capture_begin();
	err = bench_open(&s->bench);
	said = capture_end();
	assert_true(err < 0);
	if (!strstr(said, words))
		fail_msg("'%s' is not in: %s", words, said);
	end(s);
}

static void where_there_is_nothing_to_compare_it_says_so(void **state)
{
	static const struct sl_truth_column none[] = {{"event", ""}, {"x", "mm"}, {NULL, NULL}};
	struct sl_detector poor = rings_detector;
	struct stage s;

	(void)state;
	init_rings(&s);
	s.bench.env.detector = &tiny_detector; /* as replay is: frames, and no truth */
	refuse(&s, "no truth to compare with");
	init_rings(&s);
	s.bench.env.detector = NULL;
	refuse(&s, "no truth to compare with");
	init_rings(&s);
	s.bench.env.constants = 0; /* an image detector, or no trigger */
	refuse(&s, "neither the stage rings nor tracks");
	init_rings(&s);
	poor.truth_columns = none;
	s.bench.env.detector = &poor;
	refuse(&s, "does not say the y of");
	init_rings(&s);
	strcpy(s.shape[0].name, "other");
	refuse(&s, "no rings and raw bytes");
	init_tracks(&s);
	s.bench.env.results = 3;
	refuse(&s, "no tracks and raw bytes");
}

static void prepare_suite(struct bench *bench)
{
	static const struct sl_rings_wanted wanted = {.max_rings = 4};
	static const struct sl_constant constant = {
		{.name = "rings_wanted", .dtype = SL_F32, .rank = 1, .dim = {8}}, &wanted};

	truths = 0;
	bench->shape[1] = (struct sl_shape){
		.name = "rings", .dtype = SL_F32, .rank = 2, .dim = {3, RING}, .ragged = 1};
	bench->geometry.items = 1;
	bench->geometry.items_shared = true;
	bench->env.detector = &suite_detector;
	bench->env.constant = &constant;
	bench->env.constants = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(rings_are_paired_the_nearest_first),
		cmocka_unit_test(a_ring_is_found_once),
		cmocka_unit_test(the_condition_is_applied_to_the_truth),
		cmocka_unit_test(events_of_a_missing_module_are_left_out),
		cmocka_unit_test(tracks_are_known_by_their_stubs),
		cmocka_unit_test(a_track_too_few_stubs_of_can_be_wanted_but_not_found),
		cmocka_unit_test(tracks_that_decide_nothing_are_counted_all_the_same),
		cmocka_unit_test(an_event_that_lacks_a_module_is_not_scored),
		cmocka_unit_test(what_the_emulator_did_not_send_has_no_truth),
		cmocka_unit_test(dark_frames_are_not_scored),
		cmocka_unit_test(where_there_is_nothing_to_compare_it_says_so),
	};

	conforming = &sl_sink_score;
	prepare = prepare_suite;
	return cmocka_run_group_tests_name("sink score", tests, NULL, NULL);
}
