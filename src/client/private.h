/* private.h - the client library between its files. */
#ifndef SL_CLIENT_PRIVATE_H
#define SL_CLIENT_PRIVATE_H

#include <jansson.h>

#include <sluice/client.h>

struct sl_remote {
	int fd;
	char name[64];
	char *in; /* bytes that arrived */
	size_t bytes, room;
};

/* Fill an error and return err. error NULL: nothing is filled. */
int sl_remote_fail(struct sl_remote_error *error, int err, const char *code, const char *format,
		   ...) __attribute__((format(printf, 4, 5)));

/* As sl_remote_request(), with JSON on both sides. The request is consumed; reply NULL: not wanted.
 */
int sl_remote_ask(struct sl_remote *remote, json_t *request, int timeout_ms, json_t **reply,
		  struct sl_remote_error *error);

/* The brief status out of a "status" object. */
void sl_remote_brief(const json_t *json, struct sl_remote_status *status, size_t bytes);

uint64_t sl_remote_now_ms(void);
/* What is left until that time; -1 for none. */
int sl_remote_left_ms(uint64_t end_ms, int timeout_ms);

#endif
