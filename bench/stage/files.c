/* files.c - a scene as files, for peers: programs and Python. In memory (/dev/shm)
 * where there is room. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "bench/stage/stage.h"

static const char *const size_name[SL_BENCH_SIZES] = {"4m", "500k"};

#define ROOM (UINT64_C(1) << 30)

static int make_folder(struct sl_bench_stages *stages)
{
	struct statvfs room;
	const char *base = getenv("TMPDIR");

	if (stages->folder[0])
		return 0;
	if (statvfs("/dev/shm", &room) == 0 && access("/dev/shm", W_OK) == 0 &&
	    (uint64_t)room.f_bavail * room.f_frsize > ROOM)
		base = "/dev/shm";
	if (!base || strlen(base) > 40)
		base = "/tmp";
	snprintf(stages->folder, sizeof(stages->folder), "%s/sluice-bench-XXXXXX", base);
	if (mkdtemp(stages->folder))
		return 0;
	sl_error("no folder in %s: %s", base, strerror(errno));
	stages->folder[0] = '\0';
	return -EIO;
}

static FILE *create(const struct sl_bench_stages *stages, enum sl_bench_size size, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s-%s", stages->folder, size_name[size], name);
	return fopen(path, "wb");
}

static int put(const struct sl_bench_stages *stages, enum sl_bench_size size, const char *name,
	       const void *data, uint64_t bytes)
{
	FILE *file = create(stages, size, name);
	bool whole = file && fwrite(data, 1, bytes, file) == bytes;

	if (file && fclose(file))
		whole = false;
	if (!whole)
		sl_error("%s/%s could not be written", stages->folder, name);
	return whole ? 0 : -EIO;
}

/* What C programs take is plain numbers; the rest is for Python. */
static int put_about(const struct sl_bench_stages *stages, enum sl_bench_size size)
{
	const struct sl_bench_scene *s = &stages->scene[size];
	const struct sl_geometry *g = &s->geometry;
	FILE *file = create(stages, size, "about.json");

	if (!file)
		return -EIO;
	fprintf(file,
		"{\"rows\": %u, \"columns\": %u, \"pixels\": %llu, \"frames\": %u, "
		"\"photon_energy_keV\": %.17g,\n \"pixel_size_m\": %.17g, \"distance_m\": %.17g, "
		"\"beam_row\": %.17g, \"beam_column\": %.17g,\n \"bins\": %d, \"high_q_nm\": "
		"%.17g,\n \"peaks\": [",
		g->rows, g->columns, (unsigned long long)s->pixels, s->frames, g->photon_energy_keV,
		g->pixel_size_m, g->distance_m, g->layout.beam_row, g->layout.beam_column,
		SL_BENCH_BINS, s->high);
	for (uint32_t i = 0; i < s->peaks; i++)
		fprintf(file, "%s[%.4f, %.4f]", i ? ", " : "", (double)s->peak[i].row,
			(double)s->peak[i].column);
	fprintf(file, "]}\n");
	return fclose(file) ? -EIO : 0;
}

int sl_bench_files_make(struct sl_bench_stages *stages, enum sl_bench_size size)
{
	const struct sl_bench_scene *s = &stages->scene[size];
	int err = make_folder(stages);

	if (err || stages->filled[size])
		return err;
	err = put(stages, size, "raw.u16", s->raw, s->frames * s->pixels * sizeof(*s->raw));
	if (!err) /* two are enough for peers that take a tenth of a second for one */
		err = put(stages, size, "image.i16", s->image, 2 * s->pixels * sizeof(*s->image));
	if (!err) /* planes and mask follow each other */
		err = put(stages, size, "tables", s->plane[0],
			  s->pixels * (SL_BENCH_PLANES * sizeof(float) + 1));
	if (!err)
		err = put_about(stages, size);
	stages->filled[size] = !err;
	return err;
}

void sl_bench_files_profile(const struct sl_bench_stages *stages, const char *row, char *path,
			    size_t bytes)
{
	size_t at = (size_t)snprintf(path, bytes, "%s/", stages->folder);

	for (; *row && at + 1 < bytes; row++)
		path[at++] = *row == '/' ? '_' : *row;
	snprintf(path + at, bytes - at, ".profile");
}

void sl_bench_files_remove(struct sl_bench_stages *stages)
{
	DIR *folder = stages->folder[0] ? opendir(stages->folder) : NULL;
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
	if (stages->folder[0])
		rmdir(stages->folder);
	stages->folder[0] = '\0';
}
