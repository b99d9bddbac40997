/* geometry_fuzz.c - any bytes as a PONI file, a CrystFEL file and a mask; what is accepted is put
 * on a detector, and places must be numbers. */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "geometry/geom.h"
#include "geometry/mask.h"
#include "geometry/poni.h"

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct sl_geometry two = {
	.modules = 2,
	.rows = 8,
	.columns = 12,
	.pixel_size_m = 75e-6,
	.distance_m = 0.1,
	.layout = {.rows = 30,
		   .columns = 40,
		   .asic_rows = 4,
		   .asic_columns = 4,
		   .gap = 2,
		   .module = {{.row = 1, .column = 2}, {.row = 9, .column = 20, .turns = 1}}},
};

static int nobody, saved;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	nobody = open("/dev/null", O_WRONLY | O_CLOEXEC);
	saved = dup(STDERR_FILENO);
	return 0;
}

static void check_planes(const struct sl_plane *plane, uint32_t planes)
{
	struct sl_geometry g = two;
	double place[3];

	g.plane = plane;
	g.planes = planes;
	for (uint32_t i = 0; i < 192; i++) {
		sl_layout_place(&g, i / 96, i % 96, 0.5, 0.5, place);
		if (!isfinite(place[0]) || !isfinite(place[1]) || !isfinite(place[2]))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct sl_plane plane[12];
	struct sl_mask_image image;
	struct sl_poni_file poni;
	uint8_t mask[192] = {0};
	struct sl_geom geom;
	char why[SL_MASK_WHY];

	dup2(nobody, STDERR_FILENO);
	if (!sl_poni_parse("fuzz.poni", (const char *)data, bytes, &poni) &&
	    !sl_poni_plane("fuzz.poni", &poni, &two, plane))
		check_planes(plane, 1);
	if (!sl_geom_parse("fuzz.geom", (const char *)data, bytes, &geom) &&
	    !sl_geom_planes("fuzz.geom", &geom, 0.1, &two, plane, mask))
		check_planes(plane, 12);
	sl_geom_free(&geom);
	sl_mask_parse(data, bytes, &image, why);
	free(image.pixel);
	dup2(saved, STDERR_FILENO);
	return 0;
}
