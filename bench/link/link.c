/* link.c - the receiver of a link that is measured: a ring, the link polled as the pipeline
 * polls it, whole blocks given back at once. Source and receiver are two processes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/log.h"
#include "bench/bench.h"
#include "bench/link/receiver.h"

enum {
	SPIN_NS = 100000,
	WAIT_US = 200,
	NAP_NS = 20000,
	SOURCE_BYTES = 64 << 20, /* more than caches hold */
	SLOTS_MAX = 65536,
	SHM_SLOTS_MAX = 1000,  /* its queue of descriptors is not longer */
	QUIET_NS = 2000000000, /* nothing for so long: what is missing is lost */
	HEAL_NS = 30000000,    /* nothing for so long: tell the link what was sent */
	CONNECT_NS = 1000000000,
	TIMES_MAX = 1 << 20,
	FIRST = 200, /* latencies that are not counted: caches and branches are cold */
	CHECKED = 4, /* blocks at the end that are compared with what was sent */
};

const double sl_bench_levels[SL_BENCH_QUANTILES] = {0,	 0.01, 0.05, 0.1,   0.25,   0.5, 0.75,
						    0.9, 0.95, 0.99, 0.999, 0.9999, 1};

/* ---- before and after ---- */

static bool set_option(const struct sl_link *link, void *state, const char *name, const char *text)
{
	const struct sl_option *option = sl_option_find(link->options, name);
	char why[128];

	if (option && sl_option_set(option, state, text, why, sizeof(why)) != 0) {
		sl_error("link %s: %s: '%s': %s", link->name, name, text, why);
		return false;
	}
	return true;
}

void *sl_bench_state(const struct sl_bench *bench, const struct sl_bench_row *row)
{
	void *state = calloc(1, row->link->state_bytes);
	char text[64];
	bool good;

	if (!state)
		return NULL;
	sl_options_defaults(row->link->options, state);
	good = set_option(row->link, state, "listen", sl_bench_address(bench, row, 0, text)) &&
	       set_option(row->link, state, "source", sl_bench_address(bench, row, 1, text)) &&
	       set_option(row->link, state, "interface", row->cut ? "veth0" : "lo");
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bench->o.receive_buffer);
	good = good && set_option(row->link, state, "receive_buffer", text);
	for (unsigned i = 0; good && i < SL_BENCH_OPTIONS && row->option[i][0]; i++)
		good = set_option(row->link, state, row->option[i][0], row->option[i][1]);
	if (good)
		return state;
	free(state);
	return NULL;
}

/* Not compressible to a fill, the same in every run. */
static void scramble(uint8_t *memory, uint64_t bytes)
{
	uint64_t word = 1;

	for (uint64_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		word = word * 6364136223846793005u + 1442695040888963407u;
		memcpy(memory + i, &word, sizeof(word));
	}
}

static int make_ring(struct sl_bench_receiver *r)
{
	const struct sl_bench_row *row = r->row;
	bool bare = row->block_bytes <= SL_RECORD_BYTES || row->link->oneway;
	uint64_t pixels = bare ? row->block_bytes : row->block_bytes - SL_RECORD_BYTES;
	uint64_t slots = row->ring_bytes / sl_ring_region_bytes(1, row->queues, pixels);
	uint64_t most = strcmp(row->link->wire, "shm") == 0 ? SHM_SLOTS_MAX : SLOTS_MAX;
	int err;

	slots = slots > most ? most : slots < 2 ? 2 : slots;
	err = sl_region_open(row->link->places,
			     sl_ring_region_bytes((uint32_t)slots, row->queues, pixels),
			     &r->region);
	if (err)
		return err;
	err = sl_ring_init(&r->ring, &r->region, &r->bell, (uint32_t)slots, row->queues, pixels);
	if (err)
		sl_region_close(&r->region);
	return err;
}

