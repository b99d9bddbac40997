/* profiles.c - /entry/profile and /entry/cake, out of the results of the stage `integrate`
 * (stage/integrate/integrate.c); and /entry/correlation, of constants of the stage `correlate`. */
#include "sink/nexus/profiles.h"

#include <stdio.h>
#include <string.h>

#include "sink/nexus/nxmx.h"
#include "sink/nexus/results.h"

/* Rows of the result "profile". */
enum { POSITION, INTENSITY, SIGMA, PROFILE_ROWS };

enum { PATH_BYTES = 128, AXES_MOST = 3 };

static const char *const names[SL_PROFILES] = {"profile", "cake"};

static int find(const struct sl_env *env, const char *name)
{
	for (uint32_t i = 0; i < env->results; i++)
		if (!strcmp(env->result[i].name, name))
			return (int)i;
	return -1;
}

/* The axis of the constant NAME_AXIS, or NULL: it is not about that result. */
static const char *axis_of(const struct sl_constant *constant, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(constant->shape.name, name, n) && constant->shape.name[n] == '_' &&
			       constant->shape.dtype == SL_F32 && constant->shape.rank == 1
		       ? constant->shape.name + n + 1
		       : NULL;
}

/* Axes after the frames', slowest first: as many as a frame's row has dimensions, and as long. */
static uint32_t find_axes(const struct sl_env *env, const char *name, const uint32_t *dim,
			  const struct sl_constant **axis)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < env->constants && n < AXES_MOST - 1; i++)
		if (axis_of(&env->constant[i], name) && env->constant[i].shape.dim[0] == dim[n])
			axis[n++] = &env->constant[i];
	return n;
}

/* Where the intensity of a frame is, and what shape it has. False: there is none of this name, or
 * it is not what the stage makes. */
static bool look(const struct sl_env *env, const char *name, struct sl_profile *profile,
		 struct sl_h5_shape *row, const struct sl_constant **axis)
{
	bool is_cake = !strcmp(name, "cake");
	int from = find(env, name), sigma = is_cake ? find(env, "cake_sigma") : from;
	const struct sl_shape *shape = from < 0 ? NULL : &env->result[from];
	uint64_t bytes;

	if (!shape || sigma < 0 || shape->rank != 2 || shape->ragged || shape->dtype != SL_F32 ||
	    (!is_cake && shape->dim[0] != PROFILE_ROWS) ||
	    sl_shape_bytes(&env->result[sigma]) != sl_shape_bytes(shape))
		return false;
	*profile = (struct sl_profile){.from = (uint32_t)from, .errors_from = (uint32_t)sigma};
	*row = (struct sl_h5_shape){.type = SL_H5_F32, .rank = is_cake ? 2 : 1};
	for (uint32_t d = 0; d < row->rank; d++)
		row->dim[d] = shape->dim[d + !is_cake];
	bytes = shape->dim[1] * sizeof(float);
	profile->at_byte = is_cake ? 0 : INTENSITY * bytes;
	profile->errors_at_byte = is_cake ? 0 : SIGMA * bytes;
	return find_axes(env, name, shape->dim + !is_cake, axis) == row->rank;
}

bool sl_profiles_take(const struct sl_env *env, uint32_t i)
{
	const struct sl_constant *axis[AXES_MOST];
	struct sl_profile profile;
	struct sl_h5_shape row;

	for (unsigned k = 0; k < SL_PROFILES; k++) {
		size_t n = strlen(names[k]);
		const char *name = env->result[i].name;

		if (strncmp(name, names[k], n) != 0 ||
		    (name[n] && strcmp(name + n, "_sigma") != 0 &&
		     strcmp(name + n, "_radius") != 0 && strcmp(name + n, "_azimuth") != 0))
			continue;
		return look(env, names[k], &profile, &row, axis);
	}
	return false;
}

#define CORRELATION "correlation"

/* The constant "correlation_NAME", or NULL. */
static const struct sl_constant *correlation(const struct sl_env *env, const char *name)
{
	size_t n = strlen(CORRELATION "_");

	for (uint32_t i = 0; i < env->constants; i++)
		if (!strncmp(env->constant[i].shape.name, CORRELATION "_", n) &&
		    !strcmp(env->constant[i].shape.name + n, name))
			return &env->constant[i];
	return NULL;
}

/* A stage of a user's own may have one of that name. */
static bool has_correlation(const struct sl_env *env)
{
	const struct sl_constant *g2 = correlation(env, "g2"), *tau = correlation(env, "tau");

	return g2 && tau && g2->at_end && g2->shape.rank == 2 && tau->shape.rank == 1 &&
	       tau->shape.dim[0] == g2->shape.dim[1];
}

const char *sl_profiles_plot(const struct sl_env *env)
{
	for (uint32_t i = 0; i < env->results; i++)
		for (unsigned k = 0; k < SL_PROFILES; k++)
			if (!strcmp(env->result[i].name, names[k]) && sl_profiles_take(env, i))
				return names[k];
	return has_correlation(env) ? CORRELATION : NULL;
}

