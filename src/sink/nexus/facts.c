/* facts.c - metadata to the places that NeXus has for them. */
#include "sink/nexus/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define BEAM	   "/entry/instrument/beam"
#define ATTENUATOR "/entry/instrument/attenuator"
#define SAMPLE	   "/entry/sample"
#define FREE	   "/entry/metadata"
#define TEXTS	   "/entry/sluice/metadata"
#define CHANGES	   "/entry/sluice/metadata_changes"
#define POINTS	   "/entry/sluice/points"

/* The words of NXsource and NXbeam for the choices of the option table; NULL: not known. */
static const char *const source_types[] = {NULL,
					   "Synchrotron X-ray Source",
					   "Free-Electron Laser",
					   "Rotating Anode X-ray",
					   "Fixed Tube X-ray",
					   "Metal Jet X-ray",
					   "Laser",
					   "Other"};
static const char *const beam_profiles[] = {NULL, "Gaussian", "Airy", "top-hat", "rectangular"};

/* ---- the fields, each as it is now; nothing where the value is not known ---- */

static void write_text(struct sl_h5 *file, const char *path, const char *text)
{
	if (text && text[0])
		sl_h5_write_text(file, path, text);
}

static void write_number(struct sl_h5 *file, const char *path, double value, const char *units)
{
	if (value > 0)
		sl_h5_write_f64(file, path, value, units);
}

static void write_beam_size(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	const double size[2] = {k->beam_width_m > 0 ? k->beam_width_m : k->beam_height_m,
				k->beam_height_m > 0 ? k->beam_height_m : k->beam_width_m};

	if (!(size[0] > 0))
		return;
	sl_h5_write(file, BEAM "/incident_beam_size", &(struct sl_h5_shape){SL_H5_F64, 1, {2}},
		    size);
	sl_h5_attribute_text(file, BEAM "/incident_beam_size", "units", "m");
}

/* Stokes' vector: intensity, horizontal less vertical, diagonal, circular. */
static void write_polarization(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	double stokes[4] = {1, 0, 0, 0};

	if (k->polarization == SL_POLARIZATION_UNKNOWN)
		return;
	if (k->polarization == SL_POLARIZATION_HORIZONTAL)
		stokes[1] = k->polarization_degree;
	else if (k->polarization == SL_POLARIZATION_VERTICAL)
		stokes[1] = -k->polarization_degree;
	sl_h5_write(file, BEAM "/incident_polarization_stokes",
		    &(struct sl_h5_shape){SL_H5_F64, 1, {4}}, stokes);
}

static void write_transmission(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	if (!(k->transmission > 0))
		return;
	sl_h5_group(file, ATTENUATOR, "NXattenuator");
	sl_h5_write_f64(file, ATTENUATOR "/attenuator_transmission", k->transmission, NULL);
}

static void write_user(struct sl_h5 *file, const char *group, const struct sl_metadata_user *user)
{
	char path[64];

	sl_h5_group(file, group, "NXuser");
	snprintf(path, sizeof(path), "%s/name", group);
	write_text(file, path, user->name);
	snprintf(path, sizeof(path), "%s/email", group);
	write_text(file, path, user->email);
	snprintf(path, sizeof(path), "%s/affiliation", group);
	write_text(file, path, user->affiliation);
}

static void name_user(int users, int i, char group[32])
{
	if (users == 1)
		strcpy(group, "/entry/user");
	else
		snprintf(group, 32, "/entry/user_%d", i + 1);
}

static int users_of(const struct sl_metadata_known *k, struct sl_metadata_user *user)
{
	char why[256];
	int users = sl_metadata_parse_users(k->users, user, why, sizeof(why));

	return users < 0 ? 0 : users;
}

static void write_users(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	struct sl_metadata_user user[SL_METADATA_USERS];
	int users = users_of(k, user);
	char group[32];

	for (int i = 0; i < users; i++) {
		name_user(users, i, group);
		write_user(file, group, &user[i]);
	}
}

static void remove_users(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	struct sl_metadata_user user[SL_METADATA_USERS];
	int users = users_of(k, user);
	char group[32];

	for (int i = 0; i < users; i++) {
		name_user(users, i, group);
		sl_h5_remove(file, group);
	}
}

static void write_known(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	write_text(file, "/entry/title", k->title);
	write_text(file, "/entry/experiment_identifier", k->proposal);
	write_users(file, k);
	write_text(file, "/entry/source/type", source_types[k->source_type]);
	write_text(file, SAMPLE "/description", k->sample_description);
	write_text(file, SAMPLE "/chemical_formula", k->sample_formula);
	write_number(file, SAMPLE "/temperature", k->sample_temperature_K, "K");
	write_number(file, "/entry/instrument/detector/count_time", k->exposure_s, "s");
	write_number(file, BEAM "/total_flux", k->flux_per_s, "Hz");
	write_beam_size(file, k);
	write_text(file, BEAM "/profile", beam_profiles[k->beam_profile]);
	write_polarization(file, k);
	write_transmission(file, k);
}

