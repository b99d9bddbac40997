/* gpu_rig.c - see gpu_rig.h. */
#include "lib/gpu_rig.h"

uint32_t gpu_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* ---- a stage that rejects frames whatever is in them ---- */

static void gpu_reject(void *state, struct sl_batch *batch)
{
	(void)state;
	for (uint32_t f = 0; f < batch->frames; f++)
		if (batch->frame[f]->number % 3 == 1)
			sl_frame_decide(batch->frame[f], 0, 7, SL_REASON_SCORE);
}

static void gpu_reject_finish(void *state, void *const *scratch, unsigned workers,
			      struct sl_batch *batch)
{
	(void)scratch;
	(void)workers;
	gpu_reject(state, batch);
}

static int gpu_reject_open(void *state, const struct sl_gpu_env *env,
			   const struct sl_chain_stage *stage)
{
	(void)state;
	(void)env;
	(void)stage;
	return 0;
}

static void gpu_reject_close(void *state)
{
	(void)state;
}

static int gpu_reject_enqueue(void *state, const struct sl_gpu_batch *batch)
{
	(void)state;
	(void)batch;
	return 0;
}

static const struct sl_gpu gpu_rejecter_gpu = {
	.state_bytes = 1,
	.open = gpu_reject_open,
	.close = gpu_reject_close,
	.prepare = gpu_reject,
	.enqueue = gpu_reject_enqueue,
};

static const struct sl_stage gpu_rejecter = {
	.name = "rejecter",
	.input = "raw",
	.gpu = &gpu_rejecter_gpu,
	.close = gpu_reject_close,
	.finish = gpu_reject_finish,
};

static void gpu_put_rejecter(struct sl_chain *chain)
{
	assert_true(chain->stages < SL_CHAIN_STAGES);
	memmove(&chain->stage[1], &chain->stage[0], chain->stages++ * sizeof(chain->stage[0]));
	chain->stage[0] = (struct sl_chain_stage){
		.ops = &gpu_rejecter, .input = SL_CHAIN_RAW, .output = SL_CHAIN_NONE};
}

static struct sl_experiment *gpu_experiment(const struct gpu_case *c, const char *const *set,
					    size_t sets)
{
	char path[] = "/tmp/sluice-gpu-XXXXXX";
	struct sl_experiment *e = NULL;
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fprintf(file, "detector: %s\nlink: {kind: shm}\n%s\nsinks: %s\n",
		c->detector ? c->detector : "{kind: pattern, rows: 8, columns: 8}", c->stages,
		c->sinks ? c->sinks : "['null']");
	fclose(file);
	assert_int_equal(sl_experiment_open(path, NULL, set, sets, &e), 0);
	unlink(path);
	return e;
}

/* Tables with all that may be wrong with a pixel in some. */
static void gpu_calibrate(struct gpu_side *s, bool masked)
{
	static const float pedestal[3] = {2446, 13584, 14100}, gain[3] = {41.0f, -1.439f, -0.1145f};
	uint32_t cells = s->geometry.cells ? s->geometry.cells : 1;
	size_t pixels = sl_geometry_pixels(&s->geometry) * s->geometry.modules;
	uint64_t seed = 5;

	s->mask = calloc(pixels, 1);
	for (size_t i = 0; i < pixels; i++)
		s->mask[i] = masked || gpu_random(&seed) % 97 == 0;
	for (int t = 0; t < 6; t++) {
		size_t n = t < 3 ? pixels * cells : pixels;

		s->table[t] = calloc(n, sizeof(float));
		for (size_t i = 0; i < n; i++) {
			uint32_t bits = gpu_random(&seed);
			float *at = &s->table[t][i];

			*at = t < 3 ? pedestal[t] + (float)(bits % 50) * 0.37f
				    : gain[t - 3] * (1 + (float)(bits % 19) * 0.01f);
			if (bits % 101 == 0)
				*at = t < 3 ? (bits % 2 ? NAN : 20000) : (bits % 2 ? 0 : INFINITY);
		}
		*(t < 3 ? &s->calibration.pedestal[t] : &s->calibration.gain[t - 3]) = s->table[t];
	}
	s->calibration.cells = cells;
	s->calibration.mask = s->mask;
	s->env.calibration = &s->calibration;
}

