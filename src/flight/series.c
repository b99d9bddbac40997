/* series.c - samples of many counters. */
#include "flight/series.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_series_ring *sl_series_open(void)
{
	return calloc(1, sizeof(struct sl_series_ring));
}

void sl_series_close(struct sl_series_ring *ring)
{
	free(ring);
}

void sl_series_clear(struct sl_series_ring *ring)
{
	ring->n = ring->hint = 0;
	ring->samples = 0;
}

void sl_series_begin(struct sl_series_ring *ring)
{
	ring->hint = 0;
	for (unsigned i = 0; i < SL_SERIES_MOST; i++)
		ring->now[i] = SL_SERIES_ABSENT;
}

static void forget_column(struct sl_series_ring *ring, unsigned series)
{
	for (unsigned i = 0; i < SL_SERIES_SAMPLES; i++)
		ring->value[i][series] = SL_SERIES_ABSENT;
}

/* Where it was expected, or anywhere. UINT_MAX: there is no room for another. */
static unsigned find(struct sl_series_ring *ring, const char *name)
{
	for (unsigned i = 0; i < ring->n; i++) {
		unsigned at = ring->hint + i < ring->n ? ring->hint + i : ring->hint + i - ring->n;

		if (!strcmp(ring->series[at].name, name))
			return at;
	}
	if (ring->n == SL_SERIES_MOST)
		return SL_SERIES_MOST;
	snprintf(ring->series[ring->n].name, SL_SERIES_NAME, "%s", name);
	forget_column(ring, ring->n);
	return ring->n++;
}

void sl_series_put(struct sl_series_ring *ring, enum sl_series_kind kind, const char *unit,
		   uint64_t value, const char *name, ...)
{
	char text[SL_SERIES_NAME];
	va_list args;
	unsigned at;

	va_start(args, name);
	vsnprintf(text, sizeof(text), name, args);
	va_end(args);
	at = find(ring, text);
	if (at == SL_SERIES_MOST)
		return;
	ring->series[at].unit = unit;
	ring->series[at].kind = kind;
	ring->now[at] = value;
	ring->hint = at + 1 < ring->n ? at + 1 : 0;
}

void sl_series_commit(struct sl_series_ring *ring, uint64_t at_ns)
{
	unsigned at = (unsigned)(ring->samples % SL_SERIES_SAMPLES);

	ring->at_ns[at] = at_ns;
	memcpy(ring->value[at], ring->now, ring->n * sizeof(ring->now[0]));
	ring->samples++;
}

unsigned sl_series_count(const struct sl_series_ring *ring)
{
	return ring->samples < SL_SERIES_SAMPLES ? (unsigned)ring->samples : SL_SERIES_SAMPLES;
}

static unsigned place_of(const struct sl_series_ring *ring, unsigned sample)
{
	return (unsigned)((ring->samples - sl_series_count(ring) + sample) % SL_SERIES_SAMPLES);
}

uint64_t sl_series_at(const struct sl_series_ring *ring, unsigned sample)
{
	return ring->at_ns[place_of(ring, sample)];
}

uint64_t sl_series_value(const struct sl_series_ring *ring, unsigned sample, unsigned series)
{
	return ring->value[place_of(ring, sample)][series];
}
