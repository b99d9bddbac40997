/* verbs_test.c - what only an RDMA link does: queue pairs from plans, posted receives, several
 * NICs, services and operations, failures. Over a libibverbs without hardware. */
#include "link/verbs/verbs.h"

#include <errno.h>

#include "lib/capture.h"
#include "lib/link_rig_verbs.h"

extern const struct sl_link sl_link_verbs;

static const struct variant {
	const char *name;
	uint16_t service, operation, message;
} variants[] = {
	{"uc write module", SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_MODULE},
	{"uc write packet", SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET},
	{"rc write module", SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_MODULE},
	{"rc write packet", SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET},
	{"rc send", SL_SERVICE_RC, SL_OPERATION_SEND, SL_MESSAGE_MODULE},
};
enum { VARIANTS = sizeof(variants) / sizeof(*variants) };

static struct rig *new_rig(const struct variant *v)
{
	struct rig *rig = rig_new(&sl_link_verbs);

	rig->service = v->service;
	rig->operation = v->operation;
	rig->message = v->message;
	return rig;
}

static void get_ready(struct rig *rig)
{
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
}

static struct rig *ready(const struct variant *v)
{
	struct rig *rig = new_rig(v);

	get_ready(rig);
	return rig;
}

static struct rig *ready_uc(void)
{
	return ready(&variants[0]);
}

static struct sl_verbs_in *in_of(struct rig *rig, uint16_t module)
{
	return &((struct sl_verbs_link *)rig->receiver)->in[rig->plan[module].transfer];
}

static struct sl_verbs_out *out_of(struct rig *rig, uint16_t module)
{
	return &((struct sl_verbs_link *)rig->source)->out[module];
}

static int all_closed(void **state)
{
	fake_verbs_lose(NULL, NULL);
	return fake_verbs_objects() != 0;
}

/* ---- frames ---- */

static void every_variant_carries_frames(void **state)
{
	for (unsigned v = 0; v < VARIANTS; v++) {
		struct rig *rig = ready(&variants[v]);

		assert_int_equal(rig->plan[0].service, variants[v].service);
		assert_int_equal(rig->plan[0].operation, variants[v].operation);
		assert_int_equal(rig->plan[0].message, variants[v].message);
		for (uint64_t k = 0; k < 5 * RIG_SLOTS; k++) {
			for (uint32_t m = 0; m < RIG_MODULES; m++) {
				assert_int_equal(rig_send(rig, k, m), 0);
				assert_true(rig_arrived(rig, k, m));
				assert_true(rig_intact(rig, k, m));
			}
			rig_release(rig, k);
		}
		assert_int_equal(rig_dropped_all(rig), 0);
		assert_int_equal(sl_link_bytes(&rig->counters),
				 5 * RIG_SLOTS * RIG_MODULES * (RIG_PIXELS + SL_RECORD_BYTES));
		rig_free(rig);
	}
}

/* A whole ring of events waits in the completion queue while nobody polls. */
static void every_event_that_can_be_outstanding_has_its_receive(void **state)
{
	for (unsigned v = 0; v < VARIANTS; v++) {
		bool send = variants[v].operation == SL_OPERATION_SEND;
		unsigned receives = send ? RIG_SLOTS : RIG_SLOTS + SL_VERBS_MARGIN;
		struct rig *rig = ready(&variants[v]);

		assert_int_equal(fake_verbs_receives(rig->plan[0].qpn), receives);
		for (uint64_t k = 0; k < RIG_SLOTS; k++)
			assert_int_equal(rig_send(rig, k, 0), 0);
		for (uint64_t k = 0; k < RIG_SLOTS; k++)
			assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
		/* Posted again as they are used, or as slots open. */
		assert_int_equal(fake_verbs_receives(rig->plan[0].qpn), send ? 0 : receives);
		rig_release(rig, 0);
		rig_poll(rig);
		assert_int_equal(fake_verbs_receives(rig->plan[0].qpn), send ? 1 : receives);
		rig_free(rig);
	}
}

