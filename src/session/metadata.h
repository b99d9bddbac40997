/* metadata.h - the metadata of a session: set by any thread, by the socket, or by the program; kept
 * for later runs until they change. sl_session_set_metadata() is in <sluice/sluice.h>. */
#ifndef SL_SESSION_METADATA_H
#define SL_SESSION_METADATA_H

#include <pthread.h>

#include "core/metadata.h"

struct sl_session;

struct sl_session_metadata {
	pthread_mutex_t lock; /* of its own: no other lock is taken while it is held */
	struct sl_metadata table;
};

void sl_session_metadata_init(struct sl_session_metadata *metadata);
void sl_session_metadata_fini(struct sl_session_metadata *metadata);

/* All of them, of one moment: for result.json and files. */
void sl_session_copy_metadata(struct sl_session *session, struct sl_metadata *copy);
/* For struct sl_env_metadata; arg: the session. */
void sl_session_each_metadata(void *arg, void (*one)(void *to, const char *key, const char *value),
			      void *to);
/* All changes or none. As sl_metadata_set(); *bad: the first that failed. value NULL: removes. */
int sl_session_change_metadata(struct sl_session *session, const char *const *key,
			       const char *const *value, size_t n, size_t *bad);

#endif
