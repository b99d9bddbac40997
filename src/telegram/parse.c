/* parse.c - a document becomes a telegram, with libexpat. No element, attribute or text is taken
 * that the schema does not have, and none that is larger than its bounds. */
#include <errno.h>
#include <expat.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/status.h>

#include "client/registry.h"
#include "telegram/telegram.h"

enum { SPLIT = ' ', ATTRIBUTES = 8 };

static const char of_schemas[] = "http://www.w3.org/2001/XMLSchema-instance ";

/* Attributes that an element may have: bits. */
enum {
	TO = 1 << 0,
	WAIT = 1 << 1,
	REASON = 1 << 2,
	STATE = 1 << 3,
	KEEP = 1 << 4,
	ID = 1 << 5,
	VERSION = 1 << 6,
	PATH = 1 << 7,
	KEY = 1 << 8,
};

static const struct {
	const char *name;
	uint32_t bit;
} attributes[] = {{"to", TO},		{"wait_s", WAIT}, {"reason", REASON},
		  {"state", STATE},	{"keep", KEEP},	  {"id", ID},
		  {"version", VERSION}, {"path", PATH},	  {"key", KEY}};

static const struct {
	const char *name;
	uint32_t must, may;
} calls[SL_TELEGRAM_CALLS] = {
	[SL_TELEGRAM_CAPABILITIES] = {"capabilities", 0, 0},
	[SL_TELEGRAM_STATUS] = {"status", TO, 0},
	[SL_TELEGRAM_CONFIGURE] = {"configure", TO, 0},
	[SL_TELEGRAM_ARM] = {"arm", TO, WAIT},
	[SL_TELEGRAM_START] = {"start", TO, WAIT},
	[SL_TELEGRAM_PAUSE] = {"pause", TO, WAIT},
	[SL_TELEGRAM_RESUME] = {"resume", TO, WAIT},
	[SL_TELEGRAM_STOP] = {"stop", TO, WAIT | REASON},
	[SL_TELEGRAM_ABORT] = {"abort", TO, WAIT | REASON},
	[SL_TELEGRAM_METADATA] = {"metadata", TO, KEEP},
	[SL_TELEGRAM_WAIT] = {"wait", TO | STATE | WAIT, 0},
	[SL_TELEGRAM_CLOSE] = {"close", TO, 0},
};

const char *sl_telegram_call_name(enum sl_telegram_call call)
{
	return call < SL_TELEGRAM_CALLS ? calls[call].name : "unknown";
}

struct parser {
	XML_Parser expat;
	struct sl_telegram *telegram;
	struct sl_remote_error *error;
	bool failed;
	unsigned depth;
	/* Texts lie one behind another in telegram->text, which never moves: no text of a document
	 * is longer than the document, and each has a zero more than it has there. */
	size_t used, room;
	unsigned pairs;
	char *begun; /* where the text of the pair that is open begins; NULL: none is open */
	size_t text_begin, text_most;
	uint32_t given; /* attributes of the element */
	const char *value[ATTRIBUTES + 1];
};

static void wrong(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first mistake counts. */
static void wrong(struct parser *p, const char *format, ...)
{
	struct sl_remote_error *e = p->error;
	va_list list;

	if (p->failed)
		return;
	p->failed = true;
	memset(e, 0, sizeof(*e));
	snprintf(e->code, sizeof(e->code), "request");
	snprintf(e->where, sizeof(e->where), "line %lu, column %lu",
		 (unsigned long)XML_GetCurrentLineNumber(p->expat),
		 (unsigned long)XML_GetCurrentColumnNumber(p->expat) + 1);
	va_start(list, format);
	vsnprintf(e->message, sizeof(e->message), format, list);
	va_end(list);
	XML_StopParser(p->expat, XML_FALSE);
}

/* ---- texts ---- */

static void put(struct parser *p, const char *bytes, size_t n)
{
	if (n >= p->room - p->used) {
		wrong(p, "the document has too much text");
		return;
	}
	memcpy(p->telegram->text + p->used, bytes, n);
	p->used += n;
}

static const char *keep_text(struct parser *p, const char *text)
{
	char *kept = p->telegram->text + p->used;

	put(p, text, strlen(text) + 1);
	return p->failed ? "" : kept;
}

/* ---- attributes ---- */

static int attribute_of(const char *name)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (!strcmp(name, attributes[i].name))
			return (int)i;
	return -1;
}

