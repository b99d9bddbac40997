/* secret_file.h - a secret from a file or from an open descriptor.
 *
 * Model:     the secret is the first line. A file belongs to root or to the user of the process;
 *            no other user may read or write it, and its group may only read it. A descriptor is
 *            named as the shell names it: /dev/fd/3 or /dev/stdin. What comes out of a pipe can be
 *            read once only: it is kept in memory under the same descriptor, so that it can be
 *            read again, also by child processes.
 * Threads:   one at a time for a descriptor. */
#ifndef SL_BASE_SECRET_FILE_H
#define SL_BASE_SECRET_FILE_H

#include <stddef.h>

/* secret: `bytes` with the final zero. -errno with the reason in `why`: cannot be opened, others
 * can read it (-EPERM), empty, too long or not text (-EINVAL). The reason never quotes the file. */
int sl_secret_file_read(const char *path, char *secret, size_t bytes, char *why, size_t why_bytes);

/* All of the file, of at most bytes - 1 bytes without a zero, as it is. -E2BIG: it has more. */
int sl_secret_file_text(const char *path, char *text, size_t bytes, char *why, size_t why_bytes);

#endif
