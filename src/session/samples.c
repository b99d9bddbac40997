/* samples.c - rates, out of a status that is taken once a second. */
#include "session/samples.h"

void sl_samples_take(struct sl_samples *s, const struct sl_status *now)
{
	s->sample[0] = s->sample[1];
	s->sample[1] = (struct sl_sample){now->taken_ns, now->frames, now->pixel_bytes, now->run};
}

static bool is_before(const struct sl_sample *from, const struct sl_status *now)
{
	return from->ns && now->taken_ns > from->ns && now->run == from->run &&
	       now->frames >= from->frames && now->pixel_bytes >= from->bytes;
}

struct sl_rates sl_samples_rates(const struct sl_samples *s, const struct sl_status *now)
{
	const struct sl_sample first = {now->first_ns, 0, 0, now->run};
	const struct sl_sample *from = &s->sample[!is_before(&s->sample[0], now)];
	struct sl_rates r = {0};
	double seconds;

	if (now->state == SL_STATE_ENDED || now->state == SL_STATE_FAULT)
		return r;
	if (first.ns && (!is_before(from, now) || first.ns > from->ns))
		from = &first;
	if (!is_before(from, now))
		return r;
	r.window_ns = now->taken_ns - from->ns;
	seconds = (double)r.window_ns * 1e-9;
	r.frames_per_s = (double)(now->frames - from->frames) / seconds;
	r.bytes_per_s = (double)(now->pixel_bytes - from->bytes) / seconds;
	return r;
}
