/* share_remote_fuzz.c - any bytes as what a share and a follower on another host say to each other.
 *
 * The first byte chooses: a greeting, the queue pairs of a follower, an offer of a share, a reason,
 * a place; the second byte of an offer: the rest is XORed over one that is right, so that what
 * lies behind the first checks is reached. What is accepted must agree with itself: every READ that
 * a follower would make of it lies inside what the offer says that there is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "share/remote_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char why[400];

static void require(int good)
{
	if (!good)
		abort();
}

static void try_hello(const void *payload, size_t size)
{
	struct sl_share_remote_hello hello;
	struct sl_proof_terms terms;
	struct sl_wire_proof proof;

	if (sl_share_remote_check_hello(payload, size, &hello, why, sizeof(why)))
		return;
	require(hello.name[0] && strlen(hello.name) < sizeof(hello.name));
	sl_share_remote_terms(&hello, &terms);
	sl_proof_make(SL_PROOF_CONNECTS, "secret", &terms, &proof);
	require(sl_proof_is_right(SL_PROOF_CONNECTS, "secret", &terms, &proof));
	require(!sl_proof_is_right(SL_PROOF_LISTENS, "secret", &terms, &proof));
}

static void check_end(const struct sl_share_remote_end *end)
{
	for (unsigned i = 0; i < SL_SHARE_QUEUES; i++)
		require(end->qpn[i] > 1 && end->qpn[i] < 0xffffff && end->psn[i] <= 0xffffff);
	require(end->port && end->port <= 65535);
	require(end->pmtu >= 256 && end->pmtu <= 4096);
	require(end->nic <= 1 && end->reads <= 255);
}

static void try_end(const void *payload, size_t size)
{
	struct sl_share_remote_end end;

	if (sl_share_remote_check_end(payload, size, true, &end, why, sizeof(why)))
		return;
	check_end(&end);
	require(end.at + sizeof(struct sl_share_remote_line) >= end.at);
}

/* The first and the last place, and their arrays. */
static void check_reads(const struct sl_share_remote_offer *offer)
{
	const struct sl_share_header *h = &offer->header;
	uint64_t last = h->count - 1,
		 room = h->in_second ? offer->second_bytes : offer->region_bytes;

	require(h->count && h->arrays && h->arrays <= SL_SHARE_ARRAYS);
	require(SL_SHARE_HEADER_BYTES + h->count * SL_SHARE_NOTE_BYTES <= offer->region_bytes);
	require(h->data_offset <= room && last * h->stride <= room - h->data_offset);
	require(h->data_bytes <= room - h->data_offset - last * h->stride);
	for (uint32_t i = 0; i < h->arrays; i++)
		require(h->array[i].offset + h->array[i].bytes <= h->data_bytes);
	require(memchr(h->name, 0, sizeof(h->name)) != NULL);
}

static void right_offer(struct sl_share_remote_offer *offer)
{
	const struct sl_share_array array[] = {
		{.name = "image", .type = "<u2", .rank = 2, .dim = {30, 40}},
		{.name = "spots", .type = "<f4", .rank = 2, .ragged = 1, .dim = {10, 2}},
	};
	const struct sl_share_options options = {
		.bytes = sizeof(options), .arrays = 2, .array = array, .count = 9};

	*offer = (struct sl_share_remote_offer){
		.end = {.qpn = {17, 18, 19}, .psn = {1, 2, 3}, .port = 4791, .pmtu = 1024}};
	require(!sl_share_plan("fuzz", &options, &offer->header, why, sizeof(why)));
	offer->region_bytes = offer->header.region_bytes;
}

static void try_offer(const uint8_t *data, size_t size)
{
	static struct sl_share_remote_offer given, offer;
	const void *payload = data;
	size_t bytes = size;

	if (size && data[0] & 1) {
		right_offer(&given);
		for (size_t i = 0; i + 2 < size; i += 3) {
			size_t at = (data[i] << 8 | data[i + 1]) % sizeof(given);

			((uint8_t *)&given)[at] ^= data[i + 2];
		}
		payload = &given;
		bytes = sizeof(given);
	}
	if (sl_share_remote_check_offer(payload, bytes, &offer, why, sizeof(why)))
		return;
	check_end(&offer.end);
	check_reads(&offer);
}

static void try_text(const void *payload, size_t size)
{
	char text[SL_SHARE_REMOTE_TEXT + 1];

	sl_share_remote_text(payload, size, text);
	for (const char *p = text; *p; p++)
		require(*p >= ' ' && *p < 0x7f);
}

static void try_place(const void *payload, size_t size)
{
	char *text = malloc(size + 1), host[SL_SHARE_REMOTE_HOST], name[SL_SHARE_NAME];
	char again[SL_SHARE_REMOTE_HOST + SL_SHARE_NAME + 20], host2[SL_SHARE_REMOTE_HOST],
		name2[SL_SHARE_NAME];
	uint16_t port, port2;

	require(text != NULL);
	memcpy(text, payload, size);
	text[size] = 0;
	if (sl_share_remote_place(text, host, &port, name)) {
		snprintf(again, sizeof(again), strchr(host, ':') ? "[%s]:%u/%s" : "%s:%u/%s", host,
			 port, name);
		require(sl_share_remote_place(again, host2, &port2, name2));
		require(!strcmp(host, host2) && port == port2 && !strcmp(name, name2));
		require(!sl_share_remote_place(again, host2, &port2, NULL));
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const each[])(const void *, size_t) = {try_hello, try_end, try_text,
							     try_place};
	uint8_t *exact;

	if (!size)
		return 0;
	exact = malloc(size); /* so that a byte too far is seen */
	require(exact != NULL);
	memcpy(exact, data + 1, size - 1);
	if (data[0] % 5 < 4)
		each[data[0] % 5](exact, size - 1);
	else
		try_offer(exact, size - 1);
	free(exact);
	return 0;
}
