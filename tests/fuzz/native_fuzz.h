/* native_fuzz.h - any datagrams on the ports of a native UDP link: nothing is written into a block
 * that a reader owns, and a block that is called whole has a record that says so.
 *
 * The input is a script: a byte that says what happens, and what that needs. Datagrams travel over
 * loopback, so that the kernel scatters them as it would in a run. */
#ifndef TESTS_FUZZ_NATIVE_FUZZ_H
#define TESTS_FUZZ_NATIVE_FUZZ_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/log.h"
#include "core/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SLOTS = 4, LINES = 8, LINE = 40, PIXELS = LINES * LINE, PAYLOAD = 80, SCRIPT = 12 };

struct fuzz_format {
	const struct sl_link *link;
	const char *option[6][2];
	unsigned ports, first_port, header_bytes;
	unsigned payload; /* 0: PAYLOAD */
	/* What the link is told of the detector (core/link_env.h). Packed pixels: bits of each. */
	uint32_t bits, pixel_bytes, unread_rows;
	/* A header that is right, but for what the script changes. */
	void (*header)(const struct fuzz_format *format, unsigned port,
		       const uint8_t script[SCRIPT], uint8_t *bytes);
};

struct fuzz {
	const struct fuzz_format *format;
	struct sl_region region;
	struct sl_bell bell;
	struct sl_ring ring;
	struct sl_wake wake;
	struct sl_link_counters counters;
	void *state;
	int fd;
	char address[32];
	uint64_t oldest;			/* sequence that was not released */
	bool closed;				/* it is the reader's */
	uint8_t kept[PIXELS + SL_RECORD_BYTES]; /* as it was then */
};

static void require(int good)
{
	if (!good)
		abort();
}

static void set(struct fuzz *f, const char *name, const char *text)
{
	const struct sl_option *option = sl_option_find(f->format->link->options, name);
	char why[128];

	require(option && sl_option_set(option, f->state, text, why, sizeof(why)) == 0);
}

static void open_link(struct fuzz *f, const struct fuzz_format *format)
{
	struct sl_link_env env = {.ring = &f->ring,
				  .pollers = 1,
				  .wake = &f->wake,
				  .counters = &f->counters,
				  .service = SL_SERVICE_UC,
				  .operation = SL_OPERATION_WRITE,
				  .message = format->link->message,
				  .pmtu = 4096,
				  .bits = format->bits,
				  .pixel_bytes = format->pixel_bytes,
				  .unread_rows = format->unread_rows};
	unsigned pid = (unsigned)getpid();

	sl_log_level(SL_LOG_ERROR);
	f->format = format;
	f->wake.fd = eventfd(0, EFD_NONBLOCK);
	f->fd = socket(AF_INET, SOCK_DGRAM, 0);
	f->state = calloc(1, format->link->state_bytes);
	require(f->state && f->fd >= 0);
	sl_options_defaults(format->link->options, f->state);
	snprintf(f->address, sizeof(f->address), "127.%u.%u.%u", 101 + pid / 62500 % 100,
		 1 + pid / 250 % 250, 1 + pid % 250);
	set(f, "listen", f->address);
	for (unsigned i = 0; i < 6 && format->option[i][0]; i++)
		set(f, format->option[i][0], format->option[i][1]);
	require(format->link->open(f->state, &env) == 0);
	require(sl_region_open(SL_REGION_HOST, sl_ring_region_bytes(SLOTS, 1, PIXELS),
			       &f->region) == 0);
}

/* A ring in which nothing has happened, and ports to go with it. */
static void begin(struct fuzz *f)
{
	const struct sl_lines lines = {.count = LINES, .bytes = LINE};
	struct sl_offer offer = {
		.block_bytes = PIXELS, .lines = LINES, .line_bytes = LINE, .frames = 1000};
	struct sl_plan plan;

	require(sl_ring_init_lines(&f->ring, &f->region, &f->bell, SLOTS, 1, &lines) == 0);
	require(f->format->link->receiving->offer(f->state, &offer) == 0);
	require(f->format->link->receiving->accept(f->state, &offer, &plan) == 0);
	sl_ring_open(&f->ring, UINT64_MAX);
	f->oldest = 0;
	f->closed = false;
}

