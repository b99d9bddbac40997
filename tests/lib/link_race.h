/* link_race.h - two threads poll, one sends, one opens and releases slots: every block arrives
 * whole. To be run under ThreadSanitizer. */
#ifndef TESTS_LIB_LINK_RACE_H
#define TESTS_LIB_LINK_RACE_H

#include "lib/link_rig.h"

enum { RACE_FRAMES = 400 };

struct race {
	struct rig *rig;
	unsigned poller;
	_Atomic int *stop;
};

static inline void *race_poll_run(void *arg)
{
	struct race *race = arg;
	const struct sl_link *link = race->rig->link;

	while (!atomic_load(race->stop))
		if (link->receiving->poll(race->rig->receiver, race->poller, 64) == 0)
			link->receiving->wait(race->rig->receiver, race->poller, 1000);
	return NULL;
}

/* Nothing more to send now; rc: what waits, or may have to be sent again, of all modules. */
static inline void race_rest(struct rig *rig)
{
	for (uint32_t m = 0; m < RIG_MODULES; m++)
		rig->link->sending->post(rig->source, rig->plan[m].transfer, NULL, 0);
	rig->link->sending->wait(rig->source, 1000);
}

static inline void race_send_block(struct race *race, uint64_t k, uint32_t m, uint8_t *block)
{
	struct rig *rig = race->rig;
	uint16_t transfer = rig->plan[m].transfer;
	struct sl_write write[64];
	size_t n, done = 0;

	/* rc: the block before it is there until it is acknowledged. */
	while (!atomic_load(race->stop) &&
	       rig->link->sending->reap(rig->source, transfer) < k * rig->plan[m].block_bytes)
		race_rest(rig);
	rig_fill(rig, k, m);
	memcpy(block, rig->block, sizeof(rig->block));
	n = rig_writes(rig, k, m, write);
	for (size_t i = 0; i < n; i++)
		write[i].part[0].data = block +
					((const uint8_t *)write[i].part[0].data - rig->block);
	while (done < n && !atomic_load(race->stop)) {
		int sent = rig->link->sending->post(rig->source, transfer, write + done, n - done);

		done += sent > 0 ? (size_t)sent : 0;
		if (sent == 0)
			race_rest(rig);
	}
}

/* Each module has a block of its own: the rig has but one. */
static inline void *race_send_run(void *arg)
{
	struct race *race = arg;
	static uint8_t block[RIG_MODULES][sizeof(race->rig->block)];

	for (uint64_t k = 0; k < RACE_FRAMES && !atomic_load(race->stop); k++)
		for (uint32_t m = 0; m < RIG_MODULES; m++)
			race_send_block(race, k, m, block[m]);
	while (!atomic_load(race->stop))
		race_rest(race->rig);
	return NULL;
}

static inline int race_intact(struct rig *rig, uint64_t k, uint32_t m)
{
	const uint8_t *block = sl_ring_block(&rig->ring, k, m);

	for (size_t i = 0; i < sizeof(rig->block); i++)
		if (block[i] != (uint8_t)(i * 7 + k * 13 + m * 101 + i / 251))
			return 0;
	return 1;
}

static inline void race_wake(struct rig *rig)
{
	uint64_t one = 1;

	for (unsigned p = 0; p < rig->pollers; p++)
		if (atomic_fetch_or(&rig->wake[p].asleep, 0))
			assert_int_equal(write(rig->wake[p].fd, &one, sizeof(one)), sizeof(one));
}

/* `rig` has its options and is not open yet; it is freed. */
static inline void race_two_pollers(struct rig *rig)
{
	_Atomic int stop = 0;
	struct race race[3] = {{rig, 0, &stop}, {rig, 1, &stop}, {rig, 0, &stop}};
	pthread_t thread[3];
	uint64_t ns;

	rig->pollers = 2;
	rig_make_ready(rig);
	pthread_create(&thread[0], NULL, race_poll_run, &race[0]);
	pthread_create(&thread[1], NULL, race_poll_run, &race[1]);
	pthread_create(&thread[2], NULL, race_send_run, &race[2]);
	for (uint64_t k = 0; k < RACE_FRAMES; k++) {
		uint64_t end = sl_clock_ns() + UINT64_C(60) * 1000 * 1000 * 1000;

		for (uint32_t m = 0; m < RIG_MODULES; m++) {
			while (!sl_ring_event(&rig->ring, k, m, &ns))
				assert_true(sl_clock_ns() < end);
			assert_true(race_intact(rig, k, m));
		}
		rig_release(rig, k);
		race_wake(rig);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	/* rc: who was not on a core for long has its packets sent again */
	assert_int_equal(rig_dropped_all(rig), rig->service == SL_SERVICE_RC
						       ? rig_dropped(rig, SL_DROP_DUPLICATE) +
								 rig_dropped(rig, SL_DROP_GAP)
						       : 0);
	rig_free(rig);
}

#endif