static const char *value_of(const struct parser *p, uint32_t bit)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].bit == bit)
			return p->given & bit ? p->value[i] : NULL;
	return NULL;
}

/* Each that is given is one of these, and those that must be are given. */
static bool take_attributes(struct parser *p, const char *element, const char **pairs,
			    uint32_t must, uint32_t may)
{
	p->given = 0;
	for (; pairs[0]; pairs += 2) {
		int i = attribute_of(pairs[0]);

		if (!strncmp(pairs[0], of_schemas, sizeof(of_schemas) - 1))
			continue;
		if (i < 0 || !(attributes[i].bit & (must | may))) {
			wrong(p, "<%s> has no attribute '%.60s'", element, pairs[0]);
			return false;
		}
		p->given |= attributes[i].bit;
		p->value[i] = pairs[1];
	}
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].bit & must & ~p->given) {
			wrong(p, "<%s> lacks its attribute '%s'", element, attributes[i].name);
			return false;
		}
	return true;
}

static const char *take_name(struct parser *p)
{
	const char *to = value_of(p, TO);

	if (!to)
		return "";
	if (sl_registry_name_is_valid(to))
		return keep_text(p, to);
	wrong(p,
	      "to: '%.70s' is no name: 1 to 63 of A-Z a-z 0-9 . _ -, and no '.' or '-' at the "
	      "beginning",
	      to);
	return "";
}

/* As the schema has it: digits, and digits behind a point; no sign, no exponent. */
static double take_wait(struct parser *p)
{
	const char *text = value_of(p, WAIT);
	size_t whole, length;
	double seconds;

	if (!text)
		return -1;
	whole = strspn(text, "0123456789");
	length = whole;
	if (text[length] == '.')
		length += 1 + strspn(text + length + 1, "0123456789");
	seconds = whole && length <= 20 && !text[length] && text[length - 1] != '.'
			  ? strtod(text, NULL)
			  : -1;
	if (seconds < 0 || seconds > SL_TELEGRAM_WAIT_MAX_S) {
		wrong(p, "wait_s: '%.30s': takes 0 to %d seconds, as 2.5", text,
		      SL_TELEGRAM_WAIT_MAX_S);
		return -1;
	}
	return seconds;
}

static const char *take_reason(struct parser *p)
{
	const char *reason = value_of(p, REASON);

	if (!reason)
		return NULL;
	if (strlen(reason) <= SL_TELEGRAM_REASON && reason[strcspn(reason, "\t\r\n")] == '\0')
		return keep_text(p, reason);
	wrong(p, "reason: a text of at most %d bytes in one line", SL_TELEGRAM_REASON);
	return NULL;
}

static const char *take_state(struct parser *p)
{
	const char *name = value_of(p, STATE);

	for (unsigned i = 0; name && i < SL_STATES; i++)
		if (!strcmp(name, sl_state_name(i)))
			return sl_state_name(i);
	if (name)
		wrong(p, "state: '%.30s' is no state; sluice list states shows them", name);
	return NULL;
}

static bool take_keep(struct parser *p)
{
	const char *keep = value_of(p, KEEP);

	if (keep && strcmp(keep, "true") != 0 && strcmp(keep, "false") != 0)
		wrong(p, "keep: true or false");
	return keep && !strcmp(keep, "true");
}

/* ---- elements ---- */

