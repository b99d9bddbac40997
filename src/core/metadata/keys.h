/* keys.h - which metadata have a meaning of their own, and what a value may be.
 *
 * Model:     a known key is a row of an option table: the section `metadata` of an experiment file
 *            and changes over the status socket are checked with the same table. A value that is
 *            the row's default is as if the key were not set. Any other key is free: a text, or a
 *            number with a unit, which files store as such. Keys that another section of the
 *            experiment sets are refused, so that nothing is typed twice.
 * Threads:   functions of their arguments; tables are const.
 * Ownership: texts are the caller's. */
#ifndef SL_CORE_METADATA_KEYS_H
#define SL_CORE_METADATA_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/option.h>

#include "core/metadata/metadata.h"

enum { SL_METADATA_NAME = 128, SL_METADATA_UNIT = 32, SL_METADATA_USERS = 16 };
/* The choices of `polarization`. */
enum { SL_POLARIZATION_UNKNOWN, SL_POLARIZATION_HORIZONTAL, SL_POLARIZATION_VERTICAL };

struct sl_metadata_known {
	char title[256], proposal[SL_METADATA_NAME], users[SL_METADATA_VALUE];
	char instrument[SL_METADATA_NAME], source[SL_METADATA_NAME];
	char sample[SL_METADATA_NAME], sample_description[512], sample_formula[SL_METADATA_NAME];
	uint32_t source_type, beam_profile, polarization;
	double sample_temperature_K, exposure_s;
	double flux_per_s, beam_width_m, beam_height_m, polarization_degree, transmission;
};
extern const struct sl_option sl_metadata_options[];

/* What an experiment file says, and what changes of it must keep to. */
struct sl_metadata_section {
	struct sl_metadata table;
	uint64_t locked;      /* a bit for each entry of the table: a site file has locked it */
	double frame_rate_Hz; /* of the detector; 0: not known */
};

bool sl_metadata_is_known(const char *key);

/* What another section of the experiment sets, as "geometry.distance_m"; NULL: none does. */
const char *sl_metadata_elsewhere(const char *key);

/* One change, as the socket takes it. "keys.NAME" is the free key NAME; without "keys." a name that
 * is nearly a known one is refused. value NULL or "": the key is removed. On success *name is the
 * key and `text` its value as it is stored; "": it is not set. -EINVAL, -ERANGE, -EPERM (locked):
 * `why` says what is wrong. */
int sl_metadata_check(const struct sl_metadata_section *section, const char *key, const char *value,
		      const char **name, char text[SL_METADATA_VALUE], char *why, size_t why_bytes);

/* Set a known key in `known`; `text` is the value without its unit. Errors as above. */
int sl_metadata_check_known(const struct sl_option *option, const char *value,
			    char text[SL_METADATA_VALUE], struct sl_metadata_known *known,
			    char *why, size_t why_bytes);
/* Whether a free key may have this name and value. */
int sl_metadata_check_free(const char *name, const char *value, char *why, size_t why_bytes);
/* -EINVAL: no frame can be exposed for so long at this rate (0: not known). */
int sl_metadata_check_exposure(double exposure_s, double frame_rate_Hz, char *why,
			       size_t why_bytes);

/* The known keys of a table, with defaults for those that it does not have. */
void sl_metadata_read_known(const struct sl_metadata *metadata, struct sl_metadata_known *known);

/* ---- text.c: values as texts ---- */

/* "199.8 mA", "-3", "1e5 photons/s": a number, and a unit of one word or none (""). false: it is a
 * text. Numbers with leading zeros (0042) are texts: they are names. */
bool sl_metadata_number(const char *text, double *value, char unit[SL_METADATA_UNIT]);

struct sl_metadata_user {
	char name[SL_METADATA_NAME], email[SL_METADATA_NAME], affiliation[256]; /* "": none */
};

/* "Ada Lovelace <ada@example.org> (Analytical Engines, London), B. Second": users with commas
 * between them; commas within parentheses belong to the affiliation. How many; -EINVAL: `why` says
 * what is wrong. */
int sl_metadata_parse_users(const char *text, struct sl_metadata_user user[SL_METADATA_USERS],
			    char *why, size_t why_bytes);

#endif