/* The source's process is there before the ring, so that the ring is nobody else's memory. */
static int fork_source(struct sl_bench_receiver *r, unsigned index)
{
	int pair[2];

	r->source.index = index;
	r->source.first = index * r->row->queues / r->sources;
	r->source.last = (index + 1) * r->row->queues / r->sources;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r->child[index] = fork();
	if (r->child[index] < 0)
		return -errno;
	if (!r->child[index]) {
		int err;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		r->source.fd = pair[1];
		err = sl_bench_send(&r->source);
		if (err && err != -EPIPE) /* the receiver has said why it left */
			sl_error("the source: %s", strerror(-err));
		_exit(err ? 1 : 0);
	}
	close(pair[1]);
	r->fd[index] = pair[0];
	return 0;
}

/* Offers in, plans out, and the link served until the source is connected. */
static int meet(struct sl_bench_receiver *r, unsigned index)
{
	uint32_t last = (index + 1) * r->row->queues / r->sources;
	int fd = r->fd[index];
	uint64_t until;
	char byte;

	for (uint32_t q = index * r->row->queues / r->sources; q < last; q++) {
		struct sl_offer offer;
		int err;

		if (read(fd, &offer, sizeof(offer)) != sizeof(offer))
			return -EPIPE;
		err = r->receiving->accept(r->state, &offer, &r->plan[q]);
		if (err)
			return err;
		if (r->plan[q].pmtu < r->row->pmtu) { /* it would be another row under this name */
			sl_error("link %s carries %u bytes in a packet at most", r->link->name,
				 r->plan[q].pmtu);
			return -EMSGSIZE;
		}
		if (write(fd, &r->plan[q], sizeof(r->plan[q])) != sizeof(r->plan[q]))
			return -EPIPE;
	}
	until = sl_clock_ns() + CONNECT_NS;
	while (sl_clock_ns() < until || !r->receiving->serve) {
		ssize_t n = recv(fd, &byte, 1, r->receiving->serve ? MSG_DONTWAIT : 0);

		if (n >= 0 || errno != EAGAIN)
			return n == 1 ? 0 : -EPIPE;
		r->receiving->serve(r->state);
	}
	return -ETIMEDOUT;
}

/* ---- receiving ---- */

static void hand_back(struct sl_bench_receiver *r)
{
	if (r->pollers > 1)
		sl_bench_pollers_hand_back(r, r->next);
	/* Else this thread polls, too, so it is not inside: nothing to wait for. */
	for (uint32_t q = 0; r->pollers == 1 && q < r->row->queues; q++) {
		sl_ring_close(&r->ring, r->next, q);
		sl_ring_release(&r->ring, r->next, q);
	}
	r->next++;
	r->module = 0;
}

