/* python.c - a script decides which frames are kept, for prototypes.
 *
 * The script's function is called with each frame that the stages before have not rejected, and
 * returns whether to keep it, with a score and numbers if it likes. It runs in processes of its
 * own, which can write to nothing of the run's. A verdict that comes after deadline_ms is keep, and
 * so is that of a frame during which the script crashes or raises an exception: such a frame keeps
 * the verdict of the stages before, and counts as unjudged.
 *
 * Adds NAME_judged, uint8: 1: the script judged the frame, 2: it is kept without a verdict, 0: it
 * was not shown (dark, or rejected before); with `numbers` also NAME_numbers, float64 [numbers].
 * The reason of a verdict is `score`.
 *
 * Order: batches come to the script in sequence. With one process it sees frames in sequence; with
 * more each process sees some of them.
 *
 * Cost: a copy of the arrays that the script gets, and what the script takes. One worker waits;
 * others go on with tiles of the next batches. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "stage/python/python.h"

static const struct sl_option options[] = {
	SL_STRING(struct sl_python, script, "", "the file with the function"),
	SL_STRING(struct sl_python, function, "judge", "which is called with each frame"),
	SL_STRING(struct sl_python, inputs, "image",
		  "what it gets of a frame, with commas between: raw, or results of stages before"),
	SL_F64(struct sl_python, deadline_ms, 100, 0.1, 60000, "ms",
	       "for one frame; one that takes longer is kept without a verdict"),
	SL_U32(struct sl_python, processes, 1, 1, SL_PYTHON_PROCESSES, "processes",
	       "of the script; each judges one frame at a time"),
	SL_U32(struct sl_python, numbers, 0, 0, SL_PYTHON_NUMBERS, "numbers",
	       "that the function may return of each frame, at most"),
	SL_CHOICE(struct sl_python, look, kept, "kept|all",
		  "at frames that no stage before it rejected, or at all"),
	SL_STRING(struct sl_python, python, "python3",
		  "the interpreter, with NumPy: a path, or a name to look for in PATH"),
	SL_STRING(struct sl_python, name, "python",
		  "of its results and figures; two such stages in a chain need two names"),
	SL_F64(struct sl_python, start_s, 60, 0.1, 3600, "s",
	       "for the script to be imported and set up"),
	SL_F64(struct sl_python, stuck_s, 10, 0.01, 3600, "s",
	       "after so long without an answer a process is ended and started again"),
	SL_OPTION_END};

/* ---- what the script gets ---- */

/* SL_STAGE_RAW, an index into `before`, or -EINVAL. */
static int find(const char *name, const struct sl_env *env, const struct sl_stage_terms *terms)
{
	for (int i = terms->result - 1; i >= 0; i--)
		if (!strcmp(terms->before[i].name, name))
			return i;
	/* As in receiver/chain.c: where the detector counts photons, raw pixels are the image. */
	if (!strcmp(name, "raw") ||
	    (!strcmp(name, "image") && !sl_calibration_has_gains(env->calibration) &&
	     !env->geometry->items))
		return SL_STAGE_RAW;
	return -EINVAL;
}

static int add_input(struct sl_python_engine *e, const char *name, const struct sl_env *env,
		     const struct sl_shape *raw, struct sl_stage_terms *terms)
{
	struct sl_python_array *array = &e->array[e->arrays];
	int result = find(name, env, terms);

	if (result == -EINVAL) {
		sl_error("%s: inputs: there is no '%s': no stage before it makes that",
			 e->options->name, name);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < e->arrays; i++)
		if (!strcmp(e->array[i].shape.name, name)) {
			sl_error("%s: inputs: '%s' is there twice", e->options->name, name);
			return -EINVAL;
		}
	if (e->arrays == SL_PYTHON_ARRAYS) {
		sl_error("%s: inputs: more than %d arrays", e->options->name, SL_PYTHON_ARRAYS);
		return -EINVAL;
	}
	array->result = result;
	array->shape = result == SL_STAGE_RAW ? *raw : terms->before[result];
	snprintf(array->shape.name, sizeof(array->shape.name), "%s", name);
	if (result != SL_STAGE_RAW)
		terms->reads |= UINT32_C(1) << result;
	e->arrays++;
	return 0;
}

static int add_inputs(struct sl_python_engine *e, const struct sl_env *env,
		      const struct sl_shape *raw, struct sl_stage_terms *terms)
{
	char copy[sizeof(e->options->inputs)], *rest = copy, *name;
	int err = 0;

	memcpy(copy, e->options->inputs, sizeof(copy));
	while (!err && (name = strsep(&rest, ","))) {
		name += strspn(name, " ");
		name[strcspn(name, " ")] = 0;
		if (*name)
			err = add_input(e, name, env, raw, terms);
	}
	return err;
}

/* ---- open and close ---- */

static int check_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	if (n && !name[n] && (name[0] < '0' || name[0] > '9'))
		return 0;
	sl_error("python: name: '%s' is no name of a result: lower-case letters, digits and _",
		 name);
	return -EINVAL;
}

