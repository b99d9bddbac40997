/* pieces_test.c - packets that come in several pieces of memory, cut wherever: each is checked to
 * its last bit and lands where it belongs, once; and queues that follow their packets from one
 * poller to another. No privilege: the pieces are handed over by the test. */
#include "base/crc.h"
#include "lib/link_rig.h"
#include "link/udp/udp.h"

extern const struct sl_link sl_link_udp;

enum { ALL = 2048 }; /* more than a packet has bytes */

struct made { /* a UDP payload, at the very end of its memory */
	uint8_t *data;
	size_t bytes;
	struct sl_roce_path path;
};

static uint64_t window(const struct sl_udp *udp, const struct sl_plan *plan)
{
	(void)udp;
	return 4 * plan->block_bytes;
}

static int open_whole(void *state, const struct sl_link_env *env)
{
	static const struct sl_udp_backend backend = {.window = window, .follow = true};

	((struct sl_udp *)state)->backend = &backend;
	return sl_udp_open(state, env);
}

/* Nothing comes by itself; credits and queues go out. */
static int poll_nothing(void *state, unsigned poller, unsigned budget)
{
	(void)budget;
	sl_udp_return_all(state, poller, true, sl_clock_ns());
	return 0;
}

static struct sl_link whole;
static struct sl_link_receiving receiving;

static struct rig *ready(unsigned pollers)
{
	struct rig *rig;

	whole = sl_link_udp;
	whole.open = open_whole;
	receiving = *sl_link_udp.receiving;
	receiving.poll = poll_nothing;
	whole.receiving = &receiving;
	rig = rig_new(&whole);
	rig->pollers = pollers;
	rig_make_ready(rig);
	return rig;
}

/* Packet `index` of a block, as its source would send it; or with so many other bytes. */
static void make_of(struct rig *rig, uint64_t sequence, uint32_t module, size_t index, uint16_t id,
		    uint32_t bytes, struct made *m)
{
	static const uint8_t other[RIG_PMTU];
	const struct sl_plan *plan = &rig->plan[module];
	uint8_t header[SL_ROCE_HEADERS_MAX], trailer[SL_ROCE_TRAILER_MAX];
	struct sl_write write[64];
	struct sl_roce_requester cursor;
	struct sl_roce_fragment fragment;
	struct sl_roce_piece payload;
	struct sl_udp_path path;
	size_t n, trailer_bytes;

	n = rig_writes(rig, sequence, module, write);
	assert_true(index < n);
	if (bytes) {
		write[index].bytes = bytes;
		write[index].part[0].data = other;
	}
	assert_int_equal(
		sl_roce_requester_begin(&cursor,
					&(struct sl_roce_message){
						.transport = SL_ROCE_UC,
						.kind = SL_ROCE_KIND_WRITE,
						.immediate = write[index].flags & SL_WRITE_IMM,
						.pkey = SL_ROCE_PKEY_DEFAULT,
						.pmtu = plan->pmtu,
						.qpn = plan->qpn,
						.psn = write[index].psn,
						.imm = write[index].imm,
						.rkey = plan->rkey,
						.va = write[index].va,
						.bytes = write[index].bytes,
					}),
		0);
	assert_true(sl_roce_requester_next(&cursor, header, &fragment));
	sl_udp_path_set(&path, plan->source.ip, plan->source.port, plan->dest.ip, plan->dest.port);
	m->path = path.path;
	m->path.ip_id = id;
	payload = (struct sl_roce_piece){write[index].part[0].data, write[index].bytes};
	trailer_bytes = sl_roce_seal(&m->path, header, fragment.header_bytes, &payload, 1, sl_crc32,
				     trailer);
	m->bytes = fragment.header_bytes + payload.bytes + trailer_bytes;
	m->data = malloc(m->bytes);
	assert_non_null(m->data);
	memcpy(m->data, header, fragment.header_bytes);
	memcpy(m->data + fragment.header_bytes, payload.data, payload.bytes);
	memcpy(m->data + m->bytes - trailer_bytes, trailer, trailer_bytes);
}

