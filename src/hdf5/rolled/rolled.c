/* rolled.c - a master and its data files. */
#include "hdf5/rolled/rolled.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5/rolled/closed.h"
#include "hdf5/rolled/private.h"
#include "hdf5/rolled/virtual.h"
#include "hdf5/series.h"

#define FLUSHED "/entry/sluice/flushed"

/* What the master needs in the end for each series of each data file: names and places. */
enum { VIRTUAL_BYTES = 512 };

struct sl_h5 *sl_h5_home(struct sl_h5 *file)
{
	return file->rolled && file->rolled->data ? file->rolled->data : file;
}

uint32_t sl_h5_data_files(const struct sl_h5 *file)
{
	return file->rolled ? file->rolled->files : 0;
}

uint64_t sl_h5_durable(const struct sl_h5 *file)
{
	return file->rolled
		       ? atomic_load_explicit(&file->rolled->sync.durable, memory_order_acquire)
		       : 0;
}

/* The rows that come now belong to a data file that is kept. */
static bool is_passing(const struct sl_h5 *file)
{
	return file->rolled->files && file->rolled->files <= file->rolled->kept;
}

uint32_t sl_h5_data_files_safe(const struct sl_h5 *file)
{
	return file->rolled ? file->rolled->kept + atomic_load_explicit(&file->rolled->sync.settled,
									memory_order_acquire)
			    : 0;
}

const char *sl_h5_file_set(const struct sl_h5 *file)
{
	return file->rolled ? file->rolled->file_set : "";
}

/* The earlier run's files: they are of no use once this one has rows on disk. */
static void end_old(struct sl_h5 *file)
{
	sl_h5_old_end(file->path, &file->rolled->old, false);
	sl_part_file_replaced(&file->disk);
}

/* ---- a data file ---- */

static int describe_data(const struct sl_h5 *file, struct sl_h5 *data)
{
	sl_h5_attribute_text(data, "/", "file_set", file->rolled->file_set);
	sl_h5_attribute_text(data, "/", "master", sl_h5_last_part(file->path));
	sl_h5_attribute_text(data, "/", "NX_class", "NXroot");
	sl_h5_attribute_text(data, "/", "default", "entry");
	sl_h5_group(data, "/entry", "NXentry");
	sl_h5_attribute_text(data, "/entry", "default", "data");
	sl_h5_group(data, "/entry/data", "NXdata");
	sl_h5_attribute_text(data, "/entry/data", "signal", "data");
	sl_h5_group(data, "/entry/sluice", "NXcollection");
	return sl_h5_status(data);
}

/* Its datasets are all there from now on. */
static int let_follow(struct sl_h5 *data)
{
	int r = sl_h5_reserve(data, 0);

	if (!r && H5Fstart_swmr_write(data->id) < 0)
		r = sl_h5_failed(data, "let others follow", "the file");
	return r;
}

/* In the place of a data file that is kept another one takes its rows, and goes. */
static int name_data(const struct sl_h5 *file, char *path, size_t bytes)
{
	const struct sl_h5_rolled *rolled = file->rolled;
	int r = sl_h5_data_path(file->path, rolled->files + 1, path, bytes);

	if (r || rolled->files >= rolled->kept)
		return r;
	if (strlen(path) + sizeof(SL_H5_AGAIN) > bytes)
		return -ENAMETOOLONG;
	strcat(path, SL_H5_AGAIN);
	unlink(path);
	return 0;
}

