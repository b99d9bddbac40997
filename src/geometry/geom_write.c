/* geom_write.c - parts of an image as panels of a geometry file for CrystFEL. */
#include "geometry/geom.h"

static void write_direction(FILE *out, const char *name, const char *key, const double v[3],
			    double res)
{
	fprintf(out, "%s/%s = %+.15gx %+.15gy %+.15gz\n", name, key, v[0] * res, v[1] * res,
		v[2] * res);
}

static void write_panel(FILE *out, const struct sl_geom_about *about, const struct sl_panel *p,
			double res)
{
	char name[32];

	snprintf(name, sizeof(name), "m%ua%u", p->module, p->piece);
	fprintf(out, "\n%s/min_fs = %u\n%s/max_fs = %u\n%s/min_ss = %u\n%s/max_ss = %u\n", name,
		p->first_column, name, p->first_column + p->columns - 1, name, p->first_row, name,
		p->first_row + p->rows - 1);
	write_direction(out, name, "fs", p->fast, res);
	write_direction(out, name, "ss", p->slow, res);
	fprintf(out, "%s/corner_x = %.15g\n%s/corner_y = %.15g\n%s/coffset = %.15g\n", name,
		p->origin[0] * res, name, p->origin[1] * res, name,
		p->origin[2] - about->distance_m);
}

static void write_groups(FILE *out, const struct sl_geom_about *about)
{
	fputc('\n', out);
	for (uint32_t i = 0; i < about->parts; i++) {
		const struct sl_panel *p = &about->part[i];

		if (i == 0 || p->module != p[-1].module) {
			fprintf(out, "%sgroup_q%u = m%ua%u", i ? "\n" : "", p->module, p->module,
				p->piece);
		} else {
			fprintf(out, ",m%ua%u", p->module, p->piece);
		}
	}
	fputs("\ngroup_all = ", out);
	for (uint32_t i = 0; i < about->parts; i++)
		if (i == 0 || about->part[i].module != about->part[i - 1].module)
			fprintf(out, "%sq%u", i ? "," : "", about->part[i].module);
	fputc('\n', out);
}

/* Directions are in pixels: the first part's rows say how long one is. */
void sl_geom_write(FILE *out, const struct sl_geom_about *about)
{
	double res = 1 / sl_vector_length(about->part[0].fast);

	fputs("; places as sluice has them: x to the left when looking along the beam, y up, z "
	      "along it\n",
	      out);
	if (about->energy_keV > 0)
		fprintf(out, "photon_energy = %.15g eV\n", about->energy_keV * 1e3);
	fprintf(out, "clen = %.15g m\nres = %.15g\n", about->distance_m, res);
	fputs("adu_per_photon = 1 ; of images in photons; change it for others\n"
	      "data = /entry/data/data\ndim0 = %\ndim1 = ss\ndim2 = fs\n",
	      out);
	if (about->has_mask)
		fputs("mask0_data = "
		      "/entry/instrument/detector/detectorSpecific/pixel_mask\nmask0_goodbits = "
		      "0x0\n"
		      "mask0_badbits = 0xffffffff\n",
		      out);
	for (uint32_t i = 0; i < about->parts; i++)
		write_panel(out, about, &about->part[i], res);
	write_groups(out, about);
}
