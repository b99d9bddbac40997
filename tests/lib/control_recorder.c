/* control_recorder.c - calls of a control driver, each held against the promises. */
#include "lib/control_recorder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct recorded_module *module_of(struct recorder *r, uint32_t module)
{
	assert_true(module < RECORDER_MODULES);
	return &r->module[module];
}

/* A transfer's number is its module's, plus 100 for each time that it was planned. */
static struct recorded_module *planned_as(struct recorder *r, uint16_t transfer)
{
	struct recorded_module *m = module_of(r, transfer % 100);

	assert_int_equal(transfer / 100, m->accepts);
	assert_true(m->planned);
	return m;
}

static int make_offer(void *arg, struct sl_offer *offer)
{
	struct recorder *r = arg;

	r->calls++;
	offer->services = SL_SERVICE_UC;
	return 0;
}

static int accept_offer(void *arg, const struct sl_offer *offer, bool same_host,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct recorder *r = arg;
	struct recorded_module *m = module_of(r, offer->module);

	r->calls++;
	assert_false(m->planned); /* one source at a time */
	if (r->accept_error) {
		snprintf(why, why_bytes, "the recorder refuses");
		return r->accept_error;
	}
	m->planned = true;
	m->accepts++;
	*plan = (struct sl_plan){
		.version = SL_PLAN_VERSION,
		.transfer = (uint16_t)(100 * m->accepts + offer->module),
		.module = offer->module,
		.service = SL_SERVICE_RC,
		.operation = SL_OPERATION_WRITE,
		.qpn = 5000u + 10 * m->accepts + offer->module,
		.slots = RECORDER_SLOTS,
		.packets = RECORDER_PACKETS,
		.block_bytes = offer->block_bytes,
		.dest = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .port = 4711},
	};
	return 0;
}

static int set_queue(void *arg, uint16_t transfer, uint32_t qpn)
{
	struct recorder *r = arg;

	r->calls++;
	planned_as(r, transfer)->qpn = qpn;
	return 0;
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	struct recorder *r = arg;
	struct recorded_module *m = planned_as(r, transfer);

	r->calls++;
	assert_false(r->running);
	m->planned = false;
	m->cancelled_plans++;
}

static void cancel_offer(void *arg, uint32_t module)
{
	struct recorder *r = arg;
	struct recorded_module *m = module_of(r, module);

	r->calls++;
	assert_true(r->running && !m->planned);
	m->cancelled_offers++;
}

/* Once, after the start, of a source that has a plan. */
static struct recorded_module *over(struct recorder *r, uint32_t module)
{
	struct recorded_module *m = module_of(r, module);

	r->calls++;
	assert_true(r->running && m->planned);
	m->planned = false;
	return m;
}

static int count(void *arg, uint32_t module, uint64_t next, uint64_t sent, uint64_t position,
		 bool final, char *why, size_t why_bytes)
{
	struct recorder *r = arg;

	assert_true(r->running && module_of(r, module)->planned);
	if (r->count_error) {
		r->calls++;
		snprintf(why, why_bytes, "the recorder does not believe it");
		return r->count_error;
	}
	if (final)
		over(r, module)->finals++;
	else
		r->module[module].counts++;
	return 0;
}

static void end(void *arg, uint32_t module)
{
	over(arg, module)->ends++;
}

static void cut(void *arg, uint32_t module)
{
	over(arg, module)->cuts++;
}

static void source_lost(void *arg, uint32_t module)
{
	over(arg, module)->losses++;
}

static void limit(void *arg, uint64_t sequence)
{
	struct recorder *r = arg;

	r->calls++;
	r->limit = sequence;
}

static void progress(void *arg, uint32_t module, struct sl_progress *progress)
{
	*progress = module_of(arg, module)->progress;
}

const struct sl_control_ops recorder_ops = {
	.offer = make_offer,
	.accept = accept_offer,
	.set_queue = set_queue,
	.cancel_plan = cancel_plan,
	.cancel_offer = cancel_offer,
	.count = count,
	.end = end,
	.cut = cut,
	.source_lost = source_lost,
	.limit = limit,
	.progress = progress,
};

void recorder_init(struct recorder *recorder)
{
	*recorder = (struct recorder){.limit = UINT64_MAX};
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		recorder->module[m].progress = (struct sl_progress){
			.end = RECORDER_FRAMES,
			.opened = RECORDER_SLOTS,
			.packets_whole = RECORDER_PACKETS,
			.waits = true,
		};
}

unsigned recorder_over(const struct recorder *recorder, uint32_t module)
{
	const struct recorded_module *m = &recorder->module[module];

	return m->finals + m->ends + m->cuts + m->losses;
}

void recorder_arrive(struct recorder *recorder, uint32_t module, uint64_t reached)
{
	struct sl_progress *p = &recorder->module[module].progress;

	p->reached = reached;
	p->packets = reached ? RECORDER_PACKETS : 0;
	p->opened = reached + RECORDER_SLOTS;
	/* Of all modules together. */
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		recorder->module[m].progress.arrived++;
}
