/* rows.c - which rows there are. A row's name says what it is:
 *
 *   sluice/LINK/SERVICE/BYTES    lines of BYTES into frames of 8 MiB in a ring of 512 MiB; 8246 and
 *                                8388608: each line or frame is one message with its own event
 *   sluice/LINK/BYTES            packets of a native detector: BYTES after its header, into
 *                                modules of about 1 MiB
 *   PEER/HOW/BYTES               the same bytes by other means
 *   .../one, .../queues-N, .../no-icrc-check, .../events: variants, docs/reference/benchmarks.md
 *   .../cut                      over a veth pair that cuts and merges nothing, else over lo
 *   .../nocsum                   the sender leaves the UDP checksum 0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/record.h>

#include "bench/bench.h"
#include "core/registry.h"

#define RING   (UINT64_C(512) << 20)
#define FRAME  (UINT64_C(8) << 20)
#define MODULE (UINT64_C(1) << 20)

enum {
	LINE = 4096,
	NATIVE = 8192,		/* of a Jungfrau */
	EVENTS = 960,		/* 20 of a RICH */
	SMALL_RING = 256 << 10, /* of /one: four slots, which stay in the cache */
	SMALL_BLOCK = 60 << 10,
	DATAGRAM_MAX = 65000,
	CHUNK = 64 << 10, /* of a module, before the next has its turn: what udp has under way */
};

/* Where and how it exists: each is a row. */
enum {
	LO = 1 << 0,
	CUT = 1 << 1,
	NOCSUM = 1 << 2,
	CUT_NOCSUM = 1 << 3,
	EVERY_WAY = LO | CUT | NOCSUM
};

static const struct {
	unsigned way;
	const char *suffix;
	bool cut, nocsum;
} ways[] = {
	{LO, "", false, false},
	{CUT, "/cut", true, false},
	{NOCSUM, "/nocsum", false, true},
	{CUT_NOCSUM, "/cut/nocsum", true, true},
};

static struct sl_bench_row *append(struct sl_bench *bench)
{
	if (bench->rows == bench->capacity) {
		unsigned capacity = bench->capacity ? 2 * bench->capacity : 64;
		struct sl_bench_row *row = realloc(bench->row, capacity * sizeof(*row));

		if (!row)
			return NULL;
		bench->row = row;
		bench->capacity = capacity;
	}
	return &bench->row[bench->rows];
}

static bool exists(const struct sl_bench *bench, const char *name)
{
	for (unsigned i = 0; i < bench->rows; i++)
		if (!strcmp(bench->row[i].name, name))
			return true;
	return false;
}

/* The row in each of these ways, as far as it is wanted. */
static int add(struct sl_bench *bench, const struct sl_bench_row *like, unsigned set,
	       const char *format, ...)
{
	char name[SL_BENCH_NAME - 16];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		struct sl_bench_row *row;
		unsigned o = 0;

		if (!(set & ways[w].way))
			continue;
		row = append(bench);
		if (!row)
			return -ENOMEM;
		*row = *like;
		snprintf(row->name, sizeof(row->name), "%s%s", name, ways[w].suffix);
		row->cut = ways[w].cut;
		row->nocsum = ways[w].nocsum;
		while (row->option[o][0])
			o++;
		if (row->nocsum && row->link) {
			row->option[o][0] = "checksum";
			row->option[o][1] = "false";
		}
		if (!row->ring_bytes)
			row->ring_bytes = RING;
		if (!exists(bench, row->name) &&
		    (!bench->o.only[0] || fnmatch(bench->o.only, row->name, 0) == 0) &&
		    (!bench->o.compared || sl_bench_compared(row->name)))
			bench->rows++;
	}
	return 0;
}

static struct sl_bench_row line(const struct sl_link *link, uint16_t service, uint64_t bytes)
{
	bool whole = bytes != 2048 && bytes != LINE; /* longer than packets: a message each */

	return (struct sl_bench_row){
		.link = link,
		.service = service,
		.message = whole ? SL_MESSAGE_MODULE : SL_MESSAGE_PACKET,
		.pmtu = (uint16_t)(whole ? LINE : bytes),
		.queues = 1,
		.block_bytes = whole ? bytes : FRAME,
	};
}

