/* nexus_test.c - the file says what was put into it, for every kind of frame. */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "hdf5/file.h"
#include "hdf5/testing.h"
#include "lib/capture.h"
#include "lib/ledger_sums.h"
#include "sink/conformance.h"
#include "sink/mosaic.h"
#include "sink/nexus/nxmx.h"

#define SPECIFIC "/entry/instrument/detector/detectorSpecific"
#define TURNS	 "/entry/sample/transformations"

extern const struct sl_sink sl_sink_nexus;

static char scratch[200], path[256], part[264];

static void set_path(struct bench *bench)
{
	bench_set(bench, "path", path);
	bench_set(bench, "overwrite", "true");
}

static void begin(struct bench *bench)
{
	bench_init(bench, &sl_sink_nexus);
	set_path(bench);
	assert_int_equal(bench_open(bench), 0);
}

/* All in one file, which appears when it is whole. */
static void begin_one_file(struct bench *bench)
{
	bench_init(bench, &sl_sink_nexus);
	set_path(bench);
	bench_set(bench, "frames_per_file", "0");
	assert_int_equal(bench_open(bench), 0);
}

static struct sl_h5 *end(struct bench *bench)
{
	struct sl_h5 *file = NULL;

	assert_int_equal(bench_close(bench), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	bench_fini(bench);
	return file;
}

static uint64_t length(struct sl_h5 *file, const char *name)
{
	struct sl_h5_shape shape;

	assert_int_equal(sl_h5_describe(file, name, &shape), 0);
	return shape.dim[0];
}

static uint64_t value_at(struct sl_h5 *file, const char *name, uint64_t row)
{
	uint64_t value = 0;

	assert_int_equal(sl_h5_read_row(file, name, row, SL_H5_U64, &value, 8), 0);
	return value;
}

static void assert_text(struct sl_h5 *file, const char *name, uint64_t index, const char *expected)
{
	char text[256];

	assert_int_equal(sl_h5_read_text(file, name, index, text, sizeof(text)), 0);
	assert_string_equal(text, expected);
}

static void assert_attribute(struct sl_h5 *file, const char *object, const char *name,
			     const char *expected)
{
	char text[256];

	assert_int_equal(sl_h5_read_attribute_text(file, object, name, text, sizeof(text)), 0);
	assert_string_equal(text, expected);
}

static double real(struct sl_h5 *file, const char *name)
{
	double value = 0;

	assert_int_equal(sl_h5_read(file, name, SL_H5_F64, &value, 8), 0);
	return value;
}

/* More frames than fit a block of rows, of all kinds in turn. */
enum { FRAMES = 2600 };

static void feed_all_kinds(struct bench *bench)
{
	for (uint64_t k = 0; k < FRAMES; k++)
		assert_int_equal(bench_feed(bench, k, k % KINDS), 0);
}

static void kept_images_are_stored_bit_for_bit(void **state)
{
	struct sl_h5_shape shape;
	int16_t pixels[PIXELS];
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	feed_all_kinds(&bench);
	file = end(&bench);
	assert_int_equal(sl_h5_describe(file, "/entry/data/data", &shape), 0);
	assert_int_equal(shape.type, SL_H5_I16);
	assert_int_equal(shape.rank, 3);
	assert_int_equal(shape.dim[0], FRAMES / KINDS);
	assert_int_equal(shape.dim[1], MODULES * ROWS);
	assert_int_equal(shape.dim[2], COLUMNS);
	for (uint64_t n = 0; n < FRAMES / KINDS; n++) {
		uint64_t k = n * KINDS + KEPT;

		assert_int_equal(value_at(file, "/entry/data/sequence", n), k);
		assert_int_equal(value_at(file, "/entry/data/frame_number", n), number_of(k));
		assert_int_equal(value_at(file, "/entry/data/timestamp", n),
				 tiny_timestamp(NULL, number_of(k)));
		assert_int_equal(sl_h5_read_row(file, "/entry/data/data", n, SL_H5_I16, pixels,
						sizeof(pixels)),
				 0);
		for (uint32_t i = 0; i < PIXELS; i++)
			assert_int_equal(pixels[i], image_pixel(k, i));
	}
	sl_h5_close(file);
}

static void every_frame_has_a_row(void **state)
{
	static const char *const columns[] = {
		"sequence", "frame_number", "timestamp",   "keep",    "score",
		"reason",   "flags",	    "image_index", "outcome", "cause"};
	struct bench bench;
	struct sl_h5 *file;
	char name[64];

	(void)state;
	begin(&bench);
	feed_all_kinds(&bench);
	file = end(&bench);
	for (unsigned i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		snprintf(name, sizeof(name), "/entry/sluice/frames/%s", columns[i]);
		assert_int_equal(length(file, name), FRAMES);
	}
	for (uint64_t k = 0; k < FRAMES; k++) {
		bool arrived = k % KINDS != LOST;

		assert_int_equal(value_at(file, "/entry/sluice/frames/sequence", k), k);
		assert_int_equal(value_at(file, "/entry/sluice/frames/frame_number", k),
				 arrived ? number_of(k) : 0);
		assert_int_equal(value_at(file, "/entry/sluice/frames/timestamp", k),
				 arrived ? tiny_timestamp(NULL, number_of(k)) : 0);
	}
	sl_h5_close(file);
}

static void rows_tell_the_verdict(void **state)
{
	static const uint8_t flags[KINDS] = {[KEPT] = SL_FRAME_COMPLETE,
					     [VETOED] = SL_FRAME_COMPLETE,
					     [DARK] = SL_FRAME_COMPLETE | SL_FRAME_DARK};
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	feed_all_kinds(&bench);
	file = end(&bench);
	for (uint64_t k = 0; k < FRAMES; k += 7) {
		enum kind kind = k % KINDS;
		int64_t index;
		float score;

		assert_int_equal(value_at(file, "/entry/sluice/frames/keep", k), kind == KEPT);
		assert_int_equal(value_at(file, "/entry/sluice/frames/flags", k), flags[kind]);
		assert_int_equal(value_at(file, "/entry/sluice/frames/reason", k),
				 kind == DARK ? SL_REASON_DARK : SL_REASON_BRIGHT_PIXELS);
		assert_int_equal(
			sl_h5_read_row(file, "/entry/sluice/frames/score", k, SL_H5_F32, &score, 4),
			0);
		assert_true(score == (float)k / 2);
		assert_int_equal(sl_h5_read_row(file, "/entry/sluice/frames/image_index", k,
						SL_H5_I64, &index, 8),
				 0);
		assert_int_equal(index, kind == KEPT ? (int64_t)(k / KINDS) : -1);
	}
	sl_h5_close(file);
}

static void rows_tell_outcome_and_cause_of_each_module(void **state)
{
	static const uint8_t outcome[KINDS] = {[KEPT] = SL_STORED,
					       [VETOED] = SL_VETOED,
					       [DARK] = SL_VETOED,
					       [DAMAGED] = SL_INCOMPLETE,
					       [LOST] = SL_LOST};
	static const uint8_t cause[KINDS][MODULES] = {
		[KEPT] = {SL_CAUSE_NONE, SL_CAUSE_NONE},
		[VETOED] = {SL_CAUSE_STAGE, SL_CAUSE_STAGE},
		[DARK] = {SL_CAUSE_DARK, SL_CAUSE_DARK},
		[DAMAGED] = {SL_CAUSE_PARTNER, SL_CAUSE_DAMAGED},
		[LOST] = {SL_CAUSE_NO_ARRIVAL, SL_CAUSE_NO_ARRIVAL}};
	uint8_t pair[MODULES];
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	feed_all_kinds(&bench);
	file = end(&bench);
	for (uint64_t k = 0; k < FRAMES; k += 3) {
		assert_int_equal(sl_h5_read_row(file, "/entry/sluice/frames/outcome", k, SL_H5_U8,
						pair, MODULES),
				 0);
		assert_int_equal(pair[0], outcome[k % KINDS]);
		assert_int_equal(pair[1], outcome[k % KINDS]);
		assert_int_equal(sl_h5_read_row(file, "/entry/sluice/frames/cause", k, SL_H5_U8,
						pair, MODULES),
				 0);
		assert_memory_equal(pair, cause[k % KINDS], MODULES);
	}
	for (unsigned i = 0; i < SL_OUTCOMES; i++)
		assert_text(file, "/entry/sluice/frames/outcome_names", i, sl_outcome_name(i));
	for (unsigned i = 0; i < SL_CAUSES; i++)
		assert_text(file, "/entry/sluice/frames/cause_names", i, sl_cause_name(i));
	for (unsigned i = 0; i < SL_REASONS; i++)
		assert_text(file, "/entry/sluice/frames/reason_names", i, sl_reason_name(i));
	sl_h5_close(file);
}

/* With its results: another sink left it out. Without: this one did. */
static void only_what_this_sink_left_out_has_no_image(void **state)
{
	static const int64_t index[] = {0, -1, 1};
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	for (uint64_t k = 0; k < 3; k++) {
		struct sl_frame *frame = bench_frame(&bench, k, KEPT);

		for (uint32_t m = 0; m < MODULES; m++) {
			frame->view[m].outcome = SL_UNWRITTEN;
			frame->view[m].cause = SL_CAUSE_SLOW;
		}
		if (index[k] < 0)
			frame->results = 0;
		assert_int_equal(bench.sink->put(bench.state, frame), 0);
	}
	file = end(&bench);
	for (uint64_t k = 0; k < 3; k++) {
		uint8_t keep = 0, pair[MODULES];
		int64_t at = -2;

		assert_int_equal(sl_h5_read_row(file, "/entry/sluice/frames/image_index", k,
						SL_H5_I64, &at, sizeof(at)),
				 0);
		assert_int_equal(at, index[k]);
		assert_int_equal(
			sl_h5_read_row(file, "/entry/sluice/frames/keep", k, SL_H5_U8, &keep, 1),
			0);
		assert_int_equal(keep, 1);
		assert_int_equal(sl_h5_read_row(file, "/entry/sluice/frames/outcome", k, SL_H5_U8,
						pair, MODULES),
				 0);
		assert_int_equal(pair[0], SL_UNWRITTEN);
	}
	sl_h5_close(file);
}

static void the_ledger_is_the_one_that_will_be(void **state)
{
	uint64_t outcomes[MODULES][SL_OUTCOMES], causes[MODULES][SL_CAUSES], sent[MODULES];
	const uint64_t each = FRAMES / KINDS;
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	feed_all_kinds(&bench);
	assert_false(ledger_closed(&bench.ledger)); /* the kept ones are pending */
	file = end(&bench);
	assert_int_equal(
		sl_h5_read(file, "/entry/sluice/ledger/sent", SL_H5_U64, sent, sizeof(sent)), 0);
	assert_int_equal(sl_h5_read(file, "/entry/sluice/ledger/outcomes", SL_H5_U64, outcomes,
				    sizeof(outcomes)),
			 0);
	assert_int_equal(
		sl_h5_read(file, "/entry/sluice/ledger/causes", SL_H5_U64, causes, sizeof(causes)),
		0);
	for (int m = 0; m < MODULES; m++) {
		assert_int_equal(sent[m], FRAMES);
		assert_int_equal(outcomes[m][SL_STORED], each);
		assert_int_equal(outcomes[m][SL_VETOED], 2 * each);
		assert_int_equal(outcomes[m][SL_INCOMPLETE], each);
		assert_int_equal(outcomes[m][SL_LOST], each);
		assert_int_equal(outcomes[m][SL_UNWRITTEN], 0);
		assert_int_equal(causes[m][SL_CAUSE_NONE], each);
		assert_int_equal(causes[m][SL_CAUSE_DARK], each);
		assert_int_equal(causes[m][m ? SL_CAUSE_DAMAGED : SL_CAUSE_PARTNER], each);
	}
	assert_true(real(file, "/entry/sluice/ledger/closed") == 1);
	assert_text(file, "/entry/sluice/ledger/outcome_names", SL_LOST, "lost");
	sl_h5_close(file);
}

static void a_ledger_that_does_not_close_is_stored_as_open(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	sl_ledger_report(&bench.ledger, 1, 2); /* one more was sent than seen */
	file = end(&bench);
	assert_true(real(file, "/entry/sluice/ledger/closed") == 0);
	sl_h5_close(file);
}

static void plots_are_found_by_default_and_signal(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	file = end(&bench);
	assert_attribute(file, "/", "default", "entry");
	assert_attribute(file, "/entry", "NX_class", "NXentry");
	assert_attribute(file, "/entry", "default", "data");
	assert_attribute(file, "/entry/data", "NX_class", "NXdata");
	assert_attribute(file, "/entry/data", "signal", "data");
	sl_h5_close(file);
}

static void nxmx_says_what_the_detector_is(void **state)
{
	struct sl_h5_shape shape;
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	file = end(&bench);
	assert_text(file, "/entry/definition", 0, "NXmx");
	assert_text(file, "/entry/sample/name", 0, "unknown");
	assert_text(file, "/entry/sample/depends_on", 0, ".");
	assert_text(file, "/entry/instrument/name", 0, "unknown");
	assert_text(file, "/entry/source/name", 0, "unknown");
	assert_text(file, "/entry/instrument/detector/description", 0, "tiny");
	assert_text(file, "/entry/instrument/detector/sensor_material", 0, "Si");
	assert_true(real(file, "/entry/instrument/detector/sensor_thickness") == 320e-6);
	assert_true(real(file, "/entry/instrument/detector/x_pixel_size") == 75e-6);
	assert_true(real(file, "/entry/instrument/detector/distance") == 0.1);
	assert_true(real(file, "/entry/instrument/detector/frame_time") == 0.01);
	assert_true(real(file, "/entry/instrument/detector/bit_depth_readout") == 16);
	assert_true(real(file, "/entry/instrument/detector/saturation_value") == 32766);
	assert_true(real(file, "/entry/instrument/detector/underload_value") == -32767);
	assert_true(fabs(real(file, "/entry/instrument/beam/incident_wavelength") - 0.99987) <
		    1e-5);
	assert_true(real(file, "/entry/instrument/beam/incident_energy") == 12400);
	assert_int_equal(sl_h5_describe(file, "/entry/instrument/detector/data", &shape), 0);
	assert_int_equal(shape.dim[0], 1);
	sl_h5_close(file);
}

static void modules_lie_below_each_other(void **state)
{
	uint64_t pair[2];
	double vector[3];
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	file = end(&bench);
	for (uint64_t m = 0; m < MODULES; m++) {
		char name[128];

		snprintf(name, sizeof(name), "/entry/instrument/detector/module_%d", (int)m);
		assert_attribute(file, name, "NX_class", "NXdetector_module");
		strcat(name, "/data_origin");
		assert_int_equal(sl_h5_read(file, name, SL_H5_U64, pair, 16), 0);
		assert_int_equal(pair[0], m * ROWS);
		assert_int_equal(pair[1], 0);
		strcpy(strrchr(name, '/'), "/data_size");
		assert_int_equal(sl_h5_read(file, name, SL_H5_U64, pair, 16), 0);
		assert_int_equal(pair[0], ROWS);
		assert_int_equal(pair[1], COLUMNS);
		strcpy(strrchr(name, '/'), "/slow_pixel_direction");
		assert_attribute(file, name, "transformation_type", "translation");
		assert_int_equal(sl_h5_read_attribute(file, name, "vector", SL_H5_F64, vector, 24),
				 0);
		assert_true(vector[0] == 0 && vector[1] == -1 && vector[2] == 0);
		strcpy(strrchr(name, '/'), "/module_offset");
		assert_attribute(file, name, "depends_on",
				 "/entry/instrument/detector/transformations/translation");
		assert_int_equal(sl_h5_read_attribute(file, name, "offset", SL_H5_F64, vector, 24),
				 0);
		assert_true(fabs(vector[1] - (m ? 0.0 : ROWS * 75e-6)) < 1e-12);
	}
	sl_h5_close(file);
}

/* Two modules of 2 x 2 ASICs, the second turned, beside each other. */
static void set_layout(struct bench *bench)
{
	bench->geometry.layout = (struct sl_layout){
		.rows = 12,
		.columns = 16,
		.asic_rows = 2,
		.asic_columns = 3,
		.gap = 2,
		.beam_row = 5.5,
		.beam_column = 9,
		.module = {{.row = 1, .column = 0}, {.row = 2, .column = 9, .turns = 1}}};
}

static void read_pair(struct sl_h5 *file, int module, const char *name, uint64_t *pair)
{
	char name_of[128];

	snprintf(name_of, sizeof(name_of), "/entry/instrument/detector/module_%d/%s", module, name);
	assert_int_equal(sl_h5_read(file, name_of, SL_H5_U64, pair, 16), 0);
}

static void read_vector(struct sl_h5 *file, int module, const char *name, const char *what,
			double *vector)
{
	char name_of[128];

	snprintf(name_of, sizeof(name_of), "/entry/instrument/detector/module_%d/%s", module, name);
	assert_int_equal(sl_h5_read_attribute(file, name_of, what, SL_H5_F64, vector, 24), 0);
}

/* What DIALS and others do with it: the place of a pixel's corner, in pixels from the beam. */
static void place_of(struct sl_h5 *file, int module, double slow, double fast, double *down,
		     double *right)
{
	double offset[3], along[3], below[3];

	read_vector(file, module, "module_offset", "offset", offset);
	read_vector(file, module, "fast_pixel_direction", "vector", along);
	read_vector(file, module, "slow_pixel_direction", "vector", below);
	*right = -(offset[0] / 75e-6 + fast * along[0] + slow * below[0]);
	*down = -(offset[1] / 75e-6 + fast * along[1] + slow * below[1]);
}

static void modules_as_read_have_an_entry_for_every_asic(void **state)
{
	struct sl_geometry geometry;
	struct bench bench;
	struct sl_h5 *file;
	struct sl_h5_shape shape;
	uint32_t mask[PIXELS];

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	set_layout(&bench);
	geometry = bench.geometry;
	assert_int_equal(bench_open(&bench), 0);
	file = end(&bench);
	for (int i = 0; i < 8; i++) {
		uint64_t origin[2], size[2];

		read_pair(file, i, "data_origin", origin);
		read_pair(file, i, "data_size", size);
		assert_true(size[0] == 2 && size[1] == 3);
		/* The middle pixel of the ASIC's first row is not wide across, and lies where the
		 * layout says. */
		for (int k = 0; k < 6; k++) {
			uint32_t module = (uint32_t)(origin[0] / ROWS);
			uint32_t pixel = (uint32_t)((origin[0] % ROWS + k / 3) * COLUMNS +
						    origin[1] + k % 3);
			double down, right, row, column;

			if (sl_layout_share(&geometry, pixel) > 1)
				continue;
			place_of(file, i, k / 3 + 0.5, k % 3 + 0.5, &down, &right);
			sl_layout_centre(&geometry, module, pixel, &row, &column);
			assert_true(fabs(down - (row - 5.5)) < 1e-9);
			assert_true(fabs(right - (column - 9)) < 1e-9);
		}
	}
	assert_int_equal(sl_h5_describe(file, "/entry/instrument/detector/module_8", &shape),
			 -ENOENT);
	/* Of single modules the mask marks wide pixels, by both names. */
	for (int k = 0; k < 2; k++) {
		assert_int_equal(sl_h5_read(file,
					    k ? SPECIFIC "/pixel_mask"
					      : "/entry/instrument/detector/pixel_mask",
					    SL_H5_U32, mask, sizeof(mask)),
				 0);
		for (uint32_t i = 0; i < PIXELS; i++)
			assert_int_equal(mask[i], sl_layout_share(&geometry, i % MODULE_PIXELS) > 1
							  ? SL_MASK_VIRTUAL
							  : 0);
	}
	sl_h5_close(file);
}

/* /entry/sluice/geometry is the geometry, to the last bit. */
static void the_geometry_can_be_read_back(void **state)
{
	struct sl_geometry geometry = {.modules = 0};
	struct bench bench;
	struct sl_plane *plane;
	struct sl_h5 *file;

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	set_layout(&bench);
	bench.geometry.photon_energy_keV = 12.7;
	assert_int_equal(bench_open(&bench), 0);
	file = end(&bench);
	assert_int_equal(sl_geometry_hdf5_read(file, path, &geometry, &plane), 0);
	free(plane);
	assert_memory_equal(&geometry.layout, &bench.geometry.layout, sizeof(geometry.layout));
	assert_true(geometry.photon_energy_keV == 12.7 && geometry.distance_m == 0.1);
	assert_string_equal(geometry.detector, "tiny");
	assert_int_equal(geometry.rows, ROWS);
	sl_h5_close(file);
}

static void what_nxmx_requires_and_is_not_known_is_named(void **state)
{
	struct sl_geometry geometry;
	struct sl_h5_shape shape;
	struct bench bench;
	struct sl_h5 *file;
	char text[128];

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	geometry = bench.geometry;
	sl_nxmx_lacks(&geometry, text, sizeof(text));
	assert_string_equal(text, "");
	geometry.sensor_material[0] = 0;
	geometry.photon_energy_keV = 0;
	sl_nxmx_lacks(&geometry, text, sizeof(text));
	assert_string_equal(text, "sensor_material, photon_energy_keV");
	set_path(&bench);
	bench.geometry.sensor_thickness_m = 0;
	assert_int_equal(bench_open(&bench), 0);
	file = end(&bench);
	assert_int_equal(sl_h5_describe(file, "/entry/definition", &shape), -ENOENT);
	sl_h5_close(file);
}

/* Kept: sequences 3 and 5; the first of the axes' frames is number 2. */
static void axes_are_where_the_frames_numbers_say(void **state)
{
	const struct sl_goniometer goniometer = {
		.axes = 2,
		.axis = {{"omega", -1, 0, 0, 10, 0.5}, {"chi", 0, 0, 1, 54.7, 0}},
		.first_frame = 2,
	};
	double angle[2], vector[3];
	struct sl_h5_shape shape;
	struct bench bench;
	struct sl_h5 *file;
	char text[128];

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	bench.env.goniometer = &goniometer;
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(bench_feed(&bench, i, i == 3 || i == 5 ? KEPT : DARK), 0);
	file = end(&bench);
	assert_text(file, "/entry/sample/depends_on", 0, TURNS "/omega");
	assert_int_equal(sl_h5_read(file, TURNS "/omega", SL_H5_F64, angle, sizeof(angle)), 0);
	assert_true(angle[0] == 10.5 && angle[1] == 11.5);
	assert_int_equal(sl_h5_read(file, TURNS "/omega_end", SL_H5_F64, angle, sizeof(angle)), 0);
	assert_true(angle[0] == 11 && angle[1] == 12);
	assert_int_equal(sl_h5_read(file, TURNS "/chi", SL_H5_F64, angle, sizeof(angle)), 0);
	assert_true(angle[0] == 54.7 && angle[1] == 54.7);
	assert_int_equal(sl_h5_describe(file, TURNS "/chi_end", &shape), -ENOENT);
	assert_int_equal(sl_h5_read_attribute(file, TURNS "/omega", "vector", SL_H5_F64, vector,
					      sizeof(vector)),
			 0);
	assert_true(vector[0] == -1 && vector[1] == 0 && vector[2] == 0);
	assert_int_equal(
		sl_h5_read_attribute_text(file, TURNS "/omega", "depends_on", text, sizeof(text)),
		0);
	assert_string_equal(text, TURNS "/chi");
	assert_int_equal(
		sl_h5_read_attribute_text(file, TURNS "/chi", "depends_on", text, sizeof(text)), 0);
	assert_string_equal(text, ".");
	assert_true(real(file, SPECIFIC "/nimages") == 2);
	sl_h5_close(file);
}

static void an_assembled_image_has_gaps_and_a_mask(void **state)
{
	int16_t images[2][12 * 16];
	uint32_t mask[12 * 16], pixel;
	uint8_t bad[PIXELS] = {[7] = 1};
	struct sl_calibration calibration = {.mask = bad};
	struct sl_geometry geometry;
	struct bench bench;
	struct sl_h5 *file;
	uint64_t pair[2];
	double down, right;
	int gaps = 0, wide = 0, dead = 0;

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	set_layout(&bench);
	bench_set(&bench, "image", "assembled");
	bench.env.calibration = &calibration;
	geometry = bench.geometry;
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	assert_int_equal(bench_feed(&bench, 1, DARK), 0);
	assert_int_equal(bench_feed(&bench, 2, KEPT), 0);
	assert_int_equal(bench_figure(&bench, "bytes"), 2 * sizeof(images[0]));
	file = end(&bench);
	assert_int_equal(sl_h5_read(file, "/entry/data/data", SL_H5_I16, images, sizeof(images)),
			 0);
	assert_int_equal(sl_h5_read(file, "/entry/instrument/detector/pixel_mask", SL_H5_U32, mask,
				    sizeof(mask)),
			 0);
	for (int i = 0; i < 12 * 16; i++) {
		int module = sl_layout_find(&geometry, i / 16, i % 16, &pixel);
		uint32_t at = (uint32_t)module * MODULE_PIXELS + pixel;

		gaps += module < 0;
		assert_int_equal(mask[i] & 1, module < 0);
		assert_int_equal(images[0][i], module < 0 ? INT16_MIN : image_pixel(0, at));
		assert_int_equal(images[1][i], module < 0 ? INT16_MIN : image_pixel(2, at));
		if (module < 0)
			continue;
		wide += mask[i] >> 31;
		dead += mask[i] >> 1 & 1;
		assert_int_equal(mask[i] >> 31, sl_layout_share(&geometry, pixel) > 1);
		assert_int_equal(mask[i] >> 1 & 1, at == 7);
	}
	assert_true(gaps == 12 * 16 - 2 * 6 * 8 && wide > 20 && dead > 0);
	read_pair(file, 0, "data_size", pair);
	assert_true(pair[0] == 12 && pair[1] == 16);
	place_of(file, 0, 3, 4, &down, &right);
	assert_true(fabs(down - (3 - 5.5)) < 1e-9 && fabs(right - (4 - 9)) < 1e-9);
	assert_true(real(file, "/entry/instrument/detector/beam_center_x") == 9);
	assert_true(real(file, "/entry/instrument/detector/beam_center_y") == 5.5);
	sl_h5_close(file);
}

static void what_is_no_mosaic_is_refused(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	bench_set(&bench, "image", "assembled");
	bench.shape[1].dim[2] = 3;
	assert_int_equal(bench_open(&bench), -EINVAL);
	bench_close(&bench);
	bench_fini(&bench);
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	set_layout(&bench);
	bench.geometry.layout.module[1].column = 3;
	bench_set(&bench, "image", "assembled");
	assert_int_equal(bench_open(&bench), -EINVAL);
	bench_close(&bench);
	bench_fini(&bench);
}

static void the_run_is_described(void **state)
{
	char text[64];
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	bench_set(&bench, "sample", "lysozyme");
	bench_set(&bench, "source", "a ring");
	bench_set(&bench, "instrument", "a beamline");
	assert_int_equal(bench_open(&bench), 0);
	file = end(&bench);
	assert_text(file, "/entry/sluice/link", 0, "udp");
	assert_text(file, "/entry/sluice/guard", 0, "enforced, credited");
	assert_text(file, "/entry/sluice/proof", 0, "packet count");
	assert_text(file, "/entry/sluice/experiment", 0, "detector: {kind: tiny}\n");
	assert_text(file, "/entry/program_name", 0, "sluice");
	assert_text(file, "/entry/sample/name", 0, "lysozyme");
	assert_text(file, "/entry/source/name", 0, "a ring");
	assert_text(file, "/entry/instrument/name", 0, "a beamline");
	assert_int_equal(sl_h5_read_text(file, "/entry/start_time", 0, text, sizeof(text)), 0);
	assert_int_equal(text[10], 'T');
	assert_int_equal(sl_h5_read_text(file, "/entry/end_time", 0, text, sizeof(text)), 0);
	assert_int_equal(sl_h5_read_text(file, "/entry/end_time_estimated", 0, text, sizeof(text)),
			 0);
	sl_h5_close(file);
}

static void a_run_without_frames_can_be_read(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	file = end(&bench);
	assert_int_equal(length(file, "/entry/data/data"), 0);
	assert_int_equal(length(file, "/entry/sluice/frames/sequence"), 0);
	assert_true(real(file, "/entry/sluice/ledger/closed") == 1);
	sl_h5_close(file);
}

static void raw_pixels_can_be_stored_instead(void **state)
{
	uint16_t pixels[PIXELS];
	struct sl_h5_shape shape;
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	bench_set(&bench, "dataset", "raw");
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	file = end(&bench);
	assert_int_equal(sl_h5_describe(file, "/entry/data/data", &shape), 0);
	assert_int_equal(shape.type, SL_H5_U16);
	assert_int_equal(
		sl_h5_read_row(file, "/entry/data/data", 0, SL_H5_U16, pixels, sizeof(pixels)), 0);
	for (uint32_t i = 0; i < PIXELS; i++)
		assert_int_equal(pixels[i], true_pixel(number_of(0), i / MODULE_PIXELS,
						       i % MODULE_PIXELS, false));
	/* The highest number is no count. */
	assert_true(real(file, "/entry/instrument/detector/saturation_value") == 65534);
	assert_true(real(file, "/entry/instrument/detector/underload_value") == 0);
	sl_h5_close(file);
}

static void assert_open_fails(struct bench *bench, int expected)
{
	assert_int_equal(bench_open(bench), expected);
	assert_int_equal(bench_close(bench), 0);
	assert_string_equal(sl_sink_nexus.where(bench->state), "");
	bench_fini(bench);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(part, F_OK), -1);
}

