/* link_rig.c - see link_rig.h. */
#include "lib/link_rig.h"

struct rig_layout rig_layout;

int rig_is_nic(const struct sl_link *link)
{
	return strcmp(link->wire, "roce") == 0 && !(link->guards & SL_GUARD_ENFORCED);
}

void (*rig_lose)(struct rig *rig);

void rig_set(const struct sl_link *link, void *state, const char *name, const char *text)
{
	const struct sl_option *option = sl_option_find(link->options, name);
	char why[128];

	if (option)
		assert_int_equal(sl_option_set(option, state, text, why, sizeof(why)), 0);
}

void rig_address(char text[32], unsigned host)
{
	unsigned pid = (unsigned)getpid();

	snprintf(text, 32, "127.%u.%u.%u", 1 + pid / 250 / 250 % 100, 1 + pid / 250 % 250,
		 (pid % 125) * 2 + host);
}

void *rig_state(const struct rig *rig)
{
	void *state = calloc(1, rig->link->state_bytes);
	char listen[32], text[32];

	assert_non_null(state);
	sl_options_defaults(rig->link->options, state);
	rig_address(listen, 1);
	rig_set(rig->link, state, "listen", rig->listen_at ? rig->listen_at : listen);
	rig_address(text, 2);
	rig_set(rig->link, state, "source", rig->send_from ? rig->send_from : text);
	if (rig->link->oneway) { /* packets of native detectors are of one length */
		rig_set(rig->link, state, "payload", "1000");
		rig_set(rig->link, state, "event_bytes", "40");
		rig_set(rig->link, state, "packet_events", "25");
	}
	for (unsigned i = 0; i < 4 && rig->option[i][0]; i++)
		rig_set(rig->link, state, rig->option[i][0], rig->option[i][1]);
	if (rig->receive_buffer) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)rig->receive_buffer);
		rig_set(rig->link, state, "receive_buffer", text);
	}
	return state;
}

int rig_open_receiver(struct rig *rig)
{
	struct sl_link_env env = {.ring = &rig->ring,
				  .pollers = rig->pollers ? rig->pollers : 1,
				  .wake = rig->wake,
				  .counters = &rig->counters,
				  .service = rig->service ? rig->service : SL_SERVICE_UC,
				  .operation = rig->operation ? rig->operation : SL_OPERATION_WRITE,
				  .message = rig->message	  ? rig->message
					     : rig_layout.message ? rig_layout.message
								  : rig->link->message,
				  .crc = rig->crc,
				  .notes = rig->notes,
				  .handover_fd = rig->handover_fd,
				  .bits = rig->bits,
				  .pixel_bytes = rig->pixel_bytes,
				  .unread_rows = rig->unread_rows,
				  .pmtu = RIG_PMTU};

	rig->receiver = rig_state(rig);
	return rig->link->open(rig->receiver, &env);
}

static void *rig_connect_thread(void *arg)
{
	struct rig *rig = arg;
	intptr_t err = 0;

	for (unsigned m = 0; m < RIG_MODULES && !err; m++)
		err = rig->link->sending->connect(rig->source, &rig->plan[m]);
	return (void *)err;
}

int rig_offer(struct rig *rig, void *source, uint16_t module, struct sl_offer *offer)
{
	*offer = (struct sl_offer){.module = module,
				   .block_bytes = RIG_PIXELS +
						  (rig->link->oneway ? 0 : SL_RECORD_BYTES)};
	if (rig_layout.rectangle) {
		offer->lines = RIG_LINES;
		offer->line_bytes = RIG_LINE;
	}
	if (rig->lines) {
		offer->lines = rig->lines;
		offer->line_bytes = RIG_PIXELS / rig->lines;
	}
	return rig->link->sending->offer(source, offer);
}

