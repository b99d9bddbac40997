/* reorder.c - packets that are held back on purpose, so that others overtake them.
 *
 * A packet that is held back goes out right after the env.hold'th behind it, whatever becomes of
 * that one; at the end of the stream, with flush. It is copied: what it was made of may be gone by
 * then. Its ICRC is made when it is sent, since it covers the place in the send. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/udp/udp.h"

struct sl_udp_reordered {
	uint64_t number; /* of the packet, as sources count them */
	struct sl_roce_fragment fragment;
	uint8_t header[SL_ROCE_HEADERS_MAX];
	uint8_t payload[SL_ROCE_PMTU_MAX];
};

int sl_udp_reorder_open(const struct sl_udp *udp, struct sl_udp_source *source)
{
	/* At most one for each of the packets that may overtake the first. */
	if (udp->env.hold && !source->held)
		source->held = calloc(udp->env.hold + 1, sizeof(*source->held));
	return udp->env.hold && !source->held ? -ENOMEM : 0;
}

void sl_udp_reorder(struct sl_udp_batch *batch, const struct sl_write *write,
		    const struct sl_roce_fragment *fragment, const uint8_t *header)
{
	struct sl_udp_source *source = batch->source;
	struct sl_udp_reordered *held = &source->held[source->holds++ % (batch->udp->env.hold + 1)];

	held->number = source->passed;
	held->fragment = *fragment;
	held->fragment.offset = 0;
	memcpy(held->header, header, fragment->header_bytes);
	sl_write_copy(write, fragment->offset, fragment->bytes, held->payload);
}

/* Those behind which enough packets have passed, or all. */
static int release(struct sl_udp_batch *batch, bool all)
{
	struct sl_udp_source *source = batch->source;
	uint32_t hold = batch->udp->env.hold;
	int err = 0;

	while (!err && source->released != source->holds) {
		struct sl_udp_reordered *held = &source->held[source->released % (hold + 1)];
		const struct sl_write write = {
			.bytes = held->fragment.bytes,
			.part = {{held->payload, held->fragment.bytes}},
		};

		if (!all && held->number + hold >= source->passed)
			break;
		source->released++;
		err = sl_udp_put(batch, &write, &held->fragment, held->header, false);
		/* At once: its memory is needed again. */
		if (!err)
			err = sl_udp_flush(batch);
	}
	return err;
}

int sl_udp_pass(struct sl_udp_batch *batch)
{
	batch->source->passed++;
	return release(batch, false);
}

int sl_udp_release_all(void *state, uint16_t transfer)
{
	struct sl_udp *udp = state;
	struct sl_udp_batch batch = {.udp = udp, .source = sl_udp_source_of(udp, transfer)};

	return batch.source ? release(&batch, true) : -EINVAL;
}
