/* origin.c - where the values of a dataset that others wrote come from.
 *
 * A virtual dataset that maps onto itself, directly or through others, makes HDF5 recurse until the
 * stack is used up. External raw storage may be any file that this user can read, as /dev/sda or a
 * private key: a file from elsewhere must not have it played as an image. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hdf5/handle.h"

enum { DEEPEST = 8, NAME = 1024 };

static int check(const char *file, hid_t dataset, const char *path, unsigned depth);

static int refuse(const char *file, const char *path, const char *why)
{
	sl_error("%s: %s: %s", file, path, why);
	return -ELOOP;
}

/* Beside the file, or below: neither an absolute path nor one that goes up. */
static bool is_beside(const char *name)
{
	if (name[0] == '/')
		return false;
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
			return false;
	}
	return true;
}

static int check_external(const char *file, hid_t properties, const char *path)
{
	int n = H5Pget_external_count(properties);
	char name[NAME];

	for (int i = 0; i < n; i++) {
		name[0] = '\0';
		if (H5Pget_external(properties, (unsigned)i, sizeof(name), name, NULL, NULL) < 0 ||
		    !name[0] || !memchr(name, 0, sizeof(name)) || !is_beside(name)) {
			sl_error("%s: %s: its values lie in '%.200s', outside the folder of this "
				 "file: move them beside it",
				 file, path, name);
			return -EPERM;
		}
	}
	return 0;
}

/* As HDF5 finds it: beside the file that names it, else from the working directory. */
static hid_t open_source(const char *file, const char *name, char *found, size_t bytes)
{
	const char *slash = strrchr(file, '/');
	hid_t id;

	snprintf(found, bytes, "%.*s%s", slash && name[0] != '/' ? (int)(slash - file + 1) : 0,
		 file, name);
	id = H5Fopen(found, H5F_ACC_RDONLY, H5P_DEFAULT);
	if (id >= 0 || name[0] == '/')
		return id;
	snprintf(found, bytes, "%s", name);
	return H5Fopen(found, H5F_ACC_RDONLY, H5P_DEFAULT);
}

/* One mapping. A source that is not there is filled up by HDF5: no loop. */
static int check_source(const char *file, hid_t here, const char *name, const char *path,
			unsigned depth)
{
	char found[2 * NAME];
	hid_t id = strcmp(name, ".") ? open_source(file, name, found, sizeof(found)) : here;
	hid_t dataset = id >= 0 && H5Lexists(id, path, H5P_DEFAULT) > 0
				? H5Dopen2(id, path, H5P_DEFAULT)
				: H5I_INVALID_HID;
	int err = dataset < 0 ? 0 : check(id == here ? file : found, dataset, path, depth + 1);

	if (dataset >= 0)
		H5Dclose(dataset);
	if (id >= 0 && id != here)
		H5Fclose(id);
	return err;
}

static int check_virtual(const char *file, hid_t dataset, hid_t properties, const char *path,
			 unsigned depth)
{
	char name[NAME], before[NAME] = "", source[NAME], source_before[NAME] = "";
	hid_t here = H5Iget_file_id(dataset);
	size_t n = 0;
	int err = 0;

	if (depth == DEEPEST)
		err = refuse(
			file, path,
			"a virtual dataset that maps onto itself, or through more than 8 others");
	if (!err && H5Pget_virtual_count(properties, &n) < 0)
		n = 0;
	for (size_t i = 0; i < n && !err; i++) {
		if (H5Pget_virtual_filename(properties, i, name, sizeof(name)) < 0 ||
		    H5Pget_virtual_dsetname(properties, i, source, sizeof(source)) < 0)
			continue;
		/* Many mappings have the same source. */
		if (!strcmp(name, before) && !strcmp(source, source_before))
			continue;
		strcpy(before, name);
		strcpy(source_before, source);
		err = check_source(file, here, name, source, depth);
	}
	if (here >= 0)
		H5Fclose(here);
	return err;
}

static int check(const char *file, hid_t dataset, const char *path, unsigned depth)
{
	hid_t properties = H5Dget_create_plist(dataset);
	int err;

	if (properties < 0)
		return 0;
	err = check_external(file, properties, path);
	if (!err && H5Pget_layout(properties) == H5D_VIRTUAL)
		err = check_virtual(file, dataset, properties, path, depth);
	H5Pclose(properties);
	return err;
}

int sl_h5_check_origin(const char *file, hid_t dataset, const char *path)
{
	return check(file, dataset, path, 0);
}
