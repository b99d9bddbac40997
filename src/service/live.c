/* live.c - routes of live images and results: each becomes a request to the image process of its
 * session, and its answer is passed on. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/parts.h"

enum { MARGIN_MS = 5000 }; /* beyond what the request itself may wait */

/* ---- live ---- */

static const char *const media[SL_IMAGE_TYPES] = {
	[SL_IMAGE_NOTHING] = "text/plain",
	[SL_IMAGE_SLIM] = "application/octet-stream",
	[SL_IMAGE_PNG] = "image/png",
	[SL_IMAGE_JSON] = "application/json",
};

/* On the thread of images. */
static void pass_on(void *arg, const struct sl_image_answer *answer)
{
	struct sl_http_request *r = arg;

	if (answer->body)
		sl_http_answer_owned(r, answer->status, media[answer->type], answer->body,
				     answer->bytes, sl_image_body_free);
	else
		sl_http_answer_empty(r, answer->status);
	if (answer->deflated)
		sl_http_answer_header(r, "Content-Encoding", "deflate");
	sl_http_answer_header(r, "Cache-Control", "no-store");
	sl_http_finish(r);
}

/* The query as it was checked, with %XX for all but letters, digits, '_', '-' and '.'. */
static size_t put_value(char *to, size_t room, const char *text)
{
	size_t used = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c && used + 4 < room; c++)
		used += (size_t)snprintf(to + used, room - used,
					 isalnum(*c) || strchr("_-.", *c) ? "%c" : "%%%02X", *c);
	return used;
}

static void make_query(const struct sl_http_request *r, const char *what,
		       char query[SL_IMAGE_QUERY_BYTES])
{
	size_t used = (size_t)snprintf(query, SL_IMAGE_QUERY_BYTES, "%s?", what);

	for (const struct sl_http_parameter *p = sl_http_route_of(r)->query; p && p->name; p++) {
		size_t room = SL_IMAGE_QUERY_BYTES - used;
		int n;

		if (!sl_http_has(r, p->name) || room < 100)
			continue;
		n = snprintf(query + used, room, "&%s=", p->name);
		used += (size_t)n;
		if (p->type == SL_HTTP_FLAG)
			query[used++] = sl_http_flag(r, p->name) ? '1' : '0';
		else
			used += put_value(query + used, SL_IMAGE_QUERY_BYTES - used,
					  sl_http_text(r, p->name));
		query[used] = 0;
	}
}

static void ask(struct sl_service *service, struct sl_http_request *r, const char *what)
{
	char query[SL_IMAGE_QUERY_BYTES];
	uint32_t wait_ms = (uint32_t)sl_http_whole(r, "wait_ms");
	int err;

	make_query(r, what, query);
	err = sl_image_service_ask(service->images, sl_http_segment(r, 0), query,
				   wait_ms + MARGIN_MS, pass_on, r);
	if (!err)
		return;
	sl_http_answer_error(r, err == -EINVAL ? 400 : 503, err == -EINVAL ? "request" : "busy",
			     NULL, "try again in a second", "too many images are asked for");
	sl_http_finish(r);
}

static void get_image(void *service, struct sl_http_request *r)
{
	ask(service, r, "image");
}

static void get_png(void *service, struct sl_http_request *r)
{
	ask(service, r, "image.png");
}

static void get_results(void *service, struct sl_http_request *r)
{
	ask(service, r, "results");
}

/* ---- routes ---- */

#define OF_WAITING                                                                            \
	{"after", SL_HTTP_WHOLE, 0, INT64_MAX, NULL, NULL, "an element that the viewer has"}, \
	{                                                                                     \
		"wait_ms", SL_HTTP_WHOLE, 0, SL_IMAGE_WAIT_MS, "0", NULL,                     \
			"for another element than that"                                       \
	}
#define OF_VIEWS                                                                                \
	{"array", SL_HTTP_TEXT, 1, 31, NULL, NULL, "of the share; without it the image"},       \
		{"x", SL_HTTP_WHOLE, 0, UINT32_MAX, NULL, NULL, "first column"},                \
		{"y", SL_HTTP_WHOLE, 0, UINT32_MAX, NULL, NULL, "first row"},                   \
		{"width", SL_HTTP_WHOLE, 1, UINT32_MAX, NULL, NULL, "columns; all without it"}, \
		{"height", SL_HTTP_WHOLE, 1, UINT32_MAX, NULL, NULL, "rows; all without it"},   \
		{"bin", SL_HTTP_WHOLE, 1, 256, NULL, NULL, "pixels by pixels that become one"}, \
	{                                                                                       \
		"how", SL_HTTP_CHOICE, 0, 0, "max", "max|mean",                                 \
			"of the pixels of a bin that are valid"                                 \
	}

static const struct sl_http_parameter of_image[] = {
	OF_VIEWS,
	OF_WAITING,
	{"encoding", SL_HTTP_CHOICE, 0, 0, "identity", "identity|deflate", "of the body"},
	{NULL},
};

static const struct sl_http_parameter of_png[] = {
	OF_VIEWS,
	OF_WAITING,
	{"size", SL_HTTP_WHOLE, 16, 4096, NULL, NULL, "of the longer side, without bin; 1024"},
	{"scale", SL_HTTP_CHOICE, 0, 0, "log", "log|sqrt|linear", "of brightness"},
	{"colours", SL_HTTP_CHOICE, 0, 0, "fire", "fire|paper|grey", "of the scale"},
	{"low", SL_HTTP_TEXT, 1, 20, NULL, NULL, "percentile of the first colour; 1"},
	{"high", SL_HTTP_TEXT, 1, 20, NULL, NULL, "percentile of the last colour; 99.9"},
	{"peaks", SL_HTTP_FLAG, 0, 0, "false", NULL, "draw peaks"},
	{"rings", SL_HTTP_FLAG, 0, 0, "false", NULL, "draw the beam and rings of resolution"},
	{NULL},
};

static const struct sl_http_parameter of_results[] = {OF_WAITING, {NULL}};

#define SAID(type, schema, doc)            \
	.said = {{200, type, schema, doc}, \
		 {204, NULL, NULL, "no other element has come within wait_ms"}}

const struct sl_http_route sl_live_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}/image",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_LATER,
	 .handle = get_image,
	 .doc = "The newest image of the session's run: pixels with a JSON header.",
	 .query = of_image,
	 SAID("application/octet-stream", NULL, "a container, docs/reference/live-image.md")},
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}/image.png",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_LATER,
	 .handle = get_png,
	 .doc = "The newest image of the session's run as a picture.",
	 .query = of_png,
	 SAID("image/png", NULL, "the picture")},
	{.method = "GET",
	 .pattern = "/api/v1/sessions/{name}/results",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_LATER,
	 .handle = get_results,
	 .doc = "Small results of the newest frame: numbers, lists, profiles.",
	 .query = of_results,
	 SAID("application/json", "results", "the results")},
	{NULL},
};
