/* stack_raw.c - images in a file of bytes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "detector/replay/stack.h"

/* Of one image: what follows is computed in 64 bits. */
#define IMAGE_MOST (UINT64_C(1) << 40)

static int dtype_of(const struct sl_stack_options *o, enum sl_dtype *dtype)
{
	static const enum sl_dtype whole[2][3] = {{SL_U8, SL_U16, SL_U32},
						  {SL_DTYPES, SL_I16, SL_I32}};
	unsigned i = o->bits == 8 ? 0 : o->bits == 16 ? 1 : 2;

	*dtype = o->numbers == SL_STACK_FLOAT ? (i == 2 ? SL_F32 : SL_DTYPES)
					      : whole[o->numbers][i];
	if (*dtype != SL_DTYPES)
		return 0;
	sl_error("replay: there are no %s pixels of %u bits here",
		 o->numbers == SL_STACK_FLOAT ? "float" : "signed", o->bits);
	return -EINVAL;
}

static void note(struct sl_stack_part *part, const struct stat *st)
{
	part->inode = st->st_ino;
	part->size = (uint64_t)st->st_size;
	part->mtime_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

/* How many images a file of that size has; the last may lack its gap. */
static int count(const struct sl_stack_options *o, const char *path, uint64_t size,
		 uint64_t image_bytes, struct sl_stack_part *part)
{
	uint64_t each = o->frame_header_bytes + image_bytes, left;

	part->stride = each + o->gap_bytes;
	part->at = o->header_bytes + o->frame_header_bytes;
	left = size > o->header_bytes ? size - o->header_bytes : 0;
	part->images = left / part->stride;
	left %= part->stride;
	if (left >= each) {
		part->images++;
		left = 0;
	}
	if (left && !o->ragged) {
		sl_error(
			"replay: '%s' has %llu bytes: after a header of %llu these are %llu images "
			"of %llu bytes each and %llu bytes more; set rows, columns, bits and the "
			"*_bytes, or ragged: true to leave the rest out",
			path, (unsigned long long)size, (unsigned long long)o->header_bytes,
			(unsigned long long)part->images, (unsigned long long)part->stride,
			(unsigned long long)left);
		return -EINVAL;
	}
	if (!part->images) {
		sl_error("replay: '%s' has %llu bytes, less than one image of %llu", path,
			 (unsigned long long)size, (unsigned long long)each);
		return -EINVAL;
	}
	return 0;
}

static int describe(const struct sl_stack_options *o, const char *path,
		    struct sl_stack_shape *shape)
{
	int err = dtype_of(o, &shape->dtype);

	if (err)
		return err;
	if (!o->rows || !o->columns) {
		sl_error("replay: '%s' is no HDF5 file; to play it as raw binary set rows and "
			 "columns of an image, and bits",
			 path);
		return -EINVAL;
	}
	shape->modules = 0;
	shape->rows = o->rows;
	shape->columns = o->columns;
	shape->image_bytes = (uint64_t)o->rows * o->columns * sl_dtype_bytes(shape->dtype);
	return shape->image_bytes <= IMAGE_MOST ? 0 : -EFBIG;
}

int sl_stack_raw_open(const struct sl_stack_options *o, const char *path,
		      struct sl_stack_part *part, struct sl_stack_shape *shape)
{
	struct stat st;
	int err = describe(o, path, shape);

	if (err)
		return err;
	part->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (part->fd < 0 || fstat(part->fd, &st)) {
		sl_error("replay: cannot read '%s': %s", path, strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		sl_error("replay: '%s' is no ordinary file", path);
		return -EINVAL;
	}
	note(part, &st);
	part->swap = o->big_endian ? (unsigned)sl_dtype_bytes(shape->dtype) : 0;
	posix_fadvise(part->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return count(o, path, part->size, shape->image_bytes, part);
}

static bool changed(const struct sl_stack_part *part)
{
	struct sl_stack_part now = {0};
	struct stat st;

	if (fstat(part->fd, &st))
		return true;
	note(&now, &st);
	return now.size != part->size || now.mtime_ns != part->mtime_ns;
}

static void turn_round(uint8_t *data, uint64_t bytes, unsigned each)
{
	for (uint64_t i = 0; i + each <= bytes; i += each)
		for (unsigned k = 0; k < each / 2; k++) {
			uint8_t byte = data[i + k];

			data[i + k] = data[i + each - 1 - k];
			data[i + each - 1 - k] = byte;
		}
}

/* Neither more nor less than what is asked for; a file that was changed meanwhile gives nothing. */
int sl_stack_raw_read(const struct sl_stack_part *part, uint64_t image, uint64_t offset,
		      uint64_t bytes, void *data)
{
	uint64_t at = part->at + image * part->stride + offset, done = 0;

	while (done < bytes) {
		ssize_t n =
			pread(part->fd, (uint8_t *)data + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ESTALE;
		done += (uint64_t)n;
	}
	if (changed(part))
		return -ESTALE;
	if (part->swap > 1)
		turn_round(data, bytes, part->swap);
	return 0;
}
