/* feroce_fuzz.c - any bytes on the ports of FEROCE devices: what decodes encodes to the same bytes;
 * and whatever devices say, in whatever order, each module ends once, after the start, and what
 * goes out are messages.
 *
 * The input is a script: a byte that says what happens, and what that needs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "control/feroce/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODULES = 2, PACKETS = 3, FRAMES = 5, IP = 0x0a000000 };

struct world {
	struct sl_feroce_host host;
	struct sl_progress seen[MODULES];
	unsigned plans, ends[MODULES];
	uint16_t transfers;
	bool open[65536]; /* by transfer */
};

static void require(int good)
{
	if (!good)
		abort();
}

static void note(void *arg, uint32_t ip, uint16_t port, const struct sl_feroce_message *message)
{
	struct sl_feroce_message again;
	uint8_t bytes[SL_FEROCE_BYTES];

	sl_feroce_encode(message, bytes);
	require(sl_feroce_decode(bytes, sizeof(bytes), &again) == 0);
	require(port && message->info && message->port);
	require((ip & ~3u) == IP);
}

static int accept_offer(void *arg, const struct sl_offer *offer, bool same_host,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct world *w = arg;

	require(offer->module < MODULES && offer->psn_plus_1 <= 0x1000000);
	if (w->transfers == UINT16_MAX)
		return -1;
	w->open[w->transfers] = true;
	*plan = (struct sl_plan){.version = SL_PLAN_VERSION,
				 .transfer = w->transfers,
				 .module = offer->module,
				 .operation = SL_OPERATION_WRITE,
				 .qpn = 16 + w->transfers % 4, /* numbers are used again */
				 .slots = 4,
				 .packets = PACKETS};
	w->transfers++;
	w->plans++;
	return 0;
}

static int meet(void *arg, uint16_t transfer, uint32_t qpn)
{
	struct world *w = arg;

	require(w->open[transfer] && qpn >= 2 && qpn <= 0xffffff);
	return 0;
}

static void look(void *arg, uint32_t module, struct sl_progress *seen)
{
	*seen = ((struct world *)arg)->seen[module];
	seen->packets_whole = PACKETS;
}

static void over(struct world *w, uint32_t module)
{
	require(w->host.started && module < MODULES);
	require(!w->ends[module]++);
}

static int count(void *arg, uint32_t module, uint64_t next, uint64_t sent, uint64_t position,
		 bool final, char *why, size_t why_bytes)
{
	require(next == FRAMES);
	over(arg, module);
	return 0;
}

static void withdraw(void *arg, uint16_t transfer)
{
	struct world *w = arg;

	require(w->open[transfer] && !w->host.started);
	w->open[transfer] = false;
	w->plans--;
}

static void end_or_gone(void *arg, uint32_t module)
{
	over(arg, module);
}

static void limit(void *arg, uint64_t sequence)
{
}

static const struct sl_control_ops ops = {
	.accept = accept_offer,
	.set_queue = meet,
	.cancel_plan = withdraw,
	.count = count,
	.end = end_or_gone,
	.source_lost = end_or_gone,
	.limit = limit,
	.progress = look,
};

static void check_codec(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1), bytes[SL_FEROCE_BYTES];
	struct sl_feroce_message message;

	require(exact != NULL);
	memcpy(exact, data, size);
	if (sl_feroce_decode(exact, size, &message) == 0) {
		sl_feroce_encode(&message, bytes);
		require(size == sizeof(bytes) && memcmp(bytes, exact, size) == 0);
	}
	free(exact);
}

/* One step; how many bytes of the script it took. */
static size_t step(struct world *w, const uint8_t *script, size_t size, uint64_t *now)
{
	uint8_t datagram[SL_FEROCE_BYTES + 8] = {0};
	uint32_t module = script[0] >> 4 & 1;
	size_t bytes;

	switch (script[0] & 7) {
	case 0:
		*now += UINT64_C(50000000) * (1 + (script[0] >> 3));
		w->seen[0].idle++;
		w->seen[1].idle++;
		sl_feroce_host_tick(&w->host, *now);
		return 1;
	case 1: /* as run does: when all are there, and once */
		if (!w->host.started && sl_feroce_host_planned(&w->host) == MODULES)
			sl_feroce_host_start(&w->host);
		return 1;
	case 2:
		if (w->host.started && w->seen[module].reached < FRAMES)
			w->seen[module].reached++;
		w->seen[module].packets = 1 + (script[0] >> 5) % PACKETS;
		w->seen[module].opened = w->seen[module].reached + (script[0] >> 7);
		return 1;
	case 3:
		if (w->host.started)
			sl_feroce_host_stop(&w->host);
		return 1;
	case 4:
		sl_feroce_host_bye(&w->host);
		return 1;
	default: /* bits 3 to 4: who; bit 5: any length, otherwise the right one, filled up */
		bytes = script[0] & 32 && size > 1 ? script[1] % sizeof(datagram) : SL_FEROCE_BYTES;
		size = size - 1 < bytes ? size - 1 : bytes;
		memcpy(datagram, script + 1, size);
		check_codec(datagram, bytes);
		sl_feroce_host_hear(&w->host, IP | (script[0] >> 3 & 3), datagram, bytes);
		return 1 + size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	struct sl_feroce_options options = {
		.modules = MODULES, .port = 17185, .frames = FRAMES, .silence_ms = 1000};
	uint64_t now = 1;

	sl_log_level(SL_LOG_ERROR);
	if (size && data[0] & 1) { /* one that waits to be asked */
		options.devices = 1;
		options.device[0] = IP | 1;
	}
	memset(&world, 0, sizeof(world));
	sl_feroce_host_init(&world.host, &options, &ops, &world, note, &world);
	for (size_t at = 1; at < size;)
		at += step(&world, data + at, size - at, &now);
	sl_feroce_host_abandon(&world.host);
	for (unsigned m = 0; m < MODULES; m++)
		require(!world.host.started || world.ends[m] == 1);
	return 0;
}
