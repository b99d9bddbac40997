/* native.c - sluice doctor: native UDP detectors, which nothing slows down. */
#include "cmd/doctor/doctor.h"

enum { ENOUGH_MS = 10 }; /* that a thread may be kept from its work */

bool sl_doctor_is_native(const struct sl_doctor *d)
{
	return d->experiment && d->experiment->link->oneway;
}

unsigned sl_doctor_native_payload(const struct sl_doctor *d)
{
	struct sl_link_facts facts;

	sl_link_facts(d->experiment->link, d->experiment->link_state, &facts);
	return facts.payload;
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
