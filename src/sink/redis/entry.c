/* entry.c - rows and results as text and bytes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sink/redis/entry.h"
#include "sink/row.h"

enum { NUMBER_BYTES = 32, ID_BYTES = 48, OUTCOME_BYTES = 32 };

static const char *const fields[] = {"sequence", "frame_number", "timestamp",  "keep",
				     "score",	 "reason",	 "outcome",    "image_index",
				     "end",	 "frames",	 "rows_missed"};

/* ---- which results ---- */

static bool is_small(const struct sl_shape *shape, uint64_t most)
{
	return !shape->image && strcmp(shape->name, "raw") != 0 && sl_shape_bytes(shape) <= most;
}

static void add_result(struct sl_entry *entry, const struct sl_env *env, uint32_t index)
{
	const struct sl_shape *shape = &env->result[index];
	struct sl_entry_result *result = &entry->result[entry->results++];
	bool taken = false;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		taken |= !strcmp(shape->name, fields[i]);
	result->index = index;
	result->text = !shape->ragged && sl_shape_elements(shape) <= SL_ENTRY_TEXT;
	snprintf(result->field, sizeof(result->field), "%s%s", taken ? "result_" : "", shape->name);
}

static void list_small(const struct sl_env *env, char *names, size_t bytes)
{
	size_t at = 0;

	snprintf(names, bytes, "none");
	for (uint32_t i = 0; i < env->results && at < bytes; i++)
		if (is_small(&env->result[i], SL_ENTRY_BYTES))
			at += (size_t)snprintf(names + at, bytes - at, "%s%s", at ? ", " : "",
					       env->result[i].name);
}

static int add_named(struct sl_entry *entry, const struct sl_env *env, const char *name)
{
	char names[SL_RESULTS * (SL_NAME_BYTES + 2)];

	for (uint32_t i = 0; i < entry->results; i++)
		if (!strcmp(env->result[entry->result[i].index].name, name))
			return 0;
	for (uint32_t i = 0; i < env->results; i++)
		if (!strcmp(env->result[i].name, name) &&
		    is_small(&env->result[i], SL_ENTRY_BYTES)) {
			add_result(entry, env, i);
			return 0;
		}
	list_small(env, names, sizeof(names));
	sl_error("redis: results: no stage makes a small result '%s'; these there are: %s", name,
		 names);
	return -EINVAL;
}

int sl_entry_select(struct sl_entry *entry, const struct sl_env *env, const char *selection)
{
	char name[SL_NAME_BYTES];
	int r = 0;

	entry->results = 0;
	if (!strcmp(selection, "none"))
		return 0;
	for (uint32_t i = 0; !selection[0] && i < env->results; i++)
		if (is_small(&env->result[i], SL_ENTRY_AUTO_BYTES))
			add_result(entry, env, i);
	for (const char *at = selection; *at && !r;) {
		size_t length = strcspn(at, ", ");

		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		if (length)
			r = add_named(entry, env, name);
		at += length + (at[length] != 0);
	}
	return r;
}

void sl_entry_describe(const struct sl_shape *shape, bool text,
		       char description[SL_ENTRY_DESCRIPTION])
{
	size_t at = (size_t)snprintf(description, SL_ENTRY_DESCRIPTION, "%s (",
				     sl_dtype_name(shape->dtype));

	for (uint32_t d = 0; d < shape->rank && d < SL_RANK; d++)
		at += (size_t)(shape->ragged && !d
				       ? snprintf(description + at, SL_ENTRY_DESCRIPTION - at,
						  "rows")
				       : snprintf(description + at, SL_ENTRY_DESCRIPTION - at,
						  "%s%u", d ? "," : "", shape->dim[d]));
	snprintf(description + at, SL_ENTRY_DESCRIPTION - at, ") %s", text ? "text" : "bytes");
}

/* ---- numbers ---- */

#define INTEGER(type)                                                   \
	{                                                               \
		type value;                                             \
		memcpy(&value, data, sizeof(value));                    \
		return (size_t)sprintf(text, "%lld", (long long)value); \
	}

/* Whole numbers, which most are, without the C library's arithmetic. */
static size_t print_float(double value, double exact_below, const char *format, char *text)
{
	size_t sign = value < 0;

	if (!(value > -exact_below && value < exact_below) || value != (double)(int64_t)value ||
	    (value == 0 && signbit(value)))
		return (size_t)snprintf(text, NUMBER_BYTES, format, value);
	if (sign)
		text[0] = '-';
	return sign + sl_digits((uint64_t)(sign ? -value : value), text + sign);
}

/* At most NUMBER_BYTES - 1 characters. Floats can be read back without a loss. */
static size_t print(enum sl_dtype dtype, const void *data, char *text)
{
	float single;
	double number;

	switch (dtype) {
	case SL_U8:
		INTEGER(uint8_t)
	case SL_U16:
		INTEGER(uint16_t)
	case SL_U32:
		INTEGER(uint32_t)
	case SL_I16:
		INTEGER(int16_t)
	case SL_I32:
		INTEGER(int32_t)
	case SL_I64:
		INTEGER(int64_t)
	case SL_F32:
		memcpy(&single, data, sizeof(single));
		return print_float((double)single, 1e9, "%.9g", text);
	case SL_F64:
		memcpy(&number, data, sizeof(number));
		return print_float(number, 1e15, "%.17g", text);
	default:
		return 0;
	}
}