/* Removes what it began when it fails. */
int sl_h5_begin_data(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	char path[PATH_MAX];
	struct sl_h5 *data;
	int r = name_data(file, path, sizeof(path));

	if (r)
		return sl_h5_stop(file, r, "name a data file of", file->path);
	data = sl_h5_allocate(path);
	r = data ? sl_part_file_open_new(path, &file->disk.access, &data->disk) : -ENOMEM;
	if (!r)
		r = sl_h5_begin(data, true, true);
	if (!r)
		r = describe_data(file, data);
	for (struct sl_h5_series *s = file->series; s && !r; s = s->next) {
		s->file = data;
		r = sl_h5_series_begin(s);
	}
	if (!r && rolled->rows)
		r = let_follow(data);
	if (!r) {
		rolled->data = data;
		rolled->files++;
		return 0;
	}
	for (struct sl_h5_series *s = file->series; s; s = s->next)
		s->file = NULL;
	if (data) {
		sl_h5_close_id(data);
		sl_part_file_discard(&data->disk);
		sl_h5_forget(data);
	}
	return r;
}

/* The thread checks, syncs and frees it. */
static int end_data(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	struct sl_h5 *data = rolled->data;
	int r = sl_h5_closed_add(&rolled->closed, data);

	for (struct sl_h5_series *s = file->series; s; s = s->next) {
		sl_h5_series_end(s, true);
		s->file = NULL;
	}
	sl_h5_close_id(data);
	rolled->data = NULL;
	if (!r && is_passing(file))
		return sl_h5_closed_again(data);
	if (!r)
		r = sl_h5_sync_closed(&rolled->sync, data, rolled->mark);
	if (r)
		sl_h5_forget(data);
	return r;
}

/* ---- the whole ---- */

/* Which column of FLUSHED is which series. */
static int name_columns(struct sl_h5 *file, size_t bytes)
{
	char *names = malloc(bytes), *at = names;
	int r;

	if (!names)
		return -ENOMEM;
	for (const struct sl_h5_series *s = file->series; s; s = s->next)
		if (s != file->rolled->flushed)
			at += sprintf(at, "%s%s", at == names ? "" : "\n", s->path);
	r = sl_h5_attribute_text(file, FLUSHED, "series", names);
	free(names);
	return r;
}

static int open_flushed(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	struct sl_h5_shape row = {.type = SL_H5_U64, .rank = 1};
	size_t bytes = 1;
	int r;

	for (const struct sl_h5_series *s = file->series; s; s = s->next) {
		row.dim[0]++;
		bytes += strlen(s->path) + 1;
	}
	rolled->counts = calloc(row.dim[0] ? row.dim[0] : 1, sizeof(*rolled->counts));
	if (!rolled->counts)
		return -ENOMEM;
	r = row.dim[0] ? sl_h5_series_open(file, FLUSHED, &row, 1, &rolled->flushed) : 0;
	return r || !rolled->flushed ? r : name_columns(file, bytes);
}

/* What the end needs stays reserved, though HDF5 has closed it for the time being. */
static int show_master(struct sl_h5 *file)
{
	struct stat st;

	sl_h5_close_id(file);
	if (file->status)
		return file->status;
	/* What was reserved ahead is the data files' now. */
	if (fstat(file->disk.fd, &st) || ftruncate(file->disk.fd, st.st_size))
		return sl_h5_stop(file, -errno, "trim", "the file");
	file->reserved = 0;
	return sl_part_file_preview(&file->disk);
}

int sl_h5_rows_begin(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	int r;

	if (!rolled)
		return 0;
	r = open_flushed(file);
	if (!r)
		r = let_follow(rolled->data);
	if (!r)
		r = show_master(file);
	if (!r)
		r = sl_h5_keep_more(file, 0);
	rolled->rows = !r;
	return r;
}

int sl_h5_roll(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	uint64_t series = 0;
	int r;

	if (!rolled)
		return 0;
	for (const struct sl_h5_series *s = file->series; s; s = s->next)
		series++;
	r = sl_h5_keep_more(file, series * VIRTUAL_BYTES);
	if (!r)
		r = end_data(file);
	return r ? r : sl_h5_begin_data(file);
}