static void gpu_open_detector(struct gpu_side *s, const struct gpu_case *c)
{
	struct sl_experiment *e = s->experiment;

	assert_int_equal(sl_experiment_open_detector(e, &s->geometry), 0);
	s->detector_open = true;
	if (c->detector) {
		if (sl_calibrate(e, &s->geometry, &s->calibrated, &s->calibration) > 0)
			s->env.calibration = &s->calibration;
	} else {
		s->geometry.modules = c->modules;
		s->geometry.rows = c->rows;
		s->geometry.columns = c->columns;
		s->geometry.dtype = c->dtype;
		s->geometry.cells = c->cells;
		s->geometry.photon_energy_keV = 12.4;
		s->geometry.pixel_size_m = 75e-6;
		s->geometry.distance_m = 0.002;
		s->geometry.layout = (struct sl_layout){0};
		sl_layout_resolve(&s->geometry, &s->geometry.layout);
		if (c->aside) {
			s->geometry.layout.beam_row = -12.25;
			s->geometry.layout.beam_column = s->geometry.layout.columns + 20.6;
		}
		if (strstr(c->stages, "correct"))
			gpu_calibrate(s, c->masked);
	}
	s->env.geometry = &s->geometry;
	s->env.detector = e->detector;
	s->env.detector_state = e->detector_state;
}

int gpu_try_open(struct gpu_side *s, const struct gpu_case *c, const struct sl_unit *unit,
		 const char *const *set, size_t sets)
{
	int err;

	*s = (struct gpu_side){0};
	s->experiment = gpu_experiment(c, set, sets);
	gpu_open_detector(s, c);
	s->env.batch_frames = c->batch;
	assert_int_equal(sl_chain_open(s->experiment, &s->env, &s->build), 0);
	for (unsigned i = 0; i < s->build.chain.stages; i++) /* all is compared */
		s->build.chain.stage[i].unread = 0;
	if (c->rejects)
		gpu_put_rejecter(&s->build.chain);
	s->unit_open = true;
	err = unit->open(s->experiment->unit_state, &s->build.chain, &s->todo, &s->done,
			 &s->workers);
	if (err)
		return err;
	assert_int_equal(sl_pool_init(&s->pool, 8 * c->batch + 64, s->geometry.modules, 1,
				      sl_geometry_frame_items(&s->geometry), s->build.result,
				      s->build.results),
			 0);
	return 0;
}

void gpu_close(struct gpu_side *s, const struct sl_unit *unit)
{
	if (s->unit_open)
		unit->close(s->experiment->unit_state);
	sl_pool_fini(&s->pool);
	sl_chain_close(&s->build);
	sl_calibrated_free(&s->calibrated);
	if (s->detector_open)
		s->experiment->detector->close(s->experiment->detector_state);
	for (int t = 0; t < 6; t++)
		free(s->table[t]);
	free(s->mask);
	free(s->frame);
	sl_experiment_close(s->experiment);
}

/* ---- pixels ---- */

static void gpu_special(enum sl_dtype dtype, void *pixels, size_t i, uint32_t which)
{
	static const uint8_t of_8[GPU_SPECIAL] = {0, 0xff, 0xfe, 0x80, 0x7f};
	static const uint16_t of_16[GPU_SPECIAL] = {0, 0xffff, 0xc000, 0x4000, 0x8123};
	static const uint32_t of_32[GPU_SPECIAL] = {0, 0xffffffff, 0xfffffffe, 0x80000000,
						    0x7fffffff};
	static const float of_floats[GPU_SPECIAL] = {0, NAN, INFINITY, -1, 99};

	if (dtype == SL_U8)
		((uint8_t *)pixels)[i] = of_8[which];
	else if (dtype == SL_U16)
		((uint16_t *)pixels)[i] = of_16[which];
	else if (dtype == SL_F32)
		((float *)pixels)[i] = of_floats[which];
	else
		((uint32_t *)pixels)[i] = of_32[which];
}

