/* option.c - options between text and struct. */
#include <sluice/option.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "k", "Mi", ...: SI letters are powers of 1000, with an i powers of 1024. 0: none of these. */
static uint64_t suffix_factor(const char *suffix)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} table[] = {
		{"", 1},
		{"k", 1000},
		{"M", 1000000},
		{"G", 1000000000},
		{"Ki", UINT64_C(1) << 10},
		{"Mi", UINT64_C(1) << 20},
		{"Gi", UINT64_C(1) << 30},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(suffix, table[i].name))
			return table[i].factor;
	return 0;
}

/* Decimal with a suffix, or 0x hexadecimal. A leading 0 is not octal: nobody means that. */
static int parse_whole(const char *text, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	uint64_t number, factor;
	char *end;

	/* strtoull() would also take blanks, a sign, and a second "0x". */
	if (!(hex ? isxdigit((unsigned char)*digits) : isdigit((unsigned char)*digits)))
		return -EINVAL;
	if (hex && (digits[1] == 'x' || digits[1] == 'X'))
		return -EINVAL;
	errno = 0;
	number = strtoull(digits, &end, hex ? 16 : 10);
	factor = hex ? !*end : suffix_factor(end);
	if (!factor)
		return -EINVAL;
	if (errno == ERANGE || __builtin_mul_overflow(number, factor, &number))
		return -ERANGE;
	*value = number;
	return 0;
}

static int parse_real(const char *text, double *value)
{
	const char *first = text + (*text == '-' || *text == '+');
	uint64_t factor;
	double number;
	char *end;

	/* strtod() would also take blanks, "nan", "infinity" and hexadecimal. */
	if (!isdigit((unsigned char)*first) && *first != '.')
		return -EINVAL;
	if (first[0] == '0' && (first[1] == 'x' || first[1] == 'X'))
		return -EINVAL;
	number = strtod(text, &end);
	factor = suffix_factor(end);
	if (end == text || !factor)
		return -EINVAL;
	number *= (double)factor;
	if (!isfinite(number))
		return -ERANGE;
	*value = number;
	return 0;
}

static int parse_bool(const char *text, bool *value)
{
	static const char *const words[2][3] = {{"false", "no", "off"}, {"true", "yes", "on"}};

	for (int truth = 0; truth < 2; truth++)
		for (int i = 0; i < 3; i++)
			if (!strcmp(text, words[truth][i])) {
				*value = truth;
				return 0;
			}
	return -EINVAL;
}

/* The index of `text` in "a|b|c". */
static int parse_choice(const char *choices, const char *text, uint32_t *value)
{
	size_t length = strlen(text);
	uint32_t index = 0;

	for (const char *c = choices; length; c++, index++) {
		size_t n = strcspn(c, "|");

		if (n == length && !memcmp(c, text, n)) {
			*value = index;
			return 0;
		}
		c += n;
		if (!*c)
			break;
	}
	return -EINVAL;
}

/* The word in the place of a number: its minimum is above 0, which stands for the word. */
static bool is_word(const struct sl_option *option, const char *text)
{
	return option->type == SL_OPTION_U32 && option->choices && !strcmp(option->choices, text);
}

static int set_whole(const struct sl_option *option, void *field, const char *text)
{
	uint64_t value;
	uint32_t small;
	int err;

	if (is_word(option, text)) {
		memset(field, 0, sizeof(small));
		return 0;
	}
	err = parse_whole(text, &value);
	if (err)
		return err;
	if ((double)value < option->min || (double)value > option->max)
		return -ERANGE;
	if (option->type == SL_OPTION_U64) {
		memcpy(field, &value, sizeof(value));
		return 0;
	}
	if (value > UINT32_MAX)
		return -ERANGE;
	small = (uint32_t)value;
	memcpy(field, &small, sizeof(small));
	return 0;
}

static int set_real(const struct sl_option *option, void *field, const char *text)
{
	double value;
	int err = parse_real(text, &value);

	if (err)
		return err;
	if (value < option->min || value > option->max)
		return -ERANGE;
	memcpy(field, &value, sizeof(value));
	return 0;
}

static int set_string(const struct sl_option *option, void *field, const char *text)
{
	size_t length = strlen(text);

	if (length >= option->size)
		return -ERANGE;
	memset(field, 0, option->size);
	memcpy(field, text, length);
	return 0;
}

