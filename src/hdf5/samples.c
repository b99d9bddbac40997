/* samples.c - a file that is about to be published holds what was written to it.
 *
 * Another program may cut a file short while it is written; HDF5 then goes on behind the hole and
 * closes without an error. So some chunks of each series are remembered by their checksum, the
 * first and then evenly over all, and compared with the disk's when HDF5 has closed the file: that
 * reads the superblock, the object headers and the index of chunks as well. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"
#include "hdf5/handle.h"

void sl_h5_sample(struct sl_h5_samples *s, uint64_t chunk, uint64_t row, const void *data,
		  size_t bytes)
{
	uint32_t kept = 0;

	if (!s->every)
		s->every = 1;
	if (chunk % s->every)
		return;
	if (s->n == SL_H5_SAMPLES) { /* half of them, twice as far apart */
		s->every *= 2;
		for (uint32_t i = 0; i < s->n; i++)
			if (s->sample[i].chunk % s->every == 0)
				s->sample[kept++] = s->sample[i];
		s->n = kept;
		if (chunk % s->every)
			return;
	}
	s->sample[s->n].chunk = chunk;
	s->sample[s->n].row = row;
	s->sample[s->n].crc = sl_crc32c(0, data, bytes);
	s->n++;
}

static bool same_bytes(const struct sl_h5 *file, haddr_t at, hsize_t bytes, uint32_t crc)
{
	uint8_t *data = malloc(bytes);
	bool same = false;
	hsize_t done = 0;
	ssize_t n = 1;

	while (data && done < bytes && n > 0) {
		n = pread(file->disk.fd, data + done, bytes - done, (off_t)(at + done));
		done += n > 0 ? (hsize_t)n : 0;
	}
	if (data && done == bytes)
		same = sl_crc32c(0, data, bytes) == crc;
	free(data);
	return same;
}

static bool is_there(const struct sl_h5 *file, hid_t dataset, const struct sl_h5_samples *s)
{
	hsize_t extent[SL_H5_RANK] = {0}, bytes;
	hid_t space = H5Dget_space(dataset);
	bool there = space >= 0 && H5Sget_simple_extent_ndims(space) == (int)s->rank &&
		     H5Sget_simple_extent_dims(space, extent, NULL) >= 0 &&
		     (!s->n || extent[0] == s->rows);
	unsigned mask;
	haddr_t at;

	if (space >= 0)
		H5Sclose(space);
	for (uint32_t i = 0; there && i < s->n; i++) {
		hsize_t offset[SL_H5_RANK] = {s->sample[i].row};

		there = H5Dget_chunk_info_by_coord(dataset, offset, &mask, &at, &bytes) >= 0 &&
			at != HADDR_UNDEF && same_bytes(file, at, bytes, s->sample[i].crc);
	}
	return there;
}

static const char *first_difference(const struct sl_h5 *file, hid_t id)
{
	for (const struct sl_h5_samples *s = file->samples; s; s = s->next) {
		hid_t dataset = H5Dopen2(id, s->path, H5P_DEFAULT);
		bool there = dataset >= 0 && is_there(file, dataset, s);

		if (dataset >= 0)
			H5Dclose(dataset);
		if (!there)
			return s->path;
	}
	return NULL;
}

int sl_h5_read_back(struct sl_h5 *file)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), id = H5I_INVALID_HID;
	const char *what = "the file";
	char self[32];

	sl_h5_self(file, self);
	if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0)
		id = H5Fopen(self, H5F_ACC_RDONLY, access);
	if (id >= 0) {
		what = first_difference(file, id);
		H5Fclose(id);
	}
	if (access >= 0)
		H5Pclose(access);
	if (!what)
		return 0;
	sl_error("%s: %s is not what was written: another program has changed or cut the file, or "
		 "the disk is failing",
		 file->disk.part, what);
	return file->status = -EIO;
}

void sl_h5_samples_free(struct sl_h5 *file)
{
	struct sl_h5_samples *s;

	while ((s = file->samples)) {
		file->samples = s->next;
		free(s->path);
		free(s);
	}
}
