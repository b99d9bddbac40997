/* schema.h - option tables as JSON schema: forms and scripts know what an experiment may say. */
#ifndef SL_SERVICE_SCHEMA_H
#define SL_SERVICE_SCHEMA_H

#include <jansson.h>

#include <sluice/option.h>

/* {"type": "object", "properties": {...}, "additionalProperties": false}; units as "x-unit". */
json_t *sl_schema_of_options(const struct sl_option *options);

/* {links, detectors, stages, units, sinks, sections}: each a list of {name, doc, options, ...}; and
 * what is absent: [{kind, name, why}]. */
json_t *sl_schema_addons(void);
json_t *sl_schema_absent(void);

#endif