static unsigned payload_of(const struct fuzz_format *format)
{
	return format->payload ? format->payload : PAYLOAD;
}

/* All packets came, and packed pixels have no more bits than they can. */
static void check_whole(const struct fuzz *f, uint64_t sequence)
{
	const struct fuzz_format *format = f->format;
	uint32_t spare = 8 * format->pixel_bytes - format->bits;
	uint64_t bytes = format->bits ? PIXELS / format->pixel_bytes * format->bits / 8 : PIXELS;
	const uint8_t *block = sl_ring_block(&f->ring, sequence, 0);

	require(sl_ring_packets(&f->ring, sequence, 0) == bytes / payload_of(format));
	for (unsigned i = 0; spare && i < PIXELS; i++)
		require((i + 1) % format->pixel_bytes || block[i] >> (8 - spare) == 0);
}

static void look(struct fuzz *f)
{
	uint64_t ns;

	while (f->format->link->receiving->poll(f->state, 0, 64) > 0)
		continue;
	if (f->closed)
		require(!memcmp(f->kept, sl_ring_block(&f->ring, f->oldest, 0), sizeof(f->kept)));
	for (uint64_t k = f->oldest; k < f->oldest + SLOTS; k++)
		if (sl_ring_event(&f->ring, k, 0, &ns)) {
			struct sl_record record;

			memcpy(&record, sl_ring_record(&f->ring, k, 0), sizeof(record));
			require(sl_record_valid(&record) && record.sequence == k);
			check_whole(f, k);
		}
}

static void transmit(struct fuzz *f, unsigned port, const uint8_t *data, size_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)(f->format->first_port + port))};

	require(inet_pton(AF_INET, f->address, &to.sin_addr) == 1);
	require(sendto(f->fd, data, bytes, 0, (struct sockaddr *)&to, sizeof(to)) >= 0);
}

static void give_back(struct fuzz *f)
{
	if (!f->closed) {
		sl_ring_close(&f->ring, f->oldest, 0);
		memcpy(f->kept, sl_ring_block(&f->ring, f->oldest, 0), sizeof(f->kept));
		f->closed = true;
		return;
	}
	sl_ring_release(&f->ring, f->oldest++, 0);
	f->closed = false;
	sl_ring_open(&f->ring, UINT64_MAX);
}

/* One step; how many bytes of the script it took. */
static size_t step(struct fuzz *f, const uint8_t *script, size_t size)
{
	unsigned port = script[0] >> 3 & 3;
	uint8_t packet[64 + PAYLOAD + 8] = {0}, fields[SCRIPT] = {0};
	size_t rest = size - 1, bytes, payload = payload_of(f->format);

	port = port < f->format->ports ? port : 0;
	switch (script[0] & 7) {
	case 0:
		look(f);
		return 1;
	case 1:
		look(f);
		give_back(f);
		return 1;
	case 2: /* any bytes */
		bytes = rest < sizeof(packet) ? rest : sizeof(packet);
		bytes = rest && script[1] < bytes ? script[1] : bytes;
		transmit(f, port, script + 1, bytes);
		return 1 + bytes;
	default: /* a header that is nearly right; bit 5: and of another length */
		bytes = rest < SCRIPT ? rest : SCRIPT;
		memcpy(fields, script + 1, bytes);
		f->format->header(f->format, port, fields, packet);
		memset(packet + f->format->header_bytes, script[0], payload);
		transmit(f, port, packet,
			 f->format->header_bytes + payload -
				 (script[0] & 32 ? fields[0] % (payload + 10) : 0));
		return 1 + bytes;
	}
}

/* opened: NULL the first time. */
static int run_script(const struct fuzz_format *format, struct fuzz **opened, const uint8_t *data,
		      size_t size)
{
	struct fuzz *f = *opened;

	if (!f) {
		f = *opened = aligned_alloc(64, (sizeof(*f) + 63) / 64 * 64);
		require(f != NULL);
		memset(f, 0, sizeof(*f));
		open_link(f, format);
	}
	begin(f);
	for (size_t at = 0; at < size;)
		at += step(f, data + at, size - at);
	look(f);
	format->link->receiving->drop(f->state, 0);
	sl_ring_fini(&f->ring);
	return 0;
}

#endif
