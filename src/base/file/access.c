/* access.c - who may read a file that a run makes. */
#include "base/file/access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/part_private.h"
#include "base/log.h"

enum { GROUP_BYTES = 64 << 10, OWNER = 0600, ALLOWED = 0666 };

static int find_group(const char *name, gid_t *group)
{
	char *buffer = malloc(GROUP_BYTES), *end;
	struct group entry, *found = NULL;
	unsigned long number;
	int err;

	if (!buffer)
		return -ENOMEM;
	err = getgrnam_r(name, &entry, buffer, GROUP_BYTES, &found);
	if (found)
		*group = entry.gr_gid;
	free(buffer);
	if (found)
		return 0;
	errno = 0;
	number = strtoul(name, &end, 10);
	if (name[0] < '0' || name[0] > '9' || *end || errno || number >= (gid_t)-1)
		return err ? -err : -ENOENT;
	*group = (gid_t)number;
	return 0;
}

static bool is_member(gid_t group)
{
	int n = getgroups(0, NULL);
	gid_t *list = n > 0 ? malloc((size_t)n * sizeof(*list)) : NULL;
	bool found = !geteuid() || getegid() == group;

	n = list ? getgroups(n, list) : 0;
	for (int i = 0; i < n && !found; i++)
		found = list[i] == group;
	free(list);
	return found;
}

static int read_group(const char *whose, const char *name, struct sl_file_access *access)
{
	int err = find_group(name, &access->group);

	if (err == -ENOMEM)
		return err;
	if (err) {
		sl_error("%s.group: this host has no group '%s' ('getent group' lists them)", whose,
			 name);
		return -EINVAL;
	}
	if (!is_member(access->group)) {
		sl_error("%s.group: this user is not in group '%s', so it cannot give files to it "
			 "('id' shows the groups of a user)",
			 whose, name);
		return -EPERM;
	}
	access->has_group = true;
	return 0;
}

static int read_mode(const char *whose, const char *text, struct sl_file_access *access)
{
	size_t digits = strspn(text, "01234567");
	unsigned long mode = strtoul(text, NULL, 8);

	if (text[digits] || digits < 3 || digits > 4 || (mode & OWNER) != OWNER ||
	    mode & ~(unsigned long)ALLOWED) {
		sl_error(
			"%s.mode: '%s' is no mode of a data file; takes octal digits, as \"0640\": "
			"06 for the owner, then 0, 2, 4 or 6 for the group and for others",
			whose, text);
		return -EINVAL;
	}
	access->mode = (mode_t)mode;
	access->has_mode = true;
	return 0;
}

int sl_file_access_read(const char *whose, const char *group, const char *mode,
			struct sl_file_access *access)
{
	struct sl_file_access read = {.has_group = false};
	int err = group[0] ? read_group(whose, group, &read) : 0;

	if (!err && mode[0])
		err = read_mode(whose, mode, &read);
	if (!err)
		*access = read;
	return err;
}

void sl_file_access_of(const char *path, struct sl_file_access *access)
{
	struct stat st;

	*access = (struct sl_file_access){.has_group = false};
	if (lstat(path, &st) || !S_ISREG(st.st_mode))
		return;
	*access = (struct sl_file_access){.has_group = is_member(st.st_gid),
					  .has_mode = true,
					  .group = st.st_gid,
					  .mode = st.st_mode & 0777};
}

/* The group first: a change of it may take bits of the mode away. */
int sl_file_access_set(int fd, const char *path, const struct sl_file_access *access)
{
	const char *what = NULL;
	int err = 0;

	if (access->has_group && fchown(fd, (uid_t)-1, access->group)) {
		err = -errno;
		what = "its group";
	} else if (access->has_mode && fchmod(fd, access->mode)) {
		err = -errno;
		what = "its mode";
	}
	if (err)
		sl_error("%s: cannot set %s: %s; leave the option out, or choose another path",
			 path, what, strerror(-err));
	return err;
}

/* In the folder of `path`, without a name. */
static int open_unnamed(const char *path, mode_t mode)
{
	char *copy = strdup(path);
	int fd = -1;

	if (copy)
		fd = open(dirname(copy), O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
	free(copy);
	return fd;
}

/* linkat() with AT_EMPTY_PATH would need a privilege. */
static int name_it(int fd, const char *path)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* The descriptor of a file that began without a name stays "deleted" in /proc, where HDF5 looks for
 * the path: a descriptor that was opened by the name takes its place. -EEXIST: another file has
 * taken the name meanwhile. */
static int open_by_name(int fd, const char *path)
{
	struct stat unnamed, named;
	int other = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (other < 0)
		return errno == ENOENT || errno == ELOOP ? -EEXIST
							 : sl_part_refused(path, "open", errno);
	if (!fstat(fd, &unnamed) && !fstat(other, &named) && unnamed.st_dev == named.st_dev &&
	    unnamed.st_ino == named.st_ino)
		return other;
	close(other);
	return -EEXIST;
}

/* -EOPNOTSUPP: this file system or host has no unnamed files, or cannot name them. */
static int create_unnamed(const char *path, mode_t mode, const struct sl_file_access *access)
{
	int r, fd = open_unnamed(path, mode);

	if (fd < 0)
		return -EOPNOTSUPP;
	r = sl_file_access_set(fd, path, access);
	if (!r) {
		r = name_it(fd, path);
		if (r && r != -EEXIST)
			r = -EOPNOTSUPP;
	}
	if (!r)
		r = open_by_name(fd, path);
	close(fd);
	return r;
}

static int create_named(const char *path, mode_t mode, const struct sl_file_access *access)
{
	int r, fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd < 0)
		return errno == EEXIST ? -EEXIST : sl_part_refused(path, "create", errno);
	r = access ? sl_file_access_set(fd, path, access) : 0;
	if (!r)
		return fd;
	unlink(path);
	close(fd);
	return r;
}

int sl_file_create(const char *path, const struct sl_file_access *access)
{
	mode_t mode = access && access->has_mode ? OWNER : ALLOWED;
	int r = -EOPNOTSUPP;

	if (access && (access->has_group || access->has_mode))
		r = create_unnamed(path, mode, access);
	return r == -EOPNOTSUPP ? create_named(path, mode, access) : r;
}