/* ---- all keys, as texts and as users mean them ---- */

static void write_free(struct sl_h5 *file, const char *key, const char *text)
{
	char path[sizeof(FREE) + SL_METADATA_KEY], unit[SL_METADATA_UNIT];
	double value;

	snprintf(path, sizeof(path), FREE "/%s", key);
	if (sl_metadata_number(text, &value, unit))
		sl_h5_write_f64(file, path, value, unit[0] ? unit : NULL);
	else
		sl_h5_write_text(file, path, text);
}

static void write_tables(struct sl_h5 *file, const struct sl_metadata *m)
{
	char path[sizeof(TEXTS) + SL_METADATA_KEY];
	bool has_free = false;

	sl_h5_group(file, TEXTS, "NXcollection");
	for (uint32_t i = 0; i < m->n; i++) {
		snprintf(path, sizeof(path), TEXTS "/%s", m->entry[i].key);
		sl_h5_write_text(file, path, m->entry[i].value);
		if (sl_metadata_is_known(m->entry[i].key))
			continue;
		if (!has_free)
			sl_h5_group(file, FREE, "NXcollection");
		has_free = true;
		write_free(file, m->entry[i].key, m->entry[i].value);
	}
}

/* ---- the begin ---- */

static void copy_one(void *to, const char *key, const char *value)
{
	sl_metadata_set(to, key, value); /* as many and as long as fit */
}

static struct sl_metadata *copy_of(const struct sl_facts *facts)
{
	const struct sl_env_metadata *from = *facts->from;
	struct sl_metadata *copy = calloc(1, sizeof(*copy));

	if (copy && from)
		from->each(from->arg, copy_one, copy);
	return copy;
}

int sl_facts_open(struct sl_facts *facts, const struct sl_env *env)
{
	facts->from = &env->metadata;
	facts->written = copy_of(facts);
	if (!facts->written)
		return -ENOMEM;
	sl_metadata_read_known(facts->written, &facts->known);
	return 0;
}

void sl_facts_close(struct sl_facts *facts)
{
	free(facts->written);
	facts->written = NULL;
}

void sl_facts_begin(struct sl_facts *facts, struct sl_h5 *file)
{
	write_known(file, &facts->known);
	if (*facts->from)
		write_tables(file, facts->written);
}

/* ---- the end: what has changed ---- */

static void remove_if_there(struct sl_h5 *file, const char *path)
{
	struct sl_h5_shape shape;

	if (!sl_h5_describe(file, path, &shape))
		sl_h5_remove(file, path);
}

static void remove_known(struct sl_h5 *file, const struct sl_metadata_known *k)
{
	static const char *const fields[] = {"/entry/title",
					     "/entry/experiment_identifier",
					     "/entry/source/type",
					     SAMPLE "/description",
					     SAMPLE "/chemical_formula",
					     SAMPLE "/temperature",
					     "/entry/instrument/detector/count_time",
					     BEAM "/total_flux",
					     BEAM "/incident_beam_size",
					     BEAM "/profile",
					     BEAM "/incident_polarization_stokes"};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		remove_if_there(file, fields[i]);
	remove_users(file, k);
	if (k->transmission > 0)
		sl_h5_remove(file, ATTENUATOR);
}

static void rename_one(struct sl_h5 *file, const char *path, const char *before, const char *now,
		       const char *otherwise)
{
	before = before[0] ? before : otherwise;
	now = now[0] ? now : otherwise;
	if (!strcmp(before, now))
		return;
	sl_h5_remove(file, path);
	sl_h5_write_text(file, path, now);
}

static void rewrite(struct sl_facts *facts, struct sl_h5 *file, const struct sl_metadata *now)
{
	const struct sl_metadata_known before = facts->known;
	struct sl_metadata_known *k = &facts->known;

	sl_metadata_read_known(now, k);
	rename_one(file, "/entry/instrument/name", before.instrument, k->instrument,
		   facts->instrument);
	rename_one(file, "/entry/source/name", before.source, k->source, facts->source);
	rename_one(file, SAMPLE "/name", before.sample, k->sample, facts->sample);
	remove_known(file, &before);
	write_known(file, k);
	for (uint32_t i = 0; i < facts->written->n; i++)
		if (!sl_metadata_is_known(facts->written->entry[i].key)) {
			sl_h5_remove(file, FREE);
			break;
		}
	sl_h5_remove(file, TEXTS);
	write_tables(file, now);
}

