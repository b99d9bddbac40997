/* layout.c - numbers of a share's header: planned by its writer, checked by its followers; and the
 * order in which both sides touch an element. */
#include "share/layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Far above what any host has: sums of a few such numbers cannot overflow. */
#define MOST_BYTES (UINT64_C(1) << 48)

enum { MOST_PEERS = 4096 };

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

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

uint64_t sl_share_pages(uint64_t bytes)
{
	return round_up(bytes, SL_SHARE_PAGE);
}

/* ---- arrays ---- */

/* Bytes of an item of a NumPy type: a byte order that fits, a kind, a size. 0: not one of these. */
static uint64_t item_bytes(const char type[8])
{
	static const char *const types[] = {"|b1", "|u1", "|i1", "<u2", "<i2", "<f2", "<u4",
					    "<i4", "<f4", "<u8", "<i8", "<f8", "<c8", "<c16"};

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strncmp(type, types[i], 8))
			return strcmp(types[i], "<c16") ? (uint64_t)(types[i][2] - '0') : 16;
	return 0;
}

static bool ends(const char *text, size_t bytes)
{
	return memchr(text, 0, bytes) != NULL;
}

/* What rank, dimensions and type of an array make. 0: they are wrong, or far too large. */
static uint64_t array_bytes(const struct sl_share_array *array)
{
	uint64_t bytes = ends(array->type, sizeof(array->type)) ? item_bytes(array->type) : 0;

	if (array->rank > SL_SHARE_RANK || array->ragged > 1 || (array->ragged && !array->rank))
		return 0;
	for (uint32_t i = 0; i < array->rank; i++) {
		if (!array->dim[i] || bytes > MOST_BYTES / array->dim[i])
			return 0;
		bytes *= array->dim[i];
	}
	return bytes;
}

static bool name_is_valid(const struct sl_share_array *array)
{
	return ends(array->name, sizeof(array->name)) && array->name[0] &&
	       ends(array->unit, sizeof(array->unit));
}

static bool named_before(const struct sl_share_array *array, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (!strcmp(array[i].name, array[j].name))
			return true;
	return false;
}

static int plan_array(struct sl_share_header *header, uint32_t i, char *why, size_t why_bytes)
{
	struct sl_share_array *array = &header->array[i];

	array->bytes = array_bytes(array);
	if (!name_is_valid(array) || named_before(header->array, i))
		return because(-EINVAL, why, why_bytes,
			       "array %u has no name of its own of at most 31 bytes", i);
	if (!array->bytes)
		return because(-EINVAL, why, why_bytes,
			       "array '%s': its type is none of those that shares have, such as "
			       "<u2, <i4, <f4, or a dimension is 0 or too large",
			       array->name);
	array->offset = round_up(header->data_bytes, SL_SHARE_ALIGN);
	header->data_bytes = array->offset + array->bytes;
	if (header->data_bytes > MOST_BYTES)
		return because(-EINVAL, why, why_bytes, "an element is too large");
	return 0;
}

int sl_share_plan(const char *name, const struct sl_share_options *options,
		  struct sl_share_header *header, char *why, size_t why_bytes)
{
	uint64_t notes;
	int err = 0;

