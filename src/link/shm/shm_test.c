/* shm_test.c - a peer that lies through shared memory cannot hurt the receiver's own state. */

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/link_rig.h"
#include "link/shm/shm.h"

extern const struct sl_link sl_link_shm;

static struct sl_shm_lane *lane_of(struct rig *rig)
{
	return ((struct sl_shm *)rig->source)->queue[0].lane;
}

static void announce(struct rig *rig, struct sl_shm_entry entry)
{
	struct sl_shm_lane *lane = lane_of(rig);
	uint64_t head = atomic_load(&lane->head);

	lane->entry[head % SL_SHM_ENTRIES] = entry;
	atomic_store(&lane->head, head + 1);
	rig_poll(rig);
}

static struct sl_shm_entry honest(struct rig *rig, uint64_t sequence)
{
	return (struct sl_shm_entry){.sequence = sequence,
				     .va = sl_plan_address(&rig->plan[0], sequence, 0),
				     .rkey = rig->plan[0].rkey,
				     .bytes = (uint32_t)rig->plan[0].block_bytes};
}

static void an_honest_descriptor_raises_the_event(void **state)
{
	struct rig *rig = rig_ready(&sl_link_shm);
	uint64_t ns;

	announce(rig, honest(rig, 2));
	assert_true(sl_ring_event(&rig->ring, 2, 0, &ns));
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void lying_descriptors_are_counted(void **state)
{
	struct rig *rig = rig_ready(&sl_link_shm);
	struct sl_shm_entry e;
	uint64_t ns;

	e = honest(rig, 0);
	e.rkey ^= 1;
	announce(rig, e);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 1);
	e = honest(rig, 0);
	e.bytes--;
	announce(rig, e);
	e = honest(rig, 0);
	e.va += 64;
	announce(rig, e);
	e = honest(rig, UINT64_MAX);
	announce(rig, e);
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), 3);
	announce(rig, honest(rig, RIG_SLOTS)); /* not open yet */
	announce(rig, honest(rig, UINT64_C(1) << 40));
	assert_int_equal(rig_dropped(rig, SL_DROP_AHEAD), 2);
	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		assert_false(sl_ring_event(&rig->ring, k, 0, &ns));
	rig_free(rig);
}

static void an_impossible_head_ends_the_transfer_and_no_other(void **state)
{
	struct rig *rig = rig_ready(&sl_link_shm);
	uint64_t ns;

	atomic_store(&lane_of(rig)->head, UINT64_C(1) << 60);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_MALFORMED), 1);
	atomic_store(&lane_of(rig)->head, 1);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_int_equal(rig_send(rig, 0, 1), 0);
	assert_true(rig_arrived(rig, 0, 1));
	rig_free(rig);
}

static void a_flood_of_descriptors_is_worked_off_in_bites(void **state)
{
	struct rig *rig = rig_ready(&sl_link_shm);
	struct sl_shm_lane *lane = lane_of(rig);

	for (unsigned i = 0; i < SL_SHM_ENTRIES; i++)
		lane->entry[i] = honest(rig, 1000);
	atomic_store(&lane->head, SL_SHM_ENTRIES);
	assert_int_equal(rig->link->receiving->poll(rig->receiver, 0, 10), 10);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_AHEAD), SL_SHM_ENTRIES);
	rig_free(rig);
}

/* A stranger at the socket. */
static int knock(struct rig *rig, const void *hello, size_t bytes)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *location = rig->plan[0].location;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	uint8_t answer[64];
	ssize_t n;

	memcpy(to.sun_path + 1, location + 1, strlen(location) - 1);
	assert_int_equal(
		connect(fd, (struct sockaddr *)&to,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(location))),
		0);
	if (bytes)
		assert_int_equal(send(fd, hello, bytes, 0), bytes);
	rig->link->receiving->serve(rig->receiver);
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	close(fd);
	return (int)n; /* 0: hung up on us */
}

static void strangers_get_no_file_descriptors(void **state)
{
	struct rig *rig = rig_ready(&sl_link_shm);
	struct sl_shm_hello hello = {.magic = 0x4d485353, .rkey = rig->plan[0].rkey ^ 1};

	assert_int_equal(knock(rig, &hello, sizeof(hello)), 0);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 1);
	hello.rkey ^= 1; /* right, but the transfer has its source already */
	assert_int_equal(knock(rig, &hello, sizeof(hello)), 0);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 2);
	hello.transfer = 63;
	assert_int_equal(knock(rig, &hello, sizeof(hello)), 0);
	assert_int_equal(knock(rig, "garbage", 7), 0);
	assert_int_equal(knock(rig, NULL, 0), 0);
	assert_int_equal(rig_dropped(rig, SL_DROP_MALFORMED), 3);
	rig_free(rig);
}

static void the_source_notices_that_the_receiver_is_gone(void **state)
{
	struct rig *rig = rig_ready(&sl_link_shm);
	struct sl_write write[64];
	size_t n = rig_writes(rig, RIG_SLOTS, 0, write); /* no credit for it */

	assert_int_equal(rig->link->sending->post(rig->source, 0, write, n), 0);
	rig_close_receiver(rig);
	assert_int_equal(rig->link->sending->post(rig->source, 0, write, n), -EPIPE);
	rig_free(rig);
}

/* Line by line a block is many writes: one that is refused leaves stale pixels behind. */
static void a_block_with_a_refused_line_raises_no_event(void **state)
{
	struct sl_write write[64];
	struct rig *rig;
	size_t n;
	uint64_t ns;

	rig_layout = (struct rig_layout){.message = SL_MESSAGE_LINE, .rectangle = true};
	rig = rig_ready(&sl_link_shm);
	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	assert_true(n > 2);
	write[1].rkey ^= 1;
	assert_int_equal(rig->link->sending->post(rig->source, 0, write, n), n);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	n = rig_writes(rig, 1, 0, write);
	write[n - 1].rkey ^= 1; /* the last one is announced: somebody must count it */
	assert_int_equal(rig->link->sending->post(rig->source, 0, write, n), n);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 1, 0, &ns));
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 1);
	assert_int_equal(rig_send(rig, 2, 0), 0); /* and the next is as good as ever */
	assert_true(rig_arrived(rig, 2, 0) && rig_intact(rig, 2, 0));
	rig_free(rig);
	rig_layout = (struct rig_layout){0};
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_honest_descriptor_raises_the_event),
		cmocka_unit_test(lying_descriptors_are_counted),
		cmocka_unit_test(an_impossible_head_ends_the_transfer_and_no_other),
		cmocka_unit_test(a_flood_of_descriptors_is_worked_off_in_bites),
		cmocka_unit_test(strangers_get_no_file_descriptors),
		cmocka_unit_test(the_source_notices_that_the_receiver_is_gone),
		cmocka_unit_test(a_block_with_a_refused_line_raises_no_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
