/* experiment.c - YAML sections to add-ons and option structs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/registry.h>

#include "base/config_node.h"
#include "base/crc.h"
#include "base/log.h"
#include "pipeline/experiment.h"

static const struct sl_option link_options[] = {
	SL_CHOICE(struct sl_link_run, pmtu, 4096, "256|512|1024|2048|4096",
		  "bytes of payload per packet"),
	SL_CHOICE(struct sl_link_run, service, uc, "uc|rc",
		  "unreliable or reliable connection; rc sends again what was lost"),
	SL_CHOICE(struct sl_link_run, operation, write, "write|send",
		  "who places a block: the front end (write), or the receiver (send)"),
	SL_CHOICE(struct sl_link_run, message, auto, "auto|packet|module|line",
		  "one RDMA message per packet, per module and frame, or per line of pixels; auto: "
		  "as the link does it best"),
	SL_U32(struct sl_link_run, pollers, 1, 1, 8, "threads",
	       "receiver: threads that take data; modules are shared out among them"),
	SL_U32(struct sl_link_run, spin_us, 0, 0, 1000000, "us",
	       "receiver: look again for so long before sleeping; saves microseconds, costs a "
	       "core"),
	SL_F64(struct sl_link_run, rate_limit, 0, 0, 1e4, "Gbit/s",
	       "front end: most that the queue of a module sends; 0: as credits allow"),
	SL_BOOL(struct sl_link_run, crc, false,
		"front ends add a CRC32C of the pixels, checked here"),
	SL_OPTION_END,
};

static const struct sl_option unit_options[] = {
	SL_U32(struct sl_unit_run, batch, 8, 1, 256, "frames", "most frames processed together"),
	SL_OPTION_END,
};

static const struct sl_option control_options[] = {
	SL_STRING(struct sl_control_run, address, "127.0.0.1",
		  "where the receiver answers front ends"),
	SL_U32(struct sl_control_run, port, 47910, 0, 65535, "",
	       "TCP port for it; 0: any free one (run prints it)"),
	SL_STRING(struct sl_control_run, token, "",
		  "secret that front ends must know; required off this host"),
	SL_F64(struct sl_control_run, wait_s, 60, 0, 1e9, "s",
	       "how long either side waits for the other"),
	SL_F64(struct sl_control_run, silence_s, 10, 1, 1e6, "s",
	       "a front end that reports nothing for so long counts as gone"),
	SL_OPTION_END,
};

static const struct sl_option feroce_options[] = {
	SL_BOOL(struct sl_feroce_run, enable, false,
		"all modules come from FEROCE devices, over service rc"),
	SL_STRING(struct sl_feroce_run, address, "",
		  "IPv4 address where devices ask to connect; empty: where the link listens"),
	SL_U32(struct sl_feroce_run, port, 0, 0, 65535, "",
	       "UDP port for it; 0: both that devices use, 17185 (0x4321) and 17186 (0x4322)"),
	SL_STRING(struct sl_feroce_run, allow, "",
		  "addresses and prefixes of devices that may connect; required off this host"),
	SL_STRING(struct sl_feroce_run, open, "",
		  "addresses of devices that wait to be asked, first module first"),
	SL_BOOL(struct sl_feroce_run, record, false,
		"devices send the record after the pixels; otherwise the receiver writes it"),
	SL_F64(struct sl_feroce_run, silence_s, 60, 0, 1e6, "s",
	       "a device that has begun and sends nothing for so long is gone; 0: never"),
	SL_OPTION_END,
};

const struct sl_section sl_sections[] = {
	{"detector", "what every detector section takes", sl_detector_run_options},
	{"link", "what every link section takes", link_options},
	{"ring", "where frames are put together", sl_ring_options},
	{"unit", "what every unit section takes", unit_options},
	{"control", "how front ends find the receiver", control_options},
	{"transfers.NAME", "what one stream carries, each to a receiver of its own",
	 sl_cut_options},
	{"feroce", "FPGAs that connect by the FEROCE connection manager", feroce_options},
	{"frontend", "faults on demand, for tests and rehearsals", sl_fault_options},
	{NULL, NULL, NULL},
};

struct reader { /* collects errors so that a file's mistakes are all told at once */
	struct sl_experiment *e;
	int err;
};

