/* feedback_fuzz.c - any packets as answers to a front end: what is believed is written again as the
 * same bytes, and whatever comes, each event that was sent is answered once or missing.
 *
 * The input is a list of operations: a byte that says which, and its arguments. Packets come as
 * they are, or with the fields that make one believable put right. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "feedback/account.h"
#include "feedback/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ITEMS = 5, WINDOW = 16, MOST = 8, BYTES = SL_FEEDBACK_HEADER + MOST * SL_FEEDBACK_ANSWER };

static void require(int good)
{
	if (!good)
		abort();
}

static void read_and_write_again(const uint8_t *packet, size_t bytes)
{
	struct sl_feedback_header header;
	uint8_t again[SL_FEEDBACK_ANSWER > SL_FEEDBACK_HEADER ? SL_FEEDBACK_ANSWER
							      : SL_FEEDBACK_HEADER];

	if (sl_feedback_read(packet, bytes, &header))
		return;
	require(bytes == SL_FEEDBACK_HEADER + (size_t)header.count * SL_FEEDBACK_ANSWER);
	sl_feedback_write_header(&header, again);
	require(memcmp(again, packet, SL_FEEDBACK_HEADER) == 0);
	for (uint32_t i = 0; i < header.count; i++) {
		struct sl_feedback_answer answer;

		sl_feedback_read_answer(packet, i, &answer);
		require(answer.number == header.first + i &&
			answer.decision < SL_FEEDBACK_DECISIONS);
		sl_feedback_write_answer(&answer, again);
		require(memcmp(again, packet + SL_FEEDBACK_HEADER + (size_t)i * SL_FEEDBACK_ANSWER,
			       SL_FEEDBACK_ANSWER) == 0);
	}
}

/* A packet that is nearly right, out of three bytes. */
static size_t make_packet(const uint8_t script[3], uint8_t *packet)
{
	struct sl_feedback_header header = {
		.packet = script[2], .first = script[0], .items = ITEMS, .count = script[1] % MOST};

	sl_feedback_write_header(&header, packet);
	for (uint32_t i = 0; i < header.count; i++) {
		const struct sl_feedback_answer answer = {.number = header.first + i,
							  .decision = script[1] / MOST % 4};

		sl_feedback_write_answer(&answer, packet + SL_FEEDBACK_HEADER +
							  (size_t)i * SL_FEEDBACK_ANSWER);
	}
	return SL_FEEDBACK_HEADER + (size_t)header.count * SL_FEEDBACK_ANSWER;
}

static void hear(struct sl_feedback_account *a, const uint8_t *packet, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1); /* so that reading on is seen */

	require(copy != NULL);
	memcpy(copy, packet, bytes);
	read_and_write_again(copy, bytes);
	/* As it would be taken out of a block. */
	require(sl_feedback_bytes(copy, bytes) <= bytes);
	read_and_write_again(copy, sl_feedback_bytes(copy, bytes));
	sl_feedback_account_absorb(a);
	sl_feedback_account_packet(a, copy, bytes, 1000);
	free(copy);
}

static void check(struct sl_feedback_account *a)
{
	const struct sl_feedback_account_count *c = &a->count;

	sl_feedback_account_end(a);
	require(c->events == c->frames * ITEMS);
	require(c->kept + c->rejected + c->no_data + c->missing == c->events);
	require(sl_histogram_count(&a->delay) == c->events - c->missing);
	require(atomic_load(&a->outstanding) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_feedback_account a;
	uint8_t packet[BYTES];

	require(sl_feedback_account_init(&a, ITEMS, 1, WINDOW, size & 1, 10) == 0);
	while (size >= 4) {
		uint8_t operation = data[0];
		size_t left = size - 4, bytes = 0;

		if (operation < 80) {
			sl_feedback_account_sent(&a, 0, data[1], data[2]);
		} else if (operation < 160) {
			hear(&a, packet, make_packet(data + 1, packet));
		} else if (operation < 220) { /* with one byte of it wrong */
			bytes = make_packet(data + 1, packet);
			packet[operation % bytes] ^= data[3];
			hear(&a, packet, bytes);
			bytes = 0;
		} else {
			bytes = data[1] < left ? data[1] : left;
			hear(&a, data + 4, bytes);
		}
		data += 4 + bytes;
		size -= 4 + bytes;
	}
	check(&a);
	sl_feedback_account_fini(&a);
	return 0;
}