static void add_text(struct sl_command *command, const struct sl_array *array)
{
	char text[SL_ENTRY_TEXT * NUMBER_BYTES];
	size_t at = 0, size = sl_dtype_bytes(array->shape.dtype);
	uint64_t elements = sl_shape_elements(&array->shape);

	for (uint64_t i = 0; i < elements && i < SL_ENTRY_TEXT; i++) {
		if (i)
			text[at++] = ',';
		at += print(array->shape.dtype, (const char *)array->host + i * size, text + at);
	}
	sl_command_add(command, text, at);
}

static void add_bytes(struct sl_command *command, const struct sl_array *array)
{
	const struct sl_shape *shape = &array->shape;
	uint64_t bytes = sl_shape_bytes(shape);

	if (shape->ragged && shape->dim[0])
		bytes = bytes / shape->dim[0] *
			(array->rows < shape->dim[0] ? array->rows : shape->dim[0]);
	sl_command_add(command, array->host, bytes);
}

/* ---- an entry ---- */

static void begin(const struct sl_entry *entry, uint32_t pairs, struct sl_command *command)
{
	char id[ID_BYTES];
	size_t n;

	sl_command_begin(command, 3 + (entry->max_rows ? 3 : 0) + 2 * pairs);
	sl_command_add(command, "XADD", 4);
	sl_command_text(command, entry->stream);
	if (entry->max_rows) {
		sl_command_add(command, "MAXLEN", 6);
		sl_command_add(command, "~", 1);
		sl_command_u64(command, entry->max_rows);
	}
	n = sl_digits(entry->ms, id);
	id[n++] = '-';
	n += sl_digits(entry->number + 1, id + n);
	sl_command_add(command, id, n);
}

static void add_u64(struct sl_command *command, const char *field, uint64_t value)
{
	sl_command_text(command, field);
	sl_command_u64(command, value);
}

/* "stored", or "incomplete/damaged". */
static size_t print_outcome(uint8_t outcome, uint8_t cause, char *text)
{
	const char *name = outcome ? sl_outcome_name(outcome) : "none";
	int n = cause ? snprintf(text, OUTCOME_BYTES, "%s/%s", name, sl_cause_name(cause))
		      : snprintf(text, OUTCOME_BYTES, "%s", name);

	return n < OUTCOME_BYTES ? (size_t)n : OUTCOME_BYTES - 1;
}

/* One word where all modules have the same, else one for each with commas between them. */
static void add_outcomes(const struct sl_entry *entry, const struct sl_frame *frame,
			 struct sl_command *command)
{
	uint8_t outcome[SL_STATUS_MODULES], cause[SL_STATUS_MODULES];
	uint32_t modules = entry->modules < SL_STATUS_MODULES ? entry->modules : SL_STATUS_MODULES;
	char text[SL_STATUS_MODULES * OUTCOME_BYTES];
	bool same = true;
	size_t at = 0;

	sl_row_outcomes(frame, modules, outcome, cause);
	for (uint32_t m = 1; m < modules; m++)
		same &= outcome[m] == outcome[0] && cause[m] == cause[0];
	for (uint32_t m = 0; m < (same ? 1 : modules); m++) {
		if (m)
			text[at++] = ',';
		at += print_outcome(outcome[m], cause[m], text + at);
	}
	sl_command_text(command, "outcome");
	sl_command_add(command, text, at);
}

static uint32_t count_results(const struct sl_entry *entry, const struct sl_frame *frame)
{
	bool has = sl_frame_goes_on(frame) && frame->results;

	if (!has || (entry->kept_only && !sl_row_kept(frame) && !sl_row_left_out(frame)))
		return 0;
	for (uint32_t i = 0; i < entry->results; i++)
		if (entry->result[i].index >= frame->results ||
		    !frame->result[entry->result[i].index].host)
			return 0;
	return entry->results;
}

void sl_entry_frame(const struct sl_entry *entry, const struct sl_frame *frame, int64_t image,
		    struct sl_command *command)
{
	struct sl_verdict verdict = sl_row_verdict(frame);
	uint32_t results = count_results(entry, frame);
	char score[NUMBER_BYTES];

	begin(entry, 7 + (image >= 0) + results, command);
	add_u64(command, "sequence", frame->sequence);
	add_u64(command, "frame_number", frame->number);
	add_u64(command, "timestamp", frame->timestamp);
	add_u64(command, "keep", sl_row_kept(frame) || sl_row_left_out(frame));
	sl_command_text(command, "score");
	sl_command_add(command, score, print(SL_F32, &verdict.score, score));
	sl_command_text(command, "reason");
	sl_command_text(command, sl_reason_name(verdict.reason));
	add_outcomes(entry, frame, command);
	if (image >= 0)
		add_u64(command, "image_index", (uint64_t)image);
	for (uint32_t i = 0; i < results; i++) {
		const struct sl_array *array = &frame->result[entry->result[i].index];

		sl_command_text(command, entry->result[i].field);
		if (entry->result[i].text)
			add_text(command, array);
		else
			add_bytes(command, array);
	}
}

void sl_entry_end(const struct sl_entry *entry, uint64_t frames, uint64_t missed,
		  struct sl_command *command)
{
	begin(entry, 3, command);
	add_u64(command, "end", 1);
	add_u64(command, "frames", frames);
	add_u64(command, "rows_missed", missed);
}