static void what_cannot_be_stored_is_an_error_at_open(void **state)
{
	struct bench bench;

	(void)state;
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	bench.env.results = 0;
	assert_open_fails(&bench, -EINVAL);
	bench_init(&bench, &sl_sink_nexus);
	set_path(&bench);
	bench_set(&bench, "dataset", "spectrum");
	assert_open_fails(&bench, -EINVAL);
	bench_init(&bench, &sl_sink_nexus);
	bench_set(&bench, "path", scratch);
	assert_open_fails(&bench, -EISDIR);
}

static void an_image_of_another_size_is_refused_and_the_file_ends_well(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	bench_frame(&bench, 1, KEPT);
	bench.frame.result[1].shape.dim[0] = 1;
	assert_int_equal(sl_sink_nexus.put(bench.state, &bench.frame), -EINVAL);
	assert_int_equal(bench_feed(&bench, 1, KEPT), -EINVAL);
	assert_int_equal(bench_figure(&bench, "frames_refused"), 2);
	assert_int_equal(bench_figure(&bench, "frames"), 1);
	file = end(&bench);
	assert_int_equal(length(file, "/entry/data/data"), 1);
	assert_int_equal(length(file, "/entry/sluice/frames/sequence"), 1);
	assert_true(real(file, "/entry/sluice/frames_refused") == 2);
	sl_h5_close(file);
}

