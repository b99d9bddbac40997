/* service_test.c - every service, operation and message plan over both kinds of IP: all of it
 * arrives, loss is made good where the service promises it, and a connection that fails says why.
 */
#include <errno.h>

#include "lib/link_rig.h"

extern const struct sl_link sl_link_udp;

enum { FRAMES = 5 * RIG_SLOTS };

struct variant {
	const char *name;
	uint16_t service, operation, message;
	const char *ip; /* of both ends; NULL: one each, IPv4 */
};

static const struct variant variants[] = {
	{"uc write packet", SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET, NULL},
	{"uc write module", SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_MODULE, NULL},
	{"uc send", SL_SERVICE_UC, SL_OPERATION_SEND, SL_MESSAGE_MODULE, NULL},
	{"rc write packet", SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET, NULL},
	{"rc write module", SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_MODULE, NULL},
	{"rc send", SL_SERVICE_RC, SL_OPERATION_SEND, SL_MESSAGE_MODULE, NULL},
	{"uc write packet, IPv6", SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET, "::1"},
	{"rc write packet, IPv6", SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET, "::1"},
	{"rc send, IPv6", SL_SERVICE_RC, SL_OPERATION_SEND, SL_MESSAGE_MODULE, "::1"},
};

static struct rig *rig_of(const struct variant *v)
{
	static char port[16];
	struct rig *rig = rig_new(&sl_link_udp);

	rig->service = v->service;
	rig->operation = v->operation;
	rig->message = v->message;
	rig->listen_at = rig->send_from = v->ip;
	if (v->ip) { /* there is one IPv6 loopback address for all test programs */
		snprintf(port, sizeof(port), "%u", 20000 + (unsigned)getpid() % 20000);
		rig->option[0][0] = "port";
		rig->option[0][1] = port;
	}
	return rig;
}

static int progress(struct rig *rig, uint32_t module)
{
	int sent = rig->link->sending->post(rig->source, rig->plan[module].transfer, NULL, 0);

	rig_poll(rig);
	return sent;
}

/* Until the source of what was sent may be reused: rig_send has but one block. */
static void settle(struct rig *rig, uint64_t sequence, uint32_t module)
{
	uint64_t end = sl_plan_position(&rig->plan[module], sequence + 1, 0);

	for (int tries = 0; rig->link->sending->reap(rig->source, rig->plan[module].transfer) < end;
	     tries++) {
		assert_true(tries < 2000);
		assert_true(progress(rig, module) >= 0);
		rig->link->sending->wait(rig->source, 1000);
	}
}

static void send_all(struct rig *rig)
{
	for (uint64_t k = 0; k < FRAMES; k++) {
		for (uint32_t m = 0; m < RIG_MODULES; m++) {
			assert_int_equal(rig_send(rig, k, m), 0);
			settle(rig, k, m);
			assert_true(rig_arrived(rig, k, m) && rig_intact(rig, k, m));
		}
		rig_release(rig, k);
		rig_poll(rig);
	}
}

static void everything_arrives(void **state)
{
	struct rig *rig = rig_of(*state);

	rig_make_ready(rig);
	assert_int_equal(rig->plan[0].service, rig->service);
	assert_int_equal(rig->plan[0].operation, rig->operation);
	assert_int_equal(rig->plan[0].message, rig->message);
	send_all(rig);
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void the_source_waits_for_open_slots(void **state)
{
	struct rig *rig = rig_of(*state);

	rig_make_ready(rig);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		settle(rig, k, 0);
	}
	rig_send(rig, RIG_SLOTS, 0); /* RC takes the writes into its queue and keeps them there */
	for (int i = 0; i < 20; i++)
		progress(rig, 0);
	assert_int_equal(rig_dropped_all(rig), 0);
	assert_int_equal(rig->link->sending->reap(rig->source, rig->plan[0].transfer),
			 sl_plan_position(&rig->plan[0], RIG_SLOTS, 0));
	assert_true(rig_intact(rig, 0, 0)); /* nothing over what is being read */
	rig_free(rig);
}

/* Every seventh packet lost, every eleventh twice, every thirteenth spoilt. */
static enum sl_packet_fault mishaps(void *arg, uint16_t module, uint64_t sequence, uint32_t packet)
{
	uint64_t n = sequence * 10 + packet + module;

	(void)arg;
	return n % 7 == 3    ? SL_PACKET_FAULT_DROP
	       : n % 11 == 5 ? SL_PACKET_FAULT_DUPLICATE
	       : n % 13 == 8 ? SL_PACKET_FAULT_CORRUPT
			     : SL_PACKET_FAULT_NONE;
}

