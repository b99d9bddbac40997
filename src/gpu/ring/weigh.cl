/* weigh.cl - the smallest work on a ring of buffers: the sum of an event's words; it is kept, and its first bytes go out, when
 * its first word is at least a threshold. What a ring costs is seen with it.
 *
 * A kernel is launched once, and polls until the end; group g does events g, g + groups, and so on.
 *
 * Plain buffers: data, and a meta word beside. Tagged buffers: chunks of 12 bytes and a turn; the first is the meta word.
 * docs/reference/device-rings.md */
#include "gpu/dialect/dialect.clh"
#include "gpu/ring/ring.clh"

#define RING SL_DEVICE_RING_PARAMETERS, sl_u32 threshold
#define PASS SL_DEVICE_RING_PASS, threshold

enum { IS_LAPPED = 1, IS_LATE = 2 }; /* of a chunk: another event's; it never came */

struct shared {
	sl_u32x4 head[2][2]; /* in turns, so that the next event need not wait until all threads are through with this one */
	sl_u32 part[2][64];
	sl_u32x4 out[2][SL_DEVICE_RING_LOCAL / 16]; /* what goes out if the event is kept */
	sl_u32 outcome, first;
};

SL_DEVICE sl_u32 least(sl_u32 a, sl_u32 b)
{
	return a < b ? a : b;
}

/* An event of a plain buffer; 0: there will be none. */
SL_DEVICE int weigh_plain(SL_LOCAL struct shared *s, RING, sl_u32 b, sl_u32 now, sl_u32 odd)
{
	sl_u32 sum = 0, bytes, out = 0, i;
	sl_u32x4 head = sl_u32x4_make(0, SL_DEVICE_RING_END, 0, 0);

	(void)buffers;
	if (sl_thread() == 0) {
		s->outcome = sl_device_ring_wait(meta + b, enable + b, now, stop, backoff_ns, &head)
				     ? sl_device_ring_judge(head, buffer_bytes, now, stop)
				     : 0;
		s->head[odd][0] = head;
		s->first = 0;
		sl_fence_system(); /* with the barrier, for all threads: data is as new as the word */
	}
	sl_barrier();
	if (!s->outcome)
		return 0;
	bytes = s->outcome == SL_DEVICE_RING_GOOD ? s->head[odd][0].x : 0;
	data += (sl_u64)b * (buffer_bytes / 16);
	for (i = sl_thread(); i < bytes / 16; i += sl_threads()) {
		sl_u32x4 v = data[i];

		if (i == 0)
			s->first = v.x;
		sum += v.x + v.y + v.z + v.w;
	}
	sl_group_sum_and_flags(s->part[odd], &sum, 0);
	if (s->outcome == SL_DEVICE_RING_GOOD && s->first >= threshold)
		out = least(slot_bytes, bytes) / 16;
	result += (sl_u64)b * (slot_bytes / 16);
	for (i = sl_thread(); i < out; i += sl_threads())
		result[i] = data[i];
	sl_barrier();
	if (sl_thread() == 0) {
		sl_u32 outcome = s->outcome;

		sl_fence_system(); /* results before the completion; data before the second look */
		if (sl_chunk_load(meta + b).w != now)
			outcome = SL_DEVICE_RING_LAPPED;
		if (outcome == SL_DEVICE_RING_GOOD && s->first >= threshold)
			outcome |= SL_DEVICE_RING_KEEP;
		sl_chunk_store(completion + b, sl_u32x4_make(outcome, outcome & SL_DEVICE_RING_KEEP ? 16 * out : 0, sum, now));
	}
	sl_barrier();
	return 1;
}

/* An event of a tagged buffer. A chunk that is not of this turn was lapped, and one that is cannot be half old. Each thread
 * waits for its own chunks, so that data and turn come in one look across the bus; one barrier later all know what to do. */
SL_DEVICE int weigh_tagged(SL_LOCAL struct shared *s, RING, sl_u32 b, sl_u32 now, sl_u32 odd)
{
	sl_u32 chunks = buffer_bytes / 16, results = slot_bytes / 16, most = (chunks - 1) * SL_DEVICE_RING_CHUNK;
	sl_u32 sum = 0, bad = 0, outcome, out, first, i;
	sl_u32x4 head;

	(void)meta;
	(void)buffers;
	data += (sl_u64)b * chunks;
	for (i = sl_thread(); i < chunks; i += sl_threads()) {
		sl_u32x4 v;

		if (!sl_device_ring_wait(data + i, i ? 0 : enable + b, now, stop, backoff_ns, &v))
			bad |= IS_LATE;
		if (v.w != now)
			bad |= IS_LAPPED;
		sum += i ? v.x + v.y + v.z : 0;
		if (i < 2)
			s->head[odd][i] = v;
		if (i && i <= results)
			s->out[odd][i - 1] = v;
	}
	bad = sl_group_sum_and_flags(s->part[odd], &sum, bad);
	head = s->head[odd][0];
	first = s->head[odd][1].x;
	/* What is seldom is asked at once: every instruction from here to the completion is in the way of the event. */
	if (bad || head.y & SL_DEVICE_RING_END) {
		/* One looks whether it is over, for all: another might see it, and they would part. */
		if (sl_thread() == 0)
			s->outcome = bad & IS_LATE ? 0 : bad ? (sl_u32)SL_DEVICE_RING_LAPPED : sl_device_ring_judge(head, most, now, stop);
		sl_barrier();
		outcome = s->outcome;
		sl_barrier();
		if (!outcome)
			return 0;
	} else
		outcome = head.x > most ? (sl_u32)SL_DEVICE_RING_WRONG : (sl_u32)SL_DEVICE_RING_GOOD | (first >= threshold ? SL_DEVICE_RING_KEEP : 0);
	/* Chunks of a result have their turns, so that no fence need stand between them and the completion. */
	out = outcome & SL_DEVICE_RING_KEEP ? least(results * SL_DEVICE_RING_CHUNK, head.x) : 0;
	for (i = sl_threads() - 1 - sl_thread(); i * SL_DEVICE_RING_CHUNK < out; i += sl_threads())
		sl_chunk_store(result + (sl_u64)b * results + i, s->out[odd][i]);
	if (sl_thread() == 0) /* which has no result to write, where there are many */
		sl_chunk_store(completion + b, sl_u32x4_make(outcome, out, sum, now));
	return 1;
}

#define FOREVER(NAME, WORK)                                                    \
	SL_KERNEL void NAME(RING)                                              \
	{                                                                      \
		SL_SHARED struct shared s;                                     \
		sl_u32 n = sl_group(0), odd = 0;                               \
                                                                               \
		while (WORK(&s, PASS, n & (buffers - 1), n + 1, odd)) {        \
			n += sl_groups(0);                                     \
			odd ^= 1;                                              \
		}                                                              \
		sl_end();                                                      \
	}

FOREVER(weigh_forever, weigh_plain)
FOREVER(weigh_tagged_forever, weigh_tagged)