static void make(struct rig *rig, uint64_t sequence, uint32_t module, size_t index, uint16_t id,
		 struct made *m)
{
	make_of(rig, sequence, module, index, id, 0, m);
}

/* In pieces that end at these bytes; each in memory of its own, which ends where the piece does. */
static void give(struct rig *rig, const struct made *m, const size_t *end, unsigned ends)
{
	static struct sl_roce_piece piece[ALL];
	size_t from = 0;
	unsigned n = 0;

	for (unsigned i = 0; i <= ends; i++) {
		size_t to = i < ends ? end[i] : m->bytes;
		uint8_t *copy = malloc(to - from ? to - from : 1);

		assert_non_null(copy);
		memcpy(copy, m->data + from, to - from);
		piece[n++] = (struct sl_roce_piece){copy, to - from};
		from = to;
	}
	sl_ring_enter(&rig->ring, 0);
	sl_udp_receive_pieces(rig->receiver, 0, piece, n, &m->path, false, sl_clock_ns());
	sl_ring_leave(&rig->ring, 0);
	for (unsigned i = 0; i < n; i++)
		free((void *)piece[i].data);
}

static void a_packet_cut_anywhere_lands_in_its_place(void **state)
{
	struct rig *rig = ready(1);
	size_t cut = 0, longest = 0;
	uint64_t k = 0, ns;

	(void)state;
	do {
		rig_fill(rig, k, 0);
		for (size_t i = 0; i < rig->plan[0].packets; i++, cut++) {
			struct made m;
			size_t end[2];

			assert_false(sl_ring_event(&rig->ring, k, 0, &ns));
			make(rig, k, 0, i, (uint16_t)(cut * 77), &m);
			end[0] = cut % m.bytes;
			end[1] = end[0] + (m.bytes - end[0]) / 3;
			give(rig, &m, end, 1 + (unsigned)(cut % 2));
			longest = m.bytes > longest ? m.bytes : longest;
			free(m.data);
		}
		assert_true(sl_ring_event(&rig->ring, k, 0, &ns));
		assert_true(rig_intact(rig, k, 0));
		rig_release(rig, k++);
	} while (cut < 3 * longest);
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void in_pieces_of_one_byte_it_lands_too(void **state)
{
	struct rig *rig = ready(1);
	static size_t end[ALL];
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < ALL; i++)
		end[i] = i + 1;
	rig_fill(rig, 0, 0);
	for (size_t i = 0; i < rig->plan[0].packets; i++) {
		struct made m;

		make(rig, 0, 0, i, 0, &m);
		give(rig, &m, end, (unsigned)m.bytes - 1);
		free(m.data);
	}
	assert_true(sl_ring_event(&rig->ring, 0, 0, &ns) && rig_intact(rig, 0, 0));
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

/* But for what the checksum does not cover, byte 4, every bit counts, and so does the id. */
static void every_bit_of_every_piece_is_checked(void **state)
{
	struct rig *rig = ready(1);
	uint64_t refused = 0, ns;
	struct made m;

	(void)state;
	rig_fill(rig, 0, 0);
	make(rig, 0, 0, 0, 99, &m);
	for (size_t at = 0; at < m.bytes; at += at < 60 || at > m.bytes - 12 ? 1 : 13) {
		size_t end = m.bytes * (at % 7 + 1) / 9;

		if (at == 4)
			continue;
		m.data[at] ^= (uint8_t)(1 << at % 8);
		give(rig, &m, &end, 1);
		m.data[at] ^= (uint8_t)(1 << at % 8);
		assert_int_equal(rig_dropped(rig, SL_DROP_ICRC) +
					 rig_dropped(rig, SL_DROP_MALFORMED),
				 ++refused);
	}
	m.path.ip_id ^= 2;
	give(rig, &m, &(size_t){700}, 1);
	m.path.ip_id ^= 2;
	assert_int_equal(rig_dropped(rig, SL_DROP_ICRC) + rig_dropped(rig, SL_DROP_MALFORMED),
			 ++refused);
	assert_int_equal(sl_link_packets(&rig->counters), 0);
	assert_true(rig_untouched(rig, 0, 0));
	give(rig, &m, &(size_t){700}, 1);
	assert_int_equal(sl_link_packets(&rig->counters), 1);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	free(m.data);
	rig_free(rig);
}

static void what_was_received_is_not_written_again(void **state)
{
	struct rig *rig = ready(1);
	struct made m;

	(void)state;
	rig_fill(rig, 0, 0);
	make(rig, 0, 0, 3, 0, &m);
	give(rig, &m, &(size_t){500}, 1);
	free(m.data);
	memset(rig->block, 0x55, sizeof(rig->block)); /* the same packet with other bytes */
	make(rig, 0, 0, 3, 0, &m);
	give(rig, &m, &(size_t){500}, 1);
	free(m.data);
	assert_int_equal(rig_dropped(rig, SL_DROP_DUPLICATE), 1);
	rig_fill(rig, 0, 0);
	assert_memory_equal(sl_ring_block(&rig->ring, 0, 0) + 3 * RIG_PMTU,
			    rig->block + 3 * RIG_PMTU, RIG_PMTU);
	rig_free(rig);
}

/* Neither a slot that is not open yet nor one that is being read. */
static void nothing_is_put_together_in_a_slot_that_is_not_open(void **state)
{
	struct rig *rig = ready(1);
	struct made m;

	(void)state;
	rig_fill(rig, RIG_SLOTS, 0);
	make(rig, RIG_SLOTS, 0, 0, 0, &m); /* the slot of block 0, which is open for that one */
	give(rig, &m, &(size_t){500}, 1);
	free(m.data);
	assert_int_equal(rig_dropped(rig, SL_DROP_AHEAD), 1);
	assert_true(rig_untouched(rig, 0, 0));
	sl_ring_close(&rig->ring, 1, 0);
	make(rig, 1, 0, 0, 0, &m);
	give(rig, &m, &(size_t){500}, 1);
	free(m.data);
	assert_int_equal(rig_dropped(rig, SL_DROP_LATE), 1);
	assert_true(rig_untouched(rig, 1, 0));
	rig_free(rig);
}

static void what_is_longer_than_its_place_is_not_put_there(void **state)
{
	struct rig *rig = ready(1);
	struct made m;

	(void)state;
	make_of(rig, 0, 0, rig->plan[0].packets - 1, 0, RIG_PMTU, &m);
	give(rig, &m, &(size_t){500}, 1);
	free(m.data);
	make_of(rig, 0, 0, 0, 0, 100, &m);
	give(rig, &m, &(size_t){60}, 1);
	free(m.data);
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), 2);
	assert_true(rig_untouched(rig, 0, 0) && rig_untouched(rig, 0, 1));
	rig_free(rig);
}

