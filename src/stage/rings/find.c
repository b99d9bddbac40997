/* find.c - rings of many events: unpacks them, and sends them from pass to pass. */
#include "stage/rings/find.h"

#include <string.h>

const struct sl_rings_passes *sl_rings_passes_of(enum sl_vectors vectors)
{
#ifdef __x86_64__
	if (vectors == SL_VECTORS_AVX512)
		return &sl_rings_avx512;
	if (vectors == SL_VECTORS_AVX2)
		return &sl_rings_avx2;
#endif
	return &sl_rings_baseline;
}

/* Which three places are tried, in an order that prefers none. Of a ring around the centroid those
 * say most that have at least a sixth of the turn between them. The hits of one that lies to the
 * side are near to each other in this order: every fourth triplet is for these. */
static void choose_triplets(struct sl_rings_settings *s)
{
	enum { SIXTH = SL_RINGS_PLACES / 6, QUARTER = SL_RINGS_PLACES / 4 };
	uint64_t random = 1;
	uint32_t n = 0;

	while (n < SL_RINGS_TRIPLETS) {
		uint32_t a, b, c, gap[3];

		random = random * 6364136223846793005u + 1442695040888963407u;
		a = random >> 59;
		b = random >> 54 & 31;
		c = random >> 49 & 31;
		gap[0] = (b - a) % SL_RINGS_PLACES;
		gap[1] = (c - b) % SL_RINGS_PLACES;
		gap[2] = (a - c) % SL_RINGS_PLACES;
		if (gap[0] + gap[1] + gap[2] != SL_RINGS_PLACES)
			continue;
		if (n % 4 == 3 ? gap[0] < 2 || gap[1] < 2 || gap[0] + gap[1] >= QUARTER
			       : gap[0] < SIXTH || gap[1] < SIXTH || gap[2] < SIXTH)
			continue;
		s->triplet[n][0] = (uint8_t)a;
		s->triplet[n][1] = (uint8_t)b;
		s->triplet[n][2] = (uint8_t)c;
		n++;
	}
}

/* Batcher's odd-even merge sort of SL_RICH_HITS, without the pairs that reach behind the last hit:
 * what would be there is larger than all others and would stay there. Runs of 2 * p are made of two
 * of p; pairs lie k apart, and none crosses the end of a run. */
static void list_pairs(struct sl_rings_network *network, uint32_t hits)
{
	network->pairs = 0;
	for (uint32_t p = 1; p < SL_RICH_HITS; p *= 2)
		for (uint32_t k = p; k >= 1; k /= 2)
			for (uint32_t i = k % p; i + k < hits; i++) {
				if ((i - k % p) / k % 2 || i / (2 * p) != (i + k) / (2 * p))
					continue;
				network->pair[network->pairs][0] = (uint8_t)i;
				network->pair[network->pairs++][1] = (uint8_t)(i + k);
			}
}

void sl_rings_settings_init(struct sl_rings_settings *s)
{
	for (uint32_t i = 0; i < SL_RICH_CELLS; i++) {
		double x, y;

		sl_rich_position(i, &x, &y);
		s->x[i] = (float)x;
		s->y[i] = (float)y;
	}
	choose_triplets(s);
	for (uint32_t hits = 0; hits <= SL_RICH_HITS; hits++)
		list_pairs(&s->network[hits], hits);
}

static void unpack(const uint8_t *packed, uint32_t number, struct sl_rings_work *work)
{
	struct sl_rings_event *e = &work->event[number];
	uint32_t hits = 0, i;

	for (i = 0; i < SL_RICH_HITS; i++) {
		uint32_t cell = sl_rich_hit(packed, i);

		if (cell >= SL_RICH_CELLS) {
			if (cell == SL_RICH_UNUSED)
				break;
			continue;
		}
		e->cell[hits] = (uint16_t)cell;
		hits += work->seen[cell] != number + 1;
		work->seen[cell] = (uint16_t)(number + 1);
	}
	e->hits = e->left = (uint8_t)hits;
	e->odd = (uint8_t)(i - hits);
	e->rings = e->alone = 0;
}

/* Events with at least so many hits left, those with the most last. */
static uint32_t line_up(struct sl_rings_work *work, const uint16_t *from, uint32_t n,
			uint32_t least, uint16_t *to)
{
	uint32_t end[SL_RICH_HITS + 2] = {0}, below;

	for (uint32_t i = 0; i < n; i++)
		end[work->event[from[i]].left + 1]++;
	for (uint32_t h = 0; h <= SL_RICH_HITS; h++)
		end[h + 1] += end[h];
	/* end[h] is now where those with h hits begin. */
	below = end[least < SL_RICH_HITS + 1 ? least : SL_RICH_HITS + 1];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t left = work->event[from[i]].left;

		if (left >= least)
			to[end[left]++ - below] = from[i];
	}
	return n - below;
}

static uint32_t select_rings(const struct sl_rings_work *work, const uint16_t *from, uint32_t n,
			     uint32_t rings, uint16_t *to)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		to[kept] = from[i];
		kept += work->event[from[i]].rings == rings;
	}
	return kept;
}

void sl_rings_find(const struct sl_rings_settings *s, const struct sl_rings_passes *passes,
		   const uint8_t *packed, ptrdiff_t pitch, uint32_t n, struct sl_rings_work *work)
{
	uint16_t *queue = work->queue[0], *other = work->queue[1];
	uint32_t many, left;

	memset(work->seen, 0, sizeof(work->seen));
	for (uint32_t i = 0; i < n; i++) {
		unpack(packed + (ptrdiff_t)i * pitch, i, work);
		other[i] = (uint16_t)i;
	}
	n = line_up(work, other, n, s->min_hits, queue);
	passes->single(s, work, queue, n);
	many = select_rings(work, queue, n, 0, queue);
	passes->order(s, work, queue, many);
	passes->search(s, work, queue, many);
	for (uint32_t round = 1; round < SL_RINGS_LOOKED_FOR; round++) {
		left = line_up(work, queue, many, s->min_own, other);
		passes->search(s, work, other, left);
	}
	/* Side by side those of as many rings. */
	left = 0;
	for (uint32_t rings = 1; rings <= SL_RINGS_LOOKED_FOR; rings++)
		left += select_rings(work, queue, many, rings, other + left);
	passes->share(s, work, other, left);
}