/* The variants of lines of 4096 bytes over UC. */
static int add_variants(struct sl_bench *bench, const struct sl_link *link, unsigned set)
{
	static const uint32_t queues[] = {8, 32};
	struct sl_bench_row row = line(link, SL_SERVICE_UC, LINE);
	int err = 0;

	if (sl_option_find(link->options, "icrc")) {
		row.option[0][0] = "icrc";
		row.option[0][1] = "ignore";
		err = add(bench, &row, set, "sluice/%s/uc/4096/no-icrc-check", link->name);
	}
	row = line(link, SL_SERVICE_UC, LINE);
	row.ring_bytes = SMALL_RING;
	row.block_bytes = SMALL_BLOCK;
	if (!err)
		err = add(bench, &row, set, "sluice/%s/uc/4096/one", link->name);
	for (unsigned i = 0; i < 2 && !err; i++) {
		row = line(link, SL_SERVICE_UC, LINE);
		row.queues = queues[i];
		row.block_bytes = FRAME / queues[i];
		err = add(bench, &row, set, "sluice/%s/uc/4096/queues-%u", link->name, queues[i]);
	}
	return err;
}

static int add_latency(struct sl_bench *bench, const struct sl_link *link, unsigned set)
{
	struct sl_bench_row row = line(link, SL_SERVICE_UC, LINE);

	row.message = link->message;
	row.block_bytes = LINE;
	row.ring_bytes = UINT64_C(4) << 20;
	row.latency = true;
	return add(bench, &row, set, "sluice/%s/latency/4096", link->name);
}

/* An RDMA device has one address, that of --address, and no namespace. */
static int add_nic(struct sl_bench *bench, const struct sl_link *link)
{
	struct sl_bench_row row = line(link, SL_SERVICE_UC, LINE);
	int err;

	row.why = link->unavailable ? link->unavailable() : NULL;
	row.message = link->message;
	err = add(bench, &row, LO, "sluice/%s/uc/4096", link->name);
	row.service = SL_SERVICE_RC;
	if (!err)
		err = add(bench, &row, LO, "sluice/%s/rc/4096", link->name);
	return err || row.why ? err : add_latency(bench, link, LO);
}

/* Half of the cores receive and half send, where the link has work for several threads that
 * receive; else one receives and all others send. */
static int add_cores(struct sl_bench *bench, const struct sl_link *link,
		     const struct sl_bench_row *like, const char *name)
{
	static const unsigned cores[] = {4, 8, 16};
	int err = 0;

	for (unsigned i = 0; i < 3 && !err; i++) {
		struct sl_bench_row row = *like;
		unsigned most = link->pollers ? link->pollers : 1;

		row.pollers = cores[i] / 2 < most ? cores[i] / 2 : most;
		row.sources = cores[i] - row.pollers;
		row.queues = cores[i] > 8 ? 16 : 8;
		row.block_bytes = MODULE + SL_RECORD_BYTES;
		err = add(bench, &row, LO, "%s/%ucores", name, cores[i]);
	}
	return err;
}

/* Modules of 1 MiB, in as much memory whatever their number. */
static int add_modules(struct sl_bench *bench, const struct sl_bench_row *like, const char *name)
{
	static const uint32_t modules[] = {1, 2, 4, 8, 16, 32};
	int err = 0;

	for (unsigned i = 0; i < sizeof(modules) / sizeof(modules[0]) && !err; i++) {
		struct sl_bench_row row = *like;

		row.queues = modules[i];
		row.block_bytes = MODULE + SL_RECORD_BYTES;
		err = add(bench, &row, LO, "%s/modules-%u", name, modules[i]);
	}
	return err;
}

