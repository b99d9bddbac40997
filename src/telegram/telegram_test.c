/* telegram_test.c - documents become requests, answers become documents; what no telegram may have
 * is refused, with the place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "telegram/telegram.h"

#define HEAD "<telegram xmlns=\"urn:sluice:telegram:1\" version=\"1\">"
#define TAIL "</telegram>"

static struct sl_remote_error error;

static struct sl_telegram *parsed(const char *document)
{
	struct sl_telegram *t = NULL;

	if (sl_telegram_parse(document, strlen(document), &t, &error))
		fail_msg("%s: %s", error.where, error.message);
	return t;
}

static void is_refused(const char *document, const char *where, const char *message)
{
	struct sl_telegram *t = NULL;

	assert_int_equal(sl_telegram_parse(document, strlen(document), &t, &error), -EINVAL);
	assert_null(t);
	assert_string_equal(error.code, "request");
	if (!strstr(error.message, message))
		fail_msg("'%s' does not say '%s'", error.message, message);
	if (where)
		assert_string_equal(error.where, where);
}

static void requests_are_read_in_order(void **state)
{
	struct sl_telegram *t = parsed(
		"<?xml version=\"1.0\"?><!-- a scan -->"
		"<t:telegram xmlns:t=\"urn:sluice:telegram:1\" version=\"1\" id=\"a&amp;b\">"
		"<t:capabilities/>"
		"<t:configure to=\"d.1\"><t:set path=\"detector.frames\">20<!-- -->0</t:set>"
		"<t:set path=\"a.b\"><![CDATA[<x>]]></t:set></t:configure>"
		"<t:arm to=\"d.1\" wait_s=\"2.50\"/><t:stop to=\"s\" reason=\"shutter\"/>"
		"<t:metadata to=\"s\" keep=\"true\"><t:value key=\"sample\">l \xc3\xa4</t:value>"
		"<t:remove key=\"old\"/><t:value key=\"e\"/></t:metadata>"
		"<t:wait to=\"s\" state=\"ended\" wait_s=\"86400\"/><t:metadata to=\"s\"/>"
		"</t:telegram>");
	const struct sl_telegram_request *r = t->request;

	assert_string_equal(t->id, "a&b");
	assert_int_equal(t->requests, 7);
	assert_int_equal(r[0].call, SL_TELEGRAM_CAPABILITIES);
	assert_string_equal(r[0].to, "");
	assert_string_equal(r[1].to, "d.1");
	assert_int_equal(r[1].pairs, 2);
	assert_string_equal(r[1].pair[0].key, "detector.frames=200");
	assert_string_equal(r[1].pair[1].key, "a.b=<x>");
	assert_true(r[2].wait_s == 2.5 && r[3].wait_s < 0);
	assert_string_equal(r[3].reason, "shutter");
	assert_null(r[2].reason);
	assert_true(r[4].keep && !r[6].keep);
	assert_int_equal(r[4].pairs, 3);
	assert_string_equal(r[4].pair[0].key, "sample");
	assert_string_equal(r[4].pair[0].value, "l \xc3\xa4");
	assert_string_equal(r[4].pair[1].key, "old");
	assert_null(r[4].pair[1].value);
	assert_string_equal(r[4].pair[2].value, "");
	assert_string_equal(r[5].state, "ended");
	assert_int_equal(r[6].pairs, 0);
	sl_telegram_free(t);
}

static void other_documents_are_refused(void **state)
{
	static const struct {
		const char *document, *where, *message;
	} bad[] = {
		{"", NULL, "not XML"},
		{"{}", NULL, "not XML"},
		{HEAD, NULL, "not XML"},
		{HEAD TAIL, NULL, "at least one request"},
		{"<!DOCTYPE a>" HEAD "<capabilities/>" TAIL, NULL, "no DOCTYPE"},
		{"<!DOCTYPE a [<!ENTITY x \"y\">]>" HEAD "<status to=\"&x;\"/>" TAIL, NULL,
		 "no DOCTYPE"},
		{HEAD "<status to=\"&x;\"/>" TAIL, NULL, "undefined entity"},
		{"<telegram version=\"1\"/>", NULL, "namespace"},
		{"<telegram xmlns=\"urn:sluice:telegram:2\" version=\"1\"/>", NULL, "namespace"},
		{"<reply xmlns=\"urn:sluice:telegram:1\" version=\"1\"/>", NULL, "begins with"},
		{"<telegram xmlns=\"urn:sluice:telegram:1\"/>", NULL, "lacks its attribute"},
		{"<telegram xmlns=\"urn:sluice:telegram:1\" version=\"2\"/>", NULL, "version '2'"},
		{HEAD "\n <reboot to=\"s\"/>" TAIL, "line 2, column 2", "no request is named"},
		{HEAD "<arm/>" TAIL, NULL, "lacks its attribute 'to'"},
		{HEAD "<arm to=\".x\"/>" TAIL, NULL, "is no name"},
		{HEAD "<arm to=\"../x\"/>" TAIL, NULL, "is no name"},
		{HEAD "<arm to=\"x\" reason=\"y\"/>" TAIL, NULL, "has no attribute 'reason'"},
		{HEAD "<stop to=\"x\" reason=\"longer than it can be\"/>" TAIL, NULL, "15 bytes"},
		{HEAD "<arm to=\"x\" wait_s=\"-1\"/>" TAIL, NULL, "wait_s"},
		{HEAD "<arm to=\"x\" wait_s=\"1e3\"/>" TAIL, NULL, "wait_s"},
		{HEAD "<arm to=\"x\" wait_s=\"nan\"/>" TAIL, NULL, "wait_s"},
		{HEAD "<arm to=\"x\" wait_s=\"1.\"/>" TAIL, NULL, "wait_s"},
		{HEAD "<arm to=\"x\" wait_s=\"86401\"/>" TAIL, NULL, "wait_s"},
		{HEAD "<arm to=\"x\" wait_s=\"\"/>" TAIL, NULL, "wait_s"},
		{HEAD "<wait to=\"x\" wait_s=\"1\"/>" TAIL, NULL, "'state'"},
		{HEAD "<wait to=\"x\" state=\"happy\" wait_s=\"1\"/>" TAIL, NULL, "is no state"},
		{HEAD "<arm to=\"x\">now</arm>" TAIL, NULL, "no text belongs here"},
		{HEAD "now" TAIL, NULL, "no text belongs here"},
		{HEAD "<arm to=\"x\"><set path=\"a\">1</set></arm>" TAIL, NULL, "has no <set>"},
		{HEAD "<configure to=\"x\"><value key=\"a\">1</value></configure>" TAIL, NULL,
		 "has no <value>"},
		{HEAD "<configure to=\"x\"><set path=\"a=b\">1</set></configure>" TAIL, NULL,
		 "is no path"},
		{HEAD "<configure to=\"x\"><set path=\"a\"><b/></set></configure>" TAIL, NULL,
		 "too deep"},
		{HEAD "<metadata to=\"x\"><remove key=\"a\">1</remove></metadata>" TAIL, NULL,
		 "no text belongs here"},
		{HEAD "<metadata to=\"x\" keep=\"1\"/>" TAIL, NULL, "keep"},
		{HEAD "<status to=\"x\"/>" TAIL "<more/>", NULL, "not XML"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_refused(bad[i].document, bad[i].where, bad[i].message);
}

/* A document of `n` times the same. */
static char *repeated(const char *before, const char *what, unsigned n, const char *behind)
{
	size_t length = strlen(what);
	char *text = malloc(strlen(before) + n * length + strlen(behind) + 1), *to = text;

	assert_non_null(text);
	to = stpcpy(to, before);
	for (unsigned i = 0; i < n; i++)
		to = stpcpy(to, what);
	strcpy(to, behind);
	return text;
}