static void an_existing_file_stays_until_the_new_one_is_whole(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin_one_file(&bench);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	sl_h5_close(end(&bench));
	begin_one_file(&bench);
	assert_int_equal(access(part, F_OK), 0);
	assert_int_equal(sl_h5_open(path, &file), 0);
	assert_int_equal(length(file, "/entry/data/data"), 1);
	sl_h5_close(file);
	assert_string_equal(sl_sink_nexus.where(bench.state), path);
	file = end(&bench);
	assert_int_equal(length(file, "/entry/data/data"), 0);
	sl_h5_close(file);
	assert_int_equal(access(part, F_OK), -1);
}

/* An earlier run and its data files: gone when this run has rows, back when it never had any. */
static void an_earlier_run_stays_until_this_one_has_rows(void **state)
{
	struct bench bench;
	struct sl_h5 *file;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	sl_h5_close(end(&bench));
	begin(&bench);
	sl_sink_nexus.close(bench.state, NULL); /* the run never began */
	bench_fini(&bench);
	assert_int_equal(sl_h5_open(path, &file), 0);
	assert_int_equal(length(file, "/entry/data/data"), 1);
	assert_int_equal(value_at(file, "/entry/data/frame_number", 0),
			 value_at(file, "/entry/sluice/frames/frame_number", 0));
	sl_h5_close(file);
	begin(&bench);
	for (uint64_t k = 0; k < 3; k++)
		assert_int_equal(bench_feed(&bench, k, KEPT), 0);
	file = end(&bench);
	assert_int_equal(length(file, "/entry/data/data"), 3);
	sl_h5_close(file);
	assert_int_equal(access(part, F_OK), -1);
}