	memset(header, 0, sizeof(*header));
	if (options->bytes < sizeof(*options))
		return because(-EINVAL, why, why_bytes,
			       "options.bytes is not sizeof(struct sl_share_options)");
	if (!options->arrays || options->arrays > SL_SHARE_ARRAYS)
		return because(-EINVAL, why, why_bytes, "an element has 1 to %d arrays, not %u",
			       SL_SHARE_ARRAYS, options->arrays);
	if (!options->count || options->count > MOST_BYTES / SL_SHARE_NOTE_BYTES)
		return because(-EINVAL, why, why_bytes, "a ring has at least one place");
	if (options->max_peers > MOST_PEERS)
		return because(-EINVAL, why, why_bytes, "max_peers: at most %d, not %u", MOST_PEERS,
			       options->max_peers);
	if (options->memory_fd < 0 || options->memory_offset > MOST_BYTES)
		return because(-EINVAL, why, why_bytes,
			       options->memory_fd < 0 ? "memory_fd is no descriptor"
						      : "memory_offset is too large");
	header->arrays = options->arrays;
	memcpy(header->array, options->array, options->arrays * sizeof(header->array[0]));
	for (uint32_t i = 0; i < options->arrays && !err; i++)
		err = plan_array(header, i, why, why_bytes);
	if (err)
		return err;
	header->magic = SL_SHARE_MAGIC;
	header->version = SL_SHARE_VERSION;
	header->header_bytes = SL_SHARE_HEADER_BYTES;
	header->note_bytes = SL_SHARE_NOTE_BYTES;
	header->generation = 1;
	header->count = options->count;
	header->stride = round_up(header->data_bytes, header->data_bytes < SL_SHARE_PAGE
							      ? SL_SHARE_ALIGN
							      : SL_SHARE_PAGE);
	if (header->stride > MOST_BYTES / header->count)
		return because(-EINVAL, why, why_bytes, "the ring is too large");
	notes = SL_SHARE_HEADER_BYTES +
		sl_share_pages(header->count * (uint64_t)SL_SHARE_NOTE_BYTES);
	header->in_second = options->memory_fd > 0;
	header->data_offset = header->in_second ? options->memory_offset : notes;
	header->region_bytes =
		header->in_second ? notes : notes + sl_share_pages(header->count * header->stride);
	header->words.state = SL_SHARE_LIVE;
	snprintf(header->name, sizeof(header->name), "%s", name);
	snprintf(header->run, sizeof(header->run), "%s", options->run ? options->run : "");
	return 0;
}

/* ---- checked ---- */

static bool arrays_are_right(const struct sl_share_header *h)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < h->arrays; i++) {
		const struct sl_share_array *array = &h->array[i];

		if (!name_is_valid(array) || named_before(h->array, i) || !array->bytes ||
		    array->bytes != array_bytes(array) || array->offset < end ||
		    array->offset > h->data_bytes || array->bytes > h->data_bytes - array->offset ||
		    array->offset % SL_SHARE_ALIGN)
			return false;
		end = array->offset + array->bytes;
	}
	return true;
}

int sl_share_check(const struct sl_share_header *h, uint64_t region_bytes, uint64_t second_bytes,
		   char *why, size_t why_bytes)
{
	uint64_t notes, room;

	if (region_bytes < SL_SHARE_HEADER_BYTES)
		return because(-EPROTO, why, why_bytes, "it is shorter than a header");
	if (h->magic == __builtin_bswap64(SL_SHARE_MAGIC))
		return because(-EPROTO, why, why_bytes, "its bytes are in another order");
	if (h->magic != SL_SHARE_MAGIC)
		return because(-EPROTO, why, why_bytes, "it is no share");
	if (h->version != SL_SHARE_VERSION)
		return because(-EPROTO, why, why_bytes,
			       "it is of version %u, and this program knows version %d", h->version,
			       SL_SHARE_VERSION);
	if (h->header_bytes != SL_SHARE_HEADER_BYTES || h->note_bytes != SL_SHARE_NOTE_BYTES ||
	    h->region_bytes != region_bytes || h->in_second > 1 ||
	    (h->in_second != 0) != (second_bytes != 0))
		return because(-EPROTO, why, why_bytes, "sizes in its header are wrong");
	if (!h->count || h->count > region_bytes / SL_SHARE_NOTE_BYTES || !h->data_bytes ||
	    h->data_bytes > MOST_BYTES || h->stride < h->data_bytes || h->stride > MOST_BYTES ||
	    h->stride % SL_SHARE_ALIGN)
		return because(-EPROTO, why, why_bytes, "places in its header are wrong");
	notes = SL_SHARE_HEADER_BYTES + sl_share_pages(h->count * (uint64_t)SL_SHARE_NOTE_BYTES);
	room = h->in_second ? second_bytes : region_bytes;
	if (notes > region_bytes || h->data_offset > room || h->data_offset % SL_SHARE_PAGE ||
	    (!h->in_second && h->data_offset < notes) ||
	    h->count > (room - h->data_offset) / h->stride)
		return because(-EPROTO, why, why_bytes,
			       "its memory is smaller than its header says");
	if (!h->arrays || h->arrays > SL_SHARE_ARRAYS || !arrays_are_right(h))
		return because(-EPROTO, why, why_bytes, "arrays in its header are wrong");
	if (!ends(h->name, sizeof(h->name)) || !ends(h->run, sizeof(h->run)))
		return because(-EPROTO, why, why_bytes, "names in its header are wrong");
	return 0;
}

