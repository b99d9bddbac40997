/* table.c - a geometry as a table for people. */
#include <math.h>
#include <string.h>

#include "geometry/described.h"

#define KEV_A  12.398419843320026
#define DEGREE (180 / M_PI)

static void middle_of(const struct sl_panel *p, double place[3])
{
	for (int i = 0; i < 3; i++)
		place[i] = p->origin[i] + p->rows / 2.0 * p->slow[i] +
			   p->columns / 2.0 * p->fast[i];
}

static double angle_of(const double place[3])
{
	return atan2(hypot(place[0], place[1]), place[2]);
}

/* The largest angle of any corner. */
static double widest(const struct sl_described *d)
{
	double most = 0;

	for (uint32_t i = 0; i < 4 * d->parts; i++) {
		const struct sl_panel *p = &d->part[i / 4];
		double place[3];

		for (int k = 0; k < 3; k++)
			place[k] = p->origin[k] + (i & 1 ? p->rows : 0) * p->slow[k] +
				   (i & 2 ? p->columns : 0) * p->fast[k];
		most = fmax(most, angle_of(place));
	}
	return most;
}

static void print_tilt(FILE *out, const struct sl_described *d)
{
	struct sl_poni poni;
	char why[160];
	double row, column;

	if (!d->assembled)
		return;
	sl_plane_beam(&d->mean, &row, &column);
	if (isfinite(row))
		fprintf(out, "beam        row %.3f, column %.3f of the assembled image\n", row,
			column);
	else
		fprintf(out, "beam        does not hit the image's plane\n");
	if (sl_plane_to_poni(&d->mean, &poni, why, sizeof(why)))
		fprintf(out, "tilt        %s\n", why);
	else
		fprintf(out,
			"tilt        rot1 %.6g, rot2 %.6g, rot3 %.6g rad (%.4f, %.4f, %.4f "
			"degrees)\n"
			"PONI        %.6g, %.6g m\n",
			poni.rot1, poni.rot2, poni.rot3, poni.rot1 * DEGREE, poni.rot2 * DEGREE,
			poni.rot3 * DEGREE, poni.poni1, poni.poni2);
}

static void print_head(FILE *out, const struct sl_described *d)
{
	double wide = widest(d);

	fprintf(out, "detector    %s", d->detector);
	if (d->modules)
		fprintf(out, ", %u module%s", d->modules, d->modules == 1 ? "" : "s");
	if (d->rows)
		fprintf(out, ", images of %u x %u pixels of %.4g um", d->rows, d->columns,
			d->pixel_size_m * 1e6);
	fprintf(out, "\ndistance    %.6g m, along the normal\n", d->distance_m);
	print_tilt(out, d);
	if (d->energy_keV > 0)
		fprintf(out, "photons     %.6g keV, %.6g A\n", d->energy_keV,
			KEV_A / d->energy_keV);
	fprintf(out, "reach       2 theta up to %.3f degrees", wide * DEGREE);
	if (d->energy_keV > 0 && wide > 0)
		fprintf(out, ", %.3f A", KEV_A / d->energy_keV / 2 / sin(wide / 2));
	fputc('\n', out);
	if (d->masked)
		fprintf(out, "masked      %llu pixels\n", (unsigned long long)d->masked);
	if (d->assembled)
		fprintf(out, "flatness    corners are within %.3g um of one plane%s\n",
			d->worst_m * 1e6,
			d->worst_m > 1e-6 ? "; distance, beam and tilt are those of the plane that "
					    "fits best"
					  : "");
}

/* What is left of a part against the plane of all: away from it, and the angle between the two. */
static void off_plane(const struct sl_described *d, const struct sl_panel *p, double *off_m,
		      double *angle)
{
	double normal[3], own[3], place[3], gap = 0, along = 0;

	sl_vector_cross(d->mean.down, d->mean.right, normal);
	sl_vector_cross(p->slow, p->fast, own);
	middle_of(p, place);
	for (int i = 0; i < 3; i++) {
		gap += (place[i] - d->mean.corner[i]) * normal[i];
		along += d->mean.corner[i] * normal[i];
	}
	*off_m = gap / sl_vector_length(normal) * (along < 0 ? -1 : 1);
	*angle = acos(fmin(1, fabs(sl_vector_dot(normal, own)) / sl_vector_length(normal) /
				      sl_vector_length(own)));
}

void sl_described_table(FILE *out, const struct sl_described *d)
{
	print_head(out, d);
	fprintf(out, "\n%-8s %14s %14s %10s %10s %10s%s\n", "part", "rows", "columns", "x mm",
		"y mm", "z mm", d->assembled ? "     off um  turned mrad" : "");
	for (uint32_t i = 0; i < d->parts; i++) {
		const struct sl_panel *p = &d->part[i];
		char name[32], rows[32], columns[32];
		double place[3], off, angle;

		snprintf(name, sizeof(name), "m%ua%u", p->module, p->piece);
		snprintf(rows, sizeof(rows), "%u-%u", p->first_row, p->first_row + p->rows - 1);
		snprintf(columns, sizeof(columns), "%u-%u", p->first_column,
			 p->first_column + p->columns - 1);
		middle_of(p, place);
		fprintf(out, "%-8s %14s %14s %10.4f %10.4f %10.4f", name, rows, columns,
			place[0] * 1e3, place[1] * 1e3, place[2] * 1e3);
		off_plane(d, p, &off, &angle);
		if (d->assembled)
			fprintf(out, " %10.2f %12.4f", off * 1e6, angle * 1e3);
		fputc('\n', out);
	}
}
