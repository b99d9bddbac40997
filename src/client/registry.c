/* registry.c - names of sessions: claimed, listed, connected to. */
#include "client/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A lock file that its owner removes just now: how often to look again. */
enum { TRIES = 100, BACKLOG = 16, FILE_NAME = SL_REGISTRY_NAME + 16 };

#define SYSTEM_FOLDER "/run/sluice"

static int because(int err, char *why, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int because(int err, char *why, size_t bytes, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(why, bytes, format, list);
	va_end(list);
	return err;
}

bool sl_registry_name_is_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(name);

	return length && length < SL_REGISTRY_NAME && name[0] != '.' && name[0] != '-' &&
	       strspn(name, allowed) == length;
}

static const char *file_of(const char *name, const char *end, char file[FILE_NAME])
{
	snprintf(file, FILE_NAME, "%s%s", name, end);
	return file;
}

/* ---- the folder ---- */

static bool is_own_folder(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && !stat(path, &st) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

int sl_registry_path(char *path, size_t bytes)
{
	const char *chosen = getenv("SLUICE_RUN_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (chosen && chosen[0])
		n = snprintf(path, bytes, "%s", chosen);
	else if (is_own_folder(runtime)) /* sudo may leave that of another user */
		n = snprintf(path, bytes, "%s/sluice", runtime);
	else
		n = snprintf(path, bytes, "/tmp/sluice-%u", (unsigned)geteuid());
	return n > 0 && (size_t)n < bytes ? 0 : -ENAMETOOLONG;
}

static int check_own(int fd, const char *path, char *why, size_t bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return because(-errno, why, bytes, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return because(-EPERM, why, bytes, "%s belongs to another user (uid %u)", path,
			       (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return because(-EPERM, why, bytes, "other users can enter %s; chmod 700 %s", path,
			       path);
	return 0;
}

static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int sl_registry_open(bool make, int *folder, char *why, size_t bytes)
{
	char path[SL_REGISTRY_PATH];
	int err = sl_registry_path(path, sizeof(path)), fd;

	if (err)
		return because(err, why, bytes, "the path of the folder is too long");
	if (make && mkdir(path, 0700) && errno != EEXIST)
		return because(-errno, why, bytes, "cannot make %s: %s", path, strerror(errno));
	fd = open_folder(path);
	if (fd == -ELOOP || fd == -ENOTDIR)
		return because(fd, why, bytes, "%s is no folder, or a symbolic link", path);
	if (fd < 0)
		return because(fd, why, bytes, "cannot open %s: %s", path, strerror(-fd));
	err = check_own(fd, path, why, bytes);
	if (err)
		close(fd);
	else
		*folder = fd;
	return err;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

unsigned sl_registry_places(int folder[SL_REGISTRY_PLACES], char *why, size_t bytes)
{
	unsigned n = 0;
	int fd, err = sl_registry_open(false, &fd, why, bytes);

	if (!err)
		folder[n++] = fd;
	if (!err || err == -ENOENT) /* no session has been there yet */
		why[0] = '\0';
	fd = open_folder(SYSTEM_FOLDER); /* only root can make it */
	if (fd >= 0 && n && same_file(fd, folder[0]))
		close(fd);
	else if (fd >= 0)
		folder[n++] = fd;
	return n;
}

/* ---- a name ---- */

static int lock_whole(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EEXIST : -errno;
}

/* The file that was locked is still the one of that name. */
static bool is_at(int fd, int folder, const char *file)
{
	struct stat x, y;

	return !fstat(fd, &x) && !fstatat(folder, file, &y, AT_SYMLINK_NOFOLLOW) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int lock_name(int folder, const char *name)
{
	char file[FILE_NAME];

	file_of(name, ".lock", file);
	for (unsigned i = 0; i < TRIES; i++) {
		int fd = openat(folder, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		int err = fd < 0 ? -errno : lock_whole(fd);

		if (!err && is_at(fd, folder, file))
			return fd;
		if (fd >= 0)
			close(fd);
		if (err)
			return err;
	}
	return -EAGAIN;
}

static int read_facts(int folder, const char *name, struct sl_registry_facts *facts)
{
	char file[FILE_NAME];
	int fd = openat(folder, file_of(name, ".json", file), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = sl_registry_facts_read(fd, facts);
	close(fd);
	return err;
}

int sl_registry_claim(int folder, const char *name, struct sl_claim *claim, char *why, size_t bytes)
{
	int err;

	if (!sl_registry_name_is_valid(name))
		return because(-EINVAL, why, bytes,
			       "'%s' is no name of a session: 1 to %d of A-Z a-z 0-9 . _ -, and no "
			       "'.' or '-' at the beginning",
			       name, SL_REGISTRY_NAME - 1);
	memset(claim, 0, sizeof(*claim));
	claim->lock = lock_name(folder, name);
	if (claim->lock == -EEXIST)
		return because(-EEXIST, why, bytes,
			       "a session '%s' is running already; choose another name", name);
	if (claim->lock < 0)
		return because(claim->lock, why, bytes, "cannot lock %s.lock: %s", name,
			       strerror(-claim->lock));
	claim->folder = fcntl(folder, F_DUPFD_CLOEXEC, 3);
	if (claim->folder < 0) {
		err = -errno;
		close(claim->lock);
		claim->lock = -1;
		return because(err, why, bytes, "no descriptor is free: %s", strerror(-err));
	}
	snprintf(claim->name, sizeof(claim->name), "%s", name);
	claim->crashed = read_facts(folder, name, &claim->left) != -ENOENT;
	return 0;
}

int sl_registry_publish(const struct sl_claim *claim, const struct sl_registry_facts *facts)
{
	char file[FILE_NAME], part[FILE_NAME];
	int fd, err;

	file_of(claim->name, ".json", file);
	file_of(claim->name, ".json.part", part);
	unlinkat(claim->folder, part, 0);
	fd = openat(claim->folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	err = sl_registry_facts_write(fd, facts);
	close(fd);
	if (!err && renameat(claim->folder, part, claim->folder, file))
		err = -errno;
	if (err)
		unlinkat(claim->folder, part, 0);
	return err;
}

/* Through the descriptor of the folder: the path of a socket has 107 characters at most, and the
 * folder's own may be longer. */
static int address_of(int folder, const char *name, struct sockaddr_un *address)
{
	int n;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s.sock",
		     folder, name);
	return n > 0 && (size_t)n < sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

int sl_registry_listen(const struct sl_claim *claim)
{
	struct sockaddr_un address;
	char file[FILE_NAME];
	int err = address_of(claim->folder, claim->name, &address);
	int fd = err ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (err)
		return err;
	if (fd < 0)
		return -errno;
	unlinkat(claim->folder, file_of(claim->name, ".sock", file), 0); /* of one that crashed */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    fchmodat(claim->folder, file, 0600, 0) || listen(fd, BACKLOG)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

void sl_registry_release(struct sl_claim *claim)
{
	static const char *const end[] = {".sock", ".json", ".lock"}; /* the lock last */
	char file[FILE_NAME];

	for (unsigned i = 0; i < sizeof(end) / sizeof(end[0]); i++)
		unlinkat(claim->folder, file_of(claim->name, end[i], file), 0);
	close(claim->lock);
	close(claim->folder);
	claim->lock = claim->folder = -1;
}

/* ---- for clients ---- */

static bool is_locked(int folder, const char *name)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char file[FILE_NAME];
	int fd = openat(folder, file_of(name, ".lock", file), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool held;

	if (fd < 0)
		return false;
	held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return held;
}

int sl_registry_look(int folder, const char *name, struct sl_registry_facts *facts, bool *alive)
{
	char file[FILE_NAME];
	int err = read_facts(folder, name, facts);

	if (err && err != -EBADMSG)
		return err;
	if (err) /* of a version that this one does not know */
		memset(facts, 0, sizeof(*facts));
	snprintf(facts->name, sizeof(facts->name), "%s", name);
	*alive = is_locked(folder, name);
	/* A session that ends removes its facts before its lock. */
	if (!*alive && faccessat(folder, file_of(name, ".json", file), F_OK, AT_SYMLINK_NOFOLLOW))
		return -ENOENT;
	return 0;
}

int sl_registry_each(int folder, bool (*each)(void *arg, int folder, const char *name), void *arg)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool more = true;
	struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	if (!dir)
		return -errno;
	while (more && (entry = readdir(dir))) {
		size_t length = strlen(entry->d_name);
		char name[SL_REGISTRY_NAME];

		if (length <= 5 || length - 5 >= sizeof(name) ||
		    strcmp(entry->d_name + length - 5, ".json"))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length - 5), entry->d_name);
		if (sl_registry_name_is_valid(name))
			more = each(arg, folder, name);
	}
	closedir(dir);
	return 0;
}

int sl_registry_connect(int folder, const char *name)
{
	struct sockaddr_un address;
	int err = address_of(folder, name, &address);
	int fd = err ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (err)
		return err;
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}
