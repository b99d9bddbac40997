/* recover.c - data files made whole, and a master over them. */
#include "hdf5/rolled/recover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/rolled/data_files.h"
#include "hdf5/rolled/rolled.h"
#include "hdf5/rolled/virtual.h"

#define FLUSHED "/entry/sluice/flushed"

enum { SERIES_MOST = 256 };

/* The series of a data file, in the order of the columns of FLUSHED. */
struct series_list {
	char *text;
	const char *path[SERIES_MOST];
	unsigned n;
};

static hid_t open_as(const char *path, unsigned flags)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), id = H5I_INVALID_HID;

	if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0)
		id = H5Fopen(path, flags, access);
	if (access >= 0)
		H5Pclose(access);
	return id;
}

static int wrong(const char *path, const char *why)
{
	sl_error("%s: %s: it cannot be recovered", path, why);
	return -EBADMSG;
}

static int list_series(const char *path, hid_t id, struct series_list *list)
{
	hid_t attribute = H5Aopen_by_name(id, FLUSHED, "series", H5P_DEFAULT, H5P_DEFAULT);
	hid_t type = sl_h5_text_type();
	char *text = NULL, *line, *rest = NULL;

	*list = (struct series_list){.n = 0};
	if (attribute >= 0 && type >= 0 && H5Aread(attribute, type, &text) >= 0 && text)
		list->text = strdup(text);
	if (text)
		H5free_memory(text);
	if (type >= 0)
		H5Tclose(type);
	if (attribute >= 0)
		H5Aclose(attribute);
	if (!list->text)
		return wrong(path, "it does not say which series it has");
	for (line = strtok_r(list->text, "\n", &rest); line && list->n < SERIES_MOST;
	     line = strtok_r(NULL, "\n", &rest))
		list->path[list->n++] = line;
	return 0;
}

static int64_t rows_of(hid_t id, const char *path)
{
	hid_t dataset = H5Dopen2(id, path, H5P_DEFAULT);
	hid_t space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
	hsize_t dim[H5S_MAX_RANK] = {0};
	int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dim, NULL);

	if (space >= 0)
		H5Sclose(space);
	if (dataset >= 0)
		H5Dclose(dataset);
	return rank < 1 ? -1 : (int64_t)dim[0];
}

/* ---- the data file at hand ---- */

/* Row `row` of FLUSHED, and whether the series have what it counts. */
static bool is_whole(hid_t id, hid_t flushed, const struct series_list *list, hsize_t row,
		     uint64_t *counts)
{
	hsize_t start[2] = {row, 0}, count[2] = {1, list->n};
	hid_t in_file = H5Dget_space(flushed), in_memory = H5Screate_simple(2, count, NULL);
	bool ok = in_file >= 0 && in_memory >= 0 &&
		  H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
		  H5Dread(flushed, H5T_NATIVE_UINT64, in_memory, in_file, H5P_DEFAULT, counts) >= 0;

	if (in_memory >= 0)
		H5Sclose(in_memory);
	if (in_file >= 0)
		H5Sclose(in_file);
	for (unsigned i = 0; ok && i < list->n; i++)
		ok = rows_of(id, list->path[i]) >= (int64_t)counts[i];
	return ok;
}

/* What the newest flush that is whole counted; all 0: there was none. */
static int find_flush(const char *path, hid_t id, const struct series_list *list, uint64_t *counts)
{
	hid_t flushed = H5Dopen2(id, FLUSHED, H5P_DEFAULT);
	int64_t row = rows_of(id, FLUSHED);
	bool found = false;

	if (flushed < 0 || row < 0)
		return wrong(path, "it does not say what was flushed");
	while (row > 0 && !found)
		found = is_whole(id, flushed, list, (hsize_t)--row, counts);
	if (!found)
		memset(counts, 0, list->n * sizeof(*counts));
	H5Dclose(flushed);
	return 0;
}