static void what_is_no_packet_is_counted(void **state)
{
	struct rig *rig = ready(1);
	struct made m;

	(void)state;
	rig_fill(rig, 0, 0);
	make(rig, 0, 0, 0, 0, &m);
	sl_udp_receive_pieces(rig->receiver, 0, NULL, 0, &m.path, false, 0);
	m.bytes = 11;
	give(rig, &m, NULL, 0);
	give(rig, &m, &(size_t){3}, 1);
	assert_int_equal(rig_dropped(rig, SL_DROP_MALFORMED), 3);
	assert_int_equal(rig_dropped_all(rig), 3);
	free(m.data);
	rig_free(rig);
}

static void the_plan_says_how_long_a_packet_is(void **state)
{
	struct rig *rig = ready(2);
	struct made m;

	(void)state;
	rig_fill(rig, 0, 0);
	for (size_t i = 0; i < rig->plan[0].packets; i++) {
		make(rig, 0, 0, i, 0, &m);
		assert_int_equal(sl_udp_packet_bytes(rig->receiver, 0, m.data, 40), m.bytes);
		assert_int_equal(sl_udp_packet_bytes(rig->receiver, 0, m.data, 11), 0);
		/* Another thread's is not looked at. */
		assert_int_equal(sl_udp_packet_bytes(rig->receiver, 1, m.data, 40), 0);
		m.data[7] ^= 0x80; /* no such queue */
		assert_int_equal(sl_udp_packet_bytes(rig->receiver, 0, m.data, 40), 0);
		free(m.data);
	}
	rig_free(rig);
}

