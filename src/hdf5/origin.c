/* origin.c - where the values of a dataset that others wrote come from.
 *
 * A virtual dataset that maps onto itself, directly or through others, makes HDF5 recurse until the
 * stack is used up. External raw storage may be any file that this user can read, as /dev/sda or a
 * private key: a file from elsewhere must not have it played as an image. A pipe in the place of a
 * file would wait for a writer for ever: whatever another file names is looked at before HDF5 opens
 * it. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "hdf5/handle.h"

enum { DEEPEST = 8, NAME = 1024 };

static int check(const char *file, hid_t dataset, const char *path, unsigned depth);

static int refuse(const char *file, const char *path, const char *why)
{
	sl_error("%s: %s: %s", file, path, why);
	return -ELOOP;
}

int sl_h5_check_ordinary(const char *file, const char *name)
{
	struct stat st;

	if (stat(name, &st) || S_ISREG(st.st_mode))
		return 0;
	if (strcmp(file, name) == 0)
		sl_error("%s: is no ordinary file", file);
	else
		sl_error("%s: leads to '%s', which is no ordinary file", file, name);
	return -EINVAL;
}

static int check_in(const char *file, const char *folder, size_t length, const char *name)
{
	char whole[PATH_MAX + 2 * NAME];

	snprintf(whole, sizeof(whole), "%.*s%s%s", (int)length, folder, length ? "/" : "", name);
	return sl_h5_check_ordinary(file, whole);
}

/* Wherever HDF5 may look for it: as it is named, beside the file that names it, in the folders of
 * HDF5_EXT_PREFIX and HDF5_VDS_PREFIX; and, if that fails, by its last part. */
static int check_everywhere(const char *file, const char *name)
{
	static const char *const prefix[] = {"HDF5_EXT_PREFIX", "HDF5_VDS_PREFIX"};
	const char *slash = strrchr(file, '/'), *last = strrchr(name, '/');
	const char *names[2] = {name, last ? last + 1 : name};
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		if (!names[i][0])
			continue;
		err = sl_h5_check_ordinary(file, names[i]);
		if (!err && slash)
			err = check_in(file, file, (size_t)(slash - file), names[i]);
		for (int k = 0; k < 2; k++) {
			const char *at = getenv(prefix[k]);

			for (size_t n; at && *at && !err; at += n + (at[n] == ':')) {
				n = strcspn(at, ":");
				err = check_in(file, at, n, names[i]);
			}
		}
	}
	return err;
}

static herr_t follow(const char *parent, const char *group, const char *child, const char *object,
		     unsigned *flags, hid_t access, void *arg)
{
	return check_everywhere(parent, child) ? -1 : 0;
}

hid_t sl_h5_link_access(hid_t kind)
{
	hid_t access = H5Pcreate(kind);

	if (access >= 0 && H5Pset_elink_cb(access, follow, NULL) >= 0)
		return access;
	if (access >= 0)
		H5Pclose(access);
	return H5P_DEFAULT;
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
		if (check_everywhere(file, name))
			return -EPERM;
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
	hid_t id, dataset = H5I_INVALID_HID, links, access;
	int err;

	if (strcmp(name, ".") && check_everywhere(file, name))
		return -EINVAL;
	links = sl_h5_link_access(H5P_LINK_ACCESS);
	access = sl_h5_link_access(H5P_DATASET_ACCESS);
	id = strcmp(name, ".") ? open_source(file, name, found, sizeof(found)) : here;
	if (id >= 0 && H5Lexists(id, path, links) > 0)
		dataset = H5Dopen2(id, path, access);
	err = dataset < 0 ? 0 : check(id == here ? file : found, dataset, path, depth + 1);
	if (links > 0)
		H5Pclose(links);
	if (access > 0)
		H5Pclose(access);
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