static int cut(struct sl_h5 *copy, const struct series_list *list, const uint64_t *counts)
{
	int r = 0;

	for (unsigned i = 0; i < list->n && !r; i++) {
		hid_t dataset = H5Dopen2(copy->id, list->path[i], H5P_DEFAULT);
		hid_t space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
		hsize_t dim[H5S_MAX_RANK] = {0};

		if (space < 0 || H5Sget_simple_extent_dims(space, dim, NULL) < 0)
			r = sl_h5_failed(copy, "cut", list->path[i]);
		dim[0] = counts[i];
		if (!r && H5Dset_extent(dataset, dim) < 0)
			r = sl_h5_failed(copy, "cut", list->path[i]);
		if (space >= 0)
			H5Sclose(space);
		if (dataset >= 0)
			H5Dclose(dataset);
	}
	return r;
}

/* A copy in its place, with what was flushed. */
static int replace(const char *path, hid_t id, const struct series_list *list,
		   const uint64_t *counts)
{
	struct sl_h5_identity identity = {.file_set = ""};
	struct stat st = {.st_size = 0};
	struct sl_file_access access;
	struct sl_h5 *copy;
	int r = sl_h5_create(path, &copy);

	if (r)
		return r;
	sl_file_access_of(path, &access);
	sl_h5_set_access(copy, &access);
	stat(path, &st);
	sl_h5_identify(path, &identity);
	r = sl_h5_reserve(copy, (uint64_t)st.st_size);
	if (r)
		sl_h5_stop(copy, r, "reserve space for", "the recovered file");
	if (!r && H5Ocopy(id, "/entry", copy->id, "/entry", H5P_DEFAULT, H5P_DEFAULT) < 0)
		r = sl_h5_failed(copy, "copy", "/entry");
	if (!r) {
		sl_h5_attribute_text(copy, "/", "NX_class", "NXroot");
		sl_h5_attribute_text(copy, "/", "default", "entry");
		if (identity.file_set[0])
			sl_h5_attribute_text(copy, "/", "file_set", identity.file_set);
		if (identity.master[0])
			sl_h5_attribute_text(copy, "/", "master", identity.master);
		r = cut(copy, list, counts);
	}
	if (r)
		sl_h5_abandon(copy);
	return r ? r : sl_h5_finish(copy);
}

/* A writer that was killed while it made its next data file left one that HDF5 cannot open: rows
 * come only when it can be followed. It is kept, under a name that no reader takes. -ENODATA. */
static int set_aside(const char *path)
{
	char aside[PATH_MAX];

	if ((size_t)snprintf(aside, sizeof(aside), "%s.unreadable", path) >= sizeof(aside) ||
	    rename(path, aside)) {
		sl_error("%s: HDF5 cannot open it, and it cannot be renamed: %s", path,
			 strerror(errno));
		return -EIO;
	}
	sl_warn("%s: HDF5 cannot open it: the run was killed before it had rows; it is %s now",
		path, aside);
	return -ENODATA;
}

