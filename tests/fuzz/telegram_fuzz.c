/* telegram_fuzz.c - any bytes as a telegram: what is understood is within its bounds; and any bytes
 * as texts of a reply, which must be a well-formed document all the same. */
#include <expat.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/registry.h"
#include "telegram/telegram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look(const struct sl_telegram *t)
{
	unsigned pairs = 0;

	check(t->requests && t->requests <= SL_TELEGRAM_REQUESTS);
	check(strlen(t->id) <= SL_TELEGRAM_ID);
	for (unsigned i = 0; i < t->requests; i++) {
		const struct sl_telegram_request *r = &t->request[i];

		check(r->call < SL_TELEGRAM_CALLS);
		check(r->call == SL_TELEGRAM_CAPABILITIES || sl_registry_name_is_valid(r->to));
		check(r->wait_s <= SL_TELEGRAM_WAIT_MAX_S);
		check(!r->reason || strlen(r->reason) <= SL_TELEGRAM_REASON);
		check((r->call == SL_TELEGRAM_WAIT) == (r->state != NULL));
		for (unsigned k = 0; k < r->pairs; k++) {
			check(strlen(r->pair[k].key) <= SL_TELEGRAM_KEY + 1 + SL_TELEGRAM_TEXT);
			check(!r->pair[k].value || strlen(r->pair[k].value) <= SL_TELEGRAM_TEXT);
			check(r->call != SL_TELEGRAM_CONFIGURE || strchr(r->pair[k].key, '='));
		}
		pairs += r->pairs;
	}
	check(pairs <= SL_TELEGRAM_PAIRS);
}

static void is_well_formed(char *reply)
{
	XML_Parser parser = XML_ParserCreateNS(NULL, ' ');

	check(reply && parser);
	check(XML_Parse(parser, reply, (int)strlen(reply), XML_TRUE) == XML_STATUS_OK);
	XML_ParserFree(parser);
	free(reply);
}

/* What sessions and users say ends up in replies. */
static void say(const struct sl_telegram *t, const char *text)
{
	struct sl_telegram_answer *a = calloc(t->requests, sizeof(*a));

	check(a);
	for (unsigned i = 0; i < t->requests; i++) {
		a[i].result = SL_TELEGRAM_FAILED;
		snprintf(a[i].error.code, sizeof(a[i].error.code), "state");
		snprintf(a[i].error.message, sizeof(a[i].error.message), "%s", text);
		snprintf(a[i].error.hint, sizeof(a[i].error.hint), "%s", text);
	}
	a[0].metadata = json_pack("{s:o}", "k", json_string_nocheck(text));
	is_well_formed(sl_telegram_write(t, a, NULL));
	sl_telegram_answers_free(a, t->requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_telegram *t = NULL;
	struct sl_remote_error error;
	char *text = malloc(size + 1);

	check(text);
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&error, 0, sizeof(error));
	if (sl_telegram_parse(data, size, &t, &error)) {
		check(error.message[0] && error.code[0]);
		snprintf(error.hint, sizeof(error.hint), "%s", text);
		is_well_formed(sl_telegram_write(NULL, NULL, &error));
	} else {
		look(t);
		say(t, text);
	}
	sl_telegram_free(t);
	free(text);
	return 0;
}
