/* icrc.c - the check of every packet's ICRC, as the receiving link does it, over packets that are
 * in the cache, as they are when the kernel has just copied them. */
#include "roce/icrc.h"
#include "base/crc.h"
#include "bench/peer/peer.h"
#include "roce/requester.h"

#define USAGE "bench_icrc isal|portable PACKETS"

enum { PMTU = 4096, PACKETS = 64, ROOM = SL_ROCE_HEADERS_MAX + PMTU + SL_ROCE_TRAILER_MAX };

static uint8_t packets[PACKETS][ROOM];

/* One WRITE_ONLY packet; its length. */
static size_t make_packet(const struct sl_roce_path *path, uint32_t number, uint8_t *packet)
{
	static uint8_t payload[PMTU];
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = SL_ROCE_KIND_WRITE,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = PMTU,
		.qpn = 0x1234,
		.psn = number,
		.rkey = 0x5678,
		.va = (uint64_t)number * PMTU,
		.bytes = PMTU,
	};
	struct sl_roce_piece piece = {payload, PMTU};
	struct sl_roce_requester requester;
	struct sl_roce_fragment fragment;

	for (uint32_t i = 0; i < PMTU; i++)
		payload[i] = (uint8_t)(i * 31 + number * 7);
	if (sl_roce_requester_begin(&requester, &message) ||
	    !sl_roce_requester_next(&requester, packet, &fragment))
		abort();
	memcpy(packet + fragment.header_bytes, payload, PMTU);
	return fragment.header_bytes + PMTU +
	       sl_roce_seal(path, packet, fragment.header_bytes, &piece, 1, sl_crc32,
			    packet + fragment.header_bytes + PMTU);
}

int main(int argc, char **argv)
{
	struct sl_roce_path path = {.source = {[10] = 0xff, 0xff, 127, 0, 0, 1},
				    .dest = {[10] = 0xff, 0xff, 127, 0, 0, 1},
				    .source_port = 50000,
				    .dest_port = SL_ROCE_UDP_PORT,
				    .dont_fragment = true};
	uint64_t count, good = 0;
	sl_roce_crc32 *crc32;
	double start, seconds;
	size_t bytes = 0;

	if (argc != 3 || (strcmp(argv[1], "isal") && strcmp(argv[1], "portable")))
		bench_usage(USAGE);
	crc32 = strcmp(argv[1], "isal") ? sl_roce_crc32_portable : sl_crc32;
	count = bench_number(argv[2], USAGE);
	for (uint32_t i = 0; i < PACKETS; i++)
		bytes = make_packet(&path, i, packets[i]);
	start = bench_now_s();
	for (uint64_t i = 0; i < count; i++)
		good += sl_roce_icrc_check(&path, packets[i % PACKETS], bytes, crc32);
	seconds = bench_now_s() - start;
	if (good != count) {
		fprintf(stderr, "%llu good packets did not pass\n",
			(unsigned long long)(count - good));
		return 1;
	}
	printf("{\"GB_per_s\": %.6f, \"packets_per_s\": %.1f, \"seconds\": %.6f}\n",
	       1e-9 * (double)count * PMTU / seconds, (double)count / seconds, seconds);
	return 0;
}
