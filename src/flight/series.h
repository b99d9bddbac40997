/* series.h - the last minute of many counters, in a ring of fixed size.
 *
 * Model:     a sample is the values of all series at one time. A caller begins a sample, puts a
 *            value for each series that it knows, by name, and commits; a name that is new becomes
 *            a series. What was not put in a sample is absent there. When the ring is full the
 *            oldest sample goes.
 * Threads:   one at a time; the owner has a lock.
 * Ownership: the ring owns its memory.
 * Cost:      1.3 MiB, touched as it fills. Finding a name is one comparison where names are put in
 *            the same order as in the sample before. */
#ifndef SL_FLIGHT_SERIES_H
#define SL_FLIGHT_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SL_SERIES_MOST = 640,
	SL_SERIES_SAMPLES = 256, /* 64 s at four a second */
	SL_SERIES_NAME = 80,
};
#define SL_SERIES_ABSENT UINT64_MAX

enum sl_series_kind {
	SL_SERIES_COUNTER, /* how much so far: the difference of two samples means something */
	SL_SERIES_GAUGE,   /* how much now */
};

struct sl_series {
	char name[SL_SERIES_NAME];
	const char *unit; /* "ns", "bytes", ...; "": a number of something. A constant */
	enum sl_series_kind kind;
};

struct sl_series_ring {
	unsigned n, hint;
	struct sl_series series[SL_SERIES_MOST];
	uint64_t now[SL_SERIES_MOST]; /* of the sample under way */
	uint64_t samples;	      /* committed so far */
	uint64_t at_ns[SL_SERIES_SAMPLES];
	uint64_t value[SL_SERIES_SAMPLES][SL_SERIES_MOST];
};

struct sl_series_ring *sl_series_open(void); /* NULL: no memory */
void sl_series_close(struct sl_series_ring *ring);

/* Forget all samples and names. */
void sl_series_clear(struct sl_series_ring *ring);

void sl_series_begin(struct sl_series_ring *ring);
/* Into the sample under way. A name without room is left out. */
void sl_series_put(struct sl_series_ring *ring, enum sl_series_kind kind, const char *unit,
		   uint64_t value, const char *name, ...) __attribute__((format(printf, 5, 6)));
void sl_series_commit(struct sl_series_ring *ring, uint64_t at_ns);

/* Samples that the ring has, oldest first: 0 .. sl_series_count() - 1. */
unsigned sl_series_count(const struct sl_series_ring *ring);
uint64_t sl_series_at(const struct sl_series_ring *ring, unsigned sample);
uint64_t sl_series_value(const struct sl_series_ring *ring, unsigned sample, unsigned series);

#endif