int sl_h5_flush(struct sl_h5 *file, uint64_t mark)
{
	struct sl_h5_rolled *rolled = file->rolled;
	struct sl_h5 *data = rolled ? rolled->data : NULL;
	size_t n = 0;
	int r = 0;

	if (!data || !rolled->flushed || is_passing(file))
		return 0;
	for (struct sl_h5_series *s = file->series; s && !r; s = s->next) {
		if (s == rolled->flushed)
			continue;
		r = sl_h5_series_show(s);
		rolled->counts[n++] = s->rows;
	}
	if (!r && H5Fflush(data->id, H5F_SCOPE_LOCAL) < 0)
		r = sl_h5_failed(data, "flush", "the file");
	/* After what it counts: a reader that finds the row finds the others. */
	if (!r)
		r = sl_h5_series_append(rolled->flushed, rolled->counts);
	if (!r && H5Fflush(data->id, H5F_SCOPE_LOCAL) < 0)
		r = sl_h5_failed(data, "flush", "the file");
	rolled->mark = mark;
	if (!r)
		r = sl_h5_sync_flush(&rolled->sync, data, mark);
	if (!r)
		end_old(file); /* there are rows: this run has begun */
	return r;
}

static void make_virtual(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	struct sl_h5_series *series;

	while ((series = file->series)) {
		const struct sl_h5_virtual whole = {.path = series->path,
						    .type = series->type,
						    .rank = series->rank,
						    .dim = series->dim,
						    .rows = series->part,
						    .files = series->parts};

		file->series = series->next;
		if (series != rolled->flushed && !sl_h5_virtual_make(file, &whole))
			sl_h5_series_notes(series, file);
		sl_h5_series_free(series);
	}
	rolled->flushed = NULL;
}

int sl_h5_rows_end(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;
	int r = 0;

	if (!rolled || !rolled->rows)
		return file->status;
	rolled->rows = false;
	rolled->mark = UINT64_MAX;
	if (rolled->data)
		r = end_data(file);
	rolled->syncs = false;
	r = sl_h5_sync_close(&rolled->sync) ? atomic_load(&rolled->sync.status) : r;
	if (r && !file->status)
		file->status = r;
	if (!file->status)
		file->status = sl_h5_closed_check(rolled->closed);
	if (!file->status)
		end_old(file);
	else
		sl_h5_old_leave(file->path, &rolled->old);
	if (!file->status)
		file->status = sl_part_file_check(&file->disk);
	if (!file->status)
		sl_h5_begin(file, false, false);
	if (!file->status)
		make_virtual(file);
	return file->status;
}

static void free_rolled(struct sl_h5 *file)
{
	struct sl_h5_rolled *rolled = file->rolled;

	if (rolled && rolled->syncs)
		sl_h5_sync_close(&rolled->sync);
	if (rolled) {
		sl_h5_closed_free(&rolled->closed);
		free(rolled->counts);
	}
	free(rolled);
	file->rolled = NULL;
}

int sl_h5_rolled_end(struct sl_h5 *file)
{
	int r = sl_h5_rows_end(file);

	free_rolled(file);
	return r;
}

/* The data file at hand goes, or stays as it is. */
static void drop_data(struct sl_h5 *file, bool discard)
{
	struct sl_h5 *data = file->rolled->data;
	struct sl_h5_series *series;

	while ((series = file->series)) {
		file->series = series->next;
		if (series->file)
			sl_h5_series_end(series, false);
		sl_h5_series_free(series);
	}
	if (data) {
		sl_h5_close_id(data);
		if (discard)
			sl_part_file_discard(&data->disk);
		sl_h5_forget(data);
	}
	file->rolled->data = NULL;
}

/* The run never began: its first data file is empty. */
void sl_h5_rolled_discard(struct sl_h5 *file)
{
	drop_data(file, true);
	sl_h5_old_end(file->path, &file->rolled->old, true);
	free_rolled(file);
}

void sl_h5_leave(struct sl_h5 *file)
{
	if (!file->rolled) {
		sl_h5_abandon(file);
		return;
	}
	drop_data(file, is_passing(file));
	sl_h5_old_leave(file->path, &file->rolled->old);
	free_rolled(file);
	sl_h5_close_id(file);
	sl_h5_forget(file);
}
