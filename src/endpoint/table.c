/* table.c - open addressing with linear probing. */
#include "endpoint/table.h"

#include <errno.h>
#include <stdlib.h>

int sl_table_init(struct sl_table *table, uint32_t most)
{
	uint32_t places = 2;

	while (places < 2 * most)
		places *= 2;
	table->place = calloc(places, sizeof(*table->place));
	table->mask = places - 1;
	table->used = 0;
	table->most = most;
	return table->place ? 0 : -ENOMEM;
}

void sl_table_fini(struct sl_table *table)
{
	free(table->place);
	table->place = NULL;
}

/* Where the number is, or the empty place where it would be. */
static struct sl_table_place *seek(const struct sl_table *table, uint32_t number)
{
	uint32_t i = number & table->mask;

	while (table->place[i].value && table->place[i].number != number)
		i = (i + 1) & table->mask;
	return &table->place[i];
}

int sl_table_add(struct sl_table *table, uint32_t number, void *value)
{
	struct sl_table_place *place = seek(table, number);

	if (place->value)
		return -EEXIST;
	if (table->used == table->most)
		return -ENOSPC;
	*place = (struct sl_table_place){number, value};
	table->used++;
	return 0;
}

void *sl_table_find(const struct sl_table *table, uint32_t number)
{
	return seek(table, number)->value;
}

void *sl_table_remove(struct sl_table *table, uint32_t number)
{
	struct sl_table_place *place = seek(table, number);
	void *value = place->value;
	uint32_t i = (uint32_t)(place - table->place);

	if (!value)
		return NULL;
	place->value = NULL;
	table->used--;
	/* What comes behind may have stepped over this place: put it where it is found. */
	for (i = (i + 1) & table->mask; table->place[i].value; i = (i + 1) & table->mask) {
		struct sl_table_place moved = table->place[i];

		table->place[i].value = NULL;
		*seek(table, moved.number) = moved;
	}
	return value;
}