static void many_events_do_not_use_up_receives(void **state)
{
	struct rig *rig = ready_uc();

	for (uint64_t k = 0; k < 3 * (RIG_SLOTS + SL_VERBS_MARGIN); k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0));
		rig_release(rig, k);
	}
	assert_int_equal(fake_verbs_receives(rig->plan[0].qpn), RIG_SLOTS + SL_VERBS_MARGIN);
	rig_free(rig);
}

/* Where the immediate's 32 bits end. */
static void sequences_go_on_where_the_immediate_wraps(void **state)
{
	const uint64_t first = (UINT64_C(1) << 32) - 2;
	struct rig *rig = ready_uc();

	for (uint64_t k = first; k < first + RIG_SLOTS; k++)
		atomic_store(&sl_ring_cell(&rig->ring, k, 0)->state, k << 2 | SL_SLOT_OPEN);
	atomic_store(&rig->ring.lane[0].opened, first + RIG_SLOTS);
	in_of(rig, 0)->next = first;
	rig_poll(rig);
	for (uint64_t k = first; k < first + RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

/* ---- what the receiver refuses ---- */

static void a_source_that_ignores_its_credit_is_found_out(void **state)
{
	struct rig *rig = ready_uc();

	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		assert_int_equal(rig_send(rig, k, 0), 0);
	out_of(rig, 0)->granted = UINT64_MAX;
	assert_int_equal(rig_send(rig, RIG_SLOTS, 0), 0);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_AHEAD), 1);
	assert_true(sl_ring_was_turned_away(&rig->ring, RIG_SLOTS, 0));
	assert_int_equal(rig_send(rig, 2 * RIG_SLOTS, 0), 0); /* a whole ring ahead: no sense */
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), 1);
	assert_int_equal(sl_ring_reached(&rig->ring, 0), RIG_SLOTS);
	rig_free(rig);
}

static int post_one(struct rig *rig, uint32_t bytes, uint32_t imm, uint32_t flags)
{
	struct sl_write write[64];

	rig_writes(rig, 0, 0, write);
	write[0].bytes = write[0].part[0].bytes = bytes;
	write[0].imm = imm;
	write[0].flags = flags;
	return rig->link->sending->post(rig->source, rig->plan[0].transfer, write, 1);
}

static void events_that_make_no_sense_raise_nothing(void **state)
{
	const uint32_t block = RIG_PIXELS + SL_RECORD_BYTES;
	struct rig *rig = ready_uc();
	uint64_t ns;

	assert_int_equal(post_one(rig, block - 1, 0, SL_WRITE_IMM), 1);	     /* too short */
	assert_int_equal(post_one(rig, block, UINT32_MAX, SL_WRITE_IMM), 1); /* before the first */
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), 2);
	assert_int_equal(post_one(rig, block, 0, 0), 1); /* no event at all */
	rig_poll(rig);
	assert_int_equal(rig_dropped_all(rig), 2);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_true(rig_send(rig, 0, 0) == 0 && rig_arrived(rig, 0, 0)); /* and it goes on */
	rig_free(rig);
}

/* Sends fill blocks in the order of their posting: another number is a hole that shifts. */
static void sends_out_of_order_raise_nothing(void **state)
{
	struct rig *rig = ready(&variants[4]);
	uint64_t ns;

	assert_int_equal(rig_send(rig, 1, 0), 0);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), 1);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_false(sl_ring_event(&rig->ring, 1, 0, &ns));
	rig_free(rig);
}

static void what_comes_twice_counts_once(void **state)
{
	struct rig *rig = ready_uc();
	uint64_t packets;

	assert_true(rig_send(rig, 0, 0) == 0 && rig_arrived(rig, 0, 0));
	packets = sl_link_packets(&rig->counters);
	assert_int_equal(packets, rig->plan[0].packets);
	assert_int_equal(rig_send(rig, 0, 0), 0);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_DUPLICATE), 1);
	assert_int_equal(sl_link_packets(&rig->counters), packets);
	rig_free(rig);
}