static void notice(struct sl_bench_receiver *r)
{
	uint64_t stamp = atomic_load_explicit(&r->shared->stamp_ns, memory_order_acquire);
	uint64_t took = sl_clock_ns() - stamp;

	if (r->next >= FIRST && r->times < TIMES_MAX)
		r->time_ns[r->times++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

static uint32_t missing(const struct sl_bench_receiver *r, uint64_t sequence)
{
	uint32_t n = 0;

	for (uint32_t q = 0; q < r->row->queues; q++) {
		uint32_t came = sl_ring_packets(&r->ring, sequence, q);

		n += came < r->plan[q].packets ? r->plan[q].packets - came : 0;
	}
	return n;
}

/* Blocks that are whole, or never will be, go back to the source. False: there was none. */
static bool consume(struct sl_bench_receiver *r)
{
	uint64_t before = r->next, ns;

	for (;;) {
		if (sl_ring_event(&r->ring, r->next, r->module, &ns)) {
			if (++r->module < r->row->queues)
				continue;
			if (r->row->latency)
				notice(r);
		} else if (sl_ring_reached(&r->ring, r->module) > r->next + 2) {
			r->lost += missing(r, r->next); /* a queue keeps its order */
		} else {
			break;
		}
		hand_back(r);
	}
	if (r->next == before)
		return false;
	sl_ring_open(&r->ring, UINT64_MAX);
	if (r->row->latency)
		atomic_store_explicit(&r->shared->seen, r->next, memory_order_release);
	return true;
}

/* Credits that were lost with their packets come again when the link hears how much was sent. RC
 * heals itself, and there what was taken may still have to be sent. */
static void heal(struct sl_bench_receiver *r, uint64_t now_ns)
{
	if (r->row->service != SL_SERVICE_UC || now_ns - r->heal_ns < HEAL_NS)
		return;
	r->heal_ns = now_ns;
	for (uint32_t q = 0; r->receiving->reported && q < r->row->queues; q++)
		r->receiving->reported(
			r->state, r->plan[q].transfer,
			atomic_load_explicit(&r->shared->position[q], memory_order_acquire));
}

/* Other threads poll; this one looks now and then, and has no cpu of its own. */
static void step_beside(struct sl_bench_receiver *r, uint64_t now_ns)
{
	if (consume(r)) {
		r->idle_ns = 0;
		for (unsigned i = 0; i < r->pollers; i++)
			if (atomic_load(&r->wake[i].asleep) && eventfd_write(r->wake[i].fd, 1) < 0)
				continue; /* it is awake anyway */
		return;
	}
	if (!r->idle_ns)
		r->idle_ns = r->heal_ns = now_ns;
	heal(r, now_ns);
	sl_clock_sleep_until(now_ns + NAP_NS);
}

static void step(struct sl_bench_receiver *r, uint64_t now_ns)
{
	if (r->pollers > 1) {
		step_beside(r, now_ns);
		return;
	}
	if (r->receiving->poll(r->state, 0, SL_BENCH_BUDGET) > 0) {
		r->idle_ns = 0;
		consume(r);
		if (r->link->oneway)
			atomic_store_explicit(&r->shared->seen, sl_link_packets(&r->counters),
					      memory_order_release);
		return;
	}
	if (!r->idle_ns)
		r->idle_ns = r->heal_ns = now_ns;
	/* On one core the source waits for it. */
	if (now_ns - r->idle_ns > SPIN_NS || r->bench->core[0] < 0) {
		heal(r, now_ns);
		r->receiving->wait(r->state, 0, WAIT_US);
	}
}

static uint64_t placed(const struct sl_bench_receiver *r)
{
	return sl_link_bytes(&r->counters);
}

/* Outlined: what callgrind counts of the receiver. */
static __attribute__((noinline)) int bench_receive_until(struct sl_bench_receiver *r,
							 uint64_t until_ns, uint64_t *now_ns)
{
	while ((*now_ns = sl_clock_ns()) < until_ns) {
		step(r, *now_ns);
		if (r->idle_ns && *now_ns - r->idle_ns > QUIET_NS)
			return -ETIMEDOUT;
	}
	return 0;
}

static int drain(struct sl_bench_receiver *r)
{
	uint64_t end = 0, now_ns;

	atomic_store(&r->shared->stop, 1);
	while (!end || r->next < end - 1) {
		now_ns = sl_clock_ns();
		step(r, now_ns);
		end = atomic_load(&r->shared->end);
		if (r->idle_ns && now_ns - r->idle_ns > QUIET_NS)
			break;
	}
	for (; end && r->next < end - 1; r->next++)
		r->lost += missing(r, r->next);
	atomic_store(&r->shared->done, 1);
	if (!end)
		sl_error("the source did not come to an end");
	return end ? 0 : -ETIMEDOUT;
}

/* The last blocks are still where they were placed. */
static bool as_sent(const struct sl_bench_receiver *r)
{
	uint64_t n = r->next < CHECKED ? r->next : CHECKED;

	n = n < r->ring.slots ? n : r->ring.slots - 1;
	for (uint64_t k = r->next - n; k < r->next && !r->lost; k++)
		for (uint32_t q = 0; q < r->row->queues; q++)
			if (memcmp(sl_ring_block(&r->ring, k, q), sl_bench_block(&r->source, k, q),
				   r->row->block_bytes) != 0)
				return false;
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void sl_bench_quantiles(uint32_t *ns, size_t n, double quantile_us[SL_BENCH_QUANTILES])
{
	qsort(ns, n, sizeof(*ns), by_value);
	for (unsigned i = 0; i < SL_BENCH_QUANTILES; i++)
		quantile_us[i] = n ? 1e-3 * ns[(size_t)(sl_bench_levels[i] * (double)(n - 1))] : 0;
}

static int receive(struct sl_bench_receiver *r, struct sl_bench_sample *sample)
{
	uint64_t length_ns = (uint64_t)(r->bench->o.seconds * 1e9), start_ns, now_ns, before;
	int err;

	sl_ring_open(&r->ring, UINT64_MAX);
	err = bench_receive_until(r, sl_clock_ns() + length_ns / 4, &start_ns); /* warm */
	before = placed(r);
	if (!err)
		err = bench_receive_until(r, start_ns + length_ns, &now_ns);
	if (err) {
		sl_error("nothing arrived for two seconds");
		return err;
	}
	sample->bytes = placed(r) - before;
	sample->GB_per_s = (double)sample->bytes / (double)(now_ns - start_ns);
	err = drain(r);
	if (err)
		return err;
	sample->bytes = placed(r);
	sample->lost = r->lost;
	if (r->row->latency)
		sl_bench_quantiles(r->time_ns, r->times, sample->quantile_us);
	if (!as_sent(r)) {
		sl_error("what arrived is not what was sent");
		return -EBADMSG;
	}
	return 0;
}

static int run(struct sl_bench_receiver *r, struct sl_bench_sample *sample)
{
	struct sl_link_env env = {.ring = &r->ring,
				  .pollers = r->pollers,
				  .wake = r->wake,
				  .counters = &r->counters,
				  .flight = r->flight,
				  .service = r->row->service,
				  .operation = SL_OPERATION_WRITE,
				  .message = r->row->message,
				  .pmtu = r->row->pmtu};
	int err = r->link->open(r->state, &env), status;

	for (unsigned i = 0; i < r->sources && !err; i++)
		err = meet(r, i);
	if (!err)
		err = r->pollers > 1 ? sl_bench_pollers_start(r) : 0;
	if (!err)
		err = receive(r, sample);
	atomic_store(&r->shared->stop, 1);
	atomic_store(&r->shared->done, 1);
	for (unsigned i = 0; i < r->sources; i++) {
		close(r->fd[i]);
		if (waitpid(r->child[i], &status, 0) == r->child[i] && status && !err)
			err = -EPIPE;
	}
	sl_bench_pollers_end(r);
	r->link->close(r->state);
	return err;
}

static void *memory_of(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_HUGEPAGE);
	return memory;
}

/* Everything is the process's own, which ends after this: nothing is given back. */
int sl_bench_link(const struct sl_bench *bench, const struct sl_bench_row *row,
		  struct sl_bench_sample *sample)
{
	struct sl_bench_receiver *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	uint8_t *memory = memory_of(SOURCE_BYTES, MAP_PRIVATE);
	int err = 0;

	if (!r || !memory)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	scramble(memory, SOURCE_BYTES);
	r->bench = bench;
	r->row = row;
	r->link = row->link;
	r->receiving = row->link->receiving;
	r->pollers = sl_bench_at_least_1(row->pollers);
	r->sources = sl_bench_at_least_1(row->sources);
	r->shared = memory_of(sizeof(*r->shared), MAP_SHARED);
	r->time_ns = calloc(TIMES_MAX, sizeof(*r->time_ns));
	for (unsigned i = 0; i < r->pollers; i++)
		r->wake[i].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!r->shared || !r->time_ns ||
	    (bench->o.flight && sl_flight_open(r->pollers, &r->flight)))
		return -ENOMEM;
	r->source = (struct sl_bench_source){.bench = bench,
					     .row = row,
					     .shared = r->shared,
					     .memory = memory,
					     .memory_bytes = SOURCE_BYTES};
	for (unsigned i = 0; i < r->sources && !err; i++)
		err = fork_source(r, i);
	if (!err && r->pollers == 1)
		err = sl_bench_take_side(bench, row, 0);
	if (!err)
		err = make_ring(r);
	if (err)
		return err;
	r->state = sl_bench_state(bench, row);
	return r->state ? run(r, sample) : -EINVAL;
}
