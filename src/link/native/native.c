/* native.c - native UDP detectors: opening, closing, waiting; what either side says for the other.
 */
#include "link/native/native.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "core/answer.h"

enum { BUFFER_BYTES = 64 << 20 }; /* asked for, where the option leaves it to us */

/* ---- opening ---- */

static int read_senders(struct sl_native *native)
{
	char text[sizeof(native->senders)], *save = NULL;

	memcpy(text, native->senders, sizeof(text));
	for (char *one = strtok_r(text, ", ", &save); one; one = strtok_r(NULL, ", ", &save)) {
		if (native->n_senders == SL_NATIVE_SENDERS) {
			sl_error("link.senders: at most %d addresses", SL_NATIVE_SENDERS);
			return -EINVAL;
		}
		if (sl_net_parse("link.senders", one, native->sender[native->n_senders++]))
			return -EINVAL;
	}
	return 0;
}

static int read_first(struct sl_native *native)
{
	const char *text = native->first_frame;
	char *end;

	native->automatic = !strcmp(text, "auto");
	native->base = native->format->first;
	if (native->automatic)
		return 0;
	errno = 0;
	native->base = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9' ||
	    native->base > (UINT64_MAX >> (64 - native->format->number_bits))) {
		sl_error("link.first_frame: '%s': takes a number of at most %u bits, or auto", text,
			 native->format->number_bits);
		return -EINVAL;
	}
	return 0;
}

static int open_receiver(struct sl_native *native)
{
	int err = sl_net_parse("link.listen", native->listen, native->local[0]);

	if (!err)
		err = sl_net_parse("link.listen2",
				   native->listen2[0] ? native->listen2 : native->listen,
				   native->local[1]);
	if (!err)
		err = read_senders(native);
	if (err)
		return err;
	native->queue = calloc(SL_NATIVE_MODULES, sizeof(*native->queue));
	native->buffers = calloc(native->env.pollers, sizeof(*native->buffers));
	return native->queue && native->buffers ? 0 : -ENOMEM;
}

/* A socket of one family sends nothing to addresses of the other. */
static int check_families(const struct sl_native *native)
{
	union sl_net_address address;
	uint32_t bytes = sl_net_address(native->from, 0, &address);

	if (sl_net_address(native->local[0], 0, &address) == bytes &&
	    sl_net_address(native->local[1], 0, &address) == bytes)
		return 0;
	sl_error("link.source (%s) and what it sends to, link.listen and link.listen2, must all "
		 "be IPv4 or all IPv6",
		 native->source);
	return -EAFNOSUPPORT;
}

static int open_source(struct sl_native *native)
{
	int err = sl_net_parse("link.source", native->source, native->from);

	/* The receiver's address is where packets go. */
	if (!err)
		err = sl_net_parse("link.listen", native->listen, native->local[0]);
	if (!err)
		err = sl_net_parse("link.listen2",
				   native->listen2[0] ? native->listen2 : native->listen,
				   native->local[1]);
	if (!err)
		err = check_families(native);
	if (err)
		return err;
	native->out = calloc(SL_NATIVE_MODULES, sizeof(*native->out));
	native->batch = calloc(1, sizeof(*native->batch));
	return native->out && native->batch ? 0 : -ENOMEM;
}

int sl_native_open(struct sl_native *native, const struct sl_native_format *format,
		   const struct sl_link_env *env)
{
	int err;

	native->format = format;
	native->env = *env;
	native->n_senders = 0;
	err = read_first(native);
	if (err)
		return err;
	return env->ring ? open_receiver(native) : open_source(native);
}

static void close_ports(struct sl_native_queue *queue)
{
	for (uint32_t i = 0; i < queue->ports; i++)
		close(queue->port[i].fd);
	queue->ports = 0;
	sl_native_placer_fini(&queue->placer);
}

