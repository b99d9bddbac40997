/* accept.c - the offer of a front end becomes a transfer of the receiver, or is refused with the
 * reason. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "receiver/private.h"

/* An offer of more is one without end. */
#define ENDLESS (UINT64_C(1) << 62)

/* What the experiment wants of a transfer and the front end does not offer, with the key that would
 * change it. */
static bool offer_lacks(const struct sl_experiment *e, const struct sl_offer *offer, char *why,
			size_t why_bytes)
{
	const char *what = NULL;

	if (!(offer->services & sl_experiment_service(e)))
		what = e->link_options.service ? "service: rc" : "service: uc";
	else if (!(offer->operations & sl_experiment_operation(e)))
		what = e->link_options.operation ? "operation: send" : "operation: write";
	else if (!(offer->messages & sl_experiment_message(e)))
		what = sl_experiment_message(e) == SL_MESSAGE_MODULE ? "message: module"
		       : sl_experiment_message(e) == SL_MESSAGE_LINE ? "message: line"
								     : "message: packet";
	else if (offer->max_pmtu < 256 && !e->link->oneway)
		what = "a PMTU of 256 at least";
	if (what)
		snprintf(why, why_bytes, "it does not offer what is set here: link {%s}", what);
	return what != NULL;
}

enum family { ANY, V4, V6 };

static enum family family_of(const uint8_t *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(ip, mapped, sizeof(mapped)) ? V6 : V4;
}

/* Of a list of addresses; ANY: none is known, or both. */
static enum family family_of_list(const char *list)
{
	bool v6 = strchr(list, ':'), v4 = false;

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		v4 |= !memchr(at, ':', strcspn(at, ","));
	return v4 == v6 ? ANY : v6 ? V6 : V4;
}

/* No packet of such a source could be accepted, or no credit reach it. */
static bool is_hopeless(const struct sl_experiment *e, const struct sl_offer *offer, char *why,
			size_t why_bytes)
{
	static const uint8_t nowhere[4];
	enum family source = family_of(offer->source.ip), here;
	struct sl_link_facts facts;

	if (e->link->oneway || strcmp(e->link->wire, "roce") != 0)
		return false;
	sl_link_facts(e->link, e->link_state, &facts);
	here = family_of_list(facts.listen);
	if (!memcmp(offer->source.ip + 12, nowhere, sizeof(nowhere)) &&
	    (source == V4 || !memcmp(offer->source.ip, (uint8_t[12]){0}, 12)))
		snprintf(why, why_bytes,
			 "it offers no address that packets come from (source.ip is 0)");
	else if (here != ANY && here != source)
		snprintf(why, why_bytes, "its address is IPv%d, and link.listen is IPv%d",
			 source == V4 ? 4 : 6, here == V4 ? 4 : 6);
	else if (offer->ip_id > SL_IP_ID_ANY)
		snprintf(why, why_bytes, "ip_id is %u: takes 0 (zero), 1 (counts) or 2 (any)",
			 offer->ip_id);
	else if (offer->credit_va && !offer->credit_port)
		snprintf(why, why_bytes,
			 "it wants credits (credit_va) and names no port for them (credit_port is "
			 "0)");
	else
		return false;
	return true;
}

/* Where a block is placed line by line, both must mean the same lines. */
static bool lines_differ(const struct sl_feed *f, const struct sl_offer *offer, char *why,
			 size_t why_bytes)
{
	const struct sl_lines *lines = &f->ring.lines;

	if (!lines->pitch && sl_experiment_message(f->experiment) != SL_MESSAGE_LINE)
		return false;
	if (offer->lines &&
	    (!lines->pitch || (offer->lines == lines->count && offer->line_bytes == lines->bytes)))
		return false;
	snprintf(why, why_bytes,
		 "its blocks have %u lines of %u bytes, here they have %u of %u (ring.line_pitch, "
		 "link.message: line)",
		 offer->lines, offer->line_bytes, lines->count, lines->bytes);
	return true;
}

/* Shared memory has its credits elsewhere. */
static bool is_open_loop(const struct sl_experiment *e, const struct sl_offer *offer)
{
	const struct sl_link *link = e->link;

	return link->oneway || (!offer->credit_va && !strcmp(link->wire, "roce"));
}

/* It takes credits; or over RC our own responder, or a NIC without a posted receive, tells it to
 * come again. */
static bool can_wait(const struct sl_experiment *e, const struct sl_offer *offer)
{
	bool asked = sl_experiment_service(e) == SL_SERVICE_RC &&
		     ((e->link->guards & SL_GUARD_ENFORCED) ||
		      sl_experiment_operation(e) == SL_OPERATION_SEND);

	return asked || !is_open_loop(e, offer);
}

/* ring.overrun says what to do with a source for which there is no room, and this one would never
 * be treated so. */
static bool policy_lacks(const struct sl_experiment *e, const struct sl_offer *offer, char *why,
			 size_t why_bytes)
{
	bool waits = can_wait(e, offer);

	if (e->ring.overrun == SL_OVERRUN_PAUSE && !waits)
		snprintf(why, why_bytes,
			 "it takes no credits and cannot be paused; set ring.overrun to stop, "
			 "drop_newest or drop_oldest");
	else if (e->ring.overrun == SL_OVERRUN_DROP_NEWEST && waits)
		snprintf(why, why_bytes,
			 "it waits until there is room, so that drop_newest would never drop "
			 "anything; set ring.overrun to pause, stop or drop_oldest");
	else
		return false;
	return true;
}