/* Who was turned away can write nothing more, key or not. */
static void a_dropped_queue_places_nothing(void **state)
{
	struct rig *rig = ready_uc();

	rig->link->receiving->drop(rig->receiver, rig->plan[0].transfer);
	assert_int_equal(rig_send(rig, 0, 0), 0); /* it had its credit */
	assert_true(rig_untouched(rig, 0, 0));
	rig_free(rig);
}

static void uc_drops_what_the_key_does_not_cover(void **state)
{
	struct rig *rig = ready_uc();
	struct sl_write write[64];
	const struct sl_plan *plan = &rig->plan[0];
	const uint64_t va[] = {plan->base - 4096, plan->base + rig->region.bytes, UINT64_MAX - 8,
			       plan->base + rig->region.bytes - 64};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(va) / sizeof(*va); i++) {
		rig_writes(rig, 0, 0, write);
		write[0].va = va[i];
		assert_int_equal(rig->link->sending->post(rig->source, plan->transfer, write, 1),
				 1);
		rig_poll(rig);
		assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	}
	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		assert_true(rig_untouched(rig, k, 0) && rig_untouched(rig, k, 1));
	rig_free(rig);
}

/* ---- RC ---- */

static void rc_says_why_it_failed(void **state)
{
	struct rig *rig = ready(&variants[2]);
	struct sl_write write[64];
	int err = 0;

	rig_writes(rig, 0, 0, write);
	write[0].rkey ^= 1;
	for (int tries = 0; tries < 20 && err >= 0; tries++)
		err = rig->link->sending->post(rig->source, rig->plan[0].transfer, write,
					       tries == 0);
	assert_int_equal(err, -EACCES);
	rig_poll(rig);
	rig->link->receiving->serve(rig->receiver);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 1);
	assert_int_equal(rig_dropped_all(rig), 1); /* what came back is not a loss */
	assert_true(rig_send(rig, 0, 1) == 0 && rig_arrived(rig, 0, 1)); /* the other one goes on */
	rig_free(rig);
}

/* A source that is gone cannot be given credit: it is tried once and never again. */
static void credit_for_nobody_is_given_up(void **state)
{
	struct rig *rig = ready(&variants[2]);

	rig_close_source(rig);
	rig_release(rig, 0);
	for (int i = 0; i < 10; i++)
		rig_poll(rig);
	assert_true(in_of(rig, 0)->failed);
	assert_int_equal(in_of(rig, 0)->grants, 0);
	rig_release(rig, 1);
	rig_poll(rig);
	assert_int_equal(in_of(rig, 0)->grants, 0);
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void rc_notices_that_nobody_is_there(void **state)
{
	struct rig *rig = ready(&variants[2]);
	struct sl_write write[64];
	int err = 0;

	rig_writes(rig, 0, 0, write);
	rig_close_receiver(rig);
	for (int tries = 0; tries < 20 && err >= 0; tries++)
		err = rig->link->sending->post(rig->source, rig->plan[0].transfer, write,
					       tries == 0);
	assert_int_equal(err, -ETIMEDOUT);
	rig_free(rig);
}

/* ---- send ---- */

static void offer_without_credit(struct rig *rig)
{
	struct sl_link_env env = {.service = rig->service};

	assert_int_equal(rig_open_receiver(rig), 0);
	rig->source = rig_state(rig);
	assert_int_equal(rig->link->open(rig->source, &env), 0);
	for (uint16_t m = 0; m < RIG_MODULES; m++) {
		struct sl_offer offer;

		assert_int_equal(rig_offer(rig, rig->source, m, &offer), 0);
		offer.credit_va = 0;
		assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &rig->plan[m]),
				 0);
		assert_int_equal(rig->link->sending->connect(rig->source, &rig->plan[m]), 0);
	}
}