void sl_native_close(void *state)
{
	struct sl_native *native = state;

	for (uint32_t m = 0; native->queue && m < native->queues; m++)
		close_ports(&native->queue[m]);
	for (uint32_t m = 0; native->out && m < SL_NATIVE_MODULES; m++) {
		for (uint32_t i = 0; i < native->out[m].shape.ports; i++)
			close(native->out[m].fd[i]);
		free(native->out[m].held);
	}
	free(native->queue);
	free(native->buffers);
	free(native->out);
	free(native->batch);
	native->queue = NULL;
	native->buffers = NULL;
	native->out = NULL;
	native->batch = NULL;
}

enum sl_proof sl_native_proof(uint16_t service, uint16_t message)
{
	(void)service;
	(void)message;
	return SL_PROOF_PACKET_COUNT;
}

void sl_native_facts(const struct sl_native *native, struct sl_link_facts *facts)
{
	facts->listen = native->listen;
	facts->source = native->source;
	facts->sockets = true;
	facts->receive_buffer = native->receive_buffer;
	facts->senders = SL_LINK_SENDERS; /* each port of each module has a socket of its own */
}

/* ---- what a source offers, and what it is answered ---- */

int sl_native_offer(void *state, struct sl_offer *offer)
{
	const struct sl_native *native = state;
	struct sl_native_shape shape;
	int err = native->format->shape(
		native, offer->module, offer->lines ? offer->lines : 1,
		offer->lines ? offer->line_bytes : (uint32_t)offer->block_bytes, &shape);

	if (err)
		return err;
	offer->services = SL_SERVICE_UC;
	offer->operations = SL_OPERATION_WRITE;
	offer->messages = SL_MESSAGE_MODULE;
	offer->max_pmtu = (uint16_t)shape.payload;
	offer->ip_id = SL_IP_ID_ANY;
	offer->bare = 1;
	/* Detectors of this kind count from another number on than we do. */
	if (shape.block_numbers == 1)
		offer->first_frame += native->base;
	return 0;
}

static int shape_for(const struct sl_native *native, const struct sl_offer *offer,
		     struct sl_native_shape *shape)
{
	const struct sl_ring *ring = native->env.ring;
	uint32_t lines = offer->lines ? offer->lines : 1;
	uint32_t bytes = offer->lines ? offer->line_bytes : (uint32_t)offer->block_bytes;
	int err = native->format->shape(native, offer->module, lines, bytes, shape);
	const char *why;

	if (err)
		return err;
	/* The same with the pitch of the ring. */
	why = sl_native_shape_fill(shape, lines, bytes, ring ? ring->lines.pitch : 0);
	if (!why && native->port + (uint64_t)(offer->module + 1) * shape->ports > 65536)
		why = "its ports would be beyond 65535 (link.port)";
	if (!why)
		return 0;
	sl_error("module %u: %s", offer->module, why);
	return -EINVAL;
}

/* All but payload and address. Packets say themselves where they belong: the pitch of the ring is
 * the placer's. */
static void make_terms(const struct sl_native *native, const struct sl_offer *offer,
		       struct sl_plan_terms *terms)
{
	const struct sl_ring *ring = native->env.ring;

	*terms = (struct sl_plan_terms){
		.transfer = offer->module,
		.service = SL_SERVICE_UC,
		.operation = SL_OPERATION_WRITE,
		.message = SL_MESSAGE_MODULE,
		.pmtu = 1,
		.fixed_pmtu = true,
		.crc = ring ? native->env.crc : 0,
		.bare = true,
		.modules = ring ? ring->modules : SL_NATIVE_MODULES,
		.slots = ring ? ring->slots : 1,
		.stride = ring ? ring->slot_stride : offer->block_bytes,
		.block_at = ring ? offer->module * ring->block_stride : 0,
		.pixel_bytes = ring ? ring->pixel_bytes : offer->block_bytes,
	};
}