/* 0: it was whole; 1: it is now; -ENODATA: it had no rows and is no more. */
static int mend(const char *path, bool is_last)
{
	uint64_t counts[SERIES_MOST] = {0};
	struct series_list list = {.n = 0};
	hid_t id = open_as(path, H5F_ACC_RDONLY);
	int r;

	if (id >= 0) {
		H5Fclose(id);
		return 0;
	}
	id = open_as(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
	if (id < 0)
		return is_last ? set_aside(path)
			       : wrong(path, "HDF5 cannot open it, not even as a file that grows");
	r = list_series(path, id, &list);
	if (!r)
		r = find_flush(path, id, &list, counts);
	if (!r)
		r = replace(path, id, &list, counts);
	H5Fclose(id);
	free(list.text);
	return r ? r : 1;
}

/* ---- the master ---- */

struct copying {
	hid_t to;
};

static herr_t copy_attribute(hid_t from, const char *name, const H5A_info_t *info, void *arg)
{
	const struct copying *copying = arg;
	hid_t one = H5Aopen(from, name, H5P_DEFAULT), type = H5Aget_type(one);
	hid_t space = H5Aget_space(one), other = H5I_INVALID_HID;
	size_t bytes = (size_t)H5Tget_size(type) * (size_t)H5Sget_simple_extent_npoints(space);
	void *data = calloc(1, bytes ? bytes : 1);
	herr_t r = -1;

	(void)info;
	if (data && H5Aread(one, type, data) >= 0)
		other = H5Acreate2(copying->to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	if (other >= 0) {
		r = H5Awrite(other, type, data) < 0 ? -1 : 0;
		H5Aclose(other);
	}
	if (data)
		H5Dvlen_reclaim(type, space, H5P_DEFAULT, data);
	free(data);
	H5Sclose(space);
	H5Tclose(type);
	H5Aclose(one);
	return r;
}

/* Its type and shape are those of the first data file. */
static int join(struct sl_h5 *master, struct sl_h5 *first, const char *path, const uint64_t *rows,
		uint32_t files)
{
	struct sl_h5_virtual whole = {.path = path, .rows = rows, .files = files};
	struct sl_h5_shape shape;
	hsize_t dim[SL_H5_RANK];
	struct copying copying;
	hid_t from;
	int r = sl_h5_describe(first, path, &shape);

	if (r)
		return sl_h5_stop(master, r, "find", path);
	for (uint32_t i = 0; i < shape.rank; i++)
		dim[i] = shape.dim[i];
	whole.type = shape.type;
	whole.rank = shape.rank;
	whole.dim = dim;
	r = sl_h5_virtual_make(master, &whole);
	if (r)
		return r;
	from = H5Dopen2(first->id, path, H5P_DEFAULT);
	copying.to = H5Dopen2(master->id, path, H5P_DEFAULT);
	if (H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_attribute, &copying) < 0)
		r = sl_h5_failed(master, "copy attributes of", path);
	H5Dclose(copying.to);
	H5Dclose(from);
	return r;
}

/* rows: [series][files] */
static int count_rows(const char *path, const struct series_list *list, uint32_t files,
		      uint64_t *rows)
{
	char name[PATH_MAX];

	for (uint32_t f = 0; f < files; f++) {
		hid_t id;
		int64_t n = 0;

		if (sl_h5_data_path(path, f + 1, name, sizeof(name)))
			return -ENAMETOOLONG;
		id = open_as(name, H5F_ACC_RDONLY);
		for (unsigned s = 0; s < list->n && id >= 0 && n >= 0; s++) {
			n = rows_of(id, list->path[s]);
			rows[s * files + f] = n < 0 ? 0 : (uint64_t)n;
		}
		if (id >= 0)
			H5Fclose(id);
		if (id < 0 || n < 0)
			return wrong(name, "it lacks a series that the first data file has");
	}
	return 0;
}

static int list_of(const char *path, struct series_list *list)
{
	hid_t id = open_as(path, H5F_ACC_RDONLY);
	int r = id < 0 ? wrong(path, "HDF5 cannot open it") : list_series(path, id, list);

	if (id >= 0)
		H5Fclose(id);
	return r;
}

static int join_all(struct sl_h5 *master, uint32_t files)
{
	struct series_list list = {.n = 0};
	struct sl_h5 *first = NULL;
	char name[PATH_MAX];
	uint64_t *rows = NULL;
	int r = sl_h5_data_path(master->path, 1, name, sizeof(name));

	if (!r)
		r = list_of(name, &list);
	if (!r) {
		rows = calloc((size_t)list.n * files, sizeof(*rows));
		r = rows ? count_rows(master->path, &list, files, rows) : -ENOMEM;
	}
	if (!r)
		r = sl_h5_open(name, &first);
	for (unsigned s = 0; s < list.n && !r; s++)
		r = join(master, first, list.path[s], rows + (size_t)s * files, files);
	free(rows);
	free(list.text);
	if (first)
		sl_h5_close(first);
	return r;
}

/* PATH.part, locked, with what the master has so far. */
static int open_master(const char *path, struct sl_h5 **opened)
{
	struct sl_file_access access;
	struct sl_h5 *file = sl_h5_allocate(path);
	int r = file ? sl_part_file_open_over(path, &file->disk) : -ENOMEM;

	if (!r && !file->disk.replaces) {
		sl_error("%s: there is no such file", path);
		sl_part_file_discard(&file->disk);
		r = -ENOENT;
	}
	sl_file_access_of(path, &access);
	if (!r)
		r = sl_part_file_set_access(&file->disk, &access);
	if (!r)
		r = sl_part_file_take(&file->disk);
	if (!r)
		r = sl_h5_begin(file, false, false);
	if (!r)
		r = sl_h5_reserve(file, 0);
	if (!r)
		*opened = file;
	else if (file)
		sl_h5_abandon(file);
	return r;
}

static bool is_there(const char *path, uint32_t number, char *name, size_t bytes)
{
	return !sl_h5_data_path(path, number, name, bytes) && !access(name, F_OK);
}

/* The data file is of the run that is recovered, as far as HDF5 can tell. */
static int check_ours(const char *path, const char *name, const struct sl_h5_identity *master)
{
	struct sl_h5_identity theirs = {.file_set = ""};
	int r;

	if (sl_part_file_is_held(name)) {
		sl_error("%s: is being written by another run", name);
		return -EBUSY;
	}
	r = sl_h5_identify(name, &theirs);
	if (r || !strcmp(theirs.file_set, master->file_set))
		return 0; /* or mend() says what is wrong with it */
	sl_warn("%s: is a data file of another run than %s%s%s%s; it is left alone", name, path,
		theirs.master[0] ? " (of " : "", theirs.master, theirs.master[0] ? ")" : "");
	return -ENODATA;
}

static int mend_all(const char *path, const struct sl_h5_identity *master,
		    struct sl_h5_recovered *found)
{
	char name[PATH_MAX], next[PATH_MAX];
	int r = 0;

	while (!r && is_there(path, found->files + 1, name, sizeof(name))) {
		r = check_ours(path, name, master);
		if (!r)
			r = mend(name, !is_there(path, found->files + 2, next, sizeof(next)));
		found->files += r >= 0;
		found->mended += r == 1;
		r = r == 1 ? 0 : r;
	}
	return r == -ENODATA ? 0 : r;
}

int sl_h5_recover(const char *path, struct sl_h5_recovered *recovered, struct sl_h5 **opened)
{
	struct sl_h5_recovered found = {.files = 0};
	struct sl_h5_identity identity = {.file_set = ""};
	struct sl_h5 *master;
	int r;

	sl_h5_prepare();
	sl_h5_filters();
	sl_h5_identify(path, &identity);
	r = open_master(path, &master);
	if (r)
		return r;
	r = mend_all(path, &identity, &found);
	if (!r && !found.files)
		r = wrong(path, "it has no data files");
	if (!r)
		r = join_all(master, found.files);
	if (r) {
		sl_h5_abandon(master);
		return r;
	}
	*recovered = found;
	*opened = master;
	return 0;
}

/* ---- what a file has ---- */

uint64_t sl_h5_data_rows(const char *path)
{
	struct series_list list = {.n = 0};
	hid_t id, growing = H5I_INVALID_HID;
	uint64_t counts[SERIES_MOST] = {0}, most = 0;

	sl_h5_prepare();
	id = open_as(path, H5F_ACC_RDONLY);
	if (id < 0)
		id = growing = open_as(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
	if (id < 0)
		return 0;
	if (H5Lexists(id, "/entry/sluice", H5P_DEFAULT) > 0 &&
	    H5Lexists(id, FLUSHED, H5P_DEFAULT) > 0 && !list_series(path, id, &list) &&
	    (growing < 0 || !find_flush(path, id, &list, counts)))
		for (unsigned i = 0; i < list.n; i++) {
			int64_t n = growing < 0 ? rows_of(id, list.path[i]) : (int64_t)counts[i];

			most = n > 0 && (uint64_t)n > most ? (uint64_t)n : most;
		}
	H5Fclose(id);
	free(list.text);
	return most;
}
