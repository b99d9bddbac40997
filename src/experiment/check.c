/* check.c - options that are right by themselves and wrong together. Every problem is reported that
 * does not follow from another one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "core/registry.h"
#include "experiment/parts.h"

/* The problems of one section. */
struct problems {
	const struct sl_experiment *e;
	const struct sl_node *at;
	int err;
};

static struct problems in_section(const struct sl_experiment *e, const char *name)
{
	return (struct problems){.e = e, .at = sl_node_get(e->config->root, name)};
}

static void report_if(struct problems *p, bool wrong, const char *problem)
{
	if (!wrong)
		return;
	sl_config_error(p->e->config, p->at, "%s", problem);
	p->err = -EINVAL;
}

static int lacks(const struct sl_experiment *e, const struct sl_node *at, const char *what)
{
	sl_config_error(e->config, at, "link '%s' has no %s", e->link->name, what);
	return -EINVAL;
}

/* What the link does not have is said before anything is opened. */
int sl_experiment_check_link(const struct sl_experiment *e, const struct sl_node *at)
{
	int err = 0;

	if (!(e->link->services & sl_experiment_service(e)))
		err = lacks(e, at, e->link_options.service ? "service rc" : "service uc");
	if (!(e->link->operations & sl_experiment_operation(e)))
		err = lacks(e, at,
			    e->link_options.operation ? "operation send" : "operation write");
	if (e->link_options.pollers > (e->link->pollers ? e->link->pollers : 1)) {
		sl_config_error(e->config, at, "link '%s' has work for %u thread%s at most",
				e->link->name, e->link->pollers ? e->link->pollers : 1,
				e->link->pollers > 1 ? "s" : "");
		err = -EINVAL;
	}
	if ((e->link_options.message == 1 || e->link_options.message == 3) &&
	    e->link_options.operation) {
		sl_config_error(e->config, at,
				"operation send takes one message per module: a posted receive "
				"is one block");
		err = -EINVAL;
	}
	return err;
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
static int check_pool(const struct sl_experiment *e)
{
	const struct sl_detector *generator = e->generator;
	uint32_t pool, seen, factor;

	pool = generator->repeats_after ? generator->repeats_after(e->generator_state) : 0;
	if (!pool)
		return 0;
	/* Of the pool a transfer that leaves frames out may see only a part. */
	seen = pool / common_factor(pool, e->cut.options.every * e->cut.options.stack % pool);
	factor = common_factor(seen, e->ring.slots);
	if (factor == 1 && (seen > 1 || pool == 1))
		return 0;
	if (seen == 1) {
		sl_config_error(e->config, sl_node_get(e->config->root, "transfers"),
				"%s: every * stack is a multiple of detector.pool (%u): it would "
				"send the same pixels again and again; change one of them",
				e->transfer, pool);
		return -EINVAL;
	}
	sl_config_error(
		e->config, sl_node_get(e->config->root, "ring"),
		"detector.pool (%u) and ring.slots (%u) have the factor %u in common, so that "
		"stale pixels could look right; change one of them",
		pool, e->ring.slots, factor);
	return -EINVAL;
}

static int check_feroce(const struct sl_experiment *e)
{
	struct problems p = in_section(e, "feroce");
	bool rc = sl_experiment_service(e) == SL_SERVICE_RC;

	if (!e->feroce.enable)
		return 0;
	report_if(&p, !e->link->bare, "this link does not take its devices: set link.kind: udp");
	report_if(&p, !rc, "its devices speak RC only: set link.service: rc");
	report_if(&p, e->emulate_local, "the emulator is no FEROCE device: set emulate: none");
	report_if(&p, e->link->bare && rc && sl_experiment_crc(e) && !e->feroce.record,
		  "without records there is no checksum of the pixels: link.crc must be false, "
		  "and so must be what needs it");
	report_if(&p, e->link->bare && e->feroce.open[0] && !e->link->receiving->set_queue,
		  "this link cannot ask devices: feroce.open must be empty");
	return p.err;
}

/* A link that knows headers of several detectors, ours among them, and is set to another. */
static bool other_headers(const struct sl_experiment *e)
{
	struct sl_link_facts facts;

	sl_link_facts(e->link, e->link_state, &facts);
	return facts.detector && strstr(facts.detectors, e->generator->name) &&
	       strcmp(facts.detector, e->generator->name) != 0;
}

/* Where nothing goes back to the source, and it sends no records. */
static int check_oneway(const struct sl_experiment *e)
{
	const struct {
		bool wrong;
		const char *problem;
	} rule[] = {
		{e->link_options.crc,
		 "its detectors send no checksum of the pixels: crc must be false"},
		{e->link_options.message > 0 && e->link_options.message != 2,
		 "its detectors know no messages: message must be auto"},
		{e->cut.options.stack > 1,
		 "its packets are numbered by frame: no transfer may have a stack"},
		{e->link->oneway && other_headers(e),
		 "its headers are those of another detector than detector.kind: set "
		 "link.detector to that"},
		{e->control.keeper[0],
		 "a detector that nothing binds to a receiver needs no keeper: control.keeper must "
		 "be empty"},
	};
	int err = 0;

	for (size_t i = 0; e->link->oneway && i < sizeof(rule) / sizeof(rule[0]); i++) {
		if (!rule[i].wrong)
			continue;
		sl_config_error(e->config, sl_node_get(e->config->root, "link"), "link '%s': %s",
				e->link->name, rule[i].problem);
		err = -EINVAL;
	}
	return err;
}

static int check_pitch(const struct sl_experiment *e)
{
	struct problems p = in_section(e, "ring");

	if (!e->ring.line_pitch)
		return 0;
	report_if(&p, e->ring.line_pitch % 64, "line_pitch must be a multiple of 64");
	report_if(&p, !e->link->oneway && sl_experiment_message(e) == SL_MESSAGE_MODULE,
		  "with a line_pitch a module is not one piece of memory: link.message must be "
		  "packet or line, link.operation write");
	return p.err;
}

static int check_faults(const struct sl_experiment *e)
{
	const struct sl_fault_setting setting = {
		.link = e->link,
		.service = sl_experiment_service(e),
		.operation = sl_experiment_operation(e),
		.by_sequence = e->ring.align == SL_ALIGN_SEQUENCE || e->link->oneway,
		.modules = e->run.modules,
		.slack = e->ring.slots - 2 - e->ring.late_frames,
	};
	struct problems p = in_section(e, "frontend");
	char why[256];

	for (unsigned i = 0; i < SL_FAULT_RULES; i++)
		report_if(&p, sl_fault_rule_broken(&e->faults, &setting, i, why, sizeof(why)), why);
	return p.err;
}

/* ---- answers, and who gives them ---- */

static uint16_t feedback_service(const struct sl_experiment *e)
{
	return e->feedback.service ? SL_SERVICE_RC : SL_SERVICE_UC;
}

/* What a sink has in common with section `feedback` of the same file, and sets otherwise. NULL:
 * nothing. Addresses may differ: there are wildcards, and relays. */
static const char *contradiction(const struct sl_experiment *e, unsigned sink)
{
	struct sl_feedback_sender_options to;
	const struct sl_link *there, *here;

	if (e->sink[sink]->feedback(e->sink_state[sink], &to) != e->feedback.by)
		return "by";
	if (to.port != e->feedback.port)
		return "port";
	if (!e->feedback.by)
		return NULL;
	if (to.service != feedback_service(e))
		return "service";
	there = sl_link_find(to.link);
	here = sl_link_find(e->feedback.link);
	/* Those that are not there, or go one way, have words of their own. */
	if (!there || !here || there->oneway || here->oneway)
		return NULL;
	return strcmp(there->wire, here->wire) != 0 ? "link" : NULL;
}

static struct sl_node *feedback_section(const struct sl_experiment *e)
{
	struct sl_node *node = sl_node_get(e->config->root, "feedback");

	return node ? node : sl_node_get(e->config->root, "answers"); /* its former name */
}

/* Both ends are in this file: that nothing would come is known now. */
static int check_feedback(const struct sl_experiment *e)
{
	struct sl_node *at = feedback_section(e);
	const char *wrong = NULL;
	unsigned sinks = 0;

	if (!e->emulate_local || !e->feedback.address[0])
		return 0;
	for (unsigned i = 0; i < e->sinks; i++) {
		if (!e->sink[i]->feedback)
			continue;
		sinks++;
		wrong = contradiction(e, i);
		if (!wrong)
			return 0;
	}
	if (!sinks)
		sl_config_error(e->config, at,
				"the front end listens for answers, and there is no sink feedback "
				"that gives them");
	else
		sl_config_error(e->config, at,
				"feedback.%s and %s of the sink feedback differ: the front end "
				"would hear nothing; set both to the same",
				wrong, wrong);
	return -EINVAL;
}

/* What only RDMA WRITE has. */
static int check_datagrams(const struct sl_experiment *e)
{
	int err = 0;

	if (e->feedback.address[0] && !e->feedback.by && e->feedback.service) {
		sl_config_error(e->config, feedback_section(e),
				"service rc is for by: write; UDP packets have no service");
		err = -EINVAL;
	}
	for (unsigned i = 0; i < e->sinks; i++) {
		struct sl_feedback_sender_options to;

		if (!e->sink[i]->feedback ||
		    e->sink[i]->feedback(e->sink_state[i], &to) != SL_FEEDBACK_BY_UDP ||
		    (to.service != SL_SERVICE_RC && to.device.qpn == 0))
			continue;
		sl_config_error(e->config, sl_node_get(e->config->root, "sinks"),
				"feedback: service rc and qpn are for by: write; UDP packets have "
				"neither");
		err = -EINVAL;
	}
	return err;
}

static int check_cpu_list(const struct sl_experiment *e, const char *name, const char *list)
{
	struct sl_node *threads = sl_node_get(e->config->root, "threads");
	cpu_set_t set;

	if (sl_cpu_list_parse(list, &set) == 0)
		return 0;
	sl_config_error(e->config, sl_node_get(threads, name),
			"'%s' is no list of cpus; takes numbers and ranges, as in 2-5 8", list);
	return -EINVAL;
}

static int check_cpus(const struct sl_experiment *e)
{
	int err = check_cpu_list(e, "cpus", e->threads.cpus);

	return check_cpu_list(e, "source_cpus", e->threads.source_cpus) ? -EINVAL : err;
}

/* Its finish() sleeps: the link would not be polled meanwhile. */
static int check_waits(const struct sl_experiment *e, const struct sl_node *at)
{
	int err = 0;

	for (unsigned s = 0; s < e->stages; s++)
		if (e->stage[s]->waits) {
			sl_config_error(e->config, at,
					"together: stage '%s' waits for another process, and no "
					"packets would be taken meanwhile; set together to false",
					e->stage[s]->name);
			err = -EINVAL;
		}
	return err;
}

/* One thread for all of it: there is no second one to poll or to work. */
static int check_together(const struct sl_experiment *e)
{
	const struct sl_unit *unit = e->unit;
	struct sl_node *threads = sl_node_get(e->config->root, "threads");
	const struct sl_node *at = threads ? sl_node_get(threads, "together") : NULL;
	unsigned workers = unit->workers ? unit->workers(e->unit_state) : 1;
	int err = 0;

	if (!e->threads.together)
		return 0;
	if (e->link_options.pollers > 1) {
		sl_config_error(e->config, at,
				"together: one thread takes all data; set link.pollers to 1 (it is "
				"%u), or together to false",
				e->link_options.pollers);
		err = -EINVAL;
	}
	err = check_waits(e, at) ? -EINVAL : err;
	if (unit->drives) {
		sl_config_error(e->config, at,
				"together: unit '%s' drives a device, which takes a thread of its "
				"own; set unit.kind to cpu, or together to false",
				unit->name);
		return -EINVAL;
	}
	if (workers == 1)
		return err;
	sl_config_error(e->config, at,
			"together: one thread runs the stages; set unit.workers to 1 (it is %u), "
			"or together to false",
			workers);
	return -EINVAL;
}

static int check_ring(const struct sl_experiment *e)
{
	struct problems p = in_section(e, "ring");
	const char *problem;

	for (unsigned i = 0; i < SL_RING_RULES; i++) {
		problem = sl_ring_rule_broken(&e->ring, e->run.modules, i);
		report_if(&p, problem, problem);
	}
	if (e->ring.late_frames > e->ring.slots - 2) {
		sl_config_error(e->config, p.at,
				"late_frames (%u) must be at most slots - 2 (%u), else a late "
				"module would stop the ring",
				e->ring.late_frames, e->ring.slots - 2);
		p.err = -EINVAL;
	}
	return p.err;
}

static int check_sinks(const struct sl_experiment *e)
{
	if (e->sinks || e->no_sinks)
		return 0;
	sl_config_error(e->config, e->config->root,
			"no sinks: frames would go nowhere; add  sinks: ['null']  to throw them "
			"away");
	return -EINVAL;
}

int sl_experiment_check(const struct sl_experiment *e, unsigned bad)
{
	static const struct {
		int (*check)(const struct sl_experiment *e);
		unsigned needs, spoils; /* enum sl_section_bit; what is no base for other checks */
	} table[] = {
		{check_ring, SL_SECTION_RING | SL_SECTION_DETECTOR, SL_SECTION_RING},
		{check_pitch, SL_SECTION_RING | SL_SECTION_LINK, 0},
		{check_pool, SL_SECTION_DETECTOR | SL_SECTION_RING, 0},
		{check_feroce, SL_SECTION_FEROCE | SL_SECTION_LINK | SL_SECTION_EMULATE, 0},
		{check_oneway, SL_SECTION_LINK | SL_SECTION_DETECTOR | SL_SECTION_CONTROL, 0},
		{check_faults,
		 SL_SECTION_FRONTEND | SL_SECTION_LINK | SL_SECTION_RING | SL_SECTION_DETECTOR, 0},
		{check_feedback, SL_SECTION_FEEDBACK | SL_SECTION_SINKS | SL_SECTION_EMULATE, 0},
		{check_datagrams, SL_SECTION_FEEDBACK | SL_SECTION_SINKS, 0},
		{check_cpus, SL_SECTION_THREADS, 0},
		{check_together,
		 SL_SECTION_THREADS | SL_SECTION_LINK | SL_SECTION_UNIT | SL_SECTION_STAGES, 0},
		{check_sinks, SL_SECTION_SINKS, 0},
		{sl_experiment_check_metadata,
		 SL_SECTION_METADATA | SL_SECTION_SINKS | SL_SECTION_DETECTOR, 0},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].needs & bad || !table[i].check(e))
			continue;
		err = -EINVAL;
		bad |= table[i].spoils;
	}
	return err;
}
