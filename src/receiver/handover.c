/* handover.c - handover states: left behind by one receiver, taken up by the next. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "receiver/handover.h"
#include "receiver/private.h"

_Static_assert((int)SL_HANDOVER_MODULES == (int)SL_ASSEMBLER_MODULES, "one transfer per module");

void sl_handover_init(struct sl_handover *handover)
{
	memset(handover, 0, sizeof(*handover));
	handover->region = handover->notes = handover->link_fd = -1;
	for (unsigned i = 0; i < SL_HANDOVER_MODULES; i++)
		handover->transfer[i].fd = -1;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void sl_handover_close(struct sl_handover *handover)
{
	close_fd(&handover->region);
	close_fd(&handover->notes);
	close_fd(&handover->link_fd);
	for (unsigned i = 0; i < SL_HANDOVER_MODULES; i++)
		close_fd(&handover->transfer[i].fd);
}

/* What of the experiment is not as sources were told; NULL: nothing. */
static const char *misfit(const struct sl_receiver *r, const struct sl_handover *handover)
{
	const struct sl_experiment *e = r->experiment;

	if (strcmp(handover->link, e->link->name) != 0)
		return "link.kind";
	if (handover->experiment != sl_experiment_digest(e) ||
	    handover->modules != r->geometry.modules)
		return "the detector section";
	if (handover->slots != e->ring.slots)
		return "ring.slots";
	return NULL;
}

/* Memory of an earlier receiver. Its pages are there; that they are known to this process is seen
 * to now, as in sl_region_open(). */
static int map(int fd, uint64_t bytes, struct sl_region *region)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int err = own < 0 ? -errno : sl_region_map(own, bytes, region);

	if (err && own >= 0)
		close(own);
	if (!err)
		madvise(region->base, region->bytes, MADV_POPULATE_WRITE);
	return err;
}

int sl_receiver_open_memory(struct sl_receiver *r, uint64_t bytes)
{
	const uint64_t notes = (uint64_t)SL_LINK_TRANSFERS * SL_LINK_NOTE_BYTES;
	const struct sl_link *link = r->experiment->link;
	const char *what;
	int err;

	if (r->outlives && r->experiment->others) {
		sl_error("control.keeper is for one detector, and this experiment has %u",
			 r->experiment->others + 1);
		return -ENOTSUP;
	}
	if (!r->outlives)
		return sl_region_open(link->places, bytes, &r->memory[0].region);
	if (link->no_handover) {
		sl_error("control.keeper: link '%s' cannot outlive the receiver: %s", link->name,
			 link->no_handover);
		return -ENOTSUP;
	}
	if (!r->handover_from) {
		err = sl_region_open(SL_REGION_SHARED, bytes, &r->memory[0].region);
		return err ? err : sl_region_open(SL_REGION_SHARED, notes, &r->notes);
	}
	what = misfit(r, r->handover_from);
	if (what) {
		sl_error(
			"%s differs from the configuration that the kept sources are using; set it "
			"back, or begin anew (sluice keeper NAME --forget, then restart the "
			"sources)",
			what);
		return -EINVAL;
	}
	err = map(r->handover_from->region, bytes, &r->memory[0].region);
	if (!err)
		err = map(r->handover_from->notes, notes, &r->notes);
	if (err)
		sl_error("the memory that the keeper holds cannot be used: %s", strerror(-err));
	return err ? -EINVAL : 0;
}

void sl_receiver_hand_over(const struct sl_receiver *r, struct sl_handover *handover)
{
	const struct sl_experiment *e = r->experiment;

	sl_handover_init(handover);
	snprintf(handover->link, sizeof(handover->link), "%s", e->link->name);
	handover->experiment = sl_experiment_digest(e);
	handover->slots = r->feed[0].ring.slots;
	handover->modules = r->modules;
	handover->region_bytes = r->memory[0].region.bytes;
	handover->host = r->same_clock;
	handover->region = r->memory[0].region.fd;
	handover->notes = r->notes.fd;
	handover->link_fd = e->link->handover->keep(e->link_state, SL_LINK_TRANSFERS);
	for (uint32_t m = 0; m < r->modules; m++) {
		handover->transfer[m].offer = r->source[m].offer;
		handover->transfer[m].plan = r->source[m].plan;
		handover->transfer[m].fd =
			e->link->handover->keep(e->link_state, r->source[m].transfer);
	}
}

/* Each module begins with `first`; by sequence they begin together. */
static void begin(struct sl_receiver *r, const uint64_t *first)
{
	bool together = r->experiment->ring.align == SL_ALIGN_SEQUENCE;
	uint64_t highest = 0, end = 0, left = 0;

	for (uint32_t m = 0; m < r->modules; m++)
		if (first[r->source[m].transfer] > highest)
			highest = first[r->source[m].transfer];
	for (uint32_t m = 0; m < r->modules; m++) {
		struct sl_source *s = &r->source[m];
		uint64_t k = together ? highest : first[s->transfer];
		uint64_t since = s->plan.first_sequence;

		s->first = k;
		/* The sequence after the last that it offered, as in a run that was not taken
		 * over. */
		if (s->offered)
			s->offered = since + s->offer.frames;
		if (!s->offered)
			end = UINT64_MAX;
		else if (s->offered > end)
			end = s->offered;
		if (s->offered > k && s->offered - k > left)
			left = s->offered - k;
		sl_ring_begin(&r->feed[0].ring, m, k);
		sl_assembler_skip(&r->feed[0].assembler, m, k);
		sl_assembler_begin(&r->feed[0].assembler, m, k,
				   s->offer.first_frame +
					   (k - since) * r->feed[0].assembler.options.frame_step);
		sl_ledger_begin(&r->ledger, m, k);
	}
	r->expected = left;
	sl_receiver_limit(r, end);
	/* What waits in the sockets comes at once. */
	sl_ring_open(&r->feed[0].ring, end);
}

int sl_receiver_take_over(struct sl_receiver *r)
{
	uint64_t first[SL_LINK_TRANSFERS] = {0};
	char why[160] = "";

	for (uint32_t m = 0; m < r->handover_from->modules; m++) {
		const struct sl_handover_transfer *t = &r->handover_from->transfer[m];
		struct sl_plan plan = t->plan;

		if (t->offer.module != m || sl_receiver_accept(r, &t->offer, r->handover_from->host,
							       &plan, why, sizeof(why))) {
			sl_error("module %u cannot be taken over%s%s", m, why[0] ? ": " : "", why);
			return -EINVAL;
		}
	}
	r->experiment->link->handover->resume(r->experiment->link_state, first);
	begin(r, first);
	r->handover_from = NULL;
	r->taken_over = true;
	sl_info("took over %u modules; this run begins with sequence %llu", r->modules,
		(unsigned long long)r->feed[0].assembler.next);
	if (r->experiment->run.dark_frames &&
	    r->feed[0].assembler.next >= r->experiment->run.dark_frames)
		sl_warn("dark frames were sent before: pedestals of this run are those of the "
			"calibration, until dark frames come again");
	return 0;
}

uint32_t sl_receiver_plans(const struct sl_receiver *r)
{
	return r->plans;
}