static bool same(const struct sl_metadata *a, const struct sl_metadata *b)
{
	bool equal = a->n == b->n;

	for (uint32_t i = 0; i < a->n && equal; i++)
		equal = !strcmp(a->entry[i].key, b->entry[i].key) &&
			!strcmp(a->entry[i].value, b->entry[i].value);
	return equal;
}

/* ---- the changes ---- */

enum { CHANGES_MOST = 128, TIME_BYTES = 32 };

struct changes {
	size_t n;
	struct {
		char time[TIME_BYTES], key[SL_METADATA_KEY];
		char from[SL_METADATA_NAME], to[SL_METADATA_NAME];
	} row[CHANGES_MOST];
};

static void note_change(void *to, const struct sl_env_metadata_change *change)
{
	struct changes *all = to;

	if (all->n == CHANGES_MOST)
		return;
	sl_clock_iso8601(change->unix_ns, all->row[all->n].time, TIME_BYTES);
	snprintf(all->row[all->n].key, SL_METADATA_KEY, "%s", change->key);
	snprintf(all->row[all->n].from, SL_METADATA_NAME, "%s", change->from);
	snprintf(all->row[all->n].to, SL_METADATA_NAME, "%s", change->to);
	all->n++;
}

static void write_columns(struct sl_h5 *file, const struct changes *all)
{
	const char *text[4][CHANGES_MOST];

	for (size_t i = 0; i < all->n; i++) {
		text[0][i] = all->row[i].time;
		text[1][i] = all->row[i].key;
		text[2][i] = all->row[i].from;
		text[3][i] = all->row[i].to;
	}
	sl_h5_write_texts(file, CHANGES "/time", text[0], all->n);
	sl_h5_write_texts(file, CHANGES "/key", text[1], all->n);
	sl_h5_write_texts(file, CHANGES "/from", text[2], all->n);
	sl_h5_write_texts(file, CHANGES "/to", text[3], all->n);
}

static void write_changes(struct sl_h5 *file, const struct sl_env_metadata *from)
{
	struct changes *all = from->changes ? calloc(1, sizeof(*all)) : NULL;
	uint64_t left_out;

	if (!all)
		return;
	left_out = from->changes(from->arg, note_change, all);
	if (all->n) {
		sl_h5_group(file, CHANGES, "NXcollection");
		sl_h5_write_u64(file, CHANGES "/left_out", left_out);
		write_columns(file, all);
	}
	free(all);
}

/* ---- the points of a scan ---- */

enum { POINT_COLUMNS = 3, DATASET_BYTES = 4096 }; /* of HDF5 itself, for each dataset */

static void write_times(struct sl_h5 *file, const struct sl_env_points *p,
			const struct sl_h5_shape *shape)
{
	double *seconds = malloc(p->n * sizeof(*seconds));

	if (!seconds)
		return;
	for (uint64_t i = 0; i < p->n; i++)
		seconds[i] = (double)p->unix_ns[i] * 1e-9;
	sl_h5_write(file, POINTS "/time", shape, seconds);
	sl_h5_attribute_text(file, POINTS "/time", "units", "s");
	free(seconds);
}

static void write_point_columns(struct sl_h5 *file, const struct sl_env_points *p)
{
	const struct sl_h5_shape counts = {SL_H5_U64, 1, {p->n}}, numbers = {SL_H5_F64, 1, {p->n}};
	char path[160];

	sl_h5_group(file, POINTS, "NXcollection");
	sl_h5_write(file, POINTS "/first_sequence", &counts, p->first);
	sl_h5_write(file, POINTS "/frames", &counts, p->frames);
	write_times(file, p, &numbers);
	if (p->values)
		sl_h5_group(file, POINTS "/values", "NXcollection");
	for (uint32_t v = 0; v < p->values; v++) {
		snprintf(path, sizeof(path), POINTS "/values/%s", p->name[v]);
		sl_h5_write(file, path, &numbers, p->value[v]);
	}
}

static void write_points(void *to, const struct sl_env_points *p)
{
	uint64_t columns = POINT_COLUMNS + p->values;
	struct sl_h5 *file = to;

	if (!p->n)
		return;
	if (sl_h5_reserve(file, columns * (p->n * 8 + DATASET_BYTES)))
		sl_warn("no space on disk for the table of %llu points: it is left out of the file",
			(unsigned long long)p->n);
	else
		write_point_columns(file, p);
}

void sl_facts_end(struct sl_facts *facts, struct sl_h5 *file)
{
	struct sl_metadata *now;

	if (!*facts->from)
		return;
	now = copy_of(facts);
	if (now && !same(now, facts->written))
		rewrite(facts, file, now);
	free(now);
	write_changes(file, *facts->from);
	if ((*facts->from)->points)
		(*facts->from)->points((*facts->from)->arg, write_points, file);
}