void rig_open_source(struct rig *rig)
{
	struct sl_link_env env = {.service = rig->service,
				  .fault = rig->fault,
				  .fault_arg = rig,
				  .hold = rig->hold,
				  .bits = rig->bits,
				  .pixel_bytes = rig->pixel_bytes,
				  .unread_rows = rig->unread_rows};
	pthread_t thread;
	void *err = NULL;

	if (rig_lose) {
		env.fault = NULL;
		rig_lose(rig);
	}
	rig->source = rig_state(rig);
	assert_int_equal(rig->link->open(rig->source, &env), 0);
	for (uint16_t m = 0; m < RIG_MODULES; m++) {
		struct sl_offer offer;

		assert_int_equal(rig_offer(rig, rig->source, m, &offer), 0);
		assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &rig->plan[m]),
				 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, rig_connect_thread, rig), 0);
	while (pthread_tryjoin_np(thread, &err) != 0)
		if (rig->link->receiving->serve)
			rig->link->receiving->serve(rig->receiver);
	assert_null(err);
}

void rig_close_source(struct rig *rig)
{
	if (rig->source)
		rig->link->close(rig->source);
	free(rig->source);
	rig->source = NULL;
}

void rig_close_receiver(struct rig *rig)
{
	if (rig->receiver)
		rig->link->close(rig->receiver);
	free(rig->receiver);
	rig->receiver = NULL;
}

struct rig *rig_new(const struct sl_link *link)
{
	struct rig *rig = aligned_alloc(64, (sizeof(*rig) + 63) / 64 * 64);
	struct sl_lines lines = {RIG_LINES, RIG_LINE, rig_layout.pitch};

	assert_non_null(rig);
	memset(rig, 0, sizeof(*rig));
	rig->link = link;
	for (unsigned i = 0; i < 2; i++)
		rig->wake[i].fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(sl_region_open(link->places,
					sl_ring_lines_bytes(RIG_SLOTS, RIG_MODULES, &lines),
					&rig->region),
			 0);
	sl_region_poison(&rig->region);
	assert_int_equal(rig_layout.rectangle
				 ? sl_ring_init_lines(&rig->ring, &rig->region, &rig->bell,
						      RIG_SLOTS, RIG_MODULES, &lines)
				 : sl_ring_init(&rig->ring, &rig->region, &rig->bell, RIG_SLOTS,
						RIG_MODULES, RIG_PIXELS),
			 0);
	return rig;
}

void rig_make_ready(struct rig *rig)
{
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	for (unsigned i = 0; i < (rig->pollers ? rig->pollers : 1); i++)
		rig->link->receiving->poll(rig->receiver, i, 64);
}

struct rig *rig_ready(const struct sl_link *link)
{
	struct rig *rig = rig_new(link);

	rig_make_ready(rig);
	return rig;
}

void rig_free(struct rig *rig)
{
	rig_close_source(rig);
	rig_close_receiver(rig);
	sl_ring_fini(&rig->ring);
	sl_region_close(&rig->region);
	for (unsigned i = 0; i < 2; i++)
		close(rig->wake[i].fd);
	free(rig);
}

void rig_fill(struct rig *rig, uint64_t sequence, uint32_t module)
{
	for (size_t i = 0; i < sizeof(rig->block); i++)
		rig->block[i] = (uint8_t)(i * 7 + sequence * 13 + module * 101 + i / 251);
	for (size_t i = 0; rig->bits && i < RIG_PIXELS; i++)
		if (i % rig->pixel_bytes == rig->pixel_bytes - 1)
			rig->block[i] &= (uint8_t)(0xff >> (8 * rig->pixel_bytes - rig->bits));
	for (size_t i = 0; i < RIG_LINES; i++)
		memcpy(rig->wide + i * RIG_SOURCE_PITCH, rig->block + i * RIG_LINE, RIG_LINE);
}

uint64_t rig_step(const struct sl_plan *plan, uint64_t offset)
{
	uint64_t rest = plan->block_bytes - offset;
	bool lines = plan->line_pitch || plan->message == SL_MESSAGE_LINE;

	if (lines && offset < RIG_PIXELS)
		rest = RIG_LINE - offset % RIG_LINE;
	if (plan->message == SL_MESSAGE_PACKET && rest > plan->pmtu)
		rest = plan->pmtu;
	return rest;
}