/* Without credits it is the posted memory that holds the source back. */
static void receiver_not_ready_is_back_pressure(void **state)
{
	struct rig *rig = new_rig(&variants[4]);
	uint16_t transfer;

	offer_without_credit(rig);
	transfer = rig->plan[0].transfer;
	assert_int_equal(rig_send(rig, 0, 0), 0); /* the NIC has it, and it waits */
	rig_poll(rig);
	assert_int_equal(rig->link->sending->reap(rig->source, transfer), 0);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	assert_true(rig_arrived(rig, 0, 0) && rig_intact(rig, 0, 0));
	assert_int_equal(rig->link->sending->reap(rig->source, transfer),
			 sl_plan_position(&rig->plan[0], 1, 0));
	for (uint64_t k = 1; k < 3 * RIG_SLOTS; k++) {
		rig_release(rig, k - 1);
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

/* A slot was given up before its block came: it comes late, and those after it lie right. */
static void a_late_send_shifts_nothing(void **state)
{
	struct rig *rig = ready(&variants[4]);

	rig_release(rig, 0);
	rig_poll(rig);
	assert_int_equal(rig_send(rig, 0, 0), 0);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_LATE), 1);
	for (uint64_t k = 1; k <= RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	rig_free(rig);
}

static void send_needs_a_reliable_connection(void **state)
{
	struct rig *rig = new_rig(&variants[4]);
	const char *text;

	rig->service = SL_SERVICE_UC;
	capture_begin();
	assert_int_equal(rig_open_receiver(rig), -EINVAL);
	text = capture_end();
	assert_non_null(strstr(text, "link.service: rc"));
	rig_free(rig);
}

/* ---- open loop ---- */

static void without_credits_there_must_be_a_checksum(void **state)
{
	struct rig *rig = ready_uc();
	struct sl_offer offer;
	struct sl_plan plan;
	const char *text;

	assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
	offer.credit_va = 0;
	capture_begin();
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EPERM);
	text = capture_end();
	assert_non_null(strstr(text, "link.crc: true"));
	rig_free(rig);
}

/* What the source writes while its block is being read does not reach the ring. */
static void a_source_without_credits_writes_beside_the_ring(void **state)
{
	struct rig *rig = new_rig(&variants[0]);

	rig->crc = 1;
	capture_begin();
	offer_without_credit(rig);
	capture_end();
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	assert_int_equal(rig->plan[0].crc, 1);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	for (uint64_t k = RIG_SLOTS; k < 3 * RIG_SLOTS; k++) { /* round and round */
		assert_int_equal(rig_send(rig, k, 0), 0);
		rig_poll(rig);
		assert_true(sl_ring_was_turned_away(&rig->ring, k, 0));
	}
	assert_int_equal(rig_dropped(rig, SL_DROP_AHEAD), 2 * RIG_SLOTS);
	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		assert_true(rig_intact(rig, k, 0));
	rig_free(rig);
}

/* ---- offers and plans ---- */

static void answers_to_another_port_are_refused_with_a_hint(void **state)
{
	struct rig *rig = ready_uc();
	struct sl_offer offer;
	struct sl_plan plan = rig->plan[0];
	const char *text;

	assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
	assert_int_equal(offer.credit_port, 4791);
	assert_int_equal(offer.source.port, 0);
	assert_int_equal(offer.ip_id, SL_IP_ID_ANY);
	offer.credit_port = 50000;
	capture_begin();
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EDESTADDRREQ);
	plan.dest.port = 4800;
	assert_int_equal(rig->link->sending->connect(rig->source, &plan), -EDESTADDRREQ);
	text = capture_end();
	assert_non_null(strstr(text, "link.reply_port: 4791"));
	assert_non_null(strstr(text, "link.port: 4791"));
	rig_free(rig);
}

/* A receiver with a small buffer (udp) would wait for ever for a message that does not fit. */
static void a_window_smaller_than_a_message_is_refused(void **state)
{
	struct rig *rig = ready_uc();
	struct sl_plan plan = rig->plan[0];
	const char *text;

	plan.window_bytes = plan.block_bytes - 1;
	capture_begin();
	assert_int_equal(rig->link->sending->connect(rig->source, &plan), -EMSGSIZE);
	text = capture_end();
	assert_non_null(strstr(text, "link.window"));
	rig_free(rig);
}

static void a_device_may_begin_with_a_psn_of_its_own(void **state)
{
	struct rig *rig = ready_uc();
	struct sl_offer offer;
	struct sl_plan plan;

	assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
	offer.psn_plus_1 = 0xffffff + 1;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), 0);
	assert_int_equal(plan.first_psn, 0xffffff);
	/* Pixels alone bring no event that a NIC would tell of. */
	offer.bare = 1;
	offer.block_bytes = RIG_PIXELS;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	rig_free(rig);
}