static void a_file_that_is_there_is_not_replaced_unless_told(void **state)
{
	const char *said;
	struct bench bench;

	(void)state;
	begin(&bench);
	sl_h5_close(end(&bench));
	bench_init(&bench, &sl_sink_nexus);
	bench_set(&bench, "path", path);
	capture_begin();
	assert_int_equal(bench_open(&bench), -EEXIST);
	said = capture_end();
	assert_non_null(strstr(said, "set overwrite: true"));
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
	assert_int_equal(access(path, F_OK), 0);
}

static void images_go_to_several_files_packed_as_told(void **state)
{
	static const char *const codecs[] = {"bslz4", "bszstd", "lz4", "none"};

	(void)state;
	for (size_t c = 0; c < sizeof(codecs) / sizeof(codecs[0]); c++) {
		struct bench bench;
		struct sl_h5 *file;
		int16_t image[PIXELS];

		bench_init(&bench, &sl_sink_nexus);
		set_path(&bench);
		bench_set(&bench, "compression", codecs[c]);
		bench_set(&bench, "frames_per_file", "3");
		assert_int_equal(bench_open(&bench), 0);
		for (uint64_t k = 0; k < 8; k++)
			assert_int_equal(bench_feed(&bench, k, k % 4 == 3 ? VETOED : KEPT), 0);
		file = end(&bench);
		assert_int_equal(length(file, "/entry/data/data"), 6);
		assert_int_equal(length(file, "/entry/data/data_000001"), 3);
		assert_int_equal(length(file, "/entry/data/data_000002"), 3);
		assert_int_equal(length(file, "/entry/sluice/frames/sequence"), 8);
		assert_text(file, "/entry/sluice/state", 0, "complete");
		bench_init(&bench, &sl_sink_nexus);
		for (uint64_t k = 0; k < 6; k++) {
			bench_frame(&bench, k + k / 3, KEPT);
			assert_int_equal(sl_h5_read_row(file, "/entry/data/data", k, SL_H5_I16,
							image, sizeof(image)),
					 0);
			assert_memory_equal(image, bench.image, sizeof(image));
		}
		bench_fini(&bench);
		sl_h5_close(file);
	}
}

