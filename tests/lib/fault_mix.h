/* fault_mix.h - an experiment and its faults, drawn from a seed. */
#ifndef TESTS_LIB_FAULT_MIX_H
#define TESTS_LIB_FAULT_MIX_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MIX_FAULTS = 10 };

struct mix {
	uint64_t seed, state; /* of the generator */
	bool shm, rc, crc, send, stacked, drift;
	bool open_loop;	     /* the source takes no credits: what has no room is refused */
	const char *message; /* per packet, line or module */
	uint32_t modules, rows, columns, pitch, pmtu;
	uint32_t packets, message_packets; /* of a block, of a message */
	uint32_t slots, late, workers, batch, pollers, hold;
	uint32_t frames, darks; /* sequences of the receiver, darks among them */
	uint32_t every, stack;
	char faults[512]; /* of the front end's section */
	size_t faults_bytes;
};

static inline uint64_t mix_bits(struct mix *mix)
{
	uint64_t x = mix->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* first..last, all as likely. */
static inline uint32_t mix_range(struct mix *mix, uint32_t first, uint32_t last)
{
	return first + (uint32_t)(mix_bits(mix) % (last - first + 1));
}

static inline bool mix_one_in(struct mix *mix, uint32_t n)
{
	return mix_range(mix, 1, n) == 1;
}

static inline void mix_say(struct mix *mix, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	mix->faults_bytes += (size_t)vsnprintf(mix->faults + mix->faults_bytes,
					       sizeof(mix->faults) - mix->faults_bytes, format,
					       list);
	va_end(list);
}

/* A share that hits a few of `all`, or many, or now and then every one. */
static inline double mix_share(struct mix *mix, double all, double most)
{
	static const double hits[] = {1, 2, 5, 20, 100};
	double share = hits[mix_range(mix, 0, 4)] / all;

	if (mix_one_in(mix, 40))
		share = 1;
	return share < most ? share : most;
}

/* Within what the receiver waits for: the oracle knows no time. Frames that are left out would make
 * the way longer. */
static inline void mix_draw_hold(struct mix *mix, double *room, double packets)
{
	uint32_t most = (mix->late - 1) * mix->packets;
	double share = mix_share(mix, packets, *room);

	if (!mix_one_in(mix, 3))
		return;
	*room -= share;
	mix->hold = mix_range(mix, 1, most < 64 ? most : 64);
	mix_say(mix, ", reorder: %.9f, reorder_packets: %u", share * 0.999999, mix->hold);
}

static inline void mix_draw_faults(struct mix *mix)
{
	double packets = (double)mix->frames * mix->packets, room = 1, share;
	/* Where each fault is as likely as not, hardly any comes alone. */
	uint32_t one_in = mix_range(mix, 2, 8), slack = mix->slots - 2 - mix->late;

	mix_say(mix, "fault_seed: %u", mix_range(mix, 1, 1u << 30));
	if (mix->modules > 1 && mix_one_in(mix, 6))
		mix_say(mix, ", fault_modules: '%u'", mix_range(mix, 0, mix->modules - 1));
#define PACKETS(name)                                               \
	if (mix_one_in(mix, one_in)) {                              \
		share = mix_share(mix, packets, room);              \
		room -= share;                                      \
		mix_say(mix, ", %s: %.9f", name, share * 0.999999); \
	}
	PACKETS("drop");
	PACKETS("corrupt");
	if (!mix->shm) {
		PACKETS("duplicate");
		if (mix->late > 1)
			mix_draw_hold(mix, &room, packets);
	}
#undef PACKETS
	if (mix_one_in(mix, one_in))
		mix_say(mix, ", burst: %.9f, burst_packets: %u",
			room * mix_share(mix, packets * 4, 0.1),
			mix_range(mix, 1, 3 * mix->packets + 3));
	/* A reliable connection does not survive a wrong key. */
	if (!mix->rc && !mix->send && mix_one_in(mix, one_in))
		mix_say(mix, ", wrong_key: %.9f",
			mix_share(mix, packets / mix->message_packets, 1));
	if (mix->crc && mix_one_in(mix, one_in))
		mix_say(mix, ", spoil: %.9f", mix_share(mix, mix->frames, 1));
	if (!mix->rc && !mix->hold && mix_one_in(mix, one_in))
		mix_say(mix, ", skip: %.9f", mix_share(mix, mix->frames, 1));
	if (slack && mix_one_in(mix, one_in))
		mix_say(mix, ", delay: %.9f, delay_frames: %u", mix_share(mix, mix->frames, 1),
			mix_range(mix, 1, slack));
	mix->drift = mix_one_in(mix, one_in);
	if (mix->drift)
		mix_say(mix, ", drift_ppm: %u, clock_offset_ns: %u", mix_range(mix, 0, 1000),
			mix_range(mix, 0, 1000000));
}

static inline void mix_draw_message(struct mix *mix)
{
	static const char *const messages[] = {"packet", "line", "module"};
	uint32_t lines = mix->rows * mix->stack, line_bytes = mix->columns * 2, cut;

	mix->message = mix->send ? "module" : messages[mix_range(mix, mix->shm ? 1 : 0, 2)];
	if (mix->message[0] != 'm' && mix_one_in(mix, 4))
		mix->pitch = (line_bytes + 63) / 64 * 64 + 64 * mix_range(mix, 0, 2);
	cut = (line_bytes + mix->pmtu - 1) / mix->pmtu;
	/* Where lines are of any account, packets end with them, and the record has its own. */
	if (mix->message[0] == 'l' || mix->pitch)
		mix->packets = lines * cut + 1;
	else
		mix->packets = (lines * line_bytes + 64 + mix->pmtu - 1) / mix->pmtu;
	mix->message_packets = mix->message[0] == 'p'	? 1
			       : mix->message[0] == 'l' ? cut
							: mix->packets;
}

static inline void mix_draw(struct mix *mix, uint64_t seed)
{
	*mix = (struct mix){.seed = seed, .state = seed * UINT64_C(0xd1342543de82ef95) + 1};
	mix->shm = mix_one_in(mix, 4);
	mix->rc = !mix->shm && mix_one_in(mix, 4);
	mix->send = !mix->shm && mix_one_in(mix, 10);
	mix->open_loop = !mix->shm && !mix->rc && mix_one_in(mix, 10);
	mix->crc = mix_one_in(mix, 2);
	mix->modules = mix_range(mix, 1, 4);
	mix->pmtu = 256u << mix_range(mix, 0, 4);
	mix->rows = mix_range(mix, 1, 24);
	mix->columns = mix_range(mix, 1, 96) * 2;
	mix->slots = mix_range(mix, 4, 20);
	mix->late = mix_range(mix, 1, mix->slots - 2);
	mix->workers = mix_range(mix, 1, 2);
	mix->batch = mix_range(mix, 1, 8);
	mix->pollers = mix->shm ? 1 : mix_range(mix, 1, 2);
	mix->frames = mix_range(mix, 20, 100);
	mix->darks = mix_one_in(mix, 3) ? mix_range(mix, 1, 5) : 0;
	mix->stacked = mix_one_in(mix, 4);
	mix->every = mix->stacked ? mix_range(mix, 1, 3) : 1;
	mix->stack = mix->stacked ? mix_range(mix, 1, 3) : 1;
	mix_draw_message(mix);
	mix_draw_faults(mix);
}

/* The experiment, as a file. */
static inline void mix_write(const struct mix *mix, FILE *file, const char *listen,
			     const char *source, const char *log)
{
	uint32_t of_each = mix->every * mix->stack;

	fprintf(file,
		"detector: {kind: pattern, modules: %u, rows: %u, columns: %u, frames: %u, "
		"dark_frames: %u}\n",
		mix->modules, mix->rows, mix->columns, (mix->frames - mix->darks) * of_each,
		mix->darks * of_each);
	fprintf(file, "link: {kind: %s, service: %s, message: %s, operation: %s, pmtu: %u, crc: %s",
		mix->shm ? "shm" : "udp", mix->rc ? "rc" : "uc", mix->message,
		mix->send ? "send" : "write", mix->pmtu, mix->crc ? "true" : "false");
	fprintf(file, ", pollers: %u, listen: %s, source: %s}\n", mix->pollers, listen, source);
	fprintf(file,
		"ring: {slots: %u, late_frames: %u, late_timeout_ms: 100000, poison: true, "
		"line_pitch: %u, overrun: %s}\n",
		mix->slots, mix->late, mix->pitch, mix->open_loop ? "drop_newest" : "stop");
	fprintf(file, "unit: {kind: cpu, workers: %u, batch: %u}\n", mix->workers, mix->batch);
	if (mix->stacked)
		fprintf(file, "transfers: {part: {every: %u, stack: %u}}\n", mix->every,
			mix->stack);
	/* What a clock shows that drifts, verify calls wrong. */
	fprintf(file, "sinks: ['null'%s]\nfrontend: {fault_log: %s, %s}\n",
		mix->drift ? "" : ", verify", log, mix->faults);
}

#endif