static bool offer_fits(const struct sl_native *native, const struct sl_offer *offer,
		       const struct sl_plan_terms *terms)
{
	const struct sl_ring *ring = native->env.ring;

	if (!offer->bare || offer->module >= SL_NATIVE_MODULES ||
	    offer->block_bytes >= UINT32_MAX || !sl_plan_accepts(offer, terms))
		return false;
	return !ring || !ring->lines.pitch ||
	       (offer->lines == ring->lines.count && offer->line_bytes == ring->lines.bytes);
}

static int make_plan(const struct sl_native *native, const struct sl_offer *offer,
		     const struct sl_native_shape *shape, struct sl_plan_terms *terms,
		     struct sl_plan *plan)
{
	int err;

	terms->pmtu = (uint16_t)shape->payload;
	memcpy(terms->dest.ip, native->local[0], sizeof(terms->dest.ip));
	terms->dest.port = sl_native_port_of(native, shape, offer->module, 0);
	err = sl_plan_answer(offer, terms, plan);
	if (!err)
		plan->packets = shape->ports * shape->packets;
	return err;
}

/* Sequence 0 has this number on the wire. */
static uint64_t first_number(const struct sl_native *native, const struct sl_offer *offer,
			     const struct sl_native_shape *shape)
{
	return shape->block_numbers == 1 ? offer->first_frame
					 : native->base + offer->first_frame * shape->block_numbers;
}

static uint64_t step_of(const struct sl_offer *offer)
{
	return offer->frame_step ? offer->frame_step : 1;
}

static void enlarge_buffer(const struct sl_native *native, int fd)
{
	struct sl_link_counters *counters = native->env.counters;
	int bytes = (int)(native->receive_buffer ? native->receive_buffer : BUFFER_BYTES);
	socklen_t size = sizeof(bytes);
	uint64_t least = atomic_load(&counters->receive_buffer);

	/* Beyond net.core.rmem_max only with CAP_NET_ADMIN. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) < 0)
		return;
	if (!least || (uint64_t)bytes < least)
		atomic_store(&counters->receive_buffer, (uint64_t)bytes);
}

static int open_ports(struct sl_native *native, struct sl_native_queue *queue, uint32_t module)
{
	const struct sl_native_shape *shape = &queue->placer.shape;

	for (uint32_t i = 0; i < shape->ports; i++) {
		int fd = sl_net_open(native->local[i % 2],
				     sl_native_port_of(native, shape, module, i));

		if (fd < 0)
			return fd;
		enlarge_buffer(native, fd);
		sl_net_merge(fd);
		queue->port[i] = (struct sl_native_port){
			.fd = fd,
			.index = i,
			.place = native->format->place(native, shape, (uint16_t)module, i),
			.stream = {.batch = SL_PREDICT_BATCH_MIN, .peers = native->n_senders > 0},
		};
		queue->ports++;
	}
	return 0;
}

/* Who was dropped and comes again does so before the start: a poller that runs already looks at no
 * queue that is not active. */
static int open_queue(struct sl_native *native, const struct sl_offer *offer,
		      const struct sl_native_shape *shape, const struct sl_plan *plan)
{
	struct sl_native_queue *queue = &native->queue[offer->module];
	const struct sl_native_numbers numbers = {
		.bits = native->format->number_bits,
		.step = step_of(offer) * shape->block_numbers,
		.frames = offer->frames,
		.first_frame = offer->first_frame,
		.frame_step = step_of(offer),
		.frame_is_number = shape->block_numbers == 1,
		.first_plus = &native->first_plus,
	};
	int err;

	if (atomic_load_explicit(&queue->active, memory_order_relaxed))
		return -EBUSY;
	close_ports(queue);
	err = sl_native_placer_init(&queue->placer, native->env.ring, native->env.counters, plan,
				    shape, &numbers);
	if (!err)
		err = open_ports(native, queue, offer->module);
	if (err) {
		close_ports(queue);
		return err;
	}
	if (!native->automatic)
		atomic_store(&native->first_plus, first_number(native, offer, shape) + 1);
	queue->poller = offer->module % native->env.pollers;
	if (offer->module >= native->queues)
		native->queues = offer->module + 1u;
	/* Release: pairs with the acquire of pollers. */
	atomic_store_explicit(&queue->active, 1, memory_order_release);
	return 0;
}

int sl_native_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_native *native = state;
	struct sl_native_shape shape;
	struct sl_plan_terms terms;
	struct sl_plan made;
	int err;

	make_terms(native, offer, &terms);
	if (!offer_fits(native, offer, &terms))
		return -EINVAL;
	err = shape_for(native, offer, &shape);
	if (err)
		return err;
	err = make_plan(native, offer, &shape, &terms, &made);
	if (!err && native->env.ring)
		err = open_queue(native, offer, &shape, &made);
	if (err)
		return err;
	if (!native->env.ring) {
		struct sl_native_source *source = &native->out[offer->module];

		source->first = first_number(native, offer, &shape);
		source->step = step_of(offer) * shape.block_numbers;
	}
	*plan = made;
	return 0;
}

