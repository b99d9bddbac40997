/* metadata_fuzz.c - any bytes as a change of metadata, "KEY=VALUE": what is taken is within its
 * bounds, says the same again, and is read as numbers and users without harm. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/metadata/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sl_metadata_section section = {.frame_rate_Hz = 100};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look_at_text(const char *value)
{
	struct sl_metadata_user user[SL_METADATA_USERS];
	char unit[SL_METADATA_UNIT], why[300] = "";
	double number;
	int users = sl_metadata_parse_users(value, user, why, sizeof(why));

	check(users <= SL_METADATA_USERS && (users >= 0 || why[0]));
	for (int i = 0; i < users; i++)
		check(user[i].name[0] && strlen(user[i].email) < sizeof(user[i].email));
	if (sl_metadata_number(value, &number, unit))
		check(isfinite(number) && strlen(unit) < sizeof(unit));
}

/* What is stored is taken again, and stays as it is. */
static void look_at_change(const char *key, const char *value)
{
	char text[SL_METADATA_VALUE], again[SL_METADATA_VALUE], why[300] = "";
	struct sl_metadata_known known;
	const char *name, *same;

	if (sl_metadata_check(&section, key, value, &name, text, why, sizeof(why))) {
		check(why[0]);
		return;
	}
	check(sl_metadata_is_key(name) && strlen(text) < sizeof(text));
	for (const char *c = text; *c; c++)
		check((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t');
	check(!sl_metadata_check(&section, key, text, &same, again, why, sizeof(why)));
	check(!strcmp(text, again) && !strcmp(name, same));
	section.table.n = 0;
	check(!sl_metadata_set(&section.table, name, text));
	sl_metadata_read_known(&section.table, &known);
	check(known.exposure_s <= 0.0100001);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 1), *equals;

	if (!line)
		abort();
	memcpy(line, data, size);
	line[size] = 0;
	equals = strchr(line, '=');
	if (equals) {
		*equals = 0;
		look_at_change(line, equals + 1);
		look_at_text(equals + 1);
	}
	look_at_text(line);
	free(line);
	return 0;
}
