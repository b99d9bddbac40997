/* metrics_families.h - the table of metrics, between the files that write them.
 *
 * Model:     each row is a family: a name, what it is, and a function that writes its samples of
 *            one session. Rows of plain numbers share sl_metric_number(), which looks for `path`
 *            in the status. */
#ifndef SL_MONITOR_METRICS_FAMILIES_H
#define SL_MONITOR_METRICS_FAMILIES_H

#include <jansson.h>

#include "monitor/metrics_text.h"

struct sl_metric_session {
	const char *name;
	bool alive;
	const json_t *status; /* an object; NULL: the session does not answer */
};

enum sl_metric_unit {
	SL_METRIC_PLAIN,
	SL_METRIC_NS,	/* becomes seconds */
	SL_METRIC_TRUE, /* a JSON boolean becomes 0 or 1 */
};

struct sl_metric_family {
	const char *name;
	enum sl_metric_type type;
	const char *labels; /* besides `session`; "": none */
	const char *help;
	void (*write)(struct sl_metrics_text *out, const struct sl_metric_family *family,
		      const struct sl_metric_session *session);
	const char *path[3]; /* members inside each other, up to a NULL */
	enum sl_metric_unit unit;
};

/* Each ends with a NULL name. */
extern const struct sl_metric_family sl_metric_families[];	  /* of the whole run */
extern const struct sl_metric_family sl_metric_ledger_families[]; /* by module, cause, reason */
extern const struct sl_metric_family sl_metric_parts_families[];  /* by hop, queue, sink ... */

typedef void sl_metric_write_fn(struct sl_metrics_text *out, const struct sl_metric_family *family,
				const struct sl_metric_session *session);
sl_metric_write_fn sl_metric_number;

/* The member that a path leads to; NULL: there is none. */
const json_t *sl_metric_at(const json_t *json, const char *const path[3]);

/* A number that may come from anywhere: below 0 is 0. False: it is none. */
bool sl_metric_count_of(const json_t *json, uint64_t *value);

/* A number as the value of a label. */
enum { SL_METRIC_INDEX = 24 };
const char *sl_metric_index(size_t index, char text[SL_METRIC_INDEX]);

/* A sample of this value in the unit of the family; nothing where the value is none. */
void sl_metric_put(struct sl_metrics_text *out, const struct sl_metric_family *family,
		   const struct sl_metric_label *labels, const json_t *value);

#endif