static int set(const struct sl_option *option, void *field, const char *text)
{
	uint32_t index;
	bool truth;
	int err = -EINVAL;

	switch (option->type) {
	case SL_OPTION_U32:
	case SL_OPTION_U64:
		return set_whole(option, field, text);
	case SL_OPTION_F64:
		return set_real(option, field, text);
	case SL_OPTION_STRING:
	case SL_OPTION_OUTPUT:
	case SL_OPTION_OUTPUT_FOLDERS:
	case SL_OPTION_SECRET:
		return set_string(option, field, text);
	case SL_OPTION_BOOL:
		err = parse_bool(text, &truth);
		if (!err)
			memcpy(field, &truth, sizeof(truth));
		return err;
	case SL_OPTION_CHOICE:
		err = parse_choice(option->choices, text, &index);
		if (!err)
			memcpy(field, &index, sizeof(index));
		return err;
	}
	return err;
}

int sl_option_set(const struct sl_option *option, void *base, const char *text, char *why,
		  size_t why_bytes)
{
	int err = set(option, (char *)base + option->offset, text);
	char takes[240];

	if (err && why && why_bytes) {
		sl_option_takes(option, takes, sizeof(takes));
		snprintf(why, why_bytes, "takes %s", takes);
	}
	return err;
}

/* 0: any. */
static size_t size_of(enum sl_option_type type)
{
	static const size_t sizes[] = {
		[SL_OPTION_U32] = sizeof(uint32_t),
		[SL_OPTION_U64] = sizeof(uint64_t),
		[SL_OPTION_F64] = sizeof(double),
		[SL_OPTION_BOOL] = sizeof(bool),
		[SL_OPTION_STRING] = 0,
		[SL_OPTION_CHOICE] = sizeof(uint32_t),
		[SL_OPTION_OUTPUT] = 0,
		[SL_OPTION_SECRET] = 0,
		[SL_OPTION_OUTPUT_FOLDERS] = 0,
	};

	return sizes[type];
}

/* A row whose field does not have the row's type would write past it. */
static void check_size(const struct sl_option *option)
{
	size_t size = size_of(option->type);

	if (size && size != option->size) {
		fprintf(stderr, "option '%s': the field has %zu bytes, its type needs %zu\n",
			option->name, option->size, size);
		abort();
	}
}

static bool choices_fit(const struct sl_option *o)
{
	if (o->type == SL_OPTION_U32 && o->choices)
		return o->min > 0 && *o->choices && !strchr(o->choices, '|');
	return (o->type == SL_OPTION_CHOICE) == (o->choices != NULL);
}

static int check_row(const struct sl_option *o, void *base, size_t bytes, char *why,
		     size_t why_bytes)
{
	char reason[256];

	if ((unsigned)o->type > SL_OPTION_SECRET || !o->def || !o->doc || !o->unit ||
	    !choices_fit(o))
		snprintf(why, why_bytes, "type, default, unit, doc or choices are not right");
	else if (o->offset > bytes || o->size > bytes - o->offset || !o->size ||
		 (size_of(o->type) && size_of(o->type) != o->size))
		snprintf(why, why_bytes, "its field does not have the row's type");
	else if (sl_option_set(o, base, o->def, reason, sizeof(reason)))
		snprintf(why, why_bytes, "default '%s': it %s", o->def, reason);
	else
		return 0;
	return -EINVAL;
}

int sl_options_check(const struct sl_option *options, size_t bytes, char *why, size_t why_bytes)
{
	void *base = calloc(1, bytes ? bytes : 1);
	char reason[300];
	int err = base ? 0 : -ENOMEM;

	for (; !err && options->name; options++) {
		err = check_row(options, base, bytes, reason, sizeof(reason));
		if (err)
			snprintf(why, why_bytes, "option '%s': %s", options->name, reason);
	}
	free(base);
	return err;
}

void sl_options_defaults(const struct sl_option *options, void *base)
{
	char why[256];

	for (; options->name; options++) {
		check_size(options);
		if (!sl_option_set(options, base, options->def, why, sizeof(why)))
			continue;
		fprintf(stderr, "option '%s': default '%s' is wrong: it %s\n", options->name,
			options->def, why);
		abort();
	}
}

int sl_options_set(const struct sl_option *options, void *base, const char *name, const char *text,
		   char *why, size_t why_bytes)
{
	const struct sl_option *option = sl_option_find(options, name);

	return option ? sl_option_set(option, base, text, why, why_bytes) : -ENOENT;
}