static void fill(struct reader *r, struct sl_node *node, const struct sl_option *common,
		 void *common_base, const struct sl_option *own, void *own_base)
{
	static const char *const also[] = {"kind", NULL};
	struct sl_option_set sets[2];
	size_t n = 0;

	if (common)
		sets[n++] = (struct sl_option_set){common, common_base};
	if (own)
		sets[n++] = (struct sl_option_set){own, own_base};
	if (sl_config_fill(r->e->config, node, sets, n, common && own ? also : NULL))
		r->err = -EINVAL;
}

/* Names of one kind of add-on, for messages. */
static void names_of(const char *kind, char *text, size_t bytes)
{
	size_t used = 0;

#define LIST(table)                                         \
	for (size_t i = 0; (table)[i] && used < bytes; i++) \
	used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", (table)[i]->name)
	text[0] = 0;
	if (!strcmp(kind, "detector"))
		LIST(sl_detectors);
	else if (!strcmp(kind, "link"))
		LIST(sl_links);
	else if (!strcmp(kind, "unit"))
		LIST(sl_units);
	else if (!strcmp(kind, "stage"))
		LIST(sl_stages);
	else
		LIST(sl_sinks);
#undef LIST
}

static void unknown(struct reader *r, const struct sl_node *node, const char *kind,
		    const char *name)
{
	char known[512];

	for (const struct sl_absent *a = sl_absents; a->name; a++)
		if (!strcmp(a->kind, kind) && !strcmp(a->name, name)) {
			sl_config_error(r->e->config, node, "%s '%s' is not in this program: %s",
					kind, name, a->why);
			r->err = -EINVAL;
			return;
		}
	names_of(kind, known, sizeof(known));
	sl_config_error(r->e->config, node, "no %s is called '%s'; there are: %s", kind, name,
			known);
	r->err = -EINVAL;
}

/* The add-on's zeroed state. */
static void *state_of(struct reader *r, size_t bytes)
{
	void *state = calloc(1, bytes ? bytes : 1);

	if (!state)
		r->err = -ENOMEM;
	return state;
}

/* A section of the file. One without a value ("ring:") asks for the defaults, as if it were not
 * there. */
static struct sl_node *section_of(struct reader *r, const char *name)
{
	struct sl_node *node = sl_node_get(r->e->config->root, name);

	return node && !sl_node_is_null(node) ? node : NULL;
}

/* The name in a section's `kind`, or the default; the section itself in *section. */
static const char *kind_of(struct reader *r, const char *name, const char *def,
			   struct sl_node **section, struct sl_node **at)
{
	struct sl_node *node = section_of(r, name), *kind;

	*section = node;
	*at = node ? node : r->e->config->root;
	if (node && node->kind != SL_NODE_MAP) {
		sl_config_error(r->e->config, node, "takes a map, as in  %s: {kind: ...}", name);
		r->err = -EINVAL;
		*section = NULL;
		return NULL;
	}
	kind = node ? sl_node_get(node, "kind") : NULL;
	if (kind && kind->kind != SL_NODE_SCALAR) {
		sl_config_error(r->e->config, kind, "takes one name");
		r->err = -EINVAL;
		return NULL;
	}
	if (kind) {
		*at = kind;
		return kind->text;
	}
	if (!def) {
		sl_config_error(r->e->config, *at, "%s needs a kind, as in  %s: {kind: ...}", name,
				name);
		r->err = -EINVAL;
	}
	return def;
}

static void read_detector(struct reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "detector", NULL, &node, &at);

	if (!kind)
		return;
	e->source = sl_detector_find(kind);
	if (!e->source) {
		unknown(r, at, "detector", kind);
		return;
	}
	e->source_state = state_of(r, e->source->state_bytes);
	if (e->source_state)
		fill(r, node, sl_detector_run_options, &e->cut.source_run, e->source->options,
		     e->source_state);
}