/* Frames of all kinds: plausible ones, any bits, all the same. Rows as short as can be have special
 * values, too. */
static void gpu_fill(enum sl_dtype dtype, void *pixels, size_t n, uint64_t frame)
{
	uint64_t seed = frame + 77;
	uint32_t same = (uint32_t)(frame % 23 == 7) * (1 + gpu_random(&seed) % GPU_SPECIAL);

	for (size_t i = 0; i < n; i++) {
		uint32_t bits = gpu_random(&seed);

		if (same || bits % 40 == 0)
			gpu_special(dtype, pixels, i, same ? same - 1 : bits / 40 % GPU_SPECIAL);
		else if (dtype == SL_U8)
			((uint8_t *)pixels)[i] = (uint8_t)(bits % 31 ? bits % 12 : bits);
		else if (dtype == SL_U16)
			((uint16_t *)pixels)[i] = (uint16_t)(bits % 8 ? 2300 + bits % 900 : bits);
		else if (dtype == SL_F32)
			((float *)pixels)[i] = (float)(bits % 400) * 0.1f - 2;
		else
			((uint32_t *)pixels)[i] = bits % 13 ? bits % 40 : bits;
	}
}

/* A count, or photons as the raw number that is about as many. */
static void gpu_store(enum sl_dtype dtype, void *pixels, size_t i, uint32_t photons)
{
	if (dtype == SL_U8)
		((uint8_t *)pixels)[i] = (uint8_t)photons;
	else if (dtype == SL_U16)
		((uint16_t *)pixels)[i] = (uint16_t)(2446 + 508 * photons);
	else
		((uint32_t *)pixels)[i] = photons;
}

/* One row of a module with peaks of several shapes, some of which touch, at edges too; every third
 * frame has a few large ones, and every seventh one that is larger than all that is allowed. */
static void gpu_peaks(enum sl_dtype dtype, void *pixels, uint32_t row, uint32_t columns,
		      uint64_t frame)
{
	uint64_t seed = frame * 64 + row + 1, place = frame * 7 + row / 6;

	for (uint32_t i = 0; i < columns; i++) {
		uint32_t bits = gpu_random(&seed), photons = bits % 3;

		if (bits % 61 == 0)
			photons = 4 + bits / 61 % 20;
		gpu_store(dtype, pixels, i, photons);
		if (bits % 71 == 0)
			gpu_special(dtype, pixels, i, bits / 71 % GPU_SPECIAL);
	}
	for (int peak = 0; peak < 6; peak++) {
		uint32_t high = gpu_random(&place) % 6, at = gpu_random(&place) % columns;
		uint32_t wide = 1 + gpu_random(&place) % (frame % 3 ? 3 : 9);

		for (uint32_t i = at; row % 6 <= high && i < at + wide && i < columns; i++)
			gpu_store(dtype, pixels, i, 8 + (i * 5 + row * 3) % 17);
	}
	for (uint32_t i = columns / 3; frame % 7 == 5 && row % 2 && i < columns; i++)
		gpu_store(dtype, pixels, row % 4 == 1 ? i : columns / 3, 20 + i % 3);
}

/* A module of a detector of events: what its emulator sends, some of it spoilt, or any bytes, which
 * may all say that they are valid; or, of a sector, a few stubs again and again. */
