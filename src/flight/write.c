/* write.c - flight.json: facts, packets in brief, and all series. docs/reference/flight-recorder.md
 * is the page for users. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/text.h"
#include "flight/private.h"
#include "net/net.h"

enum { SCHEMA = 1 };

static json_t *number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *number_or_null(uint64_t value)
{
	return value ? number(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text && text[0] ? sl_json_text(text) : json_null();
}

static json_t *value_json(uint64_t value)
{
	return value == SL_SERIES_ABSENT ? json_null() : number(value);
}

/* ---- series ---- */

/* "constant" stands for "values" where all samples have the same. */
static bool is_constant(const struct sl_series_ring *ring, unsigned series)
{
	for (unsigned i = 1; i < sl_series_count(ring); i++)
		if (sl_series_value(ring, i, series) != sl_series_value(ring, 0, series))
			return false;
	return true;
}

static json_t *series_json(const struct sl_series_ring *ring, unsigned series)
{
	const struct sl_series *s = &ring->series[series];
	json_t *json = json_pack("{s:o, s:s, s:s}", "name", sl_json_text(s->name), "unit", s->unit,
				 "kind", s->kind == SL_SERIES_COUNTER ? "counter" : "gauge");
	json_t *values;

	if (is_constant(ring, series)) {
		json_object_set_new(json, "constant", value_json(sl_series_value(ring, 0, series)));
		return json;
	}
	values = json_array();
	for (unsigned i = 0; i < sl_series_count(ring); i++)
		json_array_append_new(values, value_json(sl_series_value(ring, i, series)));
	json_object_set_new(json, "values", values);
	return json;
}

static json_t *all_series(const struct sl_series_ring *ring)
{
	json_t *array = json_array();

	for (unsigned i = 0; sl_series_count(ring) && i < ring->n; i++)
		json_array_append_new(array, series_json(ring, i));
	return array;
}

static json_t *times_json(const struct sl_series_ring *ring)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < sl_series_count(ring); i++)
		json_array_append_new(array, number(sl_series_at(ring, i)));
	return array;
}

/* ---- packets in brief ---- */

struct brief { /* of the sampled packets of a module */
	uint64_t sampled, marked;
	uint32_t longest, shortest;
};

static void add_packet(struct brief *b, const struct sl_flight_packet *p)
{
	b->shortest = !b->sampled || p->bytes < b->shortest ? p->bytes : b->shortest;
	b->longest = p->bytes > b->longest ? p->bytes : b->longest;
	b->sampled++;
	b->marked += (p->tos & SL_NET_ECN_MASK) == SL_NET_ECN_CE;
}

static json_t *brief_json(const struct brief *b, json_t *module)
{
	return json_pack("{s:o, s:o, s:o, s:i, s:i}", "module", module, "sampled",
			 number(b->sampled), "marked", number(b->marked), "longest_payload",
			 (int)b->longest, "shortest_payload", (int)b->shortest);
}

static json_t *packets_json(const struct sl_flight_record *r)
{
	struct brief module[SL_STATUS_MODULES] = {{0}}, other = {0};
	json_t *array = json_array();

	for (size_t i = 0; i < r->packets; i++)
		add_packet(r->packet[i].module < SL_STATUS_MODULES ? &module[r->packet[i].module]
								   : &other,
			   &r->packet[i]);
	for (unsigned m = 0; m < SL_STATUS_MODULES; m++)
		if (module[m].sampled)
			json_array_append_new(array,
					      brief_json(&module[m], json_integer((json_int_t)m)));
	if (other.sampled)
		json_array_append_new(array, brief_json(&other, json_null()));
	return json_pack("{s:o, s:o, s:o}", "file", text_or_null(r->pcapng), "sampled",
			 number(r->packets), "modules", array);
}

/* ---- facts ---- */

static json_t *link_json(const struct sl_flight_facts *f)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
			 text_or_null(f->link), "listen", text_or_null(f->listen), "interface",
			 text_or_null(f->interface), "mtu", number_or_null(f->mtu), "credits",
			 f->credits, "one_way", f->one_way, "pmtu", number_or_null(f->pmtu),
			 "longest_packet", number_or_null(f->longest_packet), "block_packets",
			 number_or_null(f->block_packets), "block_bytes",
			 number_or_null(f->block_bytes), "receive_buffer_wanted",
			 number_or_null(f->receive_buffer_wanted), "modules", number(f->modules));
}

static json_t *facts_json(const struct sl_flight_facts *f)
{
	return json_pack("{s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o}, s:o, s:{s:i, s:i}, s:{s:f, s:f, "
			 "s:f}}",
			 "link", link_json(f), "ring", "slots", number(f->slots), "overrun",
			 text_or_null(f->overrun), "incomplete", text_or_null(f->incomplete),
			 "align", text_or_null(f->align), "late_frames", number(f->late_frames),
			 "late_timeout_us", number(f->late_timeout_us), "frame_rate_Hz",
			 f->frame_rate_Hz > 0 ? json_real(f->frame_rate_Hz) : json_null(), "cpus",
			 "allowed", f->cpus_allowed, "online", f->cpus_online, "frontend", "drop",
			 f->inject_drop, "corrupt", f->inject_corrupt, "skip", f->inject_skip);
}

static json_t *disks_json(const struct sl_flight_record *r)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < r->disks; i++)
		json_array_append_new(array,
				      json_pack("{s:o, s:o}", "path", text_or_null(r->disk[i].path),
						"device", text_or_null(r->disk[i].name)));
	return array;
}

static json_t *head_json(const struct sl_flight_record *r)
{
	char host[256] = "", loss[64], taken[64];

	gethostname(host, sizeof(host) - 1);
	sl_clock_iso8601(r->loss_ns + r->unix_ns, loss, sizeof(loss));
	sl_clock_iso8601(r->taken_ns + r->unix_ns, taken, sizeof(taken));
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:i, s:s, s:s, s:o, s:o, s:o}", "schema",
			 SCHEMA, "sluice", SL_VERSION, "run", number_or_null(r->facts.run),
			 "experiment", text_or_null(r->facts.experiment), "transfer",
			 text_or_null(r->facts.transfer), "host", text_or_null(host), "pid",
			 (int)getpid(), "first_loss", loss, "frozen", taken, "first_loss_ns",
			 number(r->loss_ns), "frozen_ns", number(r->taken_ns), "unix_offset_ns",
			 number(r->unix_ns));
}

char *sl_flight_json(const struct sl_flight_record *r, size_t *bytes)
{
	json_t *json = head_json(r);
	char *text;

	json_object_set_new(json, "facts", facts_json(&r->facts));
	json_object_set_new(json, "disks", disks_json(r));
	json_object_set_new(json, "packets", packets_json(r));
	json_object_set_new(json, "at_ns", times_json(r->series));
	json_object_set_new(json, "series", all_series(r->series));
	text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(json);
	*bytes = text ? strlen(text) : 0;
	return text;
}
