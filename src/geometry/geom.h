/* geom.h - geometry files of CrystFEL (.geom).
 *
 * Model:     lines "key = value" and "panel/key = value"; ';' begins a comment. A key without a
 *            panel is the default of the panels that are first named below it. A panel is a
 *            rectangle of the data, with where it lies in the laboratory: CrystFEL's axes are those
 *            of sl_plane. What concerns other things than places (gains, peak lists, flags) is
 *            known and passed over; a key that CrystFEL does not know is an error.
 * Errors:    logged with file and line.
 * Ownership: sl_geom_free(). */
#ifndef SL_GEOMETRY_GEOM_H
#define SL_GEOMETRY_GEOM_H

#include <stdio.h>

#include "geometry/parts.h"
#include "geometry/plane.h"

enum { SL_GEOM_NAME = 64, SL_GEOM_PANELS = 4096 };

struct sl_geom_panel {
	char name[SL_GEOM_NAME];
	unsigned line;			       /* that names it first */
	double min_fs, max_fs, min_ss, max_ss; /* whole numbers, both inclusive; NaN: not said */
	double corner_x, corner_y;	       /* pixels; NaN: not said */
	double fs[3], ss[3];		       /* pixels */
	double res;			       /* pixels per metre; NaN: not said */
	double coffset;			       /* metres */
	double module; /* a number among the dimensions; -1: there is none */
	double edge;   /* pixels at the edges that are bad */
	bool no_index;
};

struct sl_geom_bad { /* a rectangle of bad pixels, of a panel's data or of the laboratory */
	char name[SL_GEOM_NAME], panel[SL_GEOM_NAME];
	unsigned line;
	double min_fs, max_fs, min_ss, max_ss; /* NaN: not said */
	double min_x, max_x, min_y, max_y;
};

struct sl_geom {
	struct sl_geom_panel *panel;
	struct sl_geom_bad *bad;
	uint32_t panels, bads;
	double clen, energy_keV; /* NaN: not said, or somewhere in the data */
	double shift_x, shift_y; /* metres */
	unsigned clen_line;	 /* 0: not said */
	bool has_mask;		 /* it names a mask in a file, which is not read here */
};

/* `file` is for messages. Whatever happens, sl_geom_free() is due. */
int sl_geom_parse(const char *file, const char *text, size_t bytes, struct sl_geom *geom);
void sl_geom_free(struct sl_geom *geom);

/* What a file must have, and must not: part of sl_geom_parse(). */
int sl_geom_check(const char *file, const struct sl_geom *geom);

/* A plane for each piece of each module of a geometry with its layout resolved: plane
 * [modules * pieces]; and the pixels that are bad, or that no panel has, set in mask
 * [modules][pixels]. distance_m: in the place of clen; 0: as the file says. */
int sl_geom_planes(const char *file, const struct sl_geom *geom, double distance_m,
		   const struct sl_geometry *geometry, struct sl_plane *plane, uint8_t *mask);

/* What a file for CrystFEL is made of. */
struct sl_geom_about {
	const struct sl_panel *part; /* [parts] */
	uint32_t parts;
	double distance_m, energy_keV; /* energy 0: not known */
	bool has_mask;		       /* the file with the images has a pixel_mask */
};
void sl_geom_write(FILE *out, const struct sl_geom_about *about);

#endif