static void gpu_events(const struct gpu_side *s, uint64_t number, uint32_t m, uint32_t flags,
		       char *to, uint64_t pitch)
{
	const struct sl_geometry *g = &s->geometry;
	const void *pixels = NULL;
	char *buffer = malloc(g->module_bytes);
	uint64_t seed = number * 64 + m;
	uint32_t kind = (uint32_t)(number % 8);
	enum { ROW_BYTES = 960, AGAIN_BYTES = 48 };
	bool is_tracker = !strcmp(s->env.detector->name, "tracker");

	assert_int_equal(s->env.detector->render(s->env.detector_state, number, m,
						 flags & SL_FRAME_DARK ? SL_RECORD_DARK : 0, buffer,
						 &pixels),
			 0);
	if (pixels && pixels != buffer)
		memcpy(buffer, pixels, g->module_bytes);
	for (uint64_t i = 0; i < g->module_bytes; i++) {
		uint32_t bits = gpu_random(&seed);

		if (kind == 3 ? bits % 50 == 0 : kind == 5 || kind == 6)
			buffer[i] = (char)(bits >> 8);
		if (kind == 6 && i % 6 == 0)
			buffer[i] |= 1;
		if (kind == 4 && is_tracker && i % ROW_BYTES >= AGAIN_BYTES)
			buffer[i] = buffer[i - AGAIN_BYTES];
		if (kind == 7)
			buffer[i] = number % 16 == 7 ? 0 : (char)0xff;
	}
	for (uint32_t r = 0; r < g->rows; r++)
		memcpy(to + r * pitch, buffer + (uint64_t)r * g->columns, g->columns);
	free(buffer);
}

static uint64_t jumped(uint64_t number)
{
	return number < 7    ? number
	       : number < 12 ? number + 9
	       : number < 20 ? number + 300
			     : number - 11;
}

void gpu_make(const struct gpu_side *s, const struct gpu_case *c, struct sl_frame *frame,
	      uint64_t number, char *memory)
{
	uint64_t row = (uint64_t)s->geometry.columns * sl_dtype_bytes(s->geometry.dtype);
	uint64_t pitch = c->pitch ? row + 24 : row, module = pitch * s->geometry.rows;

	frame->sequence = number;
	frame->number = c->jumps ? jumped(number) : number;
	frame->timestamp = number * 1000;
	frame->flags = SL_FRAME_COMPLETE;
	frame->missing = 0;
	if (!c->no_darks && number * 7 % 11 < 4)
		frame->flags |= SL_FRAME_DARK;
	if (c->missing && number % 5 == 3) {
		frame->flags = (frame->flags & ~(uint32_t)SL_FRAME_COMPLETE) | SL_FRAME_PARTIAL;
		frame->missing = 1ull << number % s->geometry.modules;
	}
	for (uint32_t m = 0; m < s->geometry.modules; m++) {
		char *at = memory + m * module;

		if (s->geometry.items)
			gpu_events(s, number, m, frame->flags, at, pitch);
		for (uint32_t r = 0; r < s->geometry.rows && !s->geometry.items; r++)
			gpu_fill(s->geometry.dtype, at + r * pitch, s->geometry.columns,
				 number * 1000 + m * 300 + r);
		for (uint32_t r = 0; c->peaks && number % 5 && r < s->geometry.rows; r++)
			gpu_peaks(s->geometry.dtype, at + r * pitch, r, s->geometry.columns,
				  number + m);
		for (uint32_t r = 0; c->blank && number % 2 && r < s->geometry.rows; r++)
			for (uint32_t i = 0; i < s->geometry.columns; i++)
				gpu_special(s->geometry.dtype, at + r * pitch, i,
					    s->geometry.dtype == SL_F32 && number % 4 == 3 ? 2 : 1);
		if (frame->missing >> m & 1)
			memset(at, SL_FILL_BYTE, module);
		frame->view[m] =
			(struct sl_view){.pixels = {.host = at, .pitch = c->pitch ? pitch : 0},
					 .module = (uint16_t)m};
		frame->view[m].record.cell =
			(uint16_t)(c->cells ? number * 3 % (c->cells + 1) : 0); /* one too many */
	}
	for (uint32_t r = 0; r < frame->results; r++) {
		memset(frame->result[r].host, GPU_POISON, sl_shape_bytes(&frame->result[r].shape));
		frame->result[r].rows = 0;
	}
}

/* ---- running and comparing ---- */

uint64_t gpu_frame_bytes(const struct gpu_side *s)
{
	return s->geometry.modules * s->geometry.rows *
	       ((uint64_t)s->geometry.columns * sl_dtype_bytes(s->geometry.dtype) + 24);
}

