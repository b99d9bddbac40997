/* copy.h - copies that leave the caches to others.
 *
 * Model:     memcpy() reads every line of the destination into the cache before it overwrites it,
 *            and pushes out what was there. For blocks that are larger than caches both are
 *            wasted: sl_copy_away() then writes around the cache.
 * Threads:   any. What was written is visible to others after a release store, as with memcpy().
 * Cost:      for large blocks about two thirds of memcpy()'s time; small ones are memcpy(). */
#ifndef SL_BASE_COPY_H
#define SL_BASE_COPY_H

#include <stddef.h>

enum { SL_COPY_AWAY_MIN = 256 << 10 }; /* half of a usual second-level cache */

/* As memcpy(), but around the cache whatever the size: for pieces of something large. Others see it
 * after sl_copy_fence() and a release store. */
void sl_copy_stream(void *to, const void *from, size_t bytes);
void sl_copy_fence(void);

/* As memcpy(), for data that another core reads later. */
void sl_copy_away(void *to, const void *from, size_t bytes);

#endif
