/* geometry.c - sluice geometry: where the pixels of a detector lie, for people and for other
 * programs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/show/show.h"
#include "experiment/experiment.h"
#include "geometry/described.h"

struct geometry_options {
	bool crystfel, poni, nexus, assembled;
	char transfer[SL_TRANSFER_NAME];
};

static const struct sl_option options[] = {
	SL_BOOL(struct geometry_options, crystfel, false, "a geometry file for CrystFEL (.geom)"),
	SL_BOOL(struct geometry_options, poni, false, "a geometry file for pyFAI (.poni)"),
	SL_BOOL(struct geometry_options, nexus, false, "the fields that an NXmx file has of it"),
	SL_BOOL(struct geometry_options, assembled, false,
		"of an experiment: images are stored assembled; otherwise modules one below the "
		"other"),
	SL_STRING(struct geometry_options, transfer, "", "of the file's transfers, this one"),
	SL_OPTION_END,
};

static int describe_experiment(const struct sl_args *args, const struct geometry_options *o,
			       struct sl_described *described)
{
	struct sl_experiment *e = NULL;
	struct sl_geometry geometry;
	int err = sl_experiment_open(args->plain[0], o->transfer, args->set, args->sets, &e);

	if (err)
		return err;
	err = sl_experiment_open_detector(e, &geometry);
	if (!err)
		err = sl_describe(&geometry, o->assembled, e->refined.mask, described);
	e->detector->close(e->detector_state);
	sl_experiment_close(e);
	return err;
}

/* NAME_data_000001.h5 and so on hold rows alone. */
static bool is_data_file(const char *name)
{
	unsigned number;
	const char *at = strstr(name, "_data_");
	int end = 0;

	return at && sscanf(at, "_data_%6u.h5%n", &number, &end) == 1 && end && !at[end];
}

/* The first file of a run's folder, by name, that is HDF5 and no data file. */
static int find_file(const char *folder, char *path, size_t bytes)
{
	struct dirent **entry;
	int n = scandir(folder, &entry, NULL, alphasort), found = 0;

	for (int i = 0; i < n; i++) {
		if (!found) {
			int length = snprintf(path, bytes, "%s/%s", folder, entry[i]->d_name);

			found = length > 0 && (size_t)length < bytes &&
				!is_data_file(entry[i]->d_name) && sl_show_is_file(path);
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	if (found)
		return 0;
	sl_error("%s: the folder has no data file", folder);
	return -ENOENT;
}

static int describe(const struct sl_args *args, const struct geometry_options *o,
		    struct sl_described *described)
{
	const char *name = args->plain[0];
	char path[4096];
	struct stat st;

	if (!stat(name, &st) && S_ISDIR(st.st_mode))
		return find_file(name, path, sizeof(path)) ? -ENOENT
							   : sl_describe_file(path, described);
	return sl_show_is_file(name) ? sl_describe_file(name, described)
				     : describe_experiment(args, o, described);
}

static int print(const struct geometry_options *o, const struct sl_described *d)
{
	int err = 0;

	if (o->poni)
		err = sl_described_poni(stdout, d);
	else if (o->crystfel)
		sl_described_crystfel(stdout, d);
	else if (o->nexus)
		sl_described_nexus(stdout, d);
	else
		sl_described_table(stdout, d);
	if (!err && fflush(stdout)) {
		sl_error("cannot write: %s", strerror(errno));
		err = -EIO;
	}
	return err;
}

int sl_cmd_geometry(const struct sl_command *command, int argc, char **argv)
{
	struct sl_described described = {.parts = 0};
	struct geometry_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("takes one experiment file, file of a run or folder of a run; see sluice "
			 "geometry --help");
		return 1;
	}
	if (o.crystfel + o.poni + o.nexus > 1) {
		sl_error("--crystfel, --poni, --nexus: one of them at a time");
		return 1;
	}
	err = describe(&args, &o, &described);
	if (!err)
		err = print(&o, &described);
	sl_described_free(&described);
	return err ? 1 : 0;
}
