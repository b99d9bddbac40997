/* guard_test.c - the data path of the verbs link neither allocates nor locks nor logs: each
 * call runs as a data thread's, and the guard ends the program where it does. */
#include "base/datathread.h"
#include "lib/link_rig_verbs.h"

extern const struct sl_link sl_link_verbs;

static int guarded_poll(void *state, unsigned poller, unsigned budget)
{
	int n;

	sl_data_thread_begin("poll");
	n = sl_link_verbs.receiving->poll(state, poller, budget);
	sl_data_thread_end();
	return n;
}

static int guarded_wait(void *state, unsigned poller, uint32_t timeout_us)
{
	int n;

	sl_data_thread_begin("wait");
	n = sl_link_verbs.receiving->wait(state, poller, timeout_us);
	sl_data_thread_end();
	return n;
}

static int guarded_wait_send(void *state, uint32_t timeout_us)
{
	int n;

	sl_data_thread_begin("wait");
	n = sl_link_verbs.sending->wait(state, timeout_us);
	sl_data_thread_end();
	return n;
}

static int guarded_post(void *state, uint16_t transfer, const struct sl_write *write, size_t count)
{
	int n;

	sl_data_thread_begin("post");
	n = sl_link_verbs.sending->post(state, transfer, write, count);
	sl_data_thread_end();
	return n;
}

static uint64_t guarded_reap(void *state, uint16_t transfer)
{
	uint64_t position;

	sl_data_thread_begin("reap");
	position = sl_link_verbs.sending->reap(state, transfer);
	sl_data_thread_end();
	return position;
}

static void carry(uint16_t service, uint16_t operation, uint16_t message)
{
	struct sl_link_receiving receiving = *sl_link_verbs.receiving;
	struct sl_link_sending sending = *sl_link_verbs.sending;
	struct sl_link link = sl_link_verbs;
	struct rig *rig;

	receiving.poll = guarded_poll;
	receiving.wait = guarded_wait;
	sending.wait = guarded_wait_send;
	sending.post = guarded_post;
	sending.reap = guarded_reap;
	link.receiving = &receiving;
	link.sending = &sending;
	rig = rig_new(&link);
	rig->service = service;
	rig->operation = operation;
	rig->message = message;
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	for (uint64_t k = 0; k < 4 * RIG_SLOTS; k++) {
		receiving.wait(rig->receiver, 0, 10);
		sending.wait(rig->source, 10);
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0));
		sending.reap(rig->source, rig->plan[0].transfer);
		rig_release(rig, k);
	}
	/* And where it fails: nobody is there any more. */
	rig_close_receiver(rig);
	for (int i = 0; i < 10; i++)
		sending.post(rig->source, rig->plan[0].transfer, NULL, 0);
	rig_free(rig);
}

static void uc_writes_are_clean(void **state)
{
	carry(SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_MODULE);
	carry(SL_SERVICE_UC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET);
}

static void rc_writes_are_clean(void **state)
{
	carry(SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_MODULE);
	carry(SL_SERVICE_RC, SL_OPERATION_WRITE, SL_MESSAGE_PACKET);
}

static void sends_are_clean(void **state)
{
	carry(SL_SERVICE_RC, SL_OPERATION_SEND, SL_MESSAGE_MODULE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uc_writes_are_clean),
		cmocka_unit_test(rc_writes_are_clean),
		cmocka_unit_test(sends_are_clean),
	};

	rig_verbs_devices();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