/* What the transfer carries of the detector. */
static void read_cut(struct reader *r, struct sl_node *transfer)
{
	struct sl_experiment *e = r->e;
	char why[256];

	e->detector = e->source;
	e->detector_state = e->source_state;
	e->run = e->cut.source_run;
	fill(r, transfer && !sl_node_is_null(transfer) ? transfer : NULL, NULL, NULL,
	     sl_cut_options, &e->cut.options);
	if (!transfer || r->err)
		return;
	snprintf(e->transfer, sizeof(e->transfer), "%s", transfer->key);
	if (sl_cut_run(&e->cut.options, &e->cut.source_run, &e->run, why, sizeof(why))) {
		sl_config_error(e->config, transfer, "%s", why);
		r->err = -EINVAL;
	}
	e->cut.source = e->source;
	e->cut.source_state = e->source_state;
	sl_cut_detector(&e->cut, &e->cut_detector);
	e->detector = &e->cut_detector;
	e->detector_state = &e->cut;
}

/* Another link or unit is a change of one word: keys that only the others have may stay in the
 * file. */
static void let_pass(struct sl_node *section, const struct sl_option *options)
{
	for (; section && options && options->name; options++)
		sl_node_get(section, options->name); /* marks it as read */
}

/* What the link does not have is said before anything is opened. */
static void check_link(struct reader *r, const struct sl_node *at)
{
	const struct sl_experiment *e = r->e;
	const char *lacks = NULL;

	if (!(e->link->services & sl_experiment_service(e)))
		lacks = e->link_run.service ? "service rc" : "service uc";
	else if (!(e->link->operations & sl_experiment_operation(e)))
		lacks = e->link_run.operation ? "operation send" : "operation write";
	if (e->link_run.pollers > (e->link->pollers ? e->link->pollers : 1)) {
		sl_config_error(e->config, at, "link '%s' has work for %u thread%s at most",
				e->link->name, e->link->pollers ? e->link->pollers : 1,
				e->link->pollers > 1 ? "s" : "");
		r->err = -EINVAL;
	}
	if ((e->link_run.message == 1 || e->link_run.message == 3) && e->link_run.operation) {
		sl_config_error(e->config, at,
				"operation send takes one message per module: a posted receive "
				"is one block");
		r->err = -EINVAL;
	}
	if (!lacks)
		return;
	sl_config_error(e->config, at, "link '%s' has no %s", e->link->name, lacks);
	r->err = -EINVAL;
}

static void read_link(struct reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "link", "udp", &node, &at);

	if (!kind)
		return;
	e->link = sl_link_find(kind);
	if (!e->link) {
		unknown(r, at, "link", kind);
		return;
	}
	e->link_state = state_of(r, e->link->state_bytes);
	for (size_t i = 0; sl_links[i]; i++)
		let_pass(node, sl_links[i]->options);
	if (e->link_state)
		fill(r, node, link_options, &e->link_run, e->link->options, e->link_state);
	check_link(r, at);
}

static void read_unit(struct reader *r)
{
	struct sl_experiment *e = r->e;
	struct sl_node *node, *at;
	const char *kind = kind_of(r, "unit", "cpu", &node, &at);

	if (!kind)
		return;
	e->unit = sl_unit_find(kind);
	if (!e->unit) {
		unknown(r, at, "unit", kind);
		return;
	}
	e->unit_state = state_of(r, e->unit->state_bytes);
	for (size_t i = 0; sl_units[i]; i++)
		let_pass(node, sl_units[i]->options);
	if (e->unit_state)
		fill(r, node, unit_options, &e->unit_run, e->unit->options, e->unit_state);
}

/* A list item is a name, or a map of one name to its options. */
static const char *item_name(struct reader *r, struct sl_node *item, struct sl_node **options)
{
	*options = NULL;
	if (item->kind == SL_NODE_SCALAR)
		return item->text;
	if (item->kind == SL_NODE_MAP && item->child && !item->child->next) {
		*options = item->child->kind == SL_NODE_MAP ? item->child : NULL;
		if (!*options && !sl_node_is_null(item->child)) {
			sl_config_error(r->e->config, item->child,
					"takes a map of options, as in  - %s: {...}",
					item->child->key);
			r->err = -EINVAL;
			return NULL;
		}
		return item->child->key;
	}
	sl_config_error(r->e->config, item,
			"takes one name, with or without options: - name: {...}");
	r->err = -EINVAL;
	return NULL;
}