void sl_share_fill_description(const struct sl_share_header *h, struct sl_share_description *d)
{
	memset(d, 0, sizeof(*d));
	d->generation = h->generation;
	d->count = h->count;
	d->data_bytes = h->data_bytes;
	d->arrays = h->arrays;
	memcpy(d->name, h->name, sizeof(d->name));
	memcpy(d->run, h->run, sizeof(d->run));
	memcpy(d->array, h->array, h->arrays * sizeof(d->array[0]));
}

/* ---- order ---- */

#ifdef __has_feature /* clang */
#define NO_FENCES __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define NO_FENCES 1
#else
#define NO_FENCES 0
#endif

#if NO_FENCES /* ThreadSanitizer knows none: every word carries its order itself */
void sl_share_store(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		__atomic_store_n((uint8_t *)to + i, ((const uint8_t *)from)[i], __ATOMIC_RELEASE);
}

void sl_share_load(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = __atomic_load_n((const uint8_t *)from + i, __ATOMIC_ACQUIRE);
}

static void release_fence(void)
{
}

static void acquire_fence(void)
{
}
#else
void sl_share_store(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* Other bytes may come while it copies: the second look says so, and the copy is thrown away. */
void sl_share_load(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* Sequentially consistent on both sides: memcpy() may use streaming stores and string instructions,
 * whose order with other accesses a release fence of x86, which is no instruction, leaves open. */
static void release_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void acquire_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
#endif

void sl_share_claim(struct sl_share_words *words, struct sl_share_place *place, uint64_t n)
{
	__atomic_store_n(&words->claimed, n + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&place->claim, n + 1, __ATOMIC_RELAXED);
	release_fence(); /* pairs with the fence in sl_share_whole() */
}

void sl_share_cancel(struct sl_share_place *place, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		__atomic_store_n(&place[i].claim, UINT64_MAX, __ATOMIC_RELAXED);
	release_fence(); /* pairs with the fence in sl_share_whole() */
}

void sl_share_done(struct sl_share_words *words, struct sl_share_place *place, uint64_t n)
{
	release_fence(); /* of a writer that has filled the place with streaming stores */
	__atomic_store_n(&place->done, n + 1, __ATOMIC_RELEASE);      /* sl_share_look() */
	__atomic_store_n(&words->published, n + 1, __ATOMIC_RELEASE); /* followers' acquire */
}

enum sl_share_look sl_share_look(const struct sl_share_place *place, uint64_t n)
{
	uint64_t done = __atomic_load_n(&place->done, __ATOMIC_ACQUIRE);

	/* No element has that number: its n + 1 is the 0 of a place that was never written. */
	if (n == UINT64_MAX || done < n + 1)
		return SL_SHARE_NOT_YET;
	/* The second comparison only saves a copy that sl_share_whole() would refuse. */
	if (done > n + 1 || __atomic_load_n(&place->claim, __ATOMIC_RELAXED) != n + 1)
		return SL_SHARE_OVERTAKEN;
	return SL_SHARE_THERE;
}

bool sl_share_whole(const struct sl_share_place *place, uint64_t n)
{
	acquire_fence();
	return __atomic_load_n(&place->claim, __ATOMIC_RELAXED) == n + 1;
}
