/* access.h - group and mode of files that a run makes, where its options say other than the umask.
 *
 * Model:     read once from the options, before anything is made; then set on the descriptor of
 *            each file, the group first, while the file has no data yet.
 * Threads:   functions of their arguments.
 * Errors:    0 or -errno, logged with what to do. */
#ifndef SL_BASE_FILE_ACCESS_H
#define SL_BASE_FILE_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct sl_file_access {
	bool has_group, has_mode; /* false: as the kernel makes the file */
	gid_t group;
	mode_t mode;
};

/* group: a name or a number, of which this user is a member; mode: octal, as "0640", with reading
 * and writing for the owner and without execution. "": none. `whose` begins messages. */
int sl_file_access_read(const char *whose, const char *group, const char *mode,
			struct sl_file_access *access);

/* As the file at `path` has it; nothing where there is none. */
void sl_file_access_of(const char *path, struct sl_file_access *access);

int sl_file_access_set(int fd, const char *path, const struct sl_file_access *access);

/* A new file at `path`, open for reading and writing. It has its group and mode before the name is
 * there, so that no other program can open it with a wider mode; on a file system without unnamed
 * files only its owner can until they are set. access NULL: as the kernel makes the file. The
 * descriptor; or -EEXIST, not logged: a file is there. */
int sl_file_create(const char *path, const struct sl_file_access *access);

#endif