static void bounds_hold(void **state)
{
	static const struct {
		const char *before, *what, *behind, *message;
		unsigned most;
	} list[] = {
		{HEAD, "<status to=\"x\"/>", TAIL, "requests", SL_TELEGRAM_REQUESTS},
		{HEAD "<configure to=\"x\">", "<set path=\"a\">1</set>", "</configure>" TAIL,
		 "sets and values", SL_TELEGRAM_PAIRS},
		{HEAD "<configure to=\"x\"><set path=\"a\">", "x", "</set></configure>" TAIL,
		 "4000 bytes", SL_TELEGRAM_TEXT},
		{HEAD "<configure to=\"x\"><set path=\"", "x", "\">1</set></configure>" TAIL,
		 "is no path", SL_TELEGRAM_KEY},
	};
	char *large;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char *text = repeated(list[i].before, list[i].what, list[i].most, list[i].behind);

		sl_telegram_free(parsed(text));
		free(text);
		text = repeated(list[i].before, list[i].what, list[i].most + 1, list[i].behind);
		is_refused(text, NULL, list[i].message);
		free(text);
	}
	large = repeated(HEAD, " ", SL_TELEGRAM_BYTES, "<status to=\"x\"/>" TAIL);
	is_refused(large, NULL, "262144 bytes");
	free(large);
}

/* ---- replies ---- */

