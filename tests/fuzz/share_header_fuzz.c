/* share_header_fuzz.c - any bytes as the memory of a share: a header is refused in words, or a
 * follower that believes it reads nothing outside of that memory, whatever words and notes say. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "share/follower.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIX_MAGIC = 1, FIX_REGION = 2, FIX_LIVE = 4, CONTROL = 4 };

static void require(int good)
{
	if (!good)
		abort();
}

/* Exactly as large as it is, so that a byte too far is seen. */
static uint8_t *make(uint64_t bytes)
{
	uint8_t *at = aligned_alloc(64, bytes);

	require(at != NULL);
	memset(at, 0, bytes);
	return at;
}

static void check_element(const struct sl_follower *f, const struct sl_follow_element *element)
{
	for (uint32_t i = 0; i < f->description.arrays; i++) {
		const struct sl_share_array *array = &f->description.array[i];

		require(array->offset + array->bytes <= f->description.data_bytes);
		require(!array->ragged || element->note.rows[i] <= array->dim[0]);
	}
}

static void follow(struct sl_follower *f, const uint8_t *data)
{
	uint64_t bytes = f->description.data_bytes, p = f->words->published;
	const uint64_t asked[] = {0, f->first, p - 1, p - f->memory.count, UINT64_MAX - 1};
	uint8_t *into = make((bytes + 63) / 64 * 64), sum = 0;
	struct sl_follow_element element;

	for (unsigned i = 0; i < 4; i++) {
		enum sl_follow_mode mode = data[3] >> i & 1 ? SL_FOLLOW_NEWEST : SL_FOLLOW_EVERY;

		if (!sl_follow_next(f, mode, 0, into, bytes, &element))
			check_element(f, &element);
		if (!sl_follow_peek(f, mode, 0, &element))
			for (uint64_t j = 0; j < bytes; j++)
				sum += ((const volatile uint8_t *)element.data)[j];
		f->next = f->first;
	}
	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		if (!sl_follow_fetch(f, asked[i], bytes / 2, 0, into, &element))
			check_element(f, &element);
		(void)sl_follow_is_valid(f, asked[i]);
	}
	(void)sum;
	free(into);
}

static void believe(struct sl_share_header *header, uint8_t *second, const uint8_t *data)
{
	uint8_t *base = header->in_second ? second : (uint8_t *)header;
	struct sl_follower f = {.ops = &sl_follower_here, .socket = -1};

	f.memory = (struct sl_share_memory){
		.header = header,
		.place = (struct sl_share_place *)((uint8_t *)header + SL_SHARE_HEADER_BYTES),
		.data = base + header->data_offset,
		.stride = header->stride,
		.count = header->count,
		.fd = -1,
		.second_fd = -1,
	};
	f.words = &header->words;
	f.first = f.next = header->first;
	sl_share_out_init(&f.out);
	sl_share_inbox_init(&f.inbox);
	sl_share_fill_description(header, &f.description);
	follow(&f, data);
	sl_share_out_fini(&f.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t region, second, bytes;
	struct sl_share_header *header;
	uint8_t *memory, *other;
	char why[200] = "";
	int err;

	if (size < CONTROL)
		return 0;
	region = (2 + data[1] % 30) * (uint64_t)SL_SHARE_PAGE;
	second = data[2] % 4 * (uint64_t)SL_SHARE_PAGE;
	memory = make(region);
	other = second ? make(second) : NULL;
	bytes = size - CONTROL < sizeof(*header) ? size - CONTROL : sizeof(*header);
	memcpy(memory, data + CONTROL, bytes);
	size -= CONTROL + bytes; /* what is left are notes */
	memcpy(memory + SL_SHARE_HEADER_BYTES, data + CONTROL + bytes,
	       size < region - SL_SHARE_HEADER_BYTES ? size : region - SL_SHARE_HEADER_BYTES);
	header = (struct sl_share_header *)memory;
	if (data[0] & FIX_MAGIC) {
		header->magic = SL_SHARE_MAGIC;
		header->version = SL_SHARE_VERSION;
		header->header_bytes = SL_SHARE_HEADER_BYTES;
		header->note_bytes = SL_SHARE_NOTE_BYTES;
	}
	if (data[0] & FIX_REGION) {
		header->region_bytes = region;
		header->in_second = second != 0;
	}
	if (data[0] & FIX_LIVE)
		header->words.state = SL_SHARE_LIVE;
	err = sl_share_check(header, region, second, why, sizeof(why));
	require(err == 0 || (err == -EPROTO && why[0]));
	if (!err)
		believe(header, other, data);
	free(memory);
	free(other);
	return 0;
}