static struct sl_node *list_of(struct reader *r, const char *name)
{
	struct sl_node *list = section_of(r, name);

	if (list && list->kind != SL_NODE_LIST) {
		sl_config_error(r->e->config, list, "takes a list, as in  %s: [name, name: {...}]",
				name);
		r->err = -EINVAL;
		return NULL;
	}
	return list ? list->child : NULL;
}

static void read_stages(struct reader *r)
{
	struct sl_experiment *e = r->e;

	for (struct sl_node *item = list_of(r, "stages"); item; item = item->next) {
		struct sl_node *options;
		const char *name = item_name(r, item, &options);
		unsigned i = e->stages;

		if (!name)
			continue;
		if (i == SL_EXPERIMENT_STAGES) {
			sl_config_error(e->config, item, "more than %d stages",
					SL_EXPERIMENT_STAGES);
			r->err = -EINVAL;
			return;
		}
		e->stage[i] = sl_stage_find(name);
		if (!e->stage[i]) {
			unknown(r, item, "stage", name);
			continue;
		}
		e->stage_state[i] = state_of(r, e->stage[i]->state_bytes);
		if (!e->stage_state[i])
			return;
		fill(r, options, NULL, NULL, e->stage[i]->options, e->stage_state[i]);
		e->stages++;
	}
}

static void read_sinks(struct reader *r)
{
	struct sl_experiment *e = r->e;

	for (struct sl_node *item = list_of(r, "sinks"); item; item = item->next) {
		struct sl_node *options;
		const char *name = item_name(r, item, &options);
		unsigned i = e->sinks;

		if (!name)
			continue;
		if (i == SL_EXPERIMENT_SINKS) {
			sl_config_error(e->config, item, "more than %d sinks", SL_EXPERIMENT_SINKS);
			r->err = -EINVAL;
			return;
		}
		e->sink[i] = sl_sink_find(name);
		if (!e->sink[i]) {
			unknown(r, item, "sink", name);
			continue;
		}
		e->sink_state[i] = state_of(r, e->sink[i]->state_bytes);
		if (!e->sink_state[i])
			return;
		fill(r, options, NULL, NULL, e->sink[i]->options, e->sink_state[i]);
		e->sinks++;
	}
}

static void read_plain(struct reader *r, const char *name, const struct sl_option *options,
		       void *base)
{
	fill(r, section_of(r, name), NULL, NULL, options, base);
}

static void read_ring(struct reader *r)
{
	struct sl_node *node = section_of(r, "ring");

	if (node && node->kind == SL_NODE_MAP && sl_ring_run_flatten(r->e->config, node))
		r->err = -EINVAL;
	fill(r, node, NULL, NULL, sl_ring_options, &r->e->ring);
}

static void read_emulate(struct reader *r)
{
	struct sl_node *node = sl_node_get(r->e->config->root, "emulate");

	if (!node)
		return;
	if (node->kind == SL_NODE_SCALAR && !strcmp(node->text, "local"))
		r->e->emulate_local = true;
	else if (node->kind != SL_NODE_SCALAR || strcmp(node->text, "none") != 0) {
		sl_config_error(r->e->config, node,
				"takes local (run starts the front end itself) or none");
		r->err = -EINVAL;
	}
}

/* Whatever no reader asked for. */
static void check_top(struct reader *r)
{
	static const char *const known[] = {"detector", "link",	   "ring",	"unit",
					    "stages",	"sinks",   "frontend",	"control",
					    "feroce",	"emulate", "transfers", NULL};

	if (sl_config_fill(r->e->config, r->e->config->root, NULL, 0, known))
		r->err = -EINVAL;
}

