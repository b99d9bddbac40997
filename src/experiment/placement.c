/* placement.c - data threads to cpus. */
#include "experiment/placement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "net/interface.h"
#include "net/net.h"

enum {
	SPARE = 1, /* cpus for the control thread, interrupts and the rest of the host */
	/* One thread of each kind has its cpu: link, dispatcher, worker, settler, front end. */
	AMPLE = 5 + SPARE,
};

static bool is_loopback(const char *address)
{
	union sl_net_address at;

	return sl_net_numeric(address, 0, &at) && sl_net_same_host(&at);
}

/* Whether the receiver that a front end looks for is on this host. */
static bool receiver_is_here(const struct sl_experiment *e)
{
	char name[IF_NAMESIZE];
	union sl_net_address at;

	if (!strcmp(e->link->wire, "shm") || is_loopback(e->control.address))
		return true;
	if (!sl_net_numeric(e->control.address, 0, &at))
		return false;
	if (at.any.sa_family == AF_INET ? at.v4.sin_addr.s_addr == INADDR_ANY
					: IN6_IS_ADDR_UNSPECIFIED(&at.v6.sin6_addr))
		return true;
	return sl_net_interface(e->control.address, name);
}

/* That of the receiver's data, or of the front end's. */
static void find_interface(const struct sl_experiment *e, const char *root, bool receiver,
			   struct sl_placement *p)
{
	struct sl_link_facts facts;
	const char *list;
	char address[256]; /* the first */

	sl_link_facts(e->link, e->link_state, &facts);
	list = receiver ? facts.listen : facts.source;
	snprintf(address, sizeof(address), "%.*s", (int)strcspn(list, ", "), list);
	p->interface_node = -1;
	if (address[0] && sl_net_interface(address, p->interface))
		p->interface_node = sl_net_interface_node(root, p->interface);
}

/* From the list of the experiment file. */
static int take_listed(struct sl_placement *p, const struct sl_cpus *cpus, const char *option,
		       const char *list)
{
	int number[SL_CPUS], n = sl_cpu_list_numbers(list, number);

	for (int i = 0; i < n; i++) {
		char allowed[256];

		if (CPU_ISSET(number[i], &cpus->allowed)) {
			CPU_SET(number[i], &p->set);
			continue;
		}
		sl_cpu_list_format(&cpus->allowed, allowed, sizeof(allowed));
		sl_error("threads.%s: this process may not run on cpu %d; it may on %s (taskset -c "
			 "... sluice gives it others, if its cgroup has them)",
			 option, number[i], allowed);
		return -EINVAL;
	}
	p->cpus = (unsigned)n;
	p->pinned = p->cpus >= p->threads;
	p->shared = !p->pinned;
	p->crowded = p->cpus < p->threads;
	for (unsigned i = 0; p->pinned && i < p->threads; i++)
		p->cpu[i] = number[i];
	return 0;
}

/* With several transfers nobody knows which of them run on this host, and with how many threads:
 * each may be told its cpus, but none takes any. */
static void take_best(struct sl_placement *p, const struct sl_cpus *cpus, bool pin,
		      unsigned transfers)
{
	int order[SL_CPUS];

	p->cpus = sl_cpus_order(cpus, p->interface_node, order);
	p->crowded = p->cpus < p->line * transfers + SPARE;
	p->pinned = pin && !p->crowded && transfers == 1;
	for (unsigned i = 0; p->pinned && i < p->threads; i++)
		p->cpu[i] = order[p->first + i];
}

static int place(const struct sl_experiment *e, const struct sl_cpus *cpus, const char *option,
		 const char *list, struct sl_placement *p)
{
	int err = 0;

	p->nodes = cpus->nodes;
	CPU_ZERO(&p->set);
	if (p->line > SL_PLACEMENT_THREADS)
		return 0; /* nobody has so many; let them run anywhere */
	if (e->threads.pin && list[0])
		err = take_listed(p, cpus, option, list);
	else
		take_best(p, cpus, e->threads.pin, e->transfers > 1 ? e->transfers : 1);
	for (unsigned i = 0; p->pinned && i < p->threads; i++)
		CPU_SET(p->cpu[i], &p->set);
	p->node = -1;
	if (cpus->nodes > 1 && p->interface_node >= 0)
		p->node = p->interface_node;
	else if (cpus->nodes > 1 && p->pinned)
		p->node = cpus->node[p->cpu[0]];
	return err;
}