/* ---- the group ---- */

/* "q (1/nm)": the unit is in parentheses. */
static void write_constant(struct sl_h5 *file, const char *group, const char *name,
			   const struct sl_constant *constant)
{
	const struct sl_shape *from = &constant->shape;
	const char *doc = from->doc ? from->doc : name, *unit = strrchr(doc, '(');
	struct sl_h5_shape shape = {.type = sl_nxmx_type(from->dtype), .rank = from->rank};
	char path[PATH_BYTES], text[PATH_BYTES];

	for (uint32_t d = 0; d < from->rank; d++)
		shape.dim[d] = from->dim[d];
	snprintf(path, sizeof(path), "%s/%s", group, name);
	sl_h5_write(file, path, &shape, constant->data);
	sl_h5_attribute_text(file, path, "long_name", doc);
	if (!unit)
		return;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(unit + 1, ")"), unit + 1);
	sl_h5_attribute_text(file, path, "units", text);
}

static void link_to_results(struct sl_h5 *file, const char *group, const char *name)
{
	char path[PATH_BYTES], target[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	snprintf(target, sizeof(target), "/entry/results/%s", name);
	sl_h5_link(file, path, target);
}

static void open_series(struct sl_h5 *file, const char *group, const char *name,
			const struct sl_h5_shape *row, struct sl_h5_series **series)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	sl_h5_series_open(file, path, row,
			  sl_results_per_chunk(sl_h5_elements(row, 0) * sizeof(float)), series);
	sl_h5_attribute_text(file, path, "interpretation", row->rank > 1 ? "image" : "spectrum");
	sl_h5_attribute_text(file, path, "aligned_with", "/entry/results/sequence");
}

static void open_group(struct sl_profile *profile, struct sl_h5 *file, const char *name,
		       const struct sl_h5_shape *row, const struct sl_constant *const *axis)
{
	const char *axes[AXES_MOST] = {"frame_number"};
	char group[PATH_BYTES], path[PATH_BYTES];

	snprintf(group, sizeof(group), "/entry/%s", name);
	sl_h5_group(file, group, "NXdata");
	sl_h5_attribute_text(file, group, "signal", "intensity");
	for (uint32_t d = 0; d < row->rank; d++) {
		axes[d + 1] = axis_of(axis[d], name);
		write_constant(file, group, axes[d + 1], axis[d]);
	}
	sl_h5_attribute_texts(file, group, "axes", axes, row->rank + 1);
	link_to_results(file, group, "frame_number");
	link_to_results(file, group, "image_index");
	open_series(file, group, "intensity", row, &profile->intensity);
	open_series(file, group, "intensity_errors", row, &profile->errors);
	snprintf(path, sizeof(path), "%s/intensity", group);
	sl_h5_attribute_text(file, path, "long_name", "intensity");
}

void sl_profiles_open(struct sl_profiles *profiles, struct sl_h5 *file, const struct sl_env *env)
{
	const struct sl_constant *axis[AXES_MOST];
	struct sl_h5_shape row;

	profiles->n = 0;
	for (unsigned k = 0; k < SL_PROFILES; k++)
		if (look(env, names[k], &profiles->one[profiles->n], &row, axis))
			open_group(&profiles->one[profiles->n++], file, names[k], &row, axis);
}

void sl_profiles_append(const struct sl_profiles *profiles, const struct sl_frame *frame)
{
	for (uint32_t i = 0; i < profiles->n; i++) {
		const struct sl_profile *p = &profiles->one[i];

		sl_h5_series_append(p->intensity,
				    (const char *)frame->result[p->from].host + p->at_byte);
		sl_h5_series_append(p->errors, (const char *)frame->result[p->errors_from].host +
						       p->errors_at_byte);
	}
}

/* ---- what is known at the end ---- */

void sl_profiles_end(struct sl_h5 *file, const struct sl_env *env)
{
	static const char group[] = "/entry/" CORRELATION, prefix[] = CORRELATION "_";
	const char *axes[] = {"region", "tau"};
	size_t n = sizeof(prefix) - 1;
	uint32_t regions;

	if (!has_correlation(env))
		return;
	regions = correlation(env, "g2")->shape.dim[0];
	sl_h5_group(file, group, "NXdata");
	sl_h5_attribute_text(file, group, "signal", "g2");
	for (uint32_t i = 0; i < env->constants; i++) {
		const struct sl_constant *c = &env->constant[i];

		if (strncmp(c->shape.name, prefix, n) != 0)
			continue;
		write_constant(file, group, c->shape.name + n, c);
		/* That of the regions is called by what they are of. */
		if (c->shape.rank == 1 && c->shape.dtype == SL_F64 && c->shape.dim[0] == regions &&
		    strcmp(c->shape.name + n, "tau") != 0)
			axes[0] = c->shape.name + n;
	}
	sl_h5_attribute_texts(file, group, "axes", axes, 2);
	sl_h5_attribute_text(file, "/entry/" CORRELATION "/g2", "interpretation", "spectrum");
}