static uint32_t common_factor(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* A pool of frames that shares a factor with the ring puts the same frames into the same slots
 * again and again: pixels left over from a lap before would look right. */
static void check_pool(struct reader *r)
{
	struct sl_experiment *e = r->e;
	const struct sl_option *option = sl_option_find(e->source->options, "pool");
	uint32_t pool, seen, factor;

	if (!option || option->type != SL_OPTION_U32)
		return;
	memcpy(&pool, (const char *)e->source_state + option->offset, sizeof(pool));
	/* Of the pool a transfer that leaves frames out may see only a part. */
	seen = pool / common_factor(pool, e->cut.options.every * e->cut.options.stack % pool);
	factor = common_factor(seen, e->ring.slots);
	if (factor == 1 && (seen > 1 || pool == 1))
		return;
	r->err = -EINVAL;
	if (seen == 1) {
		sl_config_error(e->config, sl_node_get(e->config->root, "transfers"),
				"%s: every * stack is a multiple of detector.pool (%u): it would "
				"send the same pixels again and again; change one of them",
				e->transfer, pool);
		return;
	}
	sl_config_error(
		e->config, sl_node_get(e->config->root, "ring"),
		"detector.pool (%u) and ring.slots (%u) have the factor %u in common, so that "
		"stale pixels could look right; change one of them",
		pool, e->ring.slots, factor);
}

static void check_feroce(struct reader *r)
{
	const struct sl_experiment *e = r->e;
	const char *problem = NULL;

	if (!e->feroce.enable)
		return;
	if (!e->link->bare)
		problem = "this link does not take its devices: set link.kind: udp";
	else if (sl_experiment_service(e) != SL_SERVICE_RC)
		problem = "its devices speak RC only: set link.service: rc";
	else if (e->emulate_local)
		problem = "the emulator is no FEROCE device: set emulate: none";
	else if (sl_experiment_crc(e) && !e->feroce.record)
		problem = "without records there is no checksum of the pixels: link.crc must be "
			  "false, and so must be what needs it";
	else if (e->feroce.open[0] && !e->link->meet)
		problem = "this link cannot ask devices: feroce.open must be empty";
	if (!problem)
		return;
	sl_config_error(e->config, sl_node_get(e->config->root, "feroce"), "%s", problem);
	r->err = -EINVAL;
}

static void check_pitch(struct reader *r)
{
	const struct sl_experiment *e = r->e;
	const char *problem = NULL;

	if (!e->ring.line_pitch)
		return;
	if (e->ring.line_pitch % 64)
		problem = "line_pitch must be a multiple of 64";
	else if (e->link && sl_experiment_message(e) == SL_MESSAGE_MODULE)
		problem =
			"with a line_pitch a module is not one piece of memory: link.message must "
			"be packet or line, link.operation write";
	if (!problem)
		return;
	sl_config_error(e->config, sl_node_get(e->config->root, "ring"), "%s", problem);
	r->err = -EINVAL;
}

static void check_together(struct reader *r)
{
	struct sl_experiment *e = r->e;
	const char *problem = sl_ring_run_problem(&e->ring, e->run.modules);

	if (problem) {
		sl_config_error(e->config, sl_node_get(e->config->root, "ring"), "%s", problem);
		r->err = -EINVAL;
	}

	if (e->ring.late_frames > e->ring.slots - 2) {
		sl_config_error(e->config, sl_node_get(e->config->root, "ring"),
				"late_frames (%u) must be at most slots - 2 (%u), else a late "
				"module would stop the ring",
				e->ring.late_frames, e->ring.slots - 2);
		r->err = -EINVAL;
	}
	check_pitch(r);
	check_pool(r);
	check_feroce(r);
	if (!e->sinks) {
		sl_config_error(e->config, e->config->root,
				"no sinks: frames would go nowhere; add  sinks: ['null']  to "
				"throw them away");
		r->err = -EINVAL;
	}
}

static int open_config(const char *path, const char *const *overrides, size_t n,
		       struct sl_config **config)
{
	int err = sl_config_open(path, config);

	for (size_t i = 0; i < n && !err; i++)
		err = sl_config_override(*config, overrides[i]);
	return err;
}

int sl_experiment_transfers(const char *path, const char *const *overrides, size_t n,
			    struct sl_transfer_names *names)
{
	struct sl_config *config = NULL;
	int err = open_config(path, overrides, n, &config);

	if (!err)
		err = sl_transfer_names(config, names);
	if (config)
		sl_config_close(config);
	return err;
}

int sl_experiment_open(const char *path, const char *transfer, const char *const *overrides,
		       size_t n, struct sl_experiment **experiment)
{
	struct reader r = {.e = calloc(1, sizeof(*r.e))};
	struct sl_transfer_choice choice;

	if (!r.e)
		return -ENOMEM;
	r.err = open_config(path, overrides, n, &r.e->config);
	if (!r.err)
		r.err = sl_transfer_choose(r.e->config, transfer, &choice);
	if (r.err)
		goto undo;
	read_detector(&r);
	if (r.e->source_state)
		read_cut(&r, choice.options);
	read_link(&r);
	read_ring(&r);
	read_unit(&r);
	read_stages(&r);
	read_sinks(&r);
	read_plain(&r, "frontend", sl_fault_options, &r.e->faults);
	read_plain(&r, "control", control_options, &r.e->control);
	if (r.e->control.port)
		r.e->control.port += choice.port_offset;
	read_plain(&r, "feroce", feroce_options, &r.e->feroce);
	read_emulate(&r);
	check_top(&r);
	if (!r.err)
		check_together(&r);
	/* The text is stored with the run: who may read the file must not learn the secret. */
	if (!r.err && r.e->control.token[0])
		r.err = sl_config_override(r.e->config, "control.token=(not stored)");
	if (!r.err && !(r.e->text = sl_config_text(r.e->config)))
		r.err = -ENOMEM;
	if (r.err)
		goto undo;
	*experiment = r.e;
	return 0;

undo:
	sl_experiment_close(r.e);
	return r.err;
}

void sl_experiment_close(struct sl_experiment *e)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_STAGES; i++)
		free(e->stage_state[i]);
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++)
		free(e->sink_state[i]);
	free(e->source_state);
	free(e->link_state);
	free(e->unit_state);
	free(e->text);
	if (e->config)
		sl_config_close(e->config);
	free(e);
}