static void services_must_agree(void **state)
{
	struct rig *rig = ready(&variants[2]);
	struct sl_plan plan = rig->plan[0];
	struct sl_offer offer;
	const char *text;

	assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
	assert_int_equal(offer.services, SL_SERVICE_RC); /* a queue pair is of one kind */
	offer.services = SL_SERVICE_UC;
	capture_begin();
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	text = capture_end();
	assert_non_null(strstr(text, "link.service"));
	plan.service = SL_SERVICE_UC;
	assert_int_equal(rig->link->sending->connect(rig->source, &plan), -EINVAL);
	rig_free(rig);
}

static void the_path_mtu_is_the_smallest_of_all(void **state)
{
	struct rig *rig = new_rig(&variants[0]);

	/* Asked for: RIG_PMTU. The receiver's port has less, the source's more. */
	fake_verbs_set_mtu("fake0", 512);
	assert_int_equal(rig_open_receiver(rig), 0);
	fake_verbs_set_mtu("fake0", 4096);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	assert_int_equal(rig->plan[0].pmtu, 512);
	assert_int_equal(rig->plan[0].packets, (RIG_PIXELS + SL_RECORD_BYTES + 511) / 512);
	assert_true(rig_send(rig, 0, 0) == 0 && rig_arrived(rig, 0, 0) && rig_intact(rig, 0, 0));
	rig_free(rig);
	/* And the other way round. */
	rig = new_rig(&variants[0]);
	assert_int_equal(rig_open_receiver(rig), 0);
	fake_verbs_set_mtu("fake0", 256);
	rig_open_source(rig);
	assert_int_equal(rig->plan[0].pmtu, 256);
	fake_verbs_set_mtu("fake0", 4096);
	rig_free(rig);
}

static void faults_on_demand_are_not_for_nics(void **state)
{
	struct rig *rig = new_rig(&variants[0]);
	struct sl_link_env env = {.fault = (void *)1};
	const char *text;

	rig->source = rig_state(rig);
	capture_begin();
	assert_int_equal(rig->link->open(rig->source, &env), -EOPNOTSUPP);
	text = capture_end();
	assert_non_null(strstr(text, "link udp or shm"));
	rig_free(rig);
}

static void proofs_are_what_a_nic_can_give(void **state)
{
	const struct sl_link *link = &sl_link_verbs;

	assert_int_equal(link->proof(SL_SERVICE_RC, SL_MESSAGE_MODULE), SL_PROOF_RELIABLE);
	assert_int_equal(link->proof(SL_SERVICE_RC, SL_MESSAGE_PACKET), SL_PROOF_RELIABLE);
	assert_int_equal(link->proof(SL_SERVICE_UC, SL_MESSAGE_MODULE), SL_PROOF_MESSAGE);
	assert_int_equal(link->proof(SL_SERVICE_UC, SL_MESSAGE_PACKET), SL_PROOF_CHECKSUM);
	assert_int_equal(link->message, SL_MESSAGE_MODULE);
}

/* ---- several NICs ---- */

static void *state_with(struct rig *rig, const char *listen, const char *source)
{
	void *state = rig_state(rig);

	rig_set(rig->link, state, "listen", listen);
	rig_set(rig->link, state, "source", source);
	return state;
}

static void open_with(struct rig *rig, void *state, bool receiver)
{
	struct sl_link_env env = {.ring = receiver ? &rig->ring : NULL,
				  .pollers = 1,
				  .wake = rig->wake,
				  .counters = &rig->counters,
				  .service = rig->service,
				  .operation = rig->operation,
				  .message = rig->message,
				  .pmtu = RIG_PMTU};

	assert_int_equal(rig->link->open(state, &env), 0);
}