static bool woken(const struct rig *rig, unsigned poller)
{
	uint64_t n;

	return read(rig->wake[poller].fd, &n, sizeof(n)) == sizeof(n);
}

static void a_queue_follows_its_packets(void **state)
{
	struct rig *rig = ready(2);
	struct made m;

	(void)state;
	rig_fill(rig, 0, 1);
	make(rig, 0, 1, 0, 0, &m); /* of the second module, so of poller 1 */
	give(rig, &m, NULL, 0);	   /* nobody asked: it is not placed */
	assert_int_equal(rig_dropped(rig, SL_DROP_PEER), 1);
	assert_false(woken(rig, 1));
	assert_false(sl_udp_claim(rig->receiver, 0, m.data, m.bytes, &m.path));
	assert_true(woken(rig, 1));
	assert_false(sl_udp_claim(rig->receiver, 0, m.data, m.bytes, &m.path));
	assert_false(woken(rig, 1)); /* once is enough */
	rig->link->receiving->poll(rig->receiver, 0, 1);
	assert_false(sl_udp_claim(rig->receiver, 0, m.data, m.bytes, &m.path));
	rig->link->receiving->poll(rig->receiver, 1, 1); /* its owner hands it over */
	assert_true(sl_udp_claim(rig->receiver, 0, m.data, m.bytes, &m.path));
	give(rig, &m, NULL, 0);
	assert_int_equal(sl_link_packets(&rig->counters), 1);
	assert_false(sl_udp_claim(rig->receiver, 1, m.data, m.bytes, &m.path));
	rig->link->receiving->poll(rig->receiver, 0, 1); /* and back */
	assert_true(sl_udp_claim(rig->receiver, 1, m.data, m.bytes, &m.path));
	free(m.data);
	rig_free(rig);
}

static void a_queue_does_not_follow_strangers(void **state)
{
	struct rig *rig = ready(2);
	struct made m;

	(void)state;
	rig_fill(rig, 0, 1);
	make(rig, 0, 1, 0, 0, &m);
	m.path.source[15] ^= 1;
	assert_true(sl_udp_claim(rig->receiver, 0, m.data, m.bytes, &m.path));
	m.path.source[15] ^= 1;
	m.data[7] ^= 0x80; /* no such queue */
	assert_true(sl_udp_claim(rig->receiver, 0, m.data, m.bytes, &m.path));
	assert_true(sl_udp_claim(rig->receiver, 0, m.data, 11, &m.path));
	rig->link->receiving->poll(rig->receiver, 1, 1);
	assert_false(woken(rig, 1));
	m.data[7] ^= 0x80;
	assert_true(sl_udp_claim(rig->receiver, 1, m.data, m.bytes, &m.path)); /* still there */
	free(m.data);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_cut_anywhere_lands_in_its_place),
		cmocka_unit_test(in_pieces_of_one_byte_it_lands_too),
		cmocka_unit_test(every_bit_of_every_piece_is_checked),
		cmocka_unit_test(what_was_received_is_not_written_again),
		cmocka_unit_test(nothing_is_put_together_in_a_slot_that_is_not_open),
		cmocka_unit_test(what_is_longer_than_its_place_is_not_put_there),
		cmocka_unit_test(what_is_no_packet_is_counted),
		cmocka_unit_test(the_plan_says_how_long_a_packet_is),
		cmocka_unit_test(a_queue_follows_its_packets),
		cmocka_unit_test(a_queue_does_not_follow_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
