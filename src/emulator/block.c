/* block.c - whole frames out of a synthetic detector, and the blocks that a transfer makes
 * of them: by the code of a front end's firmware, which sends a rectangle from where it lies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc.h"
#include "emulator/counts.h"
#include "emulator/parts.h"
#include "frontend/block.h"
#include "frontend/descriptor.h"

enum { NAP_NS = 100 * 1000 };

void sl_emulator_choose_generator(struct sl_emulator *em)
{
	struct sl_experiment *e = em->experiment;
	const struct sl_cut_options *o = &e->cut.options;
	struct sl_emulator_generator *c = &em->camera;
	struct sl_transfer *t = &em->transfer;
	const struct sl_geometry *g = &c->geometry;
	bool part = e->transfer[0] && o->part == SL_CUT_PIXELS;

	*t = (struct sl_transfer){.every = 1, .stack = 1, .part = SL_PART_PIXELS | SL_PART_RECORD};
	if (e->link->oneway) /* its packets have headers instead */
		t->part = SL_PART_PIXELS;
	if (part) {
		*c = (struct sl_emulator_generator){.detector = e->cut.generator,
						    .state = e->cut.generator_state,
						    .geometry = e->cut.source_geometry,
						    .first_module = o->first_module};
		t->every = o->every;
		t->phase = o->phase;
		t->stack = o->stack;
	} else {
		/* What is no part of the pixels is made elsewhere, and sent as it is. */
		*c = (struct sl_emulator_generator){.detector = e->detector,
						    .state = e->detector_state,
						    .geometry = em->geometry};
	}
	t->rectangle = sl_rectangle_of(part ? o->y : 0, part ? o->x : 0,
				       part ? e->cut.height : g->rows,
				       part ? e->cut.width : g->columns, g->columns,
				       (uint32_t)(g->module_bytes / sl_geometry_pixels(g)));
}

int sl_emulator_frame_open(const struct sl_emulator *em, struct sl_emulator_frame *slot)
{
	uint32_t stack = em->transfer.stack;

	slot->buffer = malloc(stack * em->camera.geometry.module_bytes);
	slot->frame = calloc(stack, sizeof(*slot->frame));
	if (em->sender[0].faults)
		slot->spoilt = malloc(em->geometry.module_bytes);
	return slot->buffer && slot->frame && (slot->spoilt || !em->sender[0].faults) ? 0 : -ENOMEM;
}

void sl_emulator_frame_close(struct sl_emulator_frame *slot)
{
	free(slot->write);
	free(slot->buffer);
	free(slot->frame);
	free(slot->spoilt);
}

static bool is_dark(const struct sl_emulator *em, uint64_t k)
{
	/* They come first: of a plan, or of the detector when it was running before. */
	return sl_darks_has(&em->darks, em->joined ? em->first_frame + k : k);
}

/* A bit of the block is flipped, after all that vouches for it was computed; in a copy, since the
 * detector may need the pixels again. */
static void spoil(struct sl_faults *faults, const struct sl_plan *plan,
		  struct sl_emulator_frame *slot)
{
	uint64_t bytes = slot->block.record.bytes, bit, at = 0;
	struct sl_from *source = &slot->block.source;
	struct sl_from_cursor cursor;

	if (!sl_faults_spoil(faults, plan, slot->sequence, &bit))
		return;
	if (bit / 8 >= bytes) {
		((uint8_t *)&slot->block.record)[bit / 8 - bytes] ^= (uint8_t)(1 << bit % 8);
		return;
	}
	sl_from_seek(source, 0, &cursor);
	while (at < bytes) {
		struct sl_part part = sl_from_next(&cursor, (uint32_t)(bytes - at));

		memcpy(slot->spoilt + at, part.data, part.bytes);
		at += part.bytes;
	}
	slot->spoilt[bit / 8] ^= (uint8_t)(1 << bit % 8);
	slot->frame[0] = slot->spoilt;
	source->lines *= source->frames;
	source->frames = 1;
	source->pitch = 0;
}

static void forge_keys(struct sl_faults *faults, struct sl_emulator_module *module,
		       struct sl_emulator_frame *slot)
{
	const struct sl_plan *plan = &module->plan;

	for (uint32_t i = 0; i < module->writes; i++) {
		struct sl_write *write = &slot->write[i];
		uint32_t packet = (write->psn - sl_plan_psn(plan, slot->sequence, 0)) & 0xffffff;

		if (sl_faults_wrong_key(faults, plan->module, slot->sequence, packet))
			write->rkey ^= 0x5a5a5a5a;
	}
}