static void reliable_means_all_of_it_whatever_gets_lost(void **state)
{
	struct rig *rig = rig_of(*state);

	rig->fault = mishaps;
	rig_make_ready(rig);
	if (rig->service == SL_SERVICE_UC) {
		uint64_t ns;

		assert_int_equal(rig_send(rig, 0, 0), 0); /* packet 3 of it gets lost */
		rig_poll(rig);
		assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	} else {
		send_all(rig);
		assert_true(rig_dropped(rig, SL_DROP_ICRC) > 0);
		assert_true(rig_dropped(rig, SL_DROP_GAP) > 0);
	}
	rig_free(rig);
}

/* As a device does that knows no credits: the slots alone hold it back. */
static void a_reliable_source_without_credits_is_asked_to_come_again(void **state)
{
	struct rig *rig = rig_of(*state);
	struct sl_link_env env = {0};
	struct sl_offer offer;
	uint64_t ns;

	assert_int_equal(rig_open_receiver(rig), 0);
	rig->source = rig_state(rig);
	assert_int_equal(rig->link->open(rig->source, &env), 0);
	assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
	offer.credit_va = 0;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &rig->plan[0]), 0);
	assert_int_equal(rig->link->sending->connect(rig->source, &rig->plan[0]), 0);
	assert_int_equal(rig_send(rig, 0, 0), 0); /* no slot is open yet */
	for (int i = 0; i < 10; i++)
		assert_true(progress(rig, 0) >= 0);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_true(rig_dropped(rig, SL_DROP_AHEAD) > 0);
	if (rig->service == SL_SERVICE_RC) {
		assert_false(sl_ring_was_turned_away(&rig->ring, 0, 0));
		sl_ring_open(&rig->ring, UINT64_MAX);
		settle(rig, 0, 0);
		assert_true(rig_arrived(rig, 0, 0) && rig_intact(rig, 0, 0));
	} else {
		assert_true(sl_ring_was_turned_away(&rig->ring, 0, 0)); /* for good */
	}
	rig_free(rig);
}

static void a_wrong_key_fails_a_reliable_connection_and_says_so(void **state)
{
	struct rig *rig = rig_of(*state);
	struct sl_write write[64];
	int err = 0;

	if (rig->service == SL_SERVICE_UC || rig->operation == SL_OPERATION_SEND) {
		rig_free(rig);
		return; /* no answer, or no key */
	}
	rig_make_ready(rig);
	rig_writes(rig, 0, 0, write);
	write[0].rkey ^= 1;
	for (int i = 0; i < 200 && err >= 0; i++) {
		err = rig->link->sending->post(rig->source, rig->plan[0].transfer, write,
					       i ? 0 : 1);
		rig_poll(rig);
	}
	assert_int_equal(err, -EACCES);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 1);
	assert_true(rig_untouched(rig, 0, 1));
	/* The other module has a connection of its own. */
	assert_int_equal(rig_send(rig, 0, 1), 0);
	settle(rig, 0, 1);
	assert_true(rig_arrived(rig, 0, 1) && rig_intact(rig, 0, 1));
	rig_free(rig);
}

/* The right key, inside the ring, and not where its PSN says. */
static void a_misplaced_write_fails_a_reliable_connection(void **state)
{
	struct rig *rig = rig_of(*state);
	struct sl_write write[64];
	uint64_t ns;
	int err = 0;

	if (rig->service == SL_SERVICE_UC || rig->operation == SL_OPERATION_SEND) {
		rig_free(rig);
		return;
	}
	rig_make_ready(rig);
	rig_writes(rig, 0, 0, write);
	write[0].va = sl_plan_address(&rig->plan[0], 1, 0);
	for (int i = 0; i < 200 && err >= 0; i++) {
		err = rig->link->sending->post(rig->source, rig->plan[0].transfer, write,
					       i ? 0 : 1);
		rig_poll(rig);
	}
	assert_int_equal(err, -EACCES);
	assert_true(rig_dropped(rig, SL_DROP_RANGE) > 0);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_false(sl_ring_event(&rig->ring, 1, 0, &ns));
	rig_free(rig);
}

/* WRITEs of zero bytes, plain and with an immediate, in the place of frame 0: no key is checked
 * (InfiniBand C9-88), a reliable connection acknowledges them and stays alive, and no packet of
 * the block counts as received. */
