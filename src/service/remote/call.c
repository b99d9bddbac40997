/* call.c - requests by libcurl. */
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "service/remote/remote.h"

enum {
	TIMEOUT_S = 60,
	CONNECT_S = 10,
	URL_BYTES = 2048,
	MOST_BYTES = 256 << 20,
	EVENT_BYTES = 8 << 20
};

struct sl_api {
	CURL *curl;
	struct curl_slist *headers;
	char url[1024], problem[CURL_ERROR_SIZE + 100];
	unsigned timeout_s;
	_Atomic int stopped;
};

struct text {
	char *bytes;
	size_t n, room;
};

/* ---- answers ---- */

static bool add(struct text *t, const char *bytes, size_t n, size_t most)
{
	if (t->n + n > most)
		return false;
	if (t->n + n + 1 > t->room) {
		size_t room = 2 * (t->n + n) + 4096;
		char *more = realloc(t->bytes, room);

		if (!more)
			return false;
		t->bytes = more;
		t->room = room;
	}
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
	t->bytes[t->n] = 0;
	return true;
}

static size_t take(char *bytes, size_t size, size_t n, void *arg)
{
	return add(arg, bytes, size * n, MOST_BYTES) ? size * n : 0;
}

static int problem_of(struct sl_api *h, CURLcode code)
{
	if (!h->problem[0])
		snprintf(h->problem, sizeof(h->problem), "%s", curl_easy_strerror(code));
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return -EINVAL;
	case CURLE_PEER_FAILED_VERIFICATION:
		return -EPERM;
	default:
		return -ECONNRESET;
	}
}

static void keep_head(struct sl_api *h, struct sl_api_answer *answer)
{
	const char *type = NULL;
	long status = 0;

	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(h->curl, CURLINFO_CONTENT_TYPE, &type);
	answer->status = (unsigned)status;
	snprintf(answer->type, sizeof(answer->type), "%.*s", type ? (int)strcspn(type, ";") : 0,
		 type ? type : "");
}

/* ---- requests ---- */

static struct curl_slist *headers_of(const struct sl_api *h, const char *type)
{
	struct curl_slist *list = NULL;
	char line[128];

	for (const struct curl_slist *one = h->headers; one; one = one->next)
		list = curl_slist_append(list, one->data);
	snprintf(line, sizeof(line), "Content-Type: %s", type ? type : "");
	return type ? curl_slist_append(list, line) : list;
}

static void prepare(struct sl_api *h, const char *method, const char *path, const char *type,
		    const char *body, size_t bytes)
{
	char url[URL_BYTES];

	snprintf(url, sizeof(url), "%s%s", h->url, path);
	h->problem[0] = 0;
	curl_easy_setopt(h->curl, CURLOPT_URL, url);
	curl_easy_setopt(h->curl, CURLOPT_HTTPGET, 1L);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, (long)h->timeout_s);
	if (type) {
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)bytes);
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
	}
	if (!strcmp(method, "HEAD"))
		curl_easy_setopt(h->curl, CURLOPT_NOBODY, 1L);
	curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, method);
}

int sl_api_call(struct sl_api *h, const char *method, const char *path, const char *type,
		const char *body, size_t bytes, struct sl_api_answer *answer)
{
	struct curl_slist *headers = headers_of(h, type);
	struct text text = {NULL};
	CURLcode code;

	memset(answer, 0, sizeof(*answer));
	prepare(h, method, path, type, body, bytes);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &text);
	code = curl_easy_perform(h->curl);
	curl_slist_free_all(headers);
	if (code != CURLE_OK || !add(&text, "", 0, MOST_BYTES)) {
		free(text.bytes);
		return problem_of(h, code);
	}
	keep_head(h, answer);
	answer->body = text.bytes;
	answer->bytes = text.n;
	return 0;
}

void sl_api_free(struct sl_api_answer *answer)
{
	free(answer->body);
	memset(answer, 0, sizeof(*answer));
}

/* ---- events ---- */

struct stream {
	struct sl_api *host;
	struct text text;
	bool (*each)(void *arg, const char *name, const char *data);
	void *arg;
	bool ended, other; /* `each` has ended it; it is no stream */
	char name[32];
	struct text data;
};

/* A line without its end; false: end. */
static bool take_line(struct stream *s, const char *line)
{
	if (!strncmp(line, "event: ", 7)) {
		snprintf(s->name, sizeof(s->name), "%s", line + 7);
	} else if (!strncmp(line, "data: ", 6)) {
		s->data.n = 0;
		return add(&s->data, line + 6, strlen(line + 6), EVENT_BYTES);
	} else if (!*line && s->name[0]) {
		bool goes_on = s->each(s->arg, s->name, s->data.n ? s->data.bytes : "");

		s->name[0] = 0;
		s->data.n = 0;
		return goes_on;
	}
	return true;
}

