/* data_files.c - names and identities of data files. */
#include "hdf5/rolled/data_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "hdf5/handle.h"
#include "hdf5/rolled/rolled.h"

enum { DIGITS_LEAST = 6 };

const char *sl_h5_last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Bytes of the path up to the end of NAME. */
static size_t stem_bytes(const char *path)
{
	static const char master[] = "_master";
	const char *name = sl_h5_last_part(path), *dot = strrchr(name, '.');
	size_t bytes = dot && dot != name ? (size_t)(dot - path) : strlen(path);

	if (bytes > (size_t)(name - path) + sizeof(master) - 1 &&
	    !memcmp(path + bytes - (sizeof(master) - 1), master, sizeof(master) - 1))
		bytes -= sizeof(master) - 1;
	return bytes;
}

int sl_h5_data_path(const char *path, uint32_t number, char *out, size_t bytes)
{
	int n = snprintf(out, bytes, "%.*s_data_%06u.h5", (int)stem_bytes(path), path, number);

	return n < 0 || (size_t)n >= bytes ? -ENAMETOOLONG : 0;
}

int sl_h5_data_name(const char *path, uint32_t number, char *name, size_t bytes)
{
	char whole[PATH_MAX];
	int r = sl_h5_data_path(path, number, whole, sizeof(whole));

	if (r)
		return r;
	return (size_t)snprintf(name, bytes, "%s", sl_h5_last_part(whole)) >= bytes ? -ENAMETOOLONG
										    : 0;
}

/* ---- identity ---- */

int sl_h5_file_set_make(char file_set[SL_H5_FILE_SET_BYTES])
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(file_set, SL_H5_FILE_SET_BYTES, "%016llx%016llx", (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	return 0;
}

static hid_t open_any(const char *path)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS), id = H5I_INVALID_HID;

	if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0) {
		id = H5Fopen(path, H5F_ACC_RDONLY, access);
		if (id < 0)
			id = H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access);
	}
	if (access >= 0)
		H5Pclose(access);
	return id;
}

/* A text of our own making; any other kind of attribute is none of ours. */
static void read_text(hid_t id, const char *name, char *text, size_t bytes)
{
	hid_t attribute, type;
	char *read = NULL;

	if (H5Aexists(id, name) <= 0)
		return;
	attribute = H5Aopen(id, name, H5P_DEFAULT);
	type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);
	if (type >= 0 && H5Tis_variable_str(type) > 0) {
		hid_t space = H5Aget_space(attribute);

		if (space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
		    H5Aread(attribute, type, &read) >= 0 && read && strlen(read) < bytes)
			strcpy(text, read);
		if (space >= 0)
			H5Sclose(space);
	}
	if (read)
		H5free_memory(read);
	if (type >= 0)
		H5Tclose(type);
	if (attribute >= 0)
		H5Aclose(attribute);
}

int sl_h5_identify(const char *path, struct sl_h5_identity *identity)
{
	struct sl_h5_identity found = {.file_set = ""};
	struct stat st;
	hid_t id;

	sl_h5_prepare();
	if (lstat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	id = open_any(path);
	if (id < 0)
		return -EBADMSG;
	read_text(id, "file_set", found.file_set, sizeof(found.file_set));
	read_text(id, "master", found.master, sizeof(found.master));
	H5Fclose(id);
	*identity = found;
	return 0;
}

bool sl_h5_belongs(const struct sl_h5_identity *data, const struct sl_h5_identity *master,
		   const char *path)
{
	return data->file_set[0] && !strcmp(data->file_set, master->file_set) &&
	       !strcmp(data->master, sl_h5_last_part(path));
}

/* ---- which there are ---- */

/* "NAME_data_000123.h5" and the ending; false: another name. */
static bool parse(const char *name, const char *stem, size_t stem_bytes, const char *ending,
		  uint32_t *number)
{
	static const char middle[] = "_data_", h5[] = ".h5";
	unsigned long long value = 0;
	unsigned digits = 0;

	if (strncmp(name, stem, stem_bytes) ||
	    strncmp(name + stem_bytes, middle, sizeof(middle) - 1))
		return false;
	name += stem_bytes + sizeof(middle) - 1;
	for (; *name >= '0' && *name <= '9' && value <= UINT32_MAX; name++, digits++)
		value = value * 10 + (unsigned)(*name - '0');
	*number = (uint32_t)value;
	return digits >= DIGITS_LEAST && value && value <= UINT32_MAX &&
	       !strncmp(name, h5, sizeof(h5) - 1) && !strcmp(name + sizeof(h5) - 1, ending);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int add(uint32_t **numbers, size_t *n, uint32_t number)
{
	uint32_t *more = realloc(*numbers, (*n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	*numbers = more;
	more[(*n)++] = number;
	return 0;
}

int sl_h5_data_list(const char *path, const char *ending, uint32_t **numbers, size_t *n)
{
	const char *name = sl_h5_last_part(path);
	size_t stem = stem_bytes(path) - (size_t)(name - path), found = 0;
	char *folder = name == path ? strdup(".") : strndup(path, (size_t)(name - path));
	uint32_t *list = NULL, number;
	const struct dirent *entry;
	DIR *dir = folder ? opendir(folder) : NULL;
	int r = folder ? 0 : -ENOMEM;

	if (!r && !dir && errno != ENOENT)
		r = -errno;
	free(folder);
	while (dir && !r && (entry = readdir(dir)))
		if (parse(entry->d_name, name, stem, ending, &number))
			r = add(&list, &found, number);
	if (dir)
		closedir(dir);
	if (r) {
		free(list);
		return r;
	}
	if (found)
		qsort(list, found, sizeof(*list), compare);
	*numbers = list;
	*n = found;
	return 0;
}
