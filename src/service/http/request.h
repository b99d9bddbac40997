/* request.h - the functions that libmicrohttpd calls, for server.c. */
#ifndef SL_SERVICE_HTTP_REQUEST_H
#define SL_SERVICE_HTTP_REQUEST_H

#include <microhttpd.h>

#include "service/http/private.h"

/* The first line of a request has come: its target as it was sent. The result is the context of the
 * others. */
void *sl_http_begin(void *server, const char *uri, struct MHD_Connection *connection);
/* Targets are decoded by target.c, not by libmicrohttpd. */
size_t sl_http_keep_escapes(void *server, struct MHD_Connection *connection, char *text);
enum MHD_Result sl_http_access(void *server, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *bytes, void **context);
void sl_http_end(void *server, struct MHD_Connection *connection, void **context,
		 enum MHD_RequestTerminationCode how);
/* A connection came, or has gone. */
void sl_http_notice(void *server, struct MHD_Connection *connection, void **context,
		    enum MHD_ConnectionNotificationCode how);

#endif