/* A folder in the place of the file, made in mid-run: the rename must fail. */
static void a_file_that_cannot_get_its_name_is_not_called_safe(void **state)
{
	struct bench bench;

	(void)state;
	begin_one_file(&bench);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_true(bench_close(&bench) < 0);
	assert_string_equal(sl_sink_nexus.where(bench.state), part);
	assert_int_equal(access(part, F_OK), 0);
	bench_fini(&bench);
}

static void figures_count_images_and_bytes(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	for (uint64_t k = 0; k < 50; k++)
		assert_int_equal(bench_feed(&bench, k, k % KINDS), 0);
	assert_int_equal(bench_figure(&bench, "frames"), 10);
	assert_int_equal(bench_figure(&bench, "bytes"), 10 * PIXELS * 2);
	sl_h5_close(end(&bench));
}

static int make_scratch(void **state)
{
	(void)state;
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/run.nxs", scratch);
	snprintf(part, sizeof(part), "%s.part", path);
	return 0;
}

static int remove_scratch(void **state)
{
	(void)state;
	scratch_remove(scratch);
	return 0;
}

static int clean(void **state)
{
	scratch_remove(scratch);
	return make_scratch(state);
}

#define CASE(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		CASE(kept_images_are_stored_bit_for_bit),
		CASE(every_frame_has_a_row),
		CASE(rows_tell_the_verdict),
		CASE(rows_tell_outcome_and_cause_of_each_module),
		CASE(only_what_this_sink_left_out_has_no_image),
		CASE(the_ledger_is_the_one_that_will_be),
		CASE(a_ledger_that_does_not_close_is_stored_as_open),
		CASE(plots_are_found_by_default_and_signal),
		CASE(nxmx_says_what_the_detector_is),
		CASE(modules_lie_below_each_other),
		CASE(modules_as_read_have_an_entry_for_every_asic),
		CASE(the_geometry_can_be_read_back),
		CASE(what_nxmx_requires_and_is_not_known_is_named),
		CASE(axes_are_where_the_frames_numbers_say),
		CASE(an_assembled_image_has_gaps_and_a_mask),
		CASE(what_is_no_mosaic_is_refused),
		CASE(the_run_is_described),
		CASE(a_run_without_frames_can_be_read),
		CASE(raw_pixels_can_be_stored_instead),
		CASE(what_cannot_be_stored_is_an_error_at_open),
		CASE(an_image_of_another_size_is_refused_and_the_file_ends_well),
		CASE(an_existing_file_stays_until_the_new_one_is_whole),
		CASE(an_earlier_run_stays_until_this_one_has_rows),
		CASE(a_file_that_is_there_is_not_replaced_unless_told),
		CASE(images_go_to_several_files_packed_as_told),
		CASE(a_file_that_cannot_get_its_name_is_not_called_safe),
		CASE(figures_count_images_and_bytes),
	};

	conforming = &sl_sink_nexus;
	prepare = set_path;
	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