/* ---- while it runs ---- */

void sl_native_reported(void *state, uint16_t transfer, uint64_t position)
{
	(void)state;
	(void)transfer;
	(void)position; /* nobody waits for credits */
}

void sl_native_drop(void *state, uint16_t transfer)
{
	struct sl_native *native = state;

	if (transfer < native->queues)
		atomic_store_explicit(&native->queue[transfer].active, 0, memory_order_release);
}

int sl_native_serve(void *state)
{
	struct sl_native *native = state;

	struct sl_link_counters *counters = native->env.counters;
	uint32_t most = 0;

	for (uint32_t m = 0; native->queue && m < native->queues; m++)
		for (uint32_t i = 0; i < native->queue[m].ports; i++) {
			struct sl_native_port *port = &native->queue[m].port[i];
			uint32_t waiting = 0, full = port->full;

			if (!sl_net_memory(port->fd, &waiting, &full))
				continue;
			atomic_fetch_add(&counters->dropped[SL_DROP_FULL], full - port->full);
			port->full = full;
			most = waiting > most ? waiting : most;
		}
	atomic_store(&counters->waiting, most);
	if (most > atomic_load(&counters->waiting_most))
		atomic_store(&counters->waiting_most, most);
	sl_native_tell_strays(native);
	return 0;
}

/* Until data come, or slots were opened. */
int sl_native_wait(void *state, unsigned poller, uint32_t timeout_us)
{
	struct sl_native *native = state;
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	struct pollfd fds[1 + SL_NATIVE_MODULES * SL_NATIVE_PORTS];
	struct sl_wake *wake = &native->env.wake[poller];
	uint64_t drained;
	nfds_t n = 0;

	fds[n++] = (struct pollfd){.fd = wake->fd, .events = POLLIN};
	for (uint32_t m = 0; m < native->queues; m++) {
		const struct sl_native_queue *queue = &native->queue[m];

		if (!atomic_load_explicit(&queue->active, memory_order_acquire) ||
		    queue->poller != poller)
			continue;
		for (uint32_t i = 0; i < queue->ports; i++)
			fds[n++] = (struct pollfd){.fd = queue->port[i].fd, .events = POLLIN};
	}
	atomic_store(&wake->asleep, 1);
	ppoll(fds, n, &timeout, NULL);
	atomic_store(&wake->asleep, 0);
	if (fds[0].revents && read(wake->fd, &drained, sizeof(drained)) < 0)
		return 0; /* another reader was faster */
	return 1;
}

/* Nothing ever comes back to a source. */
int sl_native_rest(void *state, uint32_t timeout_us)
{
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};

	(void)state;
	nanosleep(&timeout, NULL);
	return 0;
}

const struct sl_link_sending sl_native_sending = {
	.offer = sl_native_offer,
	.accept = sl_native_accept,
	.connect = sl_native_connect,
	.post = sl_native_post,
	.reap = sl_native_reap,
	.flush = sl_native_flush,
	.wait = sl_native_rest,
};
