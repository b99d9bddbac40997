/* memory.c - the memory that processes of a script read: a description, and a place for each frame
 * that is under way. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "stage/python/python.h"
#include "stage/whole.h"

enum { PAGE = 4096, LINE = 64 };

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

/* As NumPy writes it. */
static const char *type_of(enum sl_dtype dtype)
{
	switch (dtype) {
	case SL_U8:
		return "|u1";
	case SL_U16:
		return "=u2";
	case SL_U32:
		return "=u4";
	case SL_I16:
		return "=i2";
	case SL_I32:
		return "=i4";
	case SL_F32:
		return "=f4";
	case SL_I64:
		return "=i8";
	default:
		return "=f8";
	}
}

/* The text between quotes of JSON. */
static void put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == '"' || *c == '\\')
			fprintf(out, "\\u%04x", *c);
		else
			fputc(*c, out);
	fputc('"', out);
}

static void put_key_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\":", key);
	put_text(out, text ? text : "");
	fputc(',', out);
}

/* JSON has no infinities. */
static void put_key_number(FILE *out, const char *key, double value)
{
	if (isfinite(value))
		fprintf(out, "\"%s\":%.17g,", key, value);
	else
		fprintf(out, "\"%s\":null,", key);
}

static void put_array(FILE *out, const struct sl_python_array *array)
{
	fputc('{', out);
	put_key_text(out, "name", array->shape.name);
	put_key_text(out, "type", type_of(array->shape.dtype));
	fprintf(out, "\"ragged\":%s,\"offset\":%llu,\"shape\":[",
		array->shape.ragged ? "true" : "false", (unsigned long long)array->offset);
	for (uint32_t i = 0; i < array->shape.rank; i++)
		fprintf(out, "%s%u", i ? "," : "", array->shape.dim[i]);
	fputs("]}", out);
}

static void put_all(FILE *out, const struct sl_python_engine *e, const struct sl_env *env)
{
	const struct sl_geometry *g = env->geometry;

	fputc('{', out);
	put_key_text(out, "detector", g->detector);
	put_key_text(out, "name", env->name);
	put_key_number(out, "modules", g->modules);
	put_key_number(out, "rows", g->rows);
	put_key_number(out, "columns", g->columns);
	put_key_number(out, "pixel_size_m", g->pixel_size_m);
	put_key_number(out, "distance_m", g->distance_m);
	put_key_number(out, "photon_energy_keV", g->photon_energy_keV);
	put_key_number(out, "frames", (double)env->frames);
	put_key_number(out, "frame_rate_Hz", env->frame_rate_Hz);
	put_key_number(out, "numbers", e->numbers);
	fputs("\"arrays\":[", out);
	for (uint32_t i = 0; i < e->arrays; i++) {
		fputs(i ? "," : "", out);
		put_array(out, &e->array[i]);
	}
	fputs("]}", out);
}

char *sl_python_describe(const struct sl_python_engine *e, const struct sl_env *env)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	bool failed;

	if (!out)
		return NULL;
	put_all(out, e, env);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* Pages are taken now: memory that does not fit is refused when the run is armed. */
static int make(struct sl_python_memory *m, int fd)
{
	char path[40];

	if (ftruncate(fd, (off_t)m->bytes))
		return -errno;
	errno = posix_fallocate(fd, 0, (off_t)m->bytes);
	if (errno)
		return -errno;
	m->base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (m->base == MAP_FAILED) {
		m->base = NULL;
		return -errno;
	}
	/* This mapping can write; no later one can, nor write(2). */
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	return m->fd < 0 ? -errno : 0;
}

static void arrange(struct sl_python_engine *e, size_t text_bytes)
{
	struct sl_python_memory *m = &e->memory;
	uint64_t at = SL_PYTHON_NOTE_BYTES;

	for (uint32_t i = 0; i < e->arrays; i++) {
		e->array[i].offset = at;
		e->array[i].bytes = sl_shape_bytes(&e->array[i].shape);
		at = round_up(at + e->array[i].bytes, LINE);
	}
	m->places = e->processes + 1;
	m->place_bytes = round_up(at, PAGE);
	m->place_at = round_up(text_bytes + 64, PAGE);
	m->bytes = m->place_at + m->places * m->place_bytes;
}

/* In front of the description: where the places are. */
static void put_head(const struct sl_python_memory *m, const char *text)
{
	const uint64_t head[] = {SL_PYTHON_MAGIC, m->place_at, m->place_bytes, m->places,
				 strlen(text)};

	memcpy(m->base, head, sizeof(head));
	memcpy(m->base + 64, text, strlen(text));
}

int sl_python_memory_open(struct sl_python_engine *e, const struct sl_env *env)
{
	char *text;
	int fd, err;

	arrange(e, 0);
	text = sl_python_describe(e, env);
	if (!text) {
		sl_error("python: no memory to describe the run");
		return -ENOMEM;
	}
	arrange(e, strlen(text));
	fd = memfd_create("sluice-python", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	err = fd < 0 ? -errno : make(&e->memory, fd);
	if (!err)
		put_head(&e->memory, text);
	else
		sl_error("python: no memory of %llu bytes for frames that the script judges: %s",
			 (unsigned long long)e->memory.bytes, strerror(-err));
	if (fd >= 0)
		close(fd);
	free(text);
	return err;
}

void sl_python_memory_close(struct sl_python_memory *m)
{
	if (m->base)
		munmap(m->base, m->bytes);
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct sl_python_memory){.fd = -1};
}

int sl_python_text_file(const char *name, const void *bytes, size_t n)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (write(fd, bytes, n) == (ssize_t)n &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return fd;
	close(fd);
	return -EIO;
}

/* ---- a frame ---- */

static void copy_raw(const struct sl_python_engine *e, const struct sl_frame *frame, uint8_t *to)
{
	size_t module = e->rows * e->row_bytes;

	for (uint32_t m = 0; m < frame->views; m++)
		sl_whole_copy(&frame->view[m].pixels, e->rows, e->row_bytes,
			      (char *)to + m * module);
}

static uint32_t copy_result(const struct sl_python_array *array, const struct sl_frame *frame,
			    uint8_t *to)
{
	const struct sl_array *from = &frame->result[array->result];
	uint32_t most = array->shape.dim[0], rows = from->rows < most ? from->rows : most;

	if (!array->shape.ragged) {
		memcpy(to, from->host, array->bytes);
		return 0;
	}
	memcpy(to, from->host, array->bytes / most * rows);
	return rows;
}

void sl_python_fill(const struct sl_python_engine *e, uint32_t place, uint64_t ticket,
		    const struct sl_frame *frame)
{
	uint8_t *at = e->memory.base + e->memory.place_at + place * e->memory.place_bytes;
	struct sl_python_note *note = (struct sl_python_note *)at;

	*note = (struct sl_python_note){
		.ticket = ticket,
		.number = frame->number,
		.timestamp = frame->timestamp,
		.sequence = frame->sequence,
		.missing = frame->missing,
		.flags = frame->flags,
		.keep = (uint16_t)sl_frame_is_kept(frame),
		.reason = frame->verdict[0].reason,
		.score = frame->verdict[0].score,
	};
	for (uint32_t i = 0; i < e->arrays; i++) {
		const struct sl_python_array *array = &e->array[i];

		if (array->result == SL_STAGE_RAW)
			copy_raw(e, frame, at + array->offset);
		else
			note->rows[i] = copy_result(array, frame, at + array->offset);
	}
}