/* The plan is known, and the source goes by it. */
static int take_over_transfer(struct sl_receiver *r, const struct sl_offer *offer,
			      const struct sl_plan *plan)
{
	int kept = r->handover_from->transfer[offer->module].fd;
	int fd = kept < 0 ? -1 : fcntl(kept, F_DUPFD_CLOEXEC, 0);
	int err = r->experiment->link->handover->accept(r->experiment->link_state, offer, plan, fd);

	if (err && fd >= 0)
		close(fd);
	return err;
}

int sl_feed_accept(struct sl_feed *f, const struct sl_offer *offer, bool same_host,
		   struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct sl_receiver *r = f->receiver;
	struct sl_experiment *e = f->experiment;
	uint32_t module = f->first + offer->module;
	uint64_t block_bytes = offer->bare ? f->ring.pixel_bytes : f->ring.block_bytes;
	struct sl_source *s = &r->source[module];
	struct sl_offer placed = *offer;
	uint64_t frames;
	int err;

	if (offer->block_bytes != block_bytes) {
		snprintf(why, why_bytes, "its blocks have %llu bytes, here they have %llu",
			 (unsigned long long)offer->block_bytes, (unsigned long long)block_bytes);
		return -EINVAL;
	}
	for (uint32_t m = 0; m < r->modules; m++)
		if (e->ring.align == SL_ALIGN_SEQUENCE && r->source[m].accepted && r->of[m] == f &&
		    f->assembler.options.first_frame != offer->first_frame) {
			snprintf(why, why_bytes, "it begins with frame %llu, the others with %llu",
				 (unsigned long long)offer->first_frame,
				 (unsigned long long)f->assembler.options.first_frame);
			return -EINVAL;
		}
	if (is_hopeless(e, offer, why, why_bytes) || offer_lacks(e, offer, why, why_bytes) ||
	    lines_differ(f, offer, why, why_bytes) || policy_lacks(e, offer, why, why_bytes))
		return -EINVAL;
	if (r->started)
		err = sl_rejoin_begin(r, module, offer->first_frame, why, why_bytes);
	else
		err = 0;
	if (err)
		return err;
	placed.first_sequence = s->end;
	err = r->handover_from ? take_over_transfer(r, offer, plan)
			       : f->link->receiving->accept(f->link_state, &placed, plan);
	if (err) {
		snprintf(why, why_bytes, "link '%s' does not take the offer (%s)", f->link->name,
			 strerror(-err));
		return err;
	}
	/* From now on the link looks for it: nothing of it is late before that. */
	sl_ring_looked(&f->ring, offer->module, sl_clock_ns());
	s->offer = *offer;
	s->plan = *plan;
	r->plans++;
	s->transfer = plan->transfer;
	s->accepted = true;
	s->dropped = false;
	s->first_sequence = s->end;
	frames = offer->frames < ENDLESS - s->end ? offer->frames : 0;
	s->final_frame = offer->first_frame + (frames - 1) * f->assembler.options.frame_step;
	if (f == &r->feed[0] && frames > r->expected) /* events are its frames */
		r->expected = frames;
	s->offered = frames ? s->end + frames : 0;
	s->open_loop = is_open_loop(e, offer);
	s->can_wait = can_wait(e, offer);
	r->same_clock &= same_host;
	if (r->started) {
		sl_rejoin_end(r, module);
		return 0;
	}
	f->assembler.options.first_frame = offer->first_frame;
	if (s->open_loop && !(f->link->guards & SL_GUARD_ENFORCED))
		f->assembler.options.unguarded |= UINT64_C(1) << (offer->module);
	sl_assembler_begin(&f->assembler, offer->module, 0, offer->first_frame);
	return 0;
}

int sl_receiver_accept(struct sl_receiver *r, const struct sl_offer *offer, bool same_host,
		       struct sl_plan *plan, char *why, size_t why_bytes)
{
	return sl_feed_accept(&r->feed[0], offer, same_host, plan, why, why_bytes);
}

void sl_feed_cancel_plan(struct sl_feed *f, uint16_t transfer)
{
	struct sl_receiver *r = f->receiver;

	for (uint32_t m = f->first; m < f->first + f->modules; m++)
		if (r->source[m].accepted && r->source[m].transfer == transfer) {
			sl_rejoin_drop(r, m);
			r->source[m].accepted = false;
		}
}

void sl_receiver_cancel_plan(struct sl_receiver *r, uint16_t transfer)
{
	sl_feed_cancel_plan(&r->feed[0], transfer);
}

int sl_feed_set_queue(struct sl_feed *f, uint16_t transfer, uint32_t qpn)
{
	const struct sl_link_receiving *link = f->link->receiving;
	struct sl_receiver *r = f->receiver;

	for (uint32_t m = f->first; m < f->first + f->modules; m++)
		if (r->source[m].accepted && r->source[m].transfer == transfer)
			r->source[m].plan.credit_qpn = qpn;
	return link->set_queue ? link->set_queue(f->link_state, transfer, qpn) : -ENOTSUP;
}
