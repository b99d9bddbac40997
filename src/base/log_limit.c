/* log_limit.c - how often one place in the program may log.
 *
 * A stranger on the network can make a program say the same thing thousands of times a second: the
 * lines would hide all others and keep the thread that writes them busy. So each place, known by
 * its format, has a number of lines in a period, and after a number of lines in all one in a
 * period, so that days of it do not fill a disk. What is left out is counted, and said with the
 * next line or at the end. */
#include "base/log_limit.h"

#include <pthread.h>

#include "base/clock.h"

enum { PLACES = 128 };

static struct place {
	const char *format;
	uint64_t since_ns;
	uint32_t lines, total; /* in this period; since a run began */
	uint64_t left_out;     /* not said yet */
} places[PLACES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* An open hash table; NULL: it is full, and this place has no limit. */
static struct place *place_of(const char *format)
{
	uintptr_t hash = (uintptr_t)format * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	for (unsigned i = 0; i < PLACES; i++) {
		struct place *place = &places[(hash + i) % PLACES];

		if (!place->format)
			place->format = format;
		if (place->format == format)
			return place;
	}
	return NULL;
}

bool sl_log_may(const char *format, uint64_t now_ns, uint64_t *left_out)
{
	struct place *place;
	bool may = true;

	*left_out = 0;
	pthread_mutex_lock(&lock);
	place = place_of(format);
	if (place && now_ns - place->since_ns >= SL_LOG_LIMIT_NS) {
		place->since_ns = now_ns;
		place->lines = 0;
	}
	if (place && place->lines < (place->total < SL_LOG_LIMIT_TOTAL ? SL_LOG_LIMIT_LINES : 1)) {
		place->lines++;
		place->total++;
		*left_out = place->left_out;
		place->left_out = 0;
	} else if (place) {
		place->left_out++;
		may = false;
	}
	pthread_mutex_unlock(&lock);
	return may;
}

uint64_t sl_log_take_left_out(void)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < PLACES; i++) {
		sum += places[i].left_out;
		places[i].left_out = 0;
		places[i].lines = places[i].total = 0;
	}
	pthread_mutex_unlock(&lock);
	return sum;
}
