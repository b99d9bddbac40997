/* assets.c - the page's files, each with its tag; packed for browsers that take that. */
#include "service/http/assets.h"

#include <stdio.h>
#include <string.h>

/* Nothing but our own files runs in the page, or is loaded by it. */
static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
	"font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri "
	"'none'; form-action 'none'; frame-ancestors 'none'";

static const struct sl_asset *find(const char *path)
{
	for (const struct sl_asset *asset = sl_assets; asset->path; asset++)
		if (!strcmp(asset->path, path))
			return asset;
	return NULL;
}

static void answer(struct sl_http_request *r, const char *path)
{
	const struct sl_asset *asset = find(path);
	const char *takes = sl_http_header(r, "Accept-Encoding"),
		   *has = sl_http_header(r, "If-None-Match");
	bool packed;
	char tag[64];

	if (!asset) {
		sl_http_answer_error(r, 404, "not_found", NULL, NULL, "the page has no such file");
		return;
	}
	packed = asset->packed && takes && strstr(takes, "gzip");
	snprintf(tag, sizeof(tag), "\"%s%s\"", asset->tag, packed ? "-gzip" : "");
	if (has && strstr(has, tag))
		sl_http_answer_empty(r, 304);
	else if (packed)
		sl_http_answer_const(r, 200, asset->type, asset->packed, asset->packed_bytes);
	else
		sl_http_answer_const(r, 200, asset->type, asset->plain, asset->plain_bytes);
	if (packed && sl_http_status(r) == 200)
		sl_http_answer_header(r, "Content-Encoding", "gzip");
	sl_http_answer_header(r, "ETag", tag);
	sl_http_answer_header(r, "Vary", "Accept-Encoding");
	sl_http_answer_header(r, "Cache-Control", "no-cache"); /* ask each time: that costs a 304 */
	sl_http_answer_header(r, "Content-Security-Policy", policy);
}

static void get_page(void *service, struct sl_http_request *r)
{
	answer(r, "index.html");
}

static void get_asset(void *service, struct sl_http_request *r)
{
	answer(r, sl_http_segment(r, 0));
}

const struct sl_http_route sl_assets_routes[] = {
	{.method = "GET",
	 .pattern = "/",
	 .handle = get_page,
	 .doc = "The page.",
	 .said = {{200, "text/html", NULL, "the page"}, {304, NULL, NULL, "not changed"}}},
	{.method = "GET",
	 .pattern = "/assets/{path}",
	 .handle = get_asset,
	 .doc = "A file of the page.",
	 .said = {{200, "*/*", NULL, "the file"}, {304, NULL, NULL, "not changed"}}},
	{NULL},
};
