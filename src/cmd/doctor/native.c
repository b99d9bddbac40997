/* native.c - sluice doctor: native UDP detectors, which nothing slows down. */
#include <string.h>

#include "cmd/doctor/doctor.h"

enum {
	EIGER = 1,	/* of link sls, option detector */
	ENOUGH_MS = 10, /* that a thread may be kept from its work */
};

static uint32_t number_of(const struct sl_experiment *e, const char *name)
{
	const struct sl_option *option = sl_option_find(e->link->options, name);
	uint32_t value = 0;

	if (option && option->size == sizeof(value))
		memcpy(&value, (const char *)e->link_state + option->offset, sizeof(value));
	return value;
}

bool sl_doctor_is_native(const struct sl_doctor *d)
{
	return d->experiment && d->experiment->link->oneway;
}

unsigned sl_doctor_native_payload(const struct sl_doctor *d)
{
	const struct sl_experiment *e = d->experiment;
	uint32_t payload = number_of(e, "payload");

	if (sl_option_find(e->link->options, "packet_events"))
		payload = number_of(e, "packet_events") * number_of(e, "event_bytes");
	else if (!payload)
		payload = number_of(e, "detector") == EIGER ? 4096 : 8192;
	return payload;
}

void sl_doctor_native_buffer(struct sl_doctor *d, uint64_t bytes)
{
	const struct sl_experiment *e = d->experiment;
	double rate = (double)d->ring_bytes / e->ring.slots * e->run.frame_rate_Hz;
	double each = rate / e->run.modules, ms;

	if (d->front_end || !(each > 0))
		return;
	/* The kernel counts the memory that packets take, up to twice their length, and allows
	 * twice what it is asked for. */
	ms = (double)bytes / each * 1e3;
	sl_doctor_say(d, ms >= ENOUGH_MS,
		      "a module sends %.3g GB/s, and nothing slows it down: a receive buffer of "
		      "%.3g MB lasts for %.3g ms",
		      each * 1e-9, (double)bytes * 1e-6, ms);
	if (ms < ENOUGH_MS)
		sl_doctor_fix(d,
			      "sudo sysctl -w net.core.rmem_max=%llu   # and link.receive_buffer",
			      (unsigned long long)(each * ENOUGH_MS * 1e-3));
}
