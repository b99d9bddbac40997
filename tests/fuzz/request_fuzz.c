/* request_fuzz.c - any bytes as a request of the status socket: a request that is understood has
 * what its call needs, and nothing that its bounds forbid. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/status.h>

#include "core/metadata/metadata.h"
#include "monitor/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look(const struct sl_request *r)
{
	static struct sl_metadata table;

	check(r->call < SL_REQUEST_CALLS && r->name);
	check(r->sets <= SL_REQUEST_SETS && r->metadata_set <= SL_REQUEST_METADATA);
	check(!r->reason || strlen(r->reason) < 16);
	check(r->call != SL_REQUEST_WAIT || r->states);
	check(r->states < 1u << SL_STATES && r->timeout_ms >= -1);
	check(r->values <= SL_REQUEST_VALUES && (r->call != SL_REQUEST_POINT || r->frames));
	for (uint32_t i = 0; i < r->values; i++)
		check(r->value[i].name[0] && strlen(r->value[i].name) <= SL_REQUEST_NAME &&
		      !strchr(r->value[i].name, '/') && isfinite(r->value[i].value));
	check(!r->interval_ms || r->interval_ms >= SL_REQUEST_WATCH_MIN_MS);
	for (uint32_t i = 0; i < r->sets; i++)
		check(strchr(r->set[i], '='));
	table.n = 0;
	for (uint32_t i = 0; i < r->metadata_set; i++)
		sl_metadata_set(&table, r->metadata[i].key, r->metadata[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size ? size : 1), why[300] = "";
	struct sl_request request;

	if (!line)
		abort();
	memcpy(line, data, size);
	if (sl_request_parse(line, size, &request, why, sizeof(why)) == 0) {
		look(&request);
		sl_request_free(&request);
	} else {
		check(why[0]);
	}
	free(line);
	return 0;
}
