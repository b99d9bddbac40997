/* front_ends.c - what FEROCE front ends ask for is answered by the receiver of a run. */
#include "receiver/private.h"
#include "cmd/run/front_ends.h"

#include <errno.h>

#include "base/log.h"
#include "cmd/signals.h"

static int accept_offer(void *arg, const struct sl_offer *offer, struct sl_plan *plan, char *why,
			size_t why_bytes)
{
	return sl_receiver_accept(arg, offer, false, plan, why, why_bytes);
}

static int meet(void *arg, uint16_t transfer, uint32_t qpn)
{
	return sl_receiver_meet(arg, transfer, qpn);
}

static void look(void *arg, uint32_t module, struct sl_feroce_seen *seen)
{
	struct sl_receiver_progress progress;

	sl_receiver_progress(arg, module, &progress);
	*seen = (struct sl_feroce_seen){.reached = progress.reached,
					.packets = progress.packets,
					.opened = progress.opened,
					.idle = progress.idle};
}

static int count(void *arg, uint32_t module, uint64_t next, char *why, size_t why_bytes)
{
	return sl_receiver_count(arg, module, next, next, 0, true, why, why_bytes);
}

static void end(void *arg, uint32_t module)
{
	struct sl_receiver *receiver = arg;
	uint64_t offered = receiver->source[module].offered;
	struct sl_receiver_progress progress;

	sl_receiver_progress(receiver, module, &progress);
	if (progress.reached < offered && !sl_signal)
		sl_warn("module %u ends after %llu of the %llu frames of this run", module,
			(unsigned long long)progress.reached, (unsigned long long)offered);
	sl_receiver_end(receiver, module);
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	sl_receiver_cancel_plan(arg, transfer);
}

static void source_lost(void *arg, uint32_t module)
{
	sl_warn("the front end of module %u fell silent", module);
	sl_receiver_source_lost(arg, module);
}

static const struct sl_feroce_ops ops = {
	.accept = accept_offer,
	.meet = meet,
	.seen = look,
	.count = count,
	.end = end,
	.cancel_plan = cancel_plan,
	.source_lost = source_lost,
};

int sl_front_ends_open(const struct sl_experiment *e, struct sl_receiver *receiver,
		       struct sl_feroce_server **server)
{
	const struct sl_option *listen = sl_option_find(e->link->options, "listen");
	const struct sl_ring *ring = &receiver->ring;
	char address[64] = "";
	struct sl_feroce_server_options options = {
		.address = e->feroce.address[0] ? e->feroce.address : address,
		.port = (uint16_t)e->feroce.port,
		.allow = e->feroce.allow,
		.open = e->feroce.open,
		.host = {.modules = e->run.modules,
			 .block_bytes = e->feroce.record ? ring->block_bytes : ring->pixel_bytes,
			 .bare = !e->feroce.record,
			 .frames = e->run.dark_frames + e->run.frames,
			 .darks = sl_detector_darks(&e->run),
			 .silence_ms = (uint32_t)(e->feroce.silence_s * 1000)},
	};

	if (e->emulate_local) {
		sl_error("feroce.enable: the emulator is no FEROCE front end; run without "
			 "--emulate");
		return -EINVAL;
	}
	if (listen)
		sl_option_print(listen, e->link_state, address, sizeof(address));
	sl_receiver_limit(receiver, options.host.frames);
	return sl_feroce_server_open(&options, &ops, receiver, server);
}

void sl_front_ends_stop(struct sl_receiver *receiver, struct sl_feroce_server *server)
{
	struct sl_receiver_progress progress;

	sl_receiver_progress(receiver, 0, &progress);
	sl_receiver_limit(receiver, progress.opened);
	sl_feroce_server_stop(server);
}