/* ---- how many threads there are ---- */

/* Where blocks of this transfer are rendered: by the detector itself, or by what cuts it. */
static const struct sl_detector *renderer(const struct sl_experiment *e)
{
	return e->transfer[0] && e->cut.options.part == SL_CUT_PIXELS ? e->cut.generator
								      : e->detector;
}

static unsigned most_senders(const struct sl_experiment *e)
{
	struct sl_link_facts facts;

	sl_link_facts(e->link, e->link_state, &facts);
	return renderer(e)->parallel && facts.senders ? facts.senders : 1;
}

/* Different cpus in a list of the file; 0: it has none. */
static unsigned listed(const struct sl_experiment *e, const char *list)
{
	cpu_set_t set;

	return e->threads.pin && list[0] && !sl_cpu_list_parse(list, &set)
		       ? (unsigned)CPU_COUNT(&set)
		       : 0;
}

/* Cpus for the threads whose number is chosen: those of the list, or those that are allowed, shared
 * with the other transfers, each of which has threads of its own. */
static unsigned cpus_for(const struct sl_experiment *e, const struct sl_cpus *cpus, bool receiver)
{
	unsigned named = listed(e, receiver ? e->threads.cpus : e->threads.source_cpus), all,
		 others;

	all = named ? named : (unsigned)CPU_COUNT(&cpus->allowed);
	all /= e->transfers > 1 && !named ? e->transfers : 1;
	/* Threads that never sleep share no cpu, nor do those of a list as long as it lasts: then
	 * dispatcher and settler have theirs, too, and so has the worker without stages. */
	others = receiver ? 2 + !e->stages : 0;
	if (!named)
		others = e->threads.polling == SL_POLLING_LATENCY ? others + SPARE : 0;
	return all > others ? all - others : 1;
}

/* Of receiver and front end on one host: both make the same of the same file. */
static struct sl_thread_terms terms_of(const struct sl_experiment *e, const struct sl_cpus *cpus,
				       bool receiver, bool source)
{
	unsigned chosen = e->unit->choose_workers ? e->unit->choose_workers(e->unit_state, 0) : 0;
	unsigned senders = most_senders(e), named = listed(e, e->threads.source_cpus);

	/* One thread takes what they send. */
	if (e->threads.together && !e->threads.senders)
		senders = 1;
	return (struct sl_thread_terms){
		.cpus = cpus_for(e, cpus, receiver),
		.modules = e->run.modules,
		.stages = e->stages > 0,
		.receiver_here = receiver,
		.source_here = source,
		.most_pollers = e->link->pollers && !e->threads.together ? e->link->pollers : 1,
		.most_workers = chosen && !e->threads.together ? SL_UNIT_WORKERS : 1,
		.most_senders = named && named < senders ? named : senders,
		.pollers = e->link_options.pollers,
		.workers = chosen	      ? 0
			   : e->unit->workers ? e->unit->workers(e->unit_state)
					      : 1,
		.senders = e->threads.senders < senders ? e->threads.senders : senders,
	};
}

static unsigned receivers(const struct sl_placement *p)
{
	return p->together ? 2 : p->pollers + 1 + p->workers + 1;
}

static void count_threads(const struct sl_thread_terms *terms, struct sl_placement *p)
{
	struct sl_thread_counts counts;

	sl_thread_counts_choose(terms, &counts);
	p->pollers = counts.pollers;
	p->workers = counts.workers;
	p->sources = counts.senders;
	p->fills = terms->cpus >= AMPLE && !(terms->pollers && terms->workers && terms->senders);
	sl_thread_counts_describe(terms, &counts, p->counts, sizeof(p->counts));
}

/* ---- both sides ---- */