static int check(const struct sl_python *s)
{
	int err = check_name(s->name);

	if (err)
		return err;
	if (!*s->script) {
		sl_error("python: option script is missing: the file with the function %s(frame)",
			 s->function);
		return -EINVAL;
	}
	if (access(s->script, R_OK)) {
		err = -errno;
		sl_error("python: cannot read script '%s': %s", s->script, strerror(errno));
		return err;
	}
	return 0;
}

static void add_outputs(struct sl_python_engine *e, struct sl_stage_terms *terms)
{
	static const char *const figure[SL_PYTHON_FIGURES] = {"judged", "unjudged", "late",
							      "errors", "restarts"};
	const char *name = e->options->name;

	terms->outputs = e->numbers ? 2 : 1;
	terms->output[0] = (struct sl_shape){
		.dtype = SL_U8,
		.doc = "1: judged by the script, 2: kept without a verdict, 0: not shown to it"};
	terms->output[1] = (struct sl_shape){
		.dtype = SL_F64, .rank = 1, .dim = {e->numbers}, .doc = "numbers of the script"};
	snprintf(terms->output[0].name, SL_NAME_BYTES, "%s_judged", name);
	snprintf(terms->output[1].name, SL_NAME_BYTES, "%s_numbers", name);
	for (int i = 0; i < SL_PYTHON_FIGURES; i++)
		snprintf(e->figure[i], sizeof(e->figure[i]), "%s_%s", name, figure[i]);
}

static struct sl_python_engine *make(const struct sl_python *s)
{
	struct sl_python_engine *e = aligned_alloc(64, (sizeof(*e) + 63) / 64 * 64);

	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->options = s;
	e->processes = e->spare = s->processes;
	e->numbers = s->numbers;
	e->deadline_ns = (uint64_t)(s->deadline_ms * 1e6);
	e->stuck_ns = (uint64_t)(s->stuck_s * 1e9);
	if (e->stuck_ns < 2 * e->deadline_ns)
		e->stuck_ns = 2 * e->deadline_ns;
	e->kick = e->code = e->memory.fd = -1;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	for (uint32_t i = 0; i < e->processes; i++) {
		e->process[i].place = i;
		e->process[i].socket = e->process[i].pidfd = -1;
		e->process[i].out.fd = e->process[i].err.fd = -1;
	}
	return e;
}

static int open_python(void *state, const struct sl_env *env, const struct sl_shape *in,
		       struct sl_stage_terms *terms)
{
	struct sl_python *s = state;
	struct sl_python_engine *e;
	int err = check(s);

	if (err)
		return err;
	e = s->engine = make(s);
	if (!e)
		return -ENOMEM;
	e->result = terms->result;
	e->rows = env->geometry->rows;
	e->row_bytes = env->geometry->columns * sl_dtype_bytes(in->dtype);
	err = add_inputs(e, env, in, terms);
	if (!err)
		err = sl_python_memory_open(e, env);
	if (err)
		return err;
	add_outputs(e, terms);
	return sl_python_start(e);
}

static void close_python(void *state)
{
	struct sl_python *s = state;

	if (!s->engine)
		return;
	sl_python_stop(s->engine);
	sl_python_memory_close(&s->engine->memory);
	pthread_mutex_destroy(&s->engine->lock);
	pthread_cond_destroy(&s->engine->changed);
	free(s->engine);
	s->engine = NULL;
}

static int again(void *state)
{
	struct sl_python_engine *e = ((struct sl_python *)state)->engine;

	_Atomic uint64_t *const count[] = {&e->counts.judged, &e->counts.unjudged, &e->counts.late,
					   &e->counts.errors, &e->counts.restarts};

	for (size_t i = 0; i < sizeof(count) / sizeof(*count); i++)
		atomic_store_explicit(count[i], 0, memory_order_relaxed);
	return sl_python_renew(e);
}

/* ---- the run ---- */

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	sl_python_judge(((struct sl_python *)state)->engine, batch);
}

static void figures(const void *state, sl_stage_figure *figure, void *arg)
{
	const struct sl_python_engine *e = ((const struct sl_python *)state)->engine;
	const struct sl_python_counts *c = &e->counts;
	const _Atomic uint64_t *const value[SL_PYTHON_FIGURES] = {
		&c->judged, &c->unjudged, &c->late, &c->errors, &c->restarts};

	for (int i = 0; i < SL_PYTHON_FIGURES; i++)
		figure(arg, e->figure[i], atomic_load_explicit(value[i], memory_order_relaxed), 0);
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	const struct sl_python *python = state;

	each(arg, SL_FILE_READ, python->script);
	each(arg, SL_FILE_CODE, python->script);
	each(arg, SL_FILE_CODE, python->python);
}

const struct sl_stage sl_stage_python = {
	.name = "python",
	.doc = "a Python script judges frames, in processes of its own: for prototypes",
	.state_bytes = sizeof(struct sl_python),
	.options = options,
	.input = "raw",
	.ordered = SL_ORDER_PARTS,
	.waits = 1,
	.open = open_python,
	.close = close_python,
	.finish = finish,
	.files = files,
	.again = again,
	.figures = figures,
};
