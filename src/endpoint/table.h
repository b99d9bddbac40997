/* table.h - from numbers that peers send (keys, queue pairs) to what they stand for.
 *
 * Model:     open addressing; the numbers are random, so their low bits are the hash. Half of the
 *            places stay empty, so every search ends.
 * Cost:      one place looked at, seldom two. Allocates only when made. */
#ifndef SL_ENDPOINT_TABLE_H
#define SL_ENDPOINT_TABLE_H

#include <stdint.h>

struct sl_table_place {
	uint32_t number;
	void *value; /* NULL: empty */
};

struct sl_table {
	struct sl_table_place *place;
	uint32_t mask;
	uint32_t used, most;
};

int sl_table_init(struct sl_table *table, uint32_t most);
void sl_table_fini(struct sl_table *table);

/* -ENOSPC: full; -EEXIST: the number is taken. */
int sl_table_add(struct sl_table *table, uint32_t number, void *value);
void *sl_table_find(const struct sl_table *table, uint32_t number); /* or NULL */
void *sl_table_remove(struct sl_table *table, uint32_t number);	    /* or NULL */

#endif
