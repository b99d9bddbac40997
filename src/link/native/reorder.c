/* reorder.c - packets of a native detector that are held back on purpose, so that others
 * overtake them.
 *
 * A packet that is held back goes out right after the env.hold'th behind it, of any port of its
 * module, whatever becomes of that one; at the end of the stream, with flush. It is copied: what it
 * was made of may be gone by then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/native/native.h"

struct sl_native_reordered {
	uint64_t number; /* of the packet, as sources count them */
	uint32_t port;
	uint8_t header[SL_NATIVE_HEADER];
	uint8_t payload[SL_NATIVE_PAYLOAD];
};

int sl_native_reorder_open(const struct sl_native *native, struct sl_native_source *source)
{
	/* At most one for each of the packets that may overtake the first. */
	if (native->env.hold && !source->held)
		source->held = calloc(native->env.hold + 1, sizeof(*source->held));
	return native->env.hold && !source->held ? -ENOMEM : 0;
}

void sl_native_reorder(struct sl_native_batch *batch, const uint8_t *header,
		       const struct sl_part *part, unsigned parts)
{
	struct sl_native_source *source = batch->source;
	struct sl_native_reordered *held =
		&source->held[source->holds++ % (batch->native->env.hold + 1)];
	uint8_t *to = held->payload;

	held->number = source->passed;
	held->port = batch->port;
	memcpy(held->header, header, batch->native->format->header_bytes);
	for (unsigned i = 0; i < parts; i++) {
		memcpy(to, part[i].data, part[i].bytes);
		to += part[i].bytes;
	}
}

/* One that has waited long enough, in its place among what is being sent: at once, since its memory
 * is needed again. */
static int send_held(struct sl_native_batch *batch, const struct sl_native_reordered *held)
{
	const struct sl_part part = {held->payload, batch->source->shape.payload};
	uint32_t port = batch->port;
	int err = sl_native_send(batch);

	batch->port = held->port;
	if (!err)
		err = sl_native_append(batch, held->header, &part, 1);
	if (!err)
		err = sl_native_send(batch);
	batch->port = port;
	return err;
}

static int release(struct sl_native_batch *batch, bool all)
{
	struct sl_native_source *source = batch->source;
	uint32_t hold = batch->native->env.hold;
	int err = 0;

	while (!err && source->released != source->holds) {
		const struct sl_native_reordered *held =
			&source->held[source->released % (hold + 1)];

		if (!all && held->number + hold >= source->passed)
			break;
		source->released++;
		err = send_held(batch, held);
	}
	return err;
}

int sl_native_pass(struct sl_native_batch *batch)
{
	batch->source->passed++;
	return release(batch, false);
}

int sl_native_release_all(struct sl_native *native, struct sl_native_source *source)
{
	struct sl_native_batch *batch = native->batch;

	batch->native = native;
	batch->source = source;
	batch->port = 0;
	batch->packets = batch->iovs = 0;
	batch->most = SL_NATIVE_SEGMENTS;
	return release(batch, true);
}
