/* described.c - geometries collected, and written for other programs. */
#include "geometry/described.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "geometry/geom.h"
#include "geometry/nxmx.h"
#include "geometry/poni.h"

#define KEV_METRE 12.398419843320026e-10

static int refuse(const char *what, const char *why)
{
	sl_error("%s: %s", what, why);
	return -EINVAL;
}

static uint64_t count_masked(const uint8_t *mask, uint64_t pixels)
{
	uint64_t count = 0;

	for (uint64_t i = 0; mask && i < pixels; i++)
		count += mask[i] != 0;
	return count;
}

int sl_describe(const struct sl_geometry *geometry, bool assembled, const uint8_t *mask,
		struct sl_described *d)
{
	struct sl_geometry g = *geometry;
	char why[160];

	*d = (struct sl_described){.parts = 0};
	sl_layout_resolve(geometry, &g.layout);
	if (sl_layout_check(&g, why, sizeof(why)))
		return refuse(g.detector, why);
	if (!(g.pixel_size_m > 0))
		return refuse(g.detector, "it has no pixel size, and so no geometry");
	if (!(g.distance_m > 0))
		return refuse(g.detector, "its distance is not known: set detector.distance_m or "
					  "geometry.distance_m");
	if (!g.planes && !(isfinite(g.layout.beam_row) && isfinite(g.layout.beam_column)))
		return refuse(g.detector, "it does not know where the beam is");
	snprintf(d->detector, sizeof(d->detector), "%s", g.detector);
	d->parts = sl_panels(&g, assembled);
	d->part = calloc(d->parts, sizeof(*d->part));
	if (!d->part)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->parts; i++)
		sl_panel_at(&g, assembled, i, &d->part[i]);
	d->modules = g.modules;
	d->assembled = true;
	d->rows = assembled ? g.layout.rows : g.modules * g.rows;
	d->columns = assembled ? g.layout.columns : g.columns;
	d->image_rows = g.layout.rows;
	d->image_columns = g.layout.columns;
	sl_plane_fit(&g, &d->mean, &d->worst_m);
	d->pixel_size_m = g.pixel_size_m;
	d->distance_m = g.distance_m;
	d->energy_keV = g.photon_energy_keV;
	d->has_mask = assembled;
	d->masked = count_masked(mask, g.modules * sl_geometry_pixels(&g));
	return 0;
}

/* A file of ours says it better than its axes: those of a stack tell nothing of the gaps. */
static int describe_stored(const char *path, struct sl_described *d)
{
	struct sl_geometry geometry;
	struct sl_plane *plane;
	bool assembled;
	int err = sl_nxmx_stored(path, &geometry, &plane, &assembled);

	if (err)
		return err;
	err = sl_describe(&geometry, assembled, NULL, d);
	d->has_mask = true;
	free(plane);
	return err;
}

int sl_describe_file(const char *path, struct sl_described *d)
{
	struct sl_nxmx_geometry file;
	int err = describe_stored(path, d);

	if (err != -ENOENT)
		return err;
	err = sl_nxmx_geometry(path, &file);

	*d = (struct sl_described){.parts = 0};
	if (err)
		return err;
	if (!(file.pixel_size_m > 0 && file.distance_m > 0)) {
		sl_nxmx_geometry_free(&file);
		return refuse(path, "it has no pixel size or no distance");
	}
	snprintf(d->detector, sizeof(d->detector), "%s", file.detector);
	d->part = file.part;
	d->parts = file.parts;
	d->rows = d->image_rows = file.rows;
	d->columns = d->image_columns = file.columns;
	d->pixel_size_m = file.pixel_size_m;
	d->distance_m = file.distance_m;
	d->energy_keV = file.energy_keV;
	d->has_mask = file.has_mask;
	sl_nxmx_plane(&file, &d->mean, &d->worst_m);
	/* Modules one below the other are far from one plane with one grid on it. */
	d->assembled = d->worst_m < 0.05 * d->pixel_size_m * (d->rows + d->columns);
	return 0;
}

void sl_described_free(struct sl_described *described)
{
	free(described->part);
	*described = (struct sl_described){.parts = 0};
}

int sl_described_poni(FILE *out, const struct sl_described *d)
{
	struct sl_poni_file poni = {.pixel1 = sl_vector_length(d->mean.down),
				    .pixel2 = sl_vector_length(d->mean.right),
				    .rows = d->image_rows,
				    .columns = d->image_columns};
	char why[160];

	if (!d->assembled)
		return refuse("--poni", "the file has modules one below the other, and a PONI file "
					"is of the assembled image: give the experiment file "
					"instead");
	if (sl_plane_to_poni(&d->mean, &poni.poni, why, sizeof(why)))
		return refuse("--poni", why);
	if (d->worst_m > 1e-6)
		sl_warn("modules are up to %.3g mm from the plane of the PONI file, which "
			"describes one plane; --crystfel has them all",
			d->worst_m * 1e3);
	if (fabs(poni.pixel1 - d->pixel_size_m) < 1e-6 * d->pixel_size_m)
		poni.pixel1 = poni.pixel2 = d->pixel_size_m;
	poni.wavelength_m = d->energy_keV > 0 ? KEV_METRE / d->energy_keV : 0;
	sl_poni_write(out, &poni);
	return 0;
}

void sl_described_crystfel(FILE *out, const struct sl_described *d)
{
	const struct sl_geom_about about = {.part = d->part,
					    .parts = d->parts,
					    .distance_m = d->distance_m,
					    .energy_keV = d->energy_keV,
					    .has_mask = d->has_mask};

	sl_geom_write(out, &about);
}

static void print_vector(FILE *out, const char *name, const double v[3])
{
	fprintf(out, "  %-22s %.12g %.12g %.12g m\n", name, v[0], v[1], v[2]);
}

void sl_described_nexus(FILE *out, const struct sl_described *d)
{
	fprintf(out, "/entry/instrument/detector\n  %-22s %s\n  %-22s %.12g m\n", "description",
		d->detector, "distance", d->distance_m);
	fprintf(out, "  %-22s %.12g m\n", "x_pixel_size", d->pixel_size_m);
	if (d->energy_keV > 0)
		fprintf(out, "/entry/instrument/beam\n  %-22s %.12g angstrom\n",
			"incident_wavelength", KEV_METRE / d->energy_keV * 1e10);
	for (uint32_t i = 0; i < d->parts; i++) {
		const struct sl_panel *p = &d->part[i];

		fprintf(out, "/entry/instrument/detector/module_%u\n", i);
		fprintf(out, "  %-22s %u %u\n  %-22s %u %u\n", "data_origin", p->first_row,
			p->first_column, "data_size", p->rows, p->columns);
		print_vector(out, "origin from the sample", p->origin);
		print_vector(out, "fast_pixel_direction", p->fast);
		print_vector(out, "slow_pixel_direction", p->slow);
	}
}