const struct sl_option *sl_option_find(const struct sl_option *options, const char *name)
{
	for (; options->name; options++)
		if (!strcmp(options->name, name))
			return options;
	return NULL;
}

const struct sl_option *sl_option_find_former(const struct sl_option *options, const char *name)
{
	for (; options->name; options++)
		if (options->was && !strcmp(options->was, name))
			return options;
	return NULL;
}

/* With as few digits as bring the same number back. */
static void print_real(double value, char *text, size_t bytes)
{
	char digits[32];

	if (value == trunc(value) && fabs(value) < 1e15) {
		snprintf(text, bytes, "%.0f", value);
		return;
	}
	for (int precision = 6; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	snprintf(text, bytes, "%s", digits);
}

static void print_choice(const char *choices, uint32_t index, char *text, size_t bytes)
{
	for (; index && *choices; index--) {
		choices += strcspn(choices, "|");
		choices += *choices == '|';
	}
	snprintf(text, bytes, "%.*s", (int)strcspn(choices, "|"), choices);
}

void sl_option_print(const struct sl_option *option, const void *base, char *text, size_t bytes)
{
	const char *field = (const char *)base + option->offset;
	uint32_t u32;
	uint64_t u64;
	double f64;
	bool truth;

	switch (option->type) {
	case SL_OPTION_U32:
		memcpy(&u32, field, sizeof(u32));
		if (!u32 && option->choices)
			snprintf(text, bytes, "%s", option->choices);
		else
			snprintf(text, bytes, "%" PRIu32, u32);
		break;
	case SL_OPTION_U64:
		memcpy(&u64, field, sizeof(u64));
		snprintf(text, bytes, "%" PRIu64, u64);
		break;
	case SL_OPTION_F64:
		memcpy(&f64, field, sizeof(f64));
		print_real(f64, text, bytes);
		break;
	case SL_OPTION_BOOL:
		memcpy(&truth, field, sizeof(truth));
		snprintf(text, bytes, "%s", truth ? "true" : "false");
		break;
	case SL_OPTION_STRING:
	case SL_OPTION_OUTPUT:
	case SL_OPTION_OUTPUT_FOLDERS:
		snprintf(text, bytes, "%.*s", (int)option->size, field);
		break;
	case SL_OPTION_SECRET:
		snprintf(text, bytes, "%s", "");
		break;
	case SL_OPTION_CHOICE:
		memcpy(&u32, field, sizeof(u32));
		print_choice(option->choices, u32, text, bytes);
		break;
	}
}

/* "a|b|c" as "a, b or c". */
static void list_choices(const char *choices, char *text, size_t bytes)
{
	size_t used = 0;

	*text = 0;
	while (*choices && used < bytes) {
		size_t n = strcspn(choices, "|");
		const char *next = choices + n + (choices[n] == '|');
		bool last = !*next || !strchr(next, '|');

		used += (size_t)snprintf(text + used, bytes - used, "%.*s%s", (int)n, choices,
					 !*next ? ""
					 : last ? " or "
						: ", ");
		choices = next;
	}
}

void sl_option_takes(const struct sl_option *option, char *text, size_t bytes)
{
	const char *blank = option->unit && *option->unit ? " " : "";
	const char *unit = option->unit ? option->unit : "";
	char min[32], max[32];

	if (!bytes)
		return;
	switch (option->type) {
	case SL_OPTION_U32:
	case SL_OPTION_U64:
		snprintf(text, bytes, "%.0f..%.0f%s%s%s%s", option->min, option->max, blank, unit,
			 option->choices ? " or " : "", option->choices ? option->choices : "");
		break;
	case SL_OPTION_F64:
		print_real(option->min, min, sizeof(min));
		print_real(option->max, max, sizeof(max));
		snprintf(text, bytes, "%s..%s%s%s", min, max, blank, unit);
		break;
	case SL_OPTION_BOOL:
		snprintf(text, bytes, "true or false");
		break;
	case SL_OPTION_STRING:
	case SL_OPTION_SECRET:
		snprintf(text, bytes, "text of at most %zu bytes", option->size - 1);
		break;
	case SL_OPTION_OUTPUT:
		snprintf(text, bytes, "path of at most %zu bytes", option->size - 1);
		break;
	case SL_OPTION_OUTPUT_FOLDERS:
		snprintf(text, bytes, "paths of at most %zu bytes in all", option->size - 1);
		break;
	case SL_OPTION_CHOICE:
		list_choices(option->choices, text, bytes);
		break;
	}
}