static void connect_all(struct rig *rig)
{
	for (uint16_t m = 0; m < RIG_MODULES; m++) {
		struct sl_offer offer;

		assert_int_equal(rig_offer(rig, rig->source, m, &offer), 0);
		assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &rig->plan[m]),
				 0);
		assert_int_equal(rig->link->sending->connect(rig->source, &rig->plan[m]), 0);
	}
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
}

static void modules_are_spread_over_devices(void **state)
{
	struct rig *rig = new_rig(&variants[2]);

	rig->receiver = state_with(rig, "192.0.2.1, 198.51.100.1", "");
	rig->source = state_with(rig, "", "192.0.2.2,198.51.100.2");
	open_with(rig, rig->receiver, true);
	open_with(rig, rig->source, false);
	connect_all(rig);
	/* Module by module, in turn; the addresses are of no network that this host is in. */
	assert_memory_not_equal(rig->plan[0].dest.ip, rig->plan[1].dest.ip, 16);
	assert_memory_not_equal(rig->plan[0].source.ip, rig->plan[1].source.ip, 16);
	for (uint64_t k = 0; k < 2 * RIG_SLOTS; k++) {
		for (uint32_t m = 0; m < RIG_MODULES; m++) {
			assert_int_equal(rig_send(rig, k, m), 0);
			assert_true(rig_arrived(rig, k, m) && rig_intact(rig, k, m));
		}
		rig_release(rig, k);
	}
	rig_free(rig);
}

/* 127.0.0.1 is in a network of this host, and so are all of 127.0.0.0/8. */
static void an_offer_is_answered_from_its_own_network(void **state)
{
	struct rig *rig = new_rig(&variants[0]);
	char source[32];

	rig_address(source, 2);
	rig->receiver = state_with(rig, "192.0.2.1,127.0.0.1,198.51.100.1", "");
	rig->source = state_with(rig, "", source);
	open_with(rig, rig->receiver, true);
	open_with(rig, rig->source, false);
	connect_all(rig);
	for (uint32_t m = 0; m < RIG_MODULES; m++) {
		assert_int_equal(rig->plan[m].dest.ip[12], 127);
		assert_true(rig_send(rig, 0, m) == 0 && rig_arrived(rig, 0, m));
	}
	rig_free(rig);
}

static void ipv6_works_and_does_not_mix_with_ipv4(void **state)
{
	struct rig *rig = new_rig(&variants[0]);
	struct sl_offer offer;
	struct sl_plan plan;
	void *v4 = state_with(rig, "", "192.0.2.2");
	const char *text;

	rig->receiver = state_with(rig, "fd77::1", "");
	rig->source = state_with(rig, "", "fd77::2");
	open_with(rig, rig->receiver, true);
	open_with(rig, rig->source, false);
	open_with(rig, v4, false);
	connect_all(rig);
	assert_true(rig_send(rig, 0, 0) == 0 && rig_arrived(rig, 0, 0) && rig_intact(rig, 0, 0));
	assert_int_equal(rig_offer(rig, v4, 0, &offer), 0);
	capture_begin();
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EAFNOSUPPORT);
	text = capture_end();
	assert_non_null(strstr(text, "IPv4"));
	rig->link->close(v4);
	free(v4);
	rig_free(rig);
}

static void addresses_that_make_no_sense_are_refused(void **state)
{
	static const char *const bad[] = {"0.0.0.0", "localhost", "192.0.2.1,", "203.0.113.77",
					  "192.0.2.1,nonsense"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct rig *rig = new_rig(&variants[0]);
		struct sl_link_env env = {.ring = &rig->ring, .pmtu = RIG_PMTU};

		rig->receiver = state_with(rig, bad[i], "");
		capture_begin();
		assert_true((rig->link->open(rig->receiver, &env) == 0) == (i == 2));
		capture_end();
		rig_free(rig);
	}
}

/* ---- waiting ---- */

static void completions_end_a_wait(void **state)
{
	struct rig *rig = ready_uc();
	uint64_t start = sl_clock_ns();

	assert_int_equal(rig_send(rig, 0, 0), 0);
	assert_int_equal(rig->link->receiving->wait(rig->receiver, 0, 30 * 1000 * 1000), 1);
	assert_int_equal(rig->link->sending->wait(rig->source, 30 * 1000 * 1000), 1);
	assert_true(sl_clock_ns() - start < UINT64_C(20) * 1000 * 1000 * 1000);
	assert_true(rig_arrived(rig, 0, 0));
	rig_free(rig);
}

