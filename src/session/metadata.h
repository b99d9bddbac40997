/* metadata.h - the metadata of a session and of its runs.
 *
 * Model:     each run begins with what the section `metadata` of the experiment says, and with the
 *            changes that were made between runs. A change during a run is that run's alone, unless
 *            its caller says `keep`. After the run its metadata stay in the status until the next
 *            one is armed. configure: where a value of the section is another than before, it
 *            stands over changes; the last word counts.
 * Threads:   any; `lock` is a lock of its own, and no other is taken while it is held.
 * Bounds:    64 keys; the last 128 changes of a run are remembered. */
#ifndef SL_SESSION_METADATA_H
#define SL_SESSION_METADATA_H

#include <pthread.h>
#include <stdbool.h>

#include "core/metadata/keys.h"

struct sl_session;

enum { SL_METADATA_CHANGES = 128, SL_METADATA_CHANGE_TEXT = 128 };

struct sl_metadata_change {
	uint64_t unix_ns;
	char key[SL_METADATA_KEY];
	char from[SL_METADATA_CHANGE_TEXT], to[SL_METADATA_CHANGE_TEXT]; /* cut to fit */
};

struct sl_session_metadata {
	pthread_mutex_t lock;
	struct sl_metadata_section section; /* of the experiment as it was read last */
	struct sl_metadata next;	    /* what the next run begins with */
	struct sl_metadata table;	    /* of the run under way, or of the last one */
	bool in_run;
	struct sl_metadata_change change[SL_METADATA_CHANGES]; /* a ring */
	uint64_t changes;				       /* of this run, ever */
};

void sl_session_metadata_init(struct sl_session_metadata *metadata);
void sl_session_metadata_fini(struct sl_session_metadata *metadata);

/* An experiment was read: its section, under the changes. -E2BIG, logged: more than 64 keys;
 * -EINVAL, logged: a change does not fit the experiment any more. */
int sl_session_read_metadata(struct sl_session *session, const struct sl_metadata_section *section);
/* From here to the end changes are the run's. */
void sl_session_begin_metadata(struct sl_session *session);
void sl_session_end_metadata(struct sl_session *session);

/* All of them, of one moment: of the run under way or the last one, for result.json and files; and
 * those that a reply shows: between runs, what the next one begins with. */
void sl_session_copy_metadata(struct sl_session *session, struct sl_metadata *copy);
void sl_session_copy_next_metadata(struct sl_session *session, struct sl_metadata *copy);

/* For struct sl_env_metadata; arg: the session. */
struct sl_env_metadata;
void sl_session_init_env_metadata(struct sl_session *session, struct sl_env_metadata *env);

/* All changes or none. value NULL: removes. keep: for later runs, too. As sl_metadata_check();
 * -E2BIG: there are 64 keys already. *bad: the first that failed; `why` says what is wrong. */
int sl_session_change_metadata(struct sl_session *session, const char *const *key,
			       const char *const *value, size_t n, bool keep, size_t *bad,
			       char *why, size_t why_bytes);

#endif
