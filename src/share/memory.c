/* memory.c - one generation of a share in memory: made by its writer, mapped by followers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share/pages.h"
#include "share/private.h"

static int because(int err, char *why, size_t bytes, const char *what)
{
	snprintf(why, bytes, "%s: %s", what, strerror(-err));
	return err;
}

/* A descriptor of the same memory that cannot write, with which nobody can get one that can: the
 * memory is sealed. */
static int reopen(int fd)
{
	char path[40];
	int out;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	out = open(path, O_RDONLY | O_CLOEXEC);
	return out < 0 ? -errno : out;
}

static void arrange(struct sl_share_memory *m, const struct sl_share_header *h)
{
	uint8_t *base = h->in_second ? m->second : (uint8_t *)m->header;

	m->place = (struct sl_share_place *)((uint8_t *)m->header + SL_SHARE_HEADER_BYTES);
	m->data = base + h->data_offset;
	m->stride = h->stride;
	m->count = h->count;
}

void sl_share_memory_unmap(struct sl_share_memory *m)
{
	if (m->header)
		munmap(m->header, m->bytes);
	if (m->second)
		munmap(m->second, m->second_bytes);
}

void sl_share_memory_fini(struct sl_share_memory *m)
{
	if (m->mapping)
		sl_share_mapping_release(m->mapping);
	else
		sl_share_memory_unmap(m);
	if (m->fd >= 0)
		close(m->fd);
	if (m->second_fd >= 0)
		close(m->second_fd);
	*m = (struct sl_share_memory){.fd = -1, .second_fd = -1};
}

/* ---- the writer's ---- */

/* No pages that are not there later: a share that does not fit is refused now. */
static int fill(int fd, uint64_t from, uint64_t bytes)
{
	int err;

	do
		err = posix_fallocate(fd, (off_t)from, (off_t)bytes);
	while (err == EINTR);
	return -err;
}

static int make_region(uint64_t bytes, void **at, int *read_fd)
{
	int fd = memfd_create("sluice-share", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	err = ftruncate(fd, (off_t)bytes) ? -errno : 0;
	if (!err)
		sl_share_use_huge_pages(fd, bytes);
	if (!err)
		err = fill(fd, 0, bytes);
	*at = err ? MAP_FAILED : sl_share_map(fd, bytes, PROT_READ | PROT_WRITE, MAP_POPULATE);
	if (!err && *at == MAP_FAILED)
		err = -errno;
	/* This mapping can write; no later one can, nor write(2). */
	if (!err &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		err = -errno;
	*read_fd = err ? -1 : reopen(fd);
	if (!err && *read_fd < 0)
		err = *read_fd;
	if (err && *at != MAP_FAILED)
		munmap(*at, bytes);
	close(fd);
	return err;
}

/* Memory that the application brings: it must be a memfd that cannot shrink, or followers would
 * die of a bus error. */
static int take_over(const struct sl_share_header *plan, int fd, struct sl_share_memory *m,
		     char *why, size_t why_bytes)
{
	uint64_t wanted = plan->data_offset + plan->count * plan->stride;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return because(-errno, why, why_bytes, "memory_fd");
	if (plan->data_offset % SL_SHARE_PAGE || (uint64_t)st.st_size < wanted) {
		snprintf(why, why_bytes,
			 "memory_fd has %llu bytes, and the ring needs %llu from memory_offset, "
			 "which is in whole pages",
			 (unsigned long long)st.st_size, (unsigned long long)wanted);
		return -EINVAL;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) &&
	    !(fcntl(fd, F_GET_SEALS) > 0 && fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK)) {
		snprintf(why, why_bytes,
			 "memory_fd must be a memfd with MFD_ALLOW_SEALING: other memory could "
			 "shrink under its followers");
		return -EINVAL;
	}
	err = fill(fd, plan->data_offset, wanted - plan->data_offset);
	if (err)
		return because(err, why, why_bytes, "memory_fd has no room");
	m->second_bytes = (uint64_t)st.st_size;
	m->second = sl_share_map(fd, m->second_bytes, PROT_READ | PROT_WRITE, 0);
	if (m->second == MAP_FAILED) {
		m->second = NULL;
		return because(-errno, why, why_bytes, "cannot map memory_fd");
	}
	m->second_fd = reopen(fd);
	return m->second_fd < 0 ? because(m->second_fd, why, why_bytes, "memory_fd") : 0;
}

int sl_share_memory_make(const struct sl_share_header *plan, int second_fd,
			 struct sl_share_memory *m, char *why, size_t why_bytes)
{
	void *at = NULL;
	int err;

	*m = (struct sl_share_memory){.fd = -1, .second_fd = -1};
	err = make_region(plan->region_bytes, &at, &m->fd);
	if (err) {
		char what[80];

		snprintf(what, sizeof(what), "no memory for %llu bytes",
			 (unsigned long long)plan->region_bytes);
		return because(err, why, why_bytes, what);
	}
	m->header = at;
	m->bytes = plan->region_bytes;
	err = plan->in_second ? take_over(plan, second_fd, m, why, why_bytes) : 0;
	if (err) {
		sl_share_memory_fini(m);
		return err;
	}
	memcpy(m->header, plan, sizeof(*plan));
	arrange(m, plan);
	return 0;
}

/* ---- a follower's ---- */

static int map_one(int fd, void **at, uint64_t *bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	/* What can shrink under us is not touched. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size <= 0)
		return -EPROTO;
	*at = sl_share_map(fd, (uint64_t)st.st_size, PROT_READ, 0);
	if (*at == MAP_FAILED) {
		*at = NULL;
		return -errno;
	}
	*bytes = (uint64_t)st.st_size;
	return 0;
}

static int map_all(struct sl_share_memory *m, int fds, struct sl_share_header *checked, char *why,
		   size_t why_bytes)
{
	void *at = NULL;
	int err = fds ? map_one(m->fd, &at, &m->bytes) : -EPROTO;

	m->header = at;
	if (!err && fds > 1)
		err = map_one(m->second_fd, &m->second, &m->second_bytes);
	if (err)
		return because(err, why, why_bytes, "its memory cannot be mapped");
	if (m->bytes >= sizeof(*checked)) /* a copy: the writer may change its own */
		memcpy(checked, m->header, sizeof(*checked));
	return sl_share_check(checked, m->bytes, m->second_bytes, why, why_bytes);
}

int sl_share_memory_map(const int *fd, int fds, struct sl_share_header *checked,
			struct sl_share_memory *m, char *why, size_t why_bytes)
{
	int err;

	*m = (struct sl_share_memory){.fd = fds > 0 ? fd[0] : -1,
				      .second_fd = fds > 1 ? fd[1] : -1};
	memset(checked, 0, sizeof(*checked));
	err = map_all(m, fds, checked, why, why_bytes);
	if (err)
		sl_share_memory_fini(m);
	else
		arrange(m, checked);
	return err;
}
