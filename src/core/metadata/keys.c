/* keys.c - the table of known keys, and the checks of changes. */
#include "core/metadata/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config/config.h"

#define FREE	 "keys."
#define ROUNDING 1e-9 /* of a rate that was written with few digits */

const struct sl_option sl_metadata_options[] = {
	SL_STRING(struct sl_metadata_known, title, "", "of the run"),
	SL_STRING(struct sl_metadata_known, proposal, "", "its number at the facility"),
	SL_STRING(struct sl_metadata_known, users, "",
		  "a list, or a text with commas between them; each `Name <email> (affiliation)`"),
	SL_STRING(struct sl_metadata_known, instrument, "", "name of the instrument or beamline"),
	SL_STRING(struct sl_metadata_known, source, "", "name of the facility or source"),
	SL_CHOICE(struct sl_metadata_known, source_type, unknown,
		  "unknown|synchrotron|fel|rotating_anode|fixed_tube|metal_jet|laser|other",
		  "kind of source"),
	SL_STRING(struct sl_metadata_known, sample, "", "name of the sample"),
	SL_STRING(struct sl_metadata_known, sample_description, "", "what it is"),
	SL_STRING(struct sl_metadata_known, sample_formula, "", "its chemical formula"),
	SL_F64(struct sl_metadata_known, sample_temperature_K, 0, 0, 1e5, "K",
	       "its temperature; 0: not known"),
	SL_F64(struct sl_metadata_known, exposure_s, 0, 0, 1e6, "s",
	       "how long one frame is exposed, at most a period of detector.frame_rate_Hz; 0: not "
	       "known"),
	SL_F64(struct sl_metadata_known, flux_per_s, 0, 0, 1e30, "photons/s",
	       "photons on the sample; 0: not known"),
	SL_F64(struct sl_metadata_known, beam_width_m, 0, 0, 1, "m",
	       "horizontal size of the beam at the sample; 0: as beam_height_m"),
	SL_F64(struct sl_metadata_known, beam_height_m, 0, 0, 1, "m",
	       "vertical size; 0: as beam_width_m"),
	SL_CHOICE(struct sl_metadata_known, beam_profile, unknown,
		  "unknown|Gaussian|Airy|top-hat|rectangular", "what these sizes mean"),
	SL_CHOICE(struct sl_metadata_known, polarization, unknown,
		  "unknown|horizontal|vertical|unpolarized",
		  "direction of the beam's linear polarization"),
	SL_F64(struct sl_metadata_known, polarization_degree, 1, 0, 1, "",
	       "share of the beam that has this polarization"),
	SL_F64(struct sl_metadata_known, transmission, 0, 0, 1, "",
	       "share of the beam that attenuators let pass; 0: not known"),
	SL_OPTION_END};

/* What users of other systems type, and where it is set here. */
static const struct {
	const char *key, *place;
} elsewhere[] = {
	{"photon_energy_keV", "detector.photon_energy_keV"},
	{"photon_energy", "detector.photon_energy_keV"},
	{"incident_energy", "detector.photon_energy_keV"},
	{"energy_keV", "detector.photon_energy_keV"},
	{"energy", "detector.photon_energy_keV"},
	{"wavelength", "detector.photon_energy_keV"},
	{"incident_wavelength", "detector.photon_energy_keV"},
	{"distance", "geometry.distance_m"},
	{"distance_m", "geometry.distance_m"},
	{"detector_distance", "geometry.distance_m"},
	{"beam_center_x", "geometry.beam_column"},
	{"beam_center_y", "geometry.beam_row"},
	{"beam_column", "geometry.beam_column"},
	{"beam_row", "geometry.beam_row"},
	{"frame_rate", "detector.frame_rate_Hz"},
	{"frame_rate_Hz", "detector.frame_rate_Hz"},
	{"frame_time", "detector.frame_rate_Hz"},
	{"frames", "detector.frames"},
	{"modules", "detector.modules"},
	{"pixel_size_m", "detector.pixel_size_m"},
	{"sensor_material", "detector.sensor_material"},
	{"sensor_thickness_m", "detector.sensor_thickness_m"},
};

const char *sl_metadata_elsewhere(const char *key)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!strcmp(key, elsewhere[i].key))
			return elsewhere[i].place;
	return NULL;
}

static const struct sl_option *row_of(const char *key)
{
	const struct sl_option *o = sl_metadata_options;

	while (o->name && strcmp(o->name, key) != 0)
		o++;
	return o->name ? o : NULL;
}

bool sl_metadata_is_known(const char *key)
{
	return row_of(key) != NULL;
}

/* The known key that was probably meant; NULL: none is near. */
static const char *nearly(const char *key)
{
	const char *guess = NULL;
	size_t best = 3; /* two letters at most, or two that changed places */

	for (const struct sl_option *o = sl_metadata_options; o->name; o++) {
		size_t distance = sl_config_distance(key, o->name);

		if (distance < best && strlen(o->name) > 4 && strlen(key) > 3) {
			best = distance;
			guess = o->name;
		}
	}
	return guess;
}

/* Control characters of ASCII, and U+0080 to U+009F, which in UTF-8 are 0xc2 and a byte below
 * 0xa0: terminals take both for commands. */
static bool has_control(const char *text, const char *except)
{
	const unsigned char *c = (const unsigned char *)text;

	for (; *c; c++) {
		if ((*c < 0x20 && !strchr(except, *c)) || *c == 0x7f)
			return true;
		if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			return true;
	}
	return false;
}

/* ---- known keys ---- */

