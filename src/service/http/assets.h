/* assets.h - the files of the page, embedded in the program by tools/embed_web.py. */
#ifndef SL_SERVICE_ASSETS_H
#define SL_SERVICE_ASSETS_H

#include "service/http/http.h"

struct sl_asset {
	const char *path, *type; /* "app.js"; media type. path NULL: the table ends */
	const char *tag;	 /* of its bytes: another one after each change */
	const unsigned char *plain;
	size_t plain_bytes;
	const unsigned char *packed; /* by gzip; NULL: that would not be smaller */
	size_t packed_bytes;
};

extern const struct sl_asset sl_assets[];

/* "GET /" is index.html, "GET /assets/{path}" any of them; no token is needed. */
extern const struct sl_http_route sl_assets_routes[];

#endif