static void begin_telegram(struct parser *p, const char *name, const char **pairs)
{
	const char *id, *version;

	if (strcmp(name, "telegram") != 0) {
		wrong(p,
		      "a telegram begins with <telegram xmlns=\"" SL_TELEGRAM_NAMESPACE
		      "\" version=\"%d\">",
		      SL_TELEGRAM_VERSION);
		return;
	}
	if (!take_attributes(p, name, pairs, VERSION, ID))
		return;
	id = value_of(p, ID);
	version = value_of(p, VERSION);
	if (strcmp(version, "1") != 0)
		wrong(p, "version '%.30s' is not known here; this is version %d", version,
		      SL_TELEGRAM_VERSION);
	else if (id && (strlen(id) > SL_TELEGRAM_ID || !id[0] || id[strcspn(id, "\t\r\n")]))
		wrong(p, "id: a text of 1 to %d bytes in one line", SL_TELEGRAM_ID);
	else
		snprintf(p->telegram->id, sizeof(p->telegram->id), "%s", id ? id : "");
}

static int call_of(const char *name)
{
	for (int i = 0; i < SL_TELEGRAM_CALLS; i++)
		if (!strcmp(name, calls[i].name))
			return i;
	return -1;
}

static void begin_request(struct parser *p, const char *name, const char **pairs)
{
	struct sl_telegram *t = p->telegram;
	struct sl_telegram_request *r = &t->request[t->requests];
	int call = call_of(name);

	if (call < 0) {
		wrong(p, "no request is named <%.60s>", name);
		return;
	}
	if (t->requests == SL_TELEGRAM_REQUESTS) {
		wrong(p, "a telegram has at most %d requests", SL_TELEGRAM_REQUESTS);
		return;
	}
	if (!take_attributes(p, name, pairs, calls[call].must, calls[call].may))
		return;
	r->call = (enum sl_telegram_call)call;
	r->to = take_name(p);
	r->wait_s = take_wait(p);
	r->reason = take_reason(p);
	r->state = take_state(p);
	r->keep = take_keep(p);
	r->pair = &t->pair[p->pairs];
	t->requests++;
}

/* <set path="..">value</set> becomes "path=value". */
static void begin_pair(struct parser *p, const char *name, const char **pairs)
{
	struct sl_telegram_request *r = &p->telegram->request[p->telegram->requests - 1];
	bool configures = r->call == SL_TELEGRAM_CONFIGURE;
	bool known = configures ? !strcmp(name, "set")
				: r->call == SL_TELEGRAM_METADATA &&
					  (!strcmp(name, "value") || !strcmp(name, "remove"));
	struct sl_telegram_pair *pair = &p->telegram->pair[p->pairs];
	const char *key;

	if (!known) {
		wrong(p, "<%s> has no <%.60s>", calls[r->call].name, name);
		return;
	}
	if (p->pairs == SL_TELEGRAM_PAIRS) {
		wrong(p, "a telegram has at most %d sets and values", SL_TELEGRAM_PAIRS);
		return;
	}
	if (!take_attributes(p, name, pairs, configures ? PATH : KEY, 0))
		return;
	key = value_of(p, configures ? PATH : KEY);
	if (!key[0] || strlen(key) > SL_TELEGRAM_KEY || key[strcspn(key, "= \t\r\n")]) {
		wrong(p, "<%s>: '%.60s' is no %s", name, key, configures ? "path" : "key");
		return;
	}
	pair->key = p->telegram->text + p->used;
	put(p, key, strlen(key));
	put(p, configures ? "=" : "", 1); /* a zero behind a key */
	p->begun = p->telegram->text + p->used;
	p->text_begin = p->used;
	p->text_most = !strcmp(name, "remove") ? 0 : SL_TELEGRAM_TEXT;
	pair->value = configures || !p->text_most ? NULL : p->begun;
	p->pairs++;
	r->pairs++;
}

