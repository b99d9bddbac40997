/* geometry.h - a detector's geometry in a file, as exactly as it was used.
 *
 * Model:     /entry/sluice/geometry has a field for each number and text of struct sl_geometry that
 *            says where pixels lie and what they are, tilts and moved modules too: beside NXmx,
 *            which rounds (a wavelength for
 *            an energy) and leaves out (the modules behind an assembled image). Pixels that are not
 *            to be used are in NXmx's pixel_mask, whose bits are here.
 * Threads:   those of the file.
 * Ownership: plain data. */
#ifndef SL_HDF5_GEOMETRY_H
#define SL_HDF5_GEOMETRY_H

#include <sluice/detector.h>

#include "hdf5/file.h"

/* Bits of /entry/instrument/detector/pixel_mask that this program sets; all others mean bad, too.
 */
enum {
	SL_MASK_GAP = 1 << 0,
	SL_MASK_DEAD = 1 << 1,
};
/* Of a wide pixel: what is stored is what the whole of it has, in each of its parts. */
#define SL_MASK_VIRTUAL (UINT32_C(1) << 31)

/* `geometry` with its layout resolved. Errors stick to the file. */
void sl_geometry_hdf5_write(struct sl_h5 *file, const struct sl_geometry *geometry);

/* All of it, but frames and numbers of a run, which stay 0. plane: the planes that geometry->plane
 * points to, malloc'ed, the caller's; NULL: there are none. -ENOENT: the file has no geometry, not
 * logged. -EINVAL: it has one that cannot be; logged with `path`. Whether modules lie on each other
 * is the caller's to check (sl_layout_check). */
int sl_geometry_hdf5_read(struct sl_h5 *file, const char *path, struct sl_geometry *geometry,
			  struct sl_plane **plane);

#endif
