/* names.c - where shares lie on this host, and what is said of them when that fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share/private.h"

#define FOLDER "shares" /* inside the folder of sessions: names of both may be the same */

int sl_share_fail(struct sl_remote_error *error, int err, const char *code, const char *format, ...)
{
	va_list list;

	if (!error)
		return err;
	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "%s", code);
	va_start(list, format);
	vsnprintf(error->message, sizeof(error->message), format, list);
	va_end(list);
	return err;
}

int sl_share_code(struct sl_remote_error *error, int err, const char *name, const char *why)
{
	const char *code = err == -EPROTO ? "reply" : err == -ETIMEDOUT ? "timeout" : "connection";

	return sl_share_fail(error, err, code, "cannot follow the share '%s': %s", name, why);
}

const char *sl_share_name_of(const char *url)
{
	const char *name = strncmp(url, "share:", 6) ? url : url + 6;

	return sl_registry_name_is_valid(name) ? name : NULL;
}

static int open_inside(int folder)
{
	int fd = openat(folder, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int sl_share_folder(bool make, int *folder, char *why, size_t why_bytes)
{
	int outer, err = sl_registry_open(make, &outer, why, why_bytes), fd;

	if (err)
		return err;
	if (make && mkdirat(outer, FOLDER, 0700) && errno != EEXIST)
		err = -errno;
	fd = err ? err : open_inside(outer);
	close(outer);
	if (fd < 0) {
		snprintf(why, why_bytes, "the folder '" FOLDER "' of sockets: %s", strerror(-fd));
		return fd;
	}
	*folder = fd;
	return 0;
}

unsigned sl_share_places(int folder[SL_REGISTRY_PLACES], char *why, size_t why_bytes)
{
	int outer[SL_REGISTRY_PLACES];
	unsigned all = sl_registry_places(outer, why, why_bytes), n = 0;

	for (unsigned i = 0; i < all; i++) {
		int fd = open_inside(outer[i]);

		close(outer[i]);
		if (fd >= 0)
			folder[n++] = fd;
	}
	return n;
}