/* Many cores, many modules. */
static int add_many(struct sl_bench *bench, const struct sl_link *link, uint64_t bytes)
{
	struct sl_bench_row row = line(link, SL_SERVICE_UC, bytes);
	bool roce = !strcmp(link->wire, "roce");
	char name[SL_BENCH_NAME - 32];
	int err;

	if (!roce)
		row.message = link->message;
	row.pmtu = LINE;
	snprintf(name, sizeof(name), roce ? "sluice/%s/uc/4096" : "sluice/%s/1048576", link->name);
	err = add_cores(bench, link, &row, name);
	return err ? err : add_modules(bench, &row, name);
}

static int add_roce(struct sl_bench *bench, const struct sl_link *link)
{
	static const uint64_t bytes[] = {2048, LINE, 8246, FRAME};
	unsigned set = sl_option_find(link->options, "checksum") ? EVERY_WAY : LO | CUT;
	const char *why = link->unavailable ? link->unavailable() : NULL;
	struct sl_bench_row row;
	int err = 0;

	for (unsigned i = 0; i < 4 && !err; i++) {
		unsigned more = i == 1 && set == EVERY_WAY ? CUT_NOCSUM : 0;

		row = line(link, SL_SERVICE_UC, bytes[i]);
		row.why = why;
		if (!why || i == 1)
			err = add(bench, &row, set | more, "sluice/%s/uc/%llu", link->name,
				  (unsigned long long)bytes[i]);
	}
	row = line(link, SL_SERVICE_RC, LINE);
	row.why = why;
	if (!err)
		err = add(bench, &row, set, "sluice/%s/rc/4096", link->name);
	if (!err && !why)
		err = add_variants(bench, link, set);
	if (!err && !link->unavailable) /* udp; others have one of the paths */
		err = add_many(bench, link, LINE);
	return err || why ? err : add_latency(bench, link, set);
}

/* A native detector: nothing goes back, so the source is told by other means how far it may go. */
static int add_native(struct sl_bench *bench, const struct sl_link *link)
{
	bool events = !strcmp(link->name, "nanet");
	uint16_t payload = events ? EVENTS : NATIVE;
	struct sl_bench_row row = {
		.link = link,
		.service = SL_SERVICE_UC,
		.message = link->message,
		.pmtu = payload,
		.queues = 1,
		.block_bytes = MODULE / payload * payload,
	};

	return add(bench, &row, EVERY_WAY | CUT_NOCSUM, "sluice/%s/%u", link->name, payload);
}

static int add_shm(struct sl_bench *bench, const struct sl_link *link)
{
	static const uint64_t bytes[] = {LINE, FRAME};
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++) {
		struct sl_bench_row row = line(link, SL_SERVICE_UC, bytes[i]);

		row.message = link->message;
		row.pmtu = LINE;
		row.block_bytes = bytes[i];
		err = add(bench, &row, LO, "sluice/%s/%llu", link->name,
			  (unsigned long long)bytes[i]);
	}
	if (!err)
		err = add_many(bench, link, FRAME);
	return err ? err : add_latency(bench, link, LO);
}

static int add_peer(struct sl_bench *bench, const char *program, const char *mode, uint64_t bytes,
		    bool latency, unsigned set, const char *name)
{
	struct sl_bench_row row = {
		.program = program, .mode = mode, .bytes = bytes, .latency = latency};

	return latency ? add(bench, &row, set, "%s", name)
		       : add(bench, &row, set, "%s/%llu", name, (unsigned long long)bytes);
}