/* A number may be followed by the unit that the key has. `text`: without it. */
static int take_unit(const struct sl_option *o, char text[SL_METADATA_VALUE], char *why,
		     size_t why_bytes)
{
	size_t number = strcspn(text, " ");
	const char *unit = text + number + strspn(text + number, " ");

	if (o->type != SL_OPTION_F64 || !*unit)
		return 0;
	if (strcmp(unit, o->unit) != 0) {
		snprintf(why, why_bytes, "takes a number%s%s, not '%.20s'", *o->unit ? " in " : "",
			 o->unit, unit);
		return -EINVAL;
	}
	text[number] = 0;
	return 0;
}

static int check_text(const struct sl_metadata_known *known, const char *text, char *why,
		      size_t why_bytes)
{
	struct sl_metadata_user user[SL_METADATA_USERS];

	if (has_control(text, "")) {
		snprintf(why, why_bytes, "is one line, without tabs and control characters");
		return -EINVAL;
	}
	return sl_metadata_parse_users(known->users, user, why, why_bytes) < 0 ? -EINVAL : 0;
}

int sl_metadata_check_exposure(double exposure_s, double frame_rate_Hz, char *why, size_t why_bytes)
{
	if (!(frame_rate_Hz > 0) || exposure_s * frame_rate_Hz <= 1 + ROUNDING)
		return 0;
	snprintf(why, why_bytes,
		 "%g s is longer than the %g s from frame to frame that detector.frame_rate_Hz: %g "
		 "says: correct one of the two",
		 exposure_s, 1 / frame_rate_Hz, frame_rate_Hz);
	return -EINVAL;
}

int sl_metadata_check_known(const struct sl_option *o, const char *value,
			    char text[SL_METADATA_VALUE], struct sl_metadata_known *known,
			    char *why, size_t why_bytes)
{
	int err = 0;

	/* A longer one is refused by every option. */
	snprintf(text, SL_METADATA_VALUE, "%s", value);
	if (strlen(value) < SL_METADATA_VALUE)
		err = take_unit(o, text, why, why_bytes);
	if (!err)
		err = sl_option_set(o, known, strlen(value) < SL_METADATA_VALUE ? text : value, why,
				    why_bytes);
	return err ? err : check_text(known, text, why, why_bytes);
}

/* ---- any key ---- */

static const char *fault_of(const char *name, const char *value)
{
	if (!sl_metadata_is_key(name))
		return "a key has 1 to 63 of A-Z a-z 0-9 . _ -";
	if (row_of(name))
		return "is no free key: set it without 'keys'";
	if (has_control(value, "\n\t"))
		return "a value has no control characters but tabs and ends of lines";
	return strlen(value) < SL_METADATA_VALUE ? NULL : "a value has at most 1023 bytes";
}

int sl_metadata_check_free(const char *name, const char *value, char *why, size_t why_bytes)
{
	const char *fault = fault_of(name, value), *place = sl_metadata_elsewhere(name);

	if (fault)
		snprintf(why, why_bytes, "%s", fault);
	else if (place)
		snprintf(why, why_bytes, "is %s of the experiment, which files have already",
			 place);
	return fault || place ? -EINVAL : 0;
}

static bool is_locked(const struct sl_metadata_section *section, const char *name)
{
	for (uint32_t i = 0; i < section->table.n; i++)
		if (section->locked >> i & 1 && !strcmp(section->table.entry[i].key, name))
			return true;
	return false;
}

static int check_by_table(const struct sl_metadata_section *section, const struct sl_option *o,
			  const char *value, char text[SL_METADATA_VALUE], char *why,
			  size_t why_bytes)
{
	struct sl_metadata_known known = {.exposure_s = 0};
	int err = sl_metadata_check_known(o, value, text, &known, why, why_bytes);

	if (!err)
		err = sl_metadata_check_exposure(known.exposure_s, section->frame_rate_Hz, why,
						 why_bytes);
	if (err)
		return err;
	sl_option_print(o, &known, text, SL_METADATA_VALUE);
	if (!strcmp(text, o->def))
		text[0] = 0;
	return 0;
}

int sl_metadata_check(const struct sl_metadata_section *section, const char *key, const char *value,
		      const char **name, char text[SL_METADATA_VALUE], char *why, size_t why_bytes)
{
	bool is_free = !strncmp(key, FREE, strlen(FREE));
	const char *bare = is_free ? key + strlen(FREE) : key, *guess;
	const struct sl_option *o = is_free ? NULL : row_of(key);
	int err;

	value = value ? value : "";
	if (is_locked(section, bare)) {
		snprintf(why, why_bytes, "is locked by the site file");
		return -EPERM;
	}
	guess = is_free || o ? NULL : nearly(key);
	if (guess) {
		snprintf(why, why_bytes, "did you mean '%s'? a free key of this name is keys.%s",
			 guess, key);
		return -EINVAL;
	}
	if (o) {
		text[0] = 0;
		err = *value ? check_by_table(section, o, value, text, why, why_bytes) : 0;
	} else {
		err = sl_metadata_check_free(bare, value, why, why_bytes);
		if (!err)
			strcpy(text, value);
	}
	if (!err)
		*name = bare;
	return err;
}

void sl_metadata_read_known(const struct sl_metadata *m, struct sl_metadata_known *known)
{
	char text[SL_METADATA_VALUE], why[256];

	sl_options_defaults(sl_metadata_options, known);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct sl_option *o = row_of(m->entry[i].key);

		if (o)
			sl_metadata_check_known(o, m->entry[i].value, text, known, why,
						sizeof(why));
	}
}
