/* target.h - request targets: what a client asks for, taken apart. Functions of bytes:
 * tests/fuzz/http_fuzz.c feeds them with any.
 *
 * Model:     a target is a path and a query. A path is cut at '/' before %XX is decoded, so that a
 *            segment may have any character; what decodes to a zero, a control character or no
 *            UTF-8 is refused. Patterns are those of struct sl_http_route.
 * Errors:    no logs; -EINVAL and `why`. */
#ifndef SL_SERVICE_TARGET_H
#define SL_SERVICE_TARGET_H

#include "service/http/http.h"

struct sl_http_match { /* of a path with a pattern */
	unsigned n;
	char segment[SL_HTTP_SEGMENTS][SL_HTTP_SEGMENT_BYTES];
};

struct sl_http_values { /* of a query, in the order of the route's table */
	unsigned n;
	bool given[SL_HTTP_QUERIES];
	uint64_t whole[SL_HTTP_QUERIES]; /* of numbers and flags; of a choice its index */
	char text[SL_HTTP_QUERIES][SL_HTTP_SEGMENT_BYTES];
};

/* Whether the path (not decoded, without the query) is one of the pattern. */
bool sl_http_match(const char *pattern, const char *path, size_t bytes,
		   struct sl_http_match *match);

/* "bin=4&x=0" by a table; NULL: no parameter is known. */
int sl_http_query(const struct sl_http_parameter *table, const char *query,
		  struct sl_http_values *values, char *why, size_t why_bytes);
/* Index of a parameter in its table; -1: it has none of that name. */
int sl_http_parameter(const struct sl_http_parameter *table, const char *name);

/* %XX decoded into text; false: not well-formed, too long, or not text. plus: '+' is a blank. */
bool sl_http_decode(const char *from, size_t bytes, bool plus, char *text, size_t room);

/* The name in a Host header ("localhost:8765", "[::1]:8765"): lower case, without port and
 * brackets. False: it is not well-formed. */
bool sl_http_host_name(const char *host, char *name, size_t bytes);
/* Whether an Origin header names the same host and port as the Host header. */
bool sl_http_same_origin(const char *origin, const char *host);

#endif
