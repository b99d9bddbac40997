/* wire.c - decisions as bytes, and back. */
#include "feedback/wire.h"

#include <errno.h>
#include <string.h>

static void put(uint8_t *bytes, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *bytes, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

void sl_feedback_write_header(const struct sl_feedback_header *header,
			      uint8_t bytes[SL_FEEDBACK_HEADER])
{
	put(bytes, SL_FEEDBACK_MAGIC, 4);
	put(bytes + 4, SL_FEEDBACK_VERSION, 2);
	put(bytes + 6, header->flags, 2);
	put(bytes + 8, header->packet, 8);
	put(bytes + 16, header->first, 8);
	put(bytes + 24, header->timestamp, 8);
	put(bytes + 32, header->count, 2);
	put(bytes + 34, SL_FEEDBACK_ANSWER, 2);
	put(bytes + 36, header->items, 4);
}

void sl_feedback_write_answer(const struct sl_feedback_answer *answer,
			      uint8_t bytes[SL_FEEDBACK_ANSWER])
{
	uint32_t score;

	memcpy(&score, &answer->score, sizeof(score));
	put(bytes, answer->number, 8);
	put(bytes + 8, answer->timestamp, 8);
	put(bytes + 16, score, 4);
	put(bytes + 20, answer->reason, 2);
	put(bytes + 22, answer->decision, 2);
}

void sl_feedback_read_answer(const uint8_t *packet, uint32_t i, struct sl_feedback_answer *answer)
{
	const uint8_t *bytes = packet + SL_FEEDBACK_HEADER + (size_t)i * SL_FEEDBACK_ANSWER;
	uint32_t score = (uint32_t)get(bytes + 16, 4);

	answer->number = get(bytes, 8);
	answer->timestamp = get(bytes + 8, 8);
	memcpy(&answer->score, &score, sizeof(score));
	answer->reason = (uint16_t)get(bytes + 20, 2);
	answer->decision = (uint16_t)get(bytes + 22, 2);
}

/* Frames begin at multiples of their events: those of a packet lie in one. */
static int lies_in_a_frame(const struct sl_feedback_header *header)
{
	return header->items && header->count &&
	       header->first % header->items + header->count <= header->items &&
	       header->first <= UINT64_MAX - header->count;
}

size_t sl_feedback_bytes(const uint8_t *block, size_t bytes)
{
	size_t n = bytes < SL_FEEDBACK_HEADER
			   ? SIZE_MAX
			   : SL_FEEDBACK_HEADER + (size_t)get(block + 32, 2) * SL_FEEDBACK_ANSWER;

	return n <= bytes ? n : 0;
}

int sl_feedback_read(const uint8_t *packet, size_t bytes, struct sl_feedback_header *header)
{
	if (bytes < SL_FEEDBACK_HEADER || get(packet, 4) != SL_FEEDBACK_MAGIC ||
	    get(packet + 4, 2) != SL_FEEDBACK_VERSION || get(packet + 34, 2) != SL_FEEDBACK_ANSWER)
		return -EBADMSG;
	*header = (struct sl_feedback_header){
		.flags = (uint16_t)get(packet + 6, 2),
		.packet = get(packet + 8, 8),
		.first = get(packet + 16, 8),
		.timestamp = get(packet + 24, 8),
		.count = (uint16_t)get(packet + 32, 2),
		.items = (uint32_t)get(packet + 36, 4),
	};
	if (bytes != SL_FEEDBACK_HEADER + (size_t)header->count * SL_FEEDBACK_ANSWER ||
	    !lies_in_a_frame(header))
		return -EBADMSG;
	for (uint32_t i = 0; i < header->count; i++) {
		struct sl_feedback_answer answer;

		sl_feedback_read_answer(packet, i, &answer);
		if (answer.number != header->first + i || answer.decision >= SL_FEEDBACK_DECISIONS)
			return -EBADMSG;
	}
	return 0;
}
