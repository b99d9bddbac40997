/* fields.h - header fields of a request that two readers may understand differently: a proxy in
 * front and this service must see the same request. Functions of bytes: tests/fuzz/http_fuzz.c
 * feeds them with any.
 *
 * Model:     a request is refused where it says twice what can be said once (Host, Origin,
 *            Authorization, Content-Length, Transfer-Encoding), where it gives its length in two
 *            ways, and where bytes of its head belong to no field: libmicrohttpd 0.9 cuts a value
 *            at a zero byte, and drops what is behind it.
 * Threads:   any.
 * Errors:    the problem in words; NULL: there is none. */
#ifndef SL_SERVICE_FIELDS_H
#define SL_SERVICE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

enum { SL_HTTP_FIELDS = 256 };

struct sl_http_field {
	const char *name, *value; /* the value may be NULL: it is empty */
	size_t name_bytes, value_bytes;
};

/* old: the request is of HTTP/1.0, which has no Transfer-Encoding. */
const char *sl_http_fields_problem(const struct sl_http_field *field, size_t n, bool old);

/* The fields are texts within the head [head, head + bytes), in its order, and the parser has put
 * zeros in the place of what ends them. */
const char *sl_http_head_problem(const struct sl_http_field *field, size_t n, const char *head,
				 size_t bytes);

#endif