/* Frame i of the k'th block, by the detector's count. */
static uint64_t number_of(const struct sl_emulator *em, uint64_t k, uint32_t i)
{
	return em->number_base +
	       sl_geometry_frame(&em->camera.geometry,
				 sl_transfer_frame(&em->transfer, em->first_frame + k, i));
}

static int render(struct sl_emulator *em, uint32_t m, uint64_t k, uint32_t flags,
		  struct sl_emulator_frame *slot)
{
	const struct sl_emulator_generator *c = &em->camera;
	int err = 0;

	for (uint32_t i = 0; !err && i < em->transfer.stack; i++)
		err = c->detector->render(c->state, number_of(em, k, i), c->first_module + m, flags,
					  slot->buffer + i * c->geometry.module_bytes,
					  &slot->frame[i]);
	return err;
}

/* Before anything of it leaves: its answer will find that it was sent. */
static int note_sent(struct sl_emulator_sender *sender, uint64_t number, uint64_t ns)
{
	struct sl_emulator *em = sender->emulator;

	while (em->feedback &&
	       !sl_feedback_account_sent(&em->feedback->account, sender->index, number, ns)) {
		if (atomic_load_explicit(&em->stop, memory_order_relaxed) > 1)
			return -ECANCELED;
		sl_clock_sleep_until(sl_clock_ns() + NAP_NS);
	}
	return 0;
}

int sl_emulator_leave_out(struct sl_emulator_sender *sender, uint64_t k)
{
	return note_sent(sender, number_of(sender->emulator, k, 0), 0);
}

int sl_emulator_stay_away(struct sl_emulator_sender *sender, uint64_t k)
{
	const struct sl_emulator *em = sender->emulator;
	uint64_t away = em->experiment->faults.restart_frames;

	away = away < em->to_send - k ? away : em->to_send - k;
	return sl_emulator_leave_out(sender, k + away - 1); /* and all between */
}

static uint64_t wrap(const struct sl_key_options *key, uint64_t count)
{
	return key->wrap_bits < 64 ? count & ((UINT64_C(1) << key->wrap_bits) - 1) : count;
}

uint64_t sl_emulator_counter(const struct sl_experiment *e, uint64_t number)
{
	if (e->key.by != SL_ALIGN_FRAME)
		return number;
	return wrap(&e->key, number + (uint64_t)(int64_t)e->key.offset);
}

static uint64_t clock_of(const struct sl_experiment *e, uint64_t time_ns)
{
	double ahead = e->key.offset + (double)time_ns * e->key.drift_ppm * 1e-6;

	if (e->key.by != SL_ALIGN_TIMESTAMP)
		return time_ns;
	return wrap(&e->key, time_ns + (uint64_t)(int64_t)ahead);
}

int sl_emulator_block(struct sl_emulator_sender *sender, uint32_t m, uint64_t k, uint64_t sequence,
		      struct sl_emulator_frame *slot)
{
	struct sl_emulator *em = sender->emulator;
	const struct sl_emulator_generator *c = &em->camera;
	struct sl_emulator_module *module = &em->module[m];
	uint64_t number = number_of(em, k, 0);
	uint32_t flags = is_dark(em, k) ? SL_RECORD_DARK : 0;
	struct sl_frame_stamp stamp = {
		.number = number,
		.timestamp = c->detector->timestamp(c->state, number),
		.items = sl_geometry_items(&c->geometry),
		.flags = (uint16_t)flags,
		.cell = sl_geometry_cell(&c->geometry, number),
	};
	int err = render(em, m, k, flags, slot);

	if (err)
		return err;
	stamp.number = sl_emulator_counter(em->experiment, stamp.number);
	stamp.timestamp = clock_of(em->experiment, stamp.timestamp);
	stamp.emit_ns = sl_clock_ns();
	err = note_sent(sender, number, stamp.emit_ns);
	if (err)
		return err;
	if (sender->faults)
		stamp.timestamp =
			sl_faults_clock(sender->faults, (uint16_t)m, sequence, stamp.timestamp);
	slot->sequence = sequence;
	sl_block_make(&slot->block, &em->transfer, &module->plan, sequence, &stamp, slot->frame,
		      slot->frame, sl_crc32c);
	err = sl_emulator_counts_note(em, m, &slot->block.record);
	if (err)
		return err;
	if (sender->faults)
		spoil(sender->faults, &module->plan, slot);
	sl_descriptor_fill(&module->plan, sequence, &slot->block.source, slot->write);
	for (uint32_t i = 0; i < module->writes; i++)
		slot->write[i].record = &slot->block.record;
	if (sender->faults)
		forge_keys(sender->faults, module, slot);
	return 0;
}