int gpu_batch(struct gpu_side *s, const struct sl_unit *unit, struct sl_batch *batch)
{
	struct sl_batch *back = NULL;

	assert_int_equal(unit->submit(s->experiment->unit_state, batch), 0);
	while (!unit->reap(s->experiment->unit_state, &back))
		unit->work(s->experiment->unit_state, 0);
	assert_ptr_equal(back, batch);
	return batch->status;
}

static bool gpu_near(double a, double b, double bound)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= bound * fmax(fabs(a), fabs(b));
}

static void gpu_compare_result(const struct gpu_case *c, const struct sl_frame *a,
			       const struct sl_array *x, const struct sl_array *y)
{
	uint64_t n = sl_shape_elements(&x->shape);
	size_t bytes = sl_dtype_bytes(x->shape.dtype);

	if (x->shape.ragged && x->rows != y->rows)
		fail_msg("%s: frame %llu: %s has %u rows, and %u on the device", c->name,
			 (unsigned long long)a->number, x->shape.name, x->rows, y->rows);
	if (x->shape.ragged)
		n = n / x->shape.dim[0] * x->rows;
	for (uint64_t i = 0; i < n; i++) {
		const char *p = (const char *)x->host + i * bytes,
			   *q = (const char *)y->host + i * bytes;

		if (!memcmp(p, q, bytes))
			continue;
		if (x->shape.dtype == SL_F32 &&
		    gpu_near(*(const float *)p, *(const float *)q, c->bound))
			continue;
		if (x->shape.dtype == SL_F64 &&
		    gpu_near(*(const double *)p, *(const double *)q, c->bound))
			continue;
		fail_msg("%s: frame %llu: %s[%llu] differs: 0x%x, and 0x%x on the device", c->name,
			 (unsigned long long)a->number, x->shape.name, (unsigned long long)i,
			 *(const unsigned char *)p, *(const unsigned char *)q);
	}
}

unsigned gpu_compare(const struct gpu_case *c, const struct sl_frame *a, const struct sl_frame *b)
{
	for (uint32_t i = 0; i < a->items; i++)
		if (a->verdict[i].keep != b->verdict[i].keep ||
		    a->verdict[i].reason != b->verdict[i].reason ||
		    memcmp(&a->verdict[i].score, &b->verdict[i].score, sizeof(float)))
			fail_msg("%s: frame %llu, item %u: verdict %u %u %g, and %u %u %g on the "
				 "device",
				 c->name, (unsigned long long)a->number, i, a->verdict[i].keep,
				 a->verdict[i].reason, (double)a->verdict[i].score,
				 b->verdict[i].keep, b->verdict[i].reason,
				 (double)b->verdict[i].score);
	if (!sl_frame_is_kept(a))
		return 0;
	for (uint32_t r = 0; r < a->results; r++)
		gpu_compare_result(c, a, &a->result[r], &b->result[r]);
	return 1;
}

unsigned gpu_both(const struct gpu_case *c, struct gpu_side *side,
		  const struct sl_unit *const *unit, uint64_t first, uint32_t frames)
{
	struct sl_batch batch[2];
	unsigned kept = 0;
	char *memory[2];

	for (int s = 0; s < 2; s++) {
		batch[s] = (struct sl_batch){.frames = frames, .capacity = c->batch};
		batch[s].frame = calloc(frames, sizeof(*batch[s].frame));
		memory[s] = calloc(frames, gpu_frame_bytes(&side[s]));
		for (uint32_t f = 0; f < frames; f++) {
			batch[s].frame[f] = &sl_pool_get(&side[s].pool)->frame;
			gpu_make(&side[s], c, batch[s].frame[f], first + f,
				 memory[s] + f * gpu_frame_bytes(&side[s]));
		}
		assert_int_equal(gpu_batch(&side[s], unit[s], &batch[s]), 0);
	}
	for (uint32_t f = 0; f < frames; f++)
		kept += gpu_compare(c, batch[0].frame[f], batch[1].frame[f]);
	for (int s = 0; s < 2; s++) {
		for (uint32_t f = 0; f < frames; f++)
			sl_pool_put(&side[s].pool, (struct sl_flow_frame *)batch[s].frame[f]);
		free(batch[s].frame);
		free(memory[s]);
	}
	return kept;
}