static void a_credit_ends_a_wait_of_the_source(void **state)
{
	struct rig *rig = new_rig(&variants[0]);
	uint64_t start;

	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	assert_int_equal(rig->link->sending->wait(rig->source, 1000),
			 1); /* nothing there: its time ends */
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	start = sl_clock_ns();
	assert_int_equal(rig->link->sending->wait(rig->source, 30 * 1000 * 1000), 1);
	assert_true(sl_clock_ns() - start < UINT64_C(20) * 1000 * 1000 * 1000);
	assert_int_equal(out_of(rig, 0)->granted, rig->plan[0].slots * rig->plan[0].block_bytes);
	rig_free(rig);
}

static void spinning_does_not_sleep(void **state)
{
	struct rig *rig = new_rig(&variants[0]);
	char address[32];

	rig_address(address, 1);
	rig->receiver = state_with(rig, address, "");
	rig->source = state_with(rig, "", address);
	rig_set(rig->link, rig->receiver, "poll", "spin");
	rig_set(rig->link, rig->source, "poll", "spin");
	open_with(rig, rig->receiver, true);
	open_with(rig, rig->source, false);
	connect_all(rig);
	assert_int_equal(rig->link->receiving->wait(rig->receiver, 0, UINT32_MAX), 1);
	assert_int_equal(rig->link->sending->wait(rig->source, UINT32_MAX), 1);
	assert_true(rig_send(rig, 0, 0) == 0 && rig_arrived(rig, 0, 0));
	rig_free(rig);
}

#define CASE(f) cmocka_unit_test_teardown(f, all_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_variant_carries_frames),
		CASE(every_event_that_can_be_outstanding_has_its_receive),
		CASE(many_events_do_not_use_up_receives),
		CASE(sequences_go_on_where_the_immediate_wraps),
		CASE(a_source_that_ignores_its_credit_is_found_out),
		CASE(events_that_make_no_sense_raise_nothing),
		CASE(sends_out_of_order_raise_nothing),
		CASE(what_comes_twice_counts_once),
		CASE(a_dropped_queue_places_nothing),
		CASE(uc_drops_what_the_key_does_not_cover),
		CASE(rc_says_why_it_failed),
		CASE(credit_for_nobody_is_given_up),
		CASE(rc_notices_that_nobody_is_there),
		CASE(receiver_not_ready_is_back_pressure),
		CASE(a_late_send_shifts_nothing),
		CASE(send_needs_a_reliable_connection),
		CASE(without_credits_there_must_be_a_checksum),
		CASE(a_source_without_credits_writes_beside_the_ring),
		CASE(answers_to_another_port_are_refused_with_a_hint),
		CASE(a_window_smaller_than_a_message_is_refused),
		CASE(a_device_may_begin_with_a_psn_of_its_own),
		CASE(services_must_agree),
		CASE(the_path_mtu_is_the_smallest_of_all),
		CASE(faults_on_demand_are_not_for_nics),
		CASE(proofs_are_what_a_nic_can_give),
		CASE(modules_are_spread_over_devices),
		CASE(an_offer_is_answered_from_its_own_network),
		CASE(ipv6_works_and_does_not_mix_with_ipv4),
		CASE(addresses_that_make_no_sense_are_refused),
		CASE(completions_end_a_wait),
		CASE(a_credit_ends_a_wait_of_the_source),
		CASE(spinning_does_not_sleep),
	};

	rig_verbs_devices();
	fake_verbs_add("fake0", "127.0.0.1");
	fake_verbs_add("fake0", "192.0.2.1");
	fake_verbs_add("fake0", "192.0.2.2");
	fake_verbs_add("fake0", "fd77::1");
	fake_verbs_add("fake0", "fd77::2");
	fake_verbs_add("fake1", "198.51.100.1");
	fake_verbs_add("fake1", "198.51.100.2");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