size_t rig_writes(struct rig *rig, uint64_t sequence, uint32_t module, struct sl_write *write)
{
	const struct sl_plan *plan = &rig->plan[module];
	uint32_t bytes;
	size_t n = 0;

	rig->wide_at = rig->wide;
	rig->rectangle = (struct sl_from){.frame = &rig->wide_at,
					  .pitch = RIG_SOURCE_PITCH,
					  .frames = 1,
					  .lines = RIG_LINES,
					  .line_bytes = RIG_LINE,
					  .record = rig->block + RIG_PIXELS};
	for (uint64_t offset = 0; offset < plan->block_bytes; offset += bytes, n++) {
		bytes = (uint32_t)rig_step(plan, offset);

		write[n] = (struct sl_write){
			.va = sl_plan_address(plan, sequence, offset),
			.position = sl_plan_position(plan, sequence, offset + bytes),
			.sequence = sequence,
			.rkey = plan->rkey,
			.psn = sl_plan_psn(plan, sequence, offset),
			.imm = (uint32_t)sequence,
			.bytes = bytes,
			.flags = (offset + bytes == plan->block_bytes ? SL_WRITE_IMM : 0) |
				 (plan->operation == SL_OPERATION_SEND ? SL_WRITE_SEND : 0),
			.at = (uint32_t)offset,
			.from = rig_layout.source_pitch ? &rig->rectangle : NULL,
			.part = {{rig->block + offset, bytes}},
		};
	}
	return n;
}

void rig_poll(struct rig *rig)
{
	for (int idle = 0; idle < 3; idle++)
		if (rig->link->receiving->poll(rig->receiver, 0, 64) > 0)
			idle = 0;
}

size_t rig_send(struct rig *rig, uint64_t sequence, uint32_t module)
{
	struct sl_write write[64];
	size_t n, done = 0;

	rig_fill(rig, sequence, module);
	n = rig_writes(rig, sequence, module, write);
	for (int tries = 0; tries < 300 && done < n; tries++) {
		int sent = rig->link->sending->post(rig->source, rig->plan[module].transfer,
						    write + done, n - done);

		assert_true(sent >= 0);
		done += (size_t)sent;
		if (done < n)
			rig_poll(rig);
	}
	return n - done;
}

int rig_arrived(struct rig *rig, uint64_t sequence, uint32_t module)
{
	uint64_t ns;

	for (int tries = 0; tries < 200; tries++) {
		rig_poll(rig);
		if (sl_ring_event(&rig->ring, sequence, module, &ns))
			return 1;
	}
	return 0;
}

int rig_intact(struct rig *rig, uint64_t sequence, uint32_t module)
{
	const uint8_t *block = sl_ring_block(&rig->ring, sequence, module);

	rig_fill(rig, sequence, module);
	if (rig->link->oneway) /* the record is the receiver's own */
		return memcmp(block, rig->block, RIG_PIXELS) == 0;
	if (!rig_layout.pitch)
		return memcmp(block, rig->block, sizeof(rig->block)) == 0;
	for (size_t i = 0; i < RIG_LINES; i++) {
		const uint8_t *line = block + i * rig_layout.pitch;

		if (memcmp(line, rig->block + i * RIG_LINE, RIG_LINE) != 0)
			return 0;
		for (size_t x = RIG_LINE; x < rig_layout.pitch; x++)
			if (line[x] != 0xa5) /* what lies between lines is nobody's */
				return 0;
	}
	return memcmp(block + RIG_LINES * rig_layout.pitch, rig->block + RIG_PIXELS,
		      SL_RECORD_BYTES) == 0;
}

int rig_untouched(struct rig *rig, uint64_t sequence, uint32_t module)
{
	const uint8_t *block = sl_ring_block(&rig->ring, sequence, module);

	for (uint64_t i = 0; i < rig->ring.block_stride; i++)
		if (block[i] != 0xa5)
			return 0;
	return 1;
}

uint64_t rig_dropped(const struct rig *rig, enum sl_drop why)
{
	return atomic_load(&rig->counters.dropped[why]);
}

uint64_t rig_dropped_all(const struct rig *rig)
{
	uint64_t all = 0;

	for (unsigned d = 0; d < SL_DROPS; d++)
		all += rig_dropped(rig, d);
	return all;
}

void rig_release(struct rig *rig, uint64_t sequence)
{
	for (uint32_t m = 0; m < rig->ring.modules; m++) {
		sl_ring_close(&rig->ring, sequence, m);
		sl_ring_release(&rig->ring, sequence, m);
	}
	sl_ring_open(&rig->ring, UINT64_MAX);
}
