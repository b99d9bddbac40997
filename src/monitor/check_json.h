/* check_json.h - what the check of an experiment has found, as JSON: for programs that let users
 * edit experiments.
 *
 * Threads:   one.
 * Ownership: the text is the caller's, by free(). */
#ifndef SL_MONITOR_CHECK_JSON_H
#define SL_MONITOR_CHECK_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/error.h>
#include <sluice/log.h>

#include "experiment/transfers.h"

struct sl_experiment;
struct sl_parameters;

struct sl_check_line {
	enum sl_log_level level; /* SL_LOG_ERROR, SL_LOG_WARN */
	struct sl_error error;	 /* message, where and hint */
};

struct sl_check {
	bool valid;
	const struct sl_check_line *line;
	size_t lines;
	const struct sl_experiment *experiment; /* NULL: it could not be read */
	const struct sl_transfer_names *transfers;
};

/* NULL: no memory. docs/reference/experiment-file.md has the members. */
char *sl_check_json(const struct sl_check *check);

/* Values of declared parameters as an object by name, for the status of a session. parameters
 * NULL: an empty one. Returns NULL: no memory. */
char *sl_parameter_values_json(const struct sl_parameters *parameters);

#endif