static void answers_are_written_and_escaped(void **state)
{
	struct sl_telegram *t = parsed(
		HEAD "<metadata to=\"s\"/><status to=\"d\"/><arm to=\"d\"/><start to=\"d\"/>" TAIL);
	struct sl_telegram_answer *a = calloc(t->requests, sizeof(*a));
	char *reply;

	a[0].result = a[1].result = SL_TELEGRAM_DONE;
	a[0].metadata = json_pack("{s:s}", "sample", "a<b>&\"c\"\n\x01 \xc3\xa4");
	a[1].status =
		json_pack("{s:s, s:s, s:{s:i, s:n}, s:n, s:n, s:{s:f, s:b, s:b, s:i, s:[{s:n, "
			  "s:s, s:i, s:b, s:s, s:i, s:n}], s:[{s:n, s:i, s:i}], s:{s:i}}}",
			  "kind", "detector", "state", "armed", "frames", "settled", 7, "expected",
			  "rates", "error", "detector_side", "rate_Hz", 2.5, "one_way", 0, "held",
			  1, "held_ns", 9, "receivers", "transfer", "address", "h", "port", 1,
			  "connected", 1, "waits_for", "start", "gone", 0, "refusal", "modules",
			  "transfer", "module", 0, "sent", 7, "faults", "drop", 3);
	assert_non_null(a[1].status);
	a[2].result = SL_TELEGRAM_FAILED;
	snprintf(a[2].error.code, sizeof(a[2].error.code), "state");
	snprintf(a[2].error.message, sizeof(a[2].error.message), "no \xff way");
	reply = sl_telegram_write(t, a, NULL);
	assert_non_null(reply);
	assert_non_null(strstr(reply, "<value key=\"sample\">a&lt;b&gt;&amp;&quot;c&quot;&#10;"
				      "\xef\xbf\xbd \xc3\xa4</value>"));
	assert_non_null(strstr(reply, "<detector rate_Hz=\"2.5\" one_way=\"false\" held=\"true\" "
				      "held_ns=\"9\"><receiver address=\"h\" port=\"1\" "
				      "connected=\"true\" waits_for=\"start\" gone=\"0\"/>"
				      "<module number=\"0\" sent=\"7\"/><fault kind=\"drop\" "
				      "count=\"3\"/></detector>"));
	assert_non_null(strstr(reply, "<error code=\"state\">no \xef\xbf\xbd way</error>"));
	assert_non_null(strstr(reply, "<answer call=\"start\" to=\"d\" result=\"skipped\">"));
	assert_non_null(strstr(reply, "version=\"1\" result=\"failed\""));
	free(reply);
	sl_telegram_answers_free(a, t->requests);
	sl_telegram_free(t);
}

/* ---- carried out ---- */

struct play {
	unsigned calls, looks;
	const char *states[4]; /* one look after another; the last stays */
};

static int play_call(void *arg, const struct sl_telegram_request *r, char *state, json_t **metadata,
		     struct sl_remote_error *e)
{
	struct play *p = arg;

	p->calls++;
	strcpy(state, "configured");
	if (strcmp(r->to, "absent") != 0)
		return 0;
	snprintf(e->code, sizeof(e->code), "absent");
	return -ENOENT;
}

static int play_status(void *arg, const char *name, json_t **status, struct sl_remote_error *e)
{
	struct play *p = arg;
	const char *state = p->states[p->looks];

	if (p->looks < 3 && p->states[p->looks + 1])
		p->looks++;
	*status = json_pack("{s:s}", "state", state);
	if (!strcmp(state, "fault"))
		json_object_set_new(*status, "error",
				    json_pack("{s:s, s:s, s:n, s:s}", "code", "receiver", "message",
					      "gone", "where", "hint", "look"));
	return 0;
}

static const struct sl_telegram_ops ops = {.call = play_call, .status = play_status};

static char *played(struct play *play, const char *requests, bool *failed)
{
	char document[1000];

	snprintf(document, sizeof(document), HEAD "%s" TAIL, requests);
	return sl_telegram_serve(document, strlen(document), &ops, play, failed);
}

static void the_first_failure_stops(void **state)
{
	struct play play = {.states = {"configured"}};
	bool failed;
	char *reply = played(&play, "<arm to=\"x\"/><arm to=\"absent\"/><arm to=\"x\"/>", &failed);

	assert_true(failed);
	assert_int_equal(play.calls, 2);
	assert_non_null(strstr(reply, "result=\"done\" state=\"configured\""));
	assert_non_null(strstr(reply, "result=\"skipped\""));
	free(reply);
}

static void effects_are_waited_for(void **state)
{
	struct play good = {.states = {"configured", "configured", "armed"}};
	struct play bad = {.states = {"configured", "fault"}};
	struct play slow = {.states = {"configured"}};
	struct play brief = {.states = {"ended"}};
	bool failed;
	char *reply = played(&good, "<arm to=\"x\" wait_s=\"60\"/>", &failed);

	assert_false(failed);
	assert_int_equal(good.looks, 2);
	free(reply);
	reply = played(&bad, "<arm to=\"x\" wait_s=\"60\"/>", &failed);
	assert_true(failed);
	assert_non_null(strstr(reply, "<error code=\"receiver\" hint=\"look\">gone</error>"));
	free(reply);
	reply = played(&slow, "<arm to=\"x\" wait_s=\"0.1\"/>", &failed);
	assert_true(failed);
	assert_non_null(strstr(reply, "<error code=\"timeout\">"));
	free(reply);
	reply = played(&brief, "<start to=\"x\" wait_s=\"60\"/>", &failed);
	assert_false(failed);
	free(reply);
	reply = played(&brief, "<wait to=\"x\" state=\"paused\" wait_s=\"60\"/>", &failed);
	assert_true(failed);
	assert_non_null(strstr(reply, "<error code=\"state\">"));
	free(reply);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read_in_order),
		cmocka_unit_test(other_documents_are_refused),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(answers_are_written_and_escaped),
		cmocka_unit_test(the_first_failure_stops),
		cmocka_unit_test(effects_are_waited_for),
	};

	return cmocka_run_group_tests_name("telegram", tests, NULL, NULL);
}