uint16_t sl_experiment_pmtu(const struct sl_experiment *experiment)
{
	return (uint16_t)(256u << experiment->link_run.pmtu); /* the choices in their order */
}

uint16_t sl_experiment_service(const struct sl_experiment *experiment)
{
	return experiment->link_run.service ? SL_SERVICE_RC : SL_SERVICE_UC;
}

uint16_t sl_experiment_operation(const struct sl_experiment *experiment)
{
	return experiment->link_run.operation ? SL_OPERATION_SEND : SL_OPERATION_WRITE;
}

uint16_t sl_experiment_message(const struct sl_experiment *experiment)
{
	static const uint16_t choice[] = {0, SL_MESSAGE_PACKET, SL_MESSAGE_MODULE, SL_MESSAGE_LINE};

	if (sl_experiment_operation(experiment) == SL_OPERATION_SEND)
		return SL_MESSAGE_MODULE; /* a posted receive is one block */
	/* A message is one piece of memory: with a pitch a module is many. */
	if (experiment->link_run.message == 0)
		return experiment->ring.line_pitch && experiment->link->message == SL_MESSAGE_MODULE
			       ? SL_MESSAGE_LINE
			       : experiment->link->message;
	return choice[experiment->link_run.message];
}

bool sl_experiment_crc(const struct sl_experiment *experiment)
{
	return experiment->link_run.crc ||
	       experiment->link->proof(sl_experiment_service(experiment),
				       sl_experiment_message(experiment)) == SL_PROOF_CHECKSUM;
}

static uint32_t digest_options(uint32_t crc, const struct sl_option *options, const void *base)
{
	char text[512];

	for (; options->name; options++) {
		sl_option_print(options, base, text, sizeof(text));
		crc = sl_crc32c(crc, options->name, strlen(options->name));
		crc = sl_crc32c(crc, text, strlen(text) + 1);
	}
	return crc;
}

uint64_t sl_experiment_digest(const struct sl_experiment *e)
{
	uint32_t low = digest_options(0, sl_detector_run_options, &e->cut.source_run);
	uint32_t high = digest_options(low, e->source->options, e->source_state);

	high = digest_options(high, sl_cut_options, &e->cut.options);

	return (uint64_t)high << 32 | low;
}
