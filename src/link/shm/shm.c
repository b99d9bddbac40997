/* shm.c - shared memory: the source copies straight into the ring (send.c), the receiver checks and
 * raises the event (receive.c). Opening and closing, and how either side sleeps. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "link/shm/shm.h"

static const struct sl_option options[] = {
	SL_STRING(struct sl_shm, name, "",
		  "name of the abstract Unix socket; empty: a random one, told to the front end in "
		  "the plan"),
	SL_OPTION_END,
};

static int shm_open_link(void *state, const struct sl_link_env *env)
{
	struct sl_shm *shm = state;

	shm->env = *env;
	shm->listener = -1;
	shm->ring.fd = -1;
	shm->queue = calloc(SL_SHM_TRANSFERS, sizeof(*shm->queue));
	if (!shm->queue)
		return -ENOMEM;
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++)
		shm->queue[i].connection = shm->queue[i].wake_receiver = shm->queue[i].wake_source =
			-1;
	return env->ring ? sl_shm_listen(shm) : 0;
}

static void shm_close(void *state)
{
	struct sl_shm *shm = state;

	if (!shm->queue)
		return;
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++)
		sl_shm_queue_close(&shm->queue[i]);
	if (shm->ring.base)
		sl_region_close(&shm->ring);
	if (shm->listener >= 0)
		close(shm->listener);
	free(shm->queue);
	shm->queue = NULL;
}

static bool nothing_new(struct sl_shm *shm)
{
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];

		if (atomic_load_explicit(&queue->active, memory_order_acquire) &&
		    atomic_load(&queue->lane->head) != queue->tail)
			return false;
	}
	return atomic_load(&shm->env.ring->opened) == shm->opened_seen;
}

static void set_asleep(struct sl_shm *shm, uint32_t asleep)
{
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];

		if (!atomic_load_explicit(&queue->active, memory_order_acquire))
			continue;
		if (shm->env.ring)
			atomic_store(&queue->lane->receiver_asleep, asleep);
		else
			atomic_store(&queue->lane->source_asleep, asleep);
	}
	if (shm->env.ring)
		atomic_store(&shm->env.wake[0].asleep, asleep);
}

static bool no_credit(struct sl_shm *shm)
{
	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++) {
		struct sl_shm_queue *queue = &shm->queue[i];

		if (atomic_load_explicit(&queue->active, memory_order_acquire) &&
		    atomic_load(&queue->lane->granted) > queue->sent)
			return false;
	}
	return true;
}

/* Of either side. */
static int sleep_for(struct sl_shm *shm, uint32_t timeout_us)
{
	struct pollfd fds[SL_SHM_TRANSFERS + 1];
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	nfds_t n = 0;

	for (unsigned i = 0; i < SL_SHM_TRANSFERS; i++)
		if (atomic_load_explicit(&shm->queue[i].active, memory_order_acquire))
			fds[n++] = (struct pollfd){.fd = shm->env.ring ? shm->queue[i].wake_receiver
								       : shm->queue[i].wake_source,
						   .events = POLLIN};
	if (shm->env.ring)
		fds[n++] = (struct pollfd){.fd = shm->env.wake[0].fd, .events = POLLIN};
	/* Asleep, then look once more; the other side publishes, then looks at asleep (invariant
	 * WOKEN). */
	set_asleep(shm, 1);
	if (shm->env.ring ? nothing_new(shm) : no_credit(shm))
		ppoll(fds, n, &timeout, NULL);
	set_asleep(shm, 0);
	for (nfds_t i = 0; i < n; i++) {
		uint64_t drained;

		if (fds[i].revents && read(fds[i].fd, &drained, sizeof(drained)) < 0)
			continue; /* another reader was faster */
	}
	return 1;
}

static int wait_for_data(void *state, unsigned poller, uint32_t timeout_us)
{
	(void)poller; /* there is one */
	return sleep_for(state, timeout_us);
}

static int wait_for_credit(void *state, uint32_t timeout_us)
{
	return sleep_for(state, timeout_us);
}

static void shm_reported(void *state, uint16_t transfer, uint64_t position)
{
	struct sl_shm *shm = state;

	if (transfer < SL_SHM_TRANSFERS)
		atomic_store_explicit(&shm->queue[transfer].reported, position,
				      memory_order_release);
}

static void shm_drop(void *state, uint16_t transfer)
{
	struct sl_shm *shm = state;

	if (transfer < SL_SHM_TRANSFERS)
		atomic_store_explicit(&shm->queue[transfer].active, 0, memory_order_release);
}

static enum sl_proof shm_proof(uint16_t service, uint16_t message)
{
	(void)service;
	(void)message;
	return SL_PROOF_MESSAGE;
}

/* A transfer has a connection, a lane and eventfds of its own; each state maps the ring. */
static void shm_facts(const void *state, struct sl_link_facts *facts)
{
	(void)state;
	facts->senders = SL_LINK_SENDERS;
}

static const struct sl_link_receiving receiving = {
	.accept = sl_shm_accept,
	.poll = sl_shm_poll,
	.wait = wait_for_data,
	.serve = sl_shm_serve,
	.reported = shm_reported,
	.drop = shm_drop,
};

static const struct sl_link_sending sending = {
	.offer = sl_shm_offer,
	.connect = sl_shm_connect,
	.post = sl_shm_post,
	.reap = sl_shm_reap,
	.wait = wait_for_credit,
};

const struct sl_link sl_link_shm = {
	.name = "shm",
	.doc = "shared memory: source and receiver on one host, one copy by the source",
	.wire = "shm",
	.state_bytes = sizeof(struct sl_shm),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE,
	.messages = SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_MODULE,
	.proof = shm_proof,
	.guards = SL_GUARD_CREDITED,
	.places = SL_REGION_SHARED,
	.packet_faults = 1u << SL_PACKET_FAULT_DROP |
			 1u << SL_PACKET_FAULT_CORRUPT, /* either way there is no event */
	.facts = shm_facts,
	.open = shm_open_link,
	.close = shm_close,
	.receiving = &receiving,
	.sending = &sending,
	.no_handover = "its queue lives in the source's connection to this process",
};
