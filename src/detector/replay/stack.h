/* stack.h - images in files, counted from 0 through all of them.
 *
 * Model:     one or more files, in order, each raw binary or HDF5, all with images of one shape. A
 *            raw file is header_bytes, and then for each image: frame_header_bytes, the pixels,
 *            gap_bytes (which may be missing behind the last). In HDF5 files a dataset holds them:
 *            [image][row][column], [image][module][row][column], or one alone [row][column].
 * Files:     stack.c several as one; stack_raw.c, stack_hdf5.c one of a kind.
 * Threads:   one at a time. Of a stack that is all raw, sl_stack_read_part() neither allocates,
 *            locks nor logs: a data thread may call it.
 * Errors:    0 or -errno. open logs why. -ESTALE: a file is not what it was when it was opened.
 * Ownership: files stay open until close. */
#ifndef SL_DETECTOR_REPLAY_STACK_H
#define SL_DETECTOR_REPLAY_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/detector.h>
#include <sluice/frame.h>

enum { SL_STACK_PATH = 384, SL_STACK_DATASET = 128 };
enum sl_stack_format { SL_STACK_AUTO, SL_STACK_HDF5, SL_STACK_RAW };
enum sl_stack_numbers { SL_STACK_UNSIGNED, SL_STACK_SIGNED, SL_STACK_FLOAT };

struct sl_stack_options {
	char file[SL_STACK_PATH];	/* as base/paths.h */
	char dataset[SL_STACK_DATASET]; /* "": to be found; may be numbered */
	uint32_t format;		/* enum sl_stack_format */
	/* Raw files only, but rows and columns: where not 0, those of any file must be so. */
	uint32_t rows, columns;
	uint32_t bits; /* 8, 16, 32 */
	uint32_t numbers;
	bool big_endian;
	uint64_t header_bytes, frame_header_bytes, gap_bytes;
	bool ragged; /* a last image that is not whole is left out; otherwise the file is refused */
};

struct sl_stack_shape {
	enum sl_dtype dtype;
	uint32_t modules; /* 0: the file does not tell them apart */
	uint32_t rows, columns;
	uint64_t image_bytes; /* of all modules */
};

struct sl_stack;

int sl_stack_open(const struct sl_stack_options *options, struct sl_stack **stack);
void sl_stack_close(struct sl_stack *stack);

const struct sl_stack_shape *sl_stack_shape(const struct sl_stack *stack);
uint64_t sl_stack_images(const struct sl_stack *stack);
bool sl_stack_is_raw(const struct sl_stack *stack);

/* The first of its files: what is said beside the images is taken from there. */
const char *sl_stack_first(const struct sl_stack *stack);

/* Images are assembled as this geometry lays them out: from now on they are [module][row][column],
 * cut out of them. 0 or -ENOMEM. */
int sl_stack_cut(struct sl_stack *stack, const struct sl_geometry *geometry);

/* The whole image; logs why not. */
int sl_stack_read(struct sl_stack *stack, uint64_t image, void *data);

/* `bytes` of it from `offset` on, of a stack that is all raw; does not log. */
int sl_stack_read_part(struct sl_stack *stack, uint64_t image, uint64_t offset, uint64_t bytes,
		       void *data);

/* The file that holds an image. */
const char *sl_stack_where(const struct sl_stack *stack, uint64_t image);

/* ---- one file, for stack.c ---- */

struct sl_stack_part {
	char *path;
	uint64_t first, images; /* of the stack */
	/* raw */
	int fd;
	uint64_t at, stride, inode, size;
	int64_t mtime_ns;
	unsigned swap; /* bytes of a pixel to be turned round; 0: none */
	struct sl_h5_images *h5;
};

int sl_stack_raw_open(const struct sl_stack_options *options, const char *path,
		      struct sl_stack_part *part, struct sl_stack_shape *shape);
int sl_stack_raw_read(const struct sl_stack_part *part, uint64_t image, uint64_t offset,
		      uint64_t bytes, void *data);

bool sl_stack_hdf5_is(const char *path);

/* The dataset of that name: one part. */
int sl_stack_hdf5_open(const char *path, const char *dataset, struct sl_stack_part *part,
		       struct sl_stack_shape *shape);
int sl_stack_hdf5_read(const struct sl_stack_part *part, uint64_t image, void *data, size_t bytes);
void sl_stack_hdf5_close(struct sl_stack_part *part);

/* The k-th dataset of a file, by the name that was asked for, or as most files have it. 0: name;
 * -ENOENT: there are no more; other errors are logged. */
int sl_stack_hdf5_dataset(const char *path, const char *asked, unsigned k, char *name,
			  size_t bytes);

#endif