static size_t take_stream(char *bytes, size_t size, size_t n, void *arg)
{
	struct stream *s = arg;
	long status = 0;
	char *end;

	curl_easy_getinfo(s->host->curl, CURLINFO_RESPONSE_CODE, &status);
	s->other = status != 200;
	if (!add(&s->text, bytes, size * n, EVENT_BYTES))
		return 0;
	while (!s->other && (end = memchr(s->text.bytes, '\n', s->text.n))) {
		*end++ = 0;
		if (!take_line(s, s->text.bytes)) {
			s->ended = true;
			return 0;
		}
		s->text.n -= (size_t)(end - s->text.bytes);
		memmove(s->text.bytes, end, s->text.n + 1);
	}
	return size * n;
}

int sl_api_events(struct sl_api *h, const char *path,
		  bool (*each)(void *arg, const char *name, const char *data), void *arg,
		  struct sl_api_answer *answer)
{
	struct stream s = {.host = h, .each = each, .arg = arg};
	struct curl_slist *headers = headers_of(h, NULL);
	CURLcode code;

	memset(answer, 0, sizeof(*answer));
	prepare(h, "GET", path, NULL, NULL, 0);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, 0L);
	/* the service says something every few seconds */
	curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, (long)TIMEOUT_S);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_stream);
	curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &s);
	code = curl_easy_perform(h->curl);
	curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, 0L);
	curl_slist_free_all(headers);
	free(s.data.bytes);
	if (s.other && code == CURLE_OK) {
		keep_head(h, answer);
		answer->body = s.text.bytes;
		answer->bytes = s.text.n;
		return -EPROTO;
	}
	free(s.text.bytes);
	if (s.ended)
		return 0;
	if (code == CURLE_OK)
		snprintf(h->problem, sizeof(h->problem), "the service has ended the stream");
	return code == CURLE_OK ? -ECONNRESET : problem_of(h, code);
}

/* ---- open and close ---- */

static int check_url(const char *url, char *why, size_t bytes)
{
	if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
		snprintf(why, bytes,
			 "'%s' is no URL of a service; write http://HOST:PORT or https://HOST:PORT",
			 url);
	else if (strlen(url) >= sizeof(((struct sl_api *)0)->url))
		snprintf(why, bytes, "the URL is too long");
	else
		return 0;
	return -EINVAL;
}

static void add_token(struct sl_api *h, const char *token)
{
	char line[512];

	if (!token)
		return;
	snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
	h->headers = curl_slist_append(h->headers, line);
	explicit_bzero(line, sizeof(line));
}

/* libcurl asks at least once a second. */
static int goes_on(void *arg, curl_off_t total, curl_off_t now, curl_off_t out_total,
		   curl_off_t out_now)
{
	struct sl_api *h = arg;

	return atomic_load(&h->stopped);
}

int sl_api_open(const struct sl_api_options *o, struct sl_api **host, char *why, size_t bytes)
{
	struct sl_api *h;
	size_t n;

	if (check_url(o->url, why, bytes))
		return -EINVAL;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	h = calloc(1, sizeof(*h));
	if (h)
		h->curl = curl_easy_init();
	if (!h || !h->curl) {
		snprintf(why, bytes, "no memory");
		free(h);
		return -ENOMEM;
	}
	snprintf(h->url, sizeof(h->url), "%s", o->url);
	for (n = strlen(h->url); n && h->url[n - 1] == '/'; n--)
		h->url[n - 1] = 0;
	h->timeout_s = o->timeout_s ? o->timeout_s : TIMEOUT_S;
	add_token(h, o->token);
	curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->problem);
	curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "sluice/" SL_VERSION);
	if (o->ca)
		curl_easy_setopt(h->curl, CURLOPT_CAINFO, o->ca);
	curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, goes_on);
	curl_easy_setopt(h->curl, CURLOPT_XFERINFODATA, h);
	curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
	*host = h;
	return 0;
}

void sl_api_stop(struct sl_api *h)
{
	atomic_store(&h->stopped, 1);
}

void sl_api_close(struct sl_api *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->curl);
	curl_slist_free_all(h->headers);
	free(h);
}

const char *sl_api_problem(const struct sl_api *h)
{
	return h->problem;
}