static void begin(void *arg, const XML_Char *whole, const XML_Char **pairs)
{
	static const char space[] = SL_TELEGRAM_NAMESPACE " ";
	struct parser *p = arg;
	const char *name = whole + sizeof(space) - 1;

	if (p->failed)
		return;
	if (strncmp(whole, space, sizeof(space) - 1) != 0) {
		wrong(p, "<%.80s> is not of the namespace " SL_TELEGRAM_NAMESPACE, whole);
		return;
	}
	switch (p->depth++) {
	case 0:
		begin_telegram(p, name, pairs);
		break;
	case 1:
		begin_request(p, name, pairs);
		break;
	case 2:
		begin_pair(p, name, pairs);
		break;
	default:
		wrong(p, "<%.60s> is too deep inside others", name);
	}
}

static void end(void *arg, const XML_Char *name)
{
	struct parser *p = arg;

	if (p->failed)
		return;
	if (p->begun)
		put(p, "", 1);
	p->begun = NULL;
	p->depth--;
}

static void take_characters(void *arg, const XML_Char *text, int n)
{
	struct parser *p = arg;

	if (p->failed)
		return;
	if (p->begun && p->used - p->text_begin + (size_t)n <= p->text_most) {
		put(p, text, (size_t)n);
		return;
	}
	if (p->begun && p->text_most) {
		wrong(p, "a text here has at most %d bytes", SL_TELEGRAM_TEXT);
		return;
	}
	for (int i = 0; i < n; i++)
		if (!strchr(" \t\r\n", text[i])) {
			wrong(p, "no text belongs here");
			return;
		}
}

static void refuse_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
			   const XML_Char *public_id, int internal)
{
	wrong(arg, "a telegram has no DOCTYPE");
}

/* ---- the whole ---- */

static int parse(struct parser *p, const void *document, size_t bytes)
{
	XML_SetUserData(p->expat, p);
	XML_SetElementHandler(p->expat, begin, end);
	XML_SetCharacterDataHandler(p->expat, take_characters);
	XML_SetStartDoctypeDeclHandler(p->expat, refuse_doctype);
	if (XML_Parse(p->expat, document, (int)bytes, XML_TRUE) == XML_STATUS_OK && !p->failed) {
		if (p->telegram->requests)
			return 0;
		wrong(p, "a telegram has at least one request");
		return -EINVAL;
	}
	if (!p->failed)
		wrong(p, "not XML: %s", XML_ErrorString(XML_GetErrorCode(p->expat)));
	return -EINVAL;
}

static struct sl_telegram *make(size_t room)
{
	struct sl_telegram *t = calloc(1, sizeof(*t));

	if (t)
		t->text = malloc(room);
	if (t && t->text)
		return t;
	free(t);
	return NULL;
}

static int no_memory(struct sl_remote_error *error)
{
	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "memory");
	snprintf(error->message, sizeof(error->message), "no memory for the telegram");
	return -ENOMEM;
}

int sl_telegram_parse(const void *document, size_t bytes, struct sl_telegram **telegram,
		      struct sl_remote_error *error)
{
	struct parser p = {.error = error};
	int err = -EINVAL;

	if (bytes > SL_TELEGRAM_BYTES) {
		memset(error, 0, sizeof(*error));
		snprintf(error->code, sizeof(error->code), "request");
		snprintf(error->message, sizeof(error->message), "a telegram has at most %d bytes",
			 SL_TELEGRAM_BYTES);
		return err;
	}
	/* In UTF-8 a text may take thrice the bytes of its document, which may be UTF-16 or
	 * Latin-1; a zero behind each. */
	p.room = 3 * bytes + 4 * SL_TELEGRAM_PAIRS + 4 * SL_TELEGRAM_REQUESTS + 16;
	p.telegram = make(p.room);
	p.expat = p.telegram ? XML_ParserCreateNS(NULL, SPLIT) : NULL;
	if (!p.expat)
		err = no_memory(error);
	else
		err = parse(&p, document, bytes);
	if (p.expat)
		XML_ParserFree(p.expat);
	if (err)
		sl_telegram_free(p.telegram);
	else
		*telegram = p.telegram;
	return err;
}

void sl_telegram_free(struct sl_telegram *telegram)
{
	if (telegram)
		free(telegram->text);
	free(telegram);
}