static void messages_of_nothing_are_taken_and_do_nothing(void **state)
{
	struct rig *rig = rig_of(*state);
	struct sl_write write[64] = {0};
	uint32_t n, done = 0;
	uint64_t ns;

	if (rig->operation == SL_OPERATION_SEND) {
		rig_free(rig);
		return;
	}
	rig_make_ready(rig);
	n = rig->plan[0].packets;
	for (uint32_t i = 0; i < n; i++)
		write[i] = (struct sl_write){
			.va = 12345,
			.position = sl_plan_position(&rig->plan[0], 0, (i + 1) * RIG_PMTU),
			.rkey = rig->plan[0].rkey ^ 1,
			.psn = (rig->plan[0].first_psn + i) & 0xffffff,
			.flags = i % 2 ? SL_WRITE_IMM : 0,
			.imm = i,
		};
	write[n - 1].position = sl_plan_position(&rig->plan[0], 1, 0);
	for (int tries = 0; tries < 300 && done < n; tries++) {
		int sent = rig->link->sending->post(rig->source, rig->plan[0].transfer,
						    write + done, n - done);

		assert_true(sent >= 0);
		done += (uint32_t)sent;
		rig_poll(rig);
	}
	assert_int_equal(rig_send(rig, 1, 0), 0);
	settle(rig, 1, 0);
	assert_true(rig_arrived(rig, 1, 0) && rig_intact(rig, 1, 0));
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), n);
	assert_int_equal(rig_dropped_all(rig), n);
	assert_int_equal(sl_ring_packets(&rig->ring, 0, 0), 0);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	rig_free(rig);
}

/* Longer than the front end's own patience with data; a credit waits for it. */
static void a_front_end_that_pauses_finds_its_connection_alive(void **state)
{
	struct rig *rig = rig_of(*state);

	if (rig->service == SL_SERVICE_UC) {
		rig_free(rig);
		return;
	}
	rig->option[1][0] = "timeout";
	rig->option[1][1] = "8"; /* 1 ms */
	if (!rig->option[0][0]) {
		rig->option[0][0] = "retry";
		rig->option[0][1] = "2";
	}
	rig_make_ready(rig);
	for (int i = 0; i < 100; i++) { /* credits are sent, and nobody acknowledges them */
		rig_poll(rig);
		usleep(1000);
	}
	assert_int_equal(rig_send(rig, 0, 0), 0);
	settle(rig, 0, 0);
	assert_true(rig_arrived(rig, 0, 0) && rig_intact(rig, 0, 0));
	rig_free(rig);
}

static void a_receiver_that_is_gone_ends_a_reliable_connection(void **state)
{
	struct rig *rig = rig_of(*state);
	struct sl_write write[64];
	int err = 0;

	if (rig->service == SL_SERVICE_UC) {
		rig_free(rig);
		return;
	}
	rig->option[1][0] = "timeout";
	rig->option[1][1] = "8"; /* 1 ms */
	if (!rig->option[0][0]) {
		rig->option[0][0] = "retry";
		rig->option[0][1] = "2";
	}
	rig_make_ready(rig);
	progress(rig, 0); /* takes its credit */
	rig_close_receiver(rig);
	rig_writes(rig, 0, 0, write);
	for (int i = 0; i < 5000 && err >= 0; i++) {
		err = rig->link->sending->post(rig->source, rig->plan[0].transfer, write,
					       i ? 0 : 1);
		rig->link->sending->wait(rig->source, 1000);
	}
	assert_int_equal(err, -ETIMEDOUT);
	rig_free(rig);
}

#define CASE(f)       \
	{             \
#f, f \
	}
static const struct {
	const char *name;
	CMUnitTestFunction run;
} cases[] = {
	CASE(everything_arrives),
	CASE(the_source_waits_for_open_slots),
	CASE(reliable_means_all_of_it_whatever_gets_lost),
	CASE(a_reliable_source_without_credits_is_asked_to_come_again),
	CASE(a_wrong_key_fails_a_reliable_connection_and_says_so),
	CASE(a_misplaced_write_fails_a_reliable_connection),
	CASE(messages_of_nothing_are_taken_and_do_nothing),
	CASE(a_front_end_that_pauses_finds_its_connection_alive),
	CASE(a_receiver_that_is_gone_ends_a_reliable_connection),
};

static int has_ipv6(void)
{
	FILE *file = fopen("/proc/net/if_inet6", "r");
	int some = file && fgetc(file) != EOF;

	if (file)
		fclose(file);
	return some;
}

int main(void)
{
	enum {
		CASES = sizeof(cases) / sizeof(*cases),
		VARIANTS = sizeof(variants) / sizeof(*variants)
	};
	static struct CMUnitTest tests[CASES * VARIANTS];
	static char names[CASES * VARIANTS][128];
	size_t n = 0;

	for (size_t v = 0; v < VARIANTS; v++) {
		if (variants[v].ip && !has_ipv6()) {
			print_message("skipped: %s: no IPv6 here\n", variants[v].name);
			continue;
		}
		for (size_t c = 0; c < CASES; c++, n++) {
			snprintf(names[n], sizeof(names[n]), "%s: %s", variants[v].name,
				 cases[c].name);
			tests[n] = (struct CMUnitTest){.name = names[n],
						       .test_func = cases[c].run,
						       .initial_state = (void *)&variants[v]};
		}
	}
	return _cmocka_run_group_tests("services", tests, n, NULL, NULL);
}