int sl_placement_receiver(const struct sl_experiment *e, const char *root, struct sl_placement *p)
{
	bool here = !strcmp(e->link->wire, "shm") || e->emulate_local ||
		    (!e->feroce.enable && is_loopback(e->control.address));
	struct sl_thread_terms terms;
	struct sl_cpus cpus;

	*p = (struct sl_placement){.node = -1};
	sl_cpus_read(root, &cpus);
	p->together = e->threads.together;
	terms = terms_of(e, &cpus, true, here);
	count_threads(&terms, p);
	p->sources = here ? p->sources : 0;
	p->threads = receivers(p);
	p->line = p->threads + p->sources;
	find_interface(e, root, true, p);
	return place(e, &cpus, "cpus", e->threads.cpus, p);
}

/* Of all senders, its share by its modules. */
static unsigned share_of(unsigned senders, unsigned modules, unsigned all)
{
	unsigned share = senders * modules / all;

	return share > modules ? modules : share ? share : 1;
}

/* Several front ends share the modules out; then there is a place in the line for each module,
 * since they do not know of each other. */
int sl_placement_source(const struct sl_experiment *e, const char *root, uint32_t first_module,
			uint32_t end_module, struct sl_placement *p)
{
	bool all = first_module == 0 && end_module == e->run.modules;
	bool receiver = receiver_is_here(e);
	struct sl_thread_terms terms;
	struct sl_cpus cpus;

	*p = (struct sl_placement){.node = -1};
	sl_cpus_read(root, &cpus);
	p->together = e->threads.together;
	terms = terms_of(e, &cpus, receiver, true);
	count_threads(&terms, p);
	p->sources = p->threads = share_of(p->sources, end_module - first_module, e->run.modules);
	p->first = receiver ? receivers(p) : 0;
	find_interface(e, root, receiver, p);
	p->line = p->first + (all ? p->threads : e->run.modules);
	p->first += all ? 0 : first_module;
	return place(e, &cpus, "source_cpus", e->threads.source_cpus, p);
}

const cpu_set_t *sl_placement_of(const struct sl_placement *p, enum sl_role role, unsigned index,
				 cpu_set_t *set)
{
	unsigned before[] = {
		[SL_ROLE_LINK] = 0,
		[SL_ROLE_DISPATCHER] = p->pollers,
		[SL_ROLE_WORKER] = p->pollers + 1,
		[SL_ROLE_SETTLER] = receivers(p) - 1,
		[SL_ROLE_SOURCE] = 0, /* a process has these or the others */
	};
	unsigned at = before[role] + index;

	if (p->shared) {
		*set = p->set;
		return set;
	}
	if (!p->pinned || at >= p->threads || (role == SL_ROLE_WORKER && index >= p->workers))
		return NULL;
	CPU_ZERO(set);
	CPU_SET(p->cpu[at], set);
	return set;
}

void sl_placement_idle(const struct sl_placement *p, const struct sl_experiment *e,
		       struct sl_idle *idle)
{
	uint64_t limit_ns = e->threads.spin_us * UINT64_C(1000);

	/* When cpus are scarce, a spinning thread starves the thread it waits for. */
	if (p->crowded && e->threads.polling == SL_POLLING_ADAPTIVE)
		limit_ns = 0;
	sl_idle_init(idle, (enum sl_polling)e->threads.polling, limit_ns, p->crowded);
}

void sl_placement_describe(const struct sl_placement *p, char *text, size_t bytes)
{
	char list[256], near[64] = "";

	sl_cpu_list_format(&p->set, list, sizeof(list));
	if (p->nodes > 1 && p->interface_node >= 0)
		snprintf(near, sizeof(near), "; %s is on node %d", p->interface, p->interface_node);
	if (p->pinned)
		snprintf(text, bytes, "data threads have a cpu each: %s%s", list, near);
	else if (p->shared)
		snprintf(text, bytes, "%u data threads share the cpus %s%s", p->threads, list,
			 near);
	else if (p->crowded)
		snprintf(text, bytes,
			 "%u data threads on this host and %u cpu%s: none is pinned, the scheduler "
			 "does better",
			 p->line, p->cpus, p->cpus > 1 ? "s" : "");
	else
		snprintf(text, bytes, "data threads are not pinned");
}