static int add_peers(struct sl_bench *bench)
{
	static const struct {
		const char *program, *mode, *name;
		uint64_t bytes;
		unsigned set;
		bool latency;
	} peers[] = {
		{"peer_zmq", "push", "zeromq/pushpull", 4096, LO | CUT, false},
		{"peer_zmq", "push", "zeromq/pushpull", 1 << 20, LO | CUT, false},
		{"peer_udp", "recv", "sockets/recv", 4096, EVERY_WAY, false},
		{"peer_udp", "recvmmsg", "sockets/recvmmsg", 2048, EVERY_WAY, false},
		{"peer_udp", "recvmmsg", "sockets/recvmmsg", 4096, EVERY_WAY, false},
		{"peer_udp", "recv-copy", "sockets/recv-copy", 8192, EVERY_WAY | CUT_NOCSUM, false},
		{"peer_udp", "recv-copy", "sockets/recv-copy", 960, EVERY_WAY | CUT_NOCSUM, false},
		{"peer_ucx", "put", "ucx/tcp-put", 4096, LO, false},
		{"peer_fabric", "write", "libfabric/tcp-write", 4096, LO, false},
		{"peer_memcpy", "copy", "memcpy", 8 << 20, LO, false},
		{"peer_udp", "pingpong", "sockets/udp-pingpong", 4096, EVERY_WAY, true},
		{"peer_zmq", "pingpong", "zeromq/pingpong", 4096, LO | CUT, true},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]) && !err; i++)
		err = add_peer(bench, peers[i].program, peers[i].mode, peers[i].bytes,
			       peers[i].latency, peers[i].set, peers[i].name);
	return err;
}

/* What the memory gives one core that copies in as many streams. */
static int add_streams(struct sl_bench *bench, uint64_t bytes)
{
	static const uint32_t streams[] = {1, 2, 4, 8, 16, 32};
	int err = 0;

	for (unsigned i = 0; i < sizeof(streams) / sizeof(streams[0]) && !err; i++) {
		struct sl_bench_row row = {.program = "peer_memcpy",
					   .mode = "streams",
					   .bytes = bytes,
					   .queues = streams[i]};

		err = add(bench, &row, LO, "memcpy/%llu/streams-%u", (unsigned long long)bytes,
			  streams[i]);
	}
	return err;
}

/* Throughput against the length of a message, every message with its own event. */
static int add_length(struct sl_bench *bench, const struct sl_link *link, uint64_t bytes)
{
	struct sl_bench_row row = line(link, SL_SERVICE_UC, bytes);
	bool roce = !strcmp(link->wire, "roce");

	if (link->oneway || (roce && !(link->guards & SL_GUARD_ENFORCED)))
		return 0; /* packets of one length; a NIC: see add_nic() */
	if ((link->unavailable && link->unavailable()) || (bytes <= SL_RECORD_BYTES && !link->bare))
		return 0;
	row.message = roce && bytes <= LINE ? SL_MESSAGE_PACKET : SL_MESSAGE_MODULE;
	row.pmtu = LINE;
	row.block_bytes = bytes;
	return add(bench, &row, roce ? LO | CUT : LO, "sluice/%s/%s%llu/events", link->name,
		   roce ? "uc/" : "", (unsigned long long)bytes);
}

static int add_sweep(struct sl_bench *bench)
{
	int err = 0;

	for (uint64_t bytes = 64; bytes <= FRAME && !err; bytes *= 4) {
		if (bytes == FRAME / 2) /* 64 * 4^n misses it by a factor of two */
			bytes = FRAME;
		for (size_t i = 0; sl_links[i] && !err; i++)
			err = add_length(bench, sl_links[i], bytes);
		if (!err)
			err = add_peer(bench, "peer_zmq", "push", bytes, false, LO | CUT,
				       "zeromq/pushpull");
		if (!err && bytes <= DATAGRAM_MAX)
			err = add_peer(bench, "peer_udp", "recvmmsg", bytes, false, LO,
				       "sockets/recvmmsg");
		if (!err)
			err = add_peer(bench, "peer_memcpy", "copy", bytes, false, LO, "memcpy");
	}
	return err;
}

int sl_bench_rows(struct sl_bench *bench)
{
	int err = 0;

	for (size_t i = 0; sl_links[i] && !err; i++)
		err = sl_links[i]->oneway			? add_native(bench, sl_links[i])
		      : strcmp(sl_links[i]->wire, "roce") != 0	? add_shm(bench, sl_links[i])
		      : sl_links[i]->guards & SL_GUARD_ENFORCED ? add_roce(bench, sl_links[i])
								: add_nic(bench, sl_links[i]);
	if (!err)
		err = add_peers(bench);
	if (!err)
		err = add_streams(bench, MODULE);
	if (!err)
		err = add_streams(bench, CHUNK);
	return err || !bench->o.sweep ? err : add_sweep(bench);
}
