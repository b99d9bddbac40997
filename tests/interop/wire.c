/* wire.c - the cable between the host's network namespace and a guest, with faults on demand.
 *
 *   host's stack ── tap ── wire ── stream socket ── QEMU ── guest
 *
 * usage: wire TAP_FD STREAM_FD [CAPTURE.pcap]
 *
 * Frames pass unharmed unless a line on stdin asks for faults; those meet RoCEv2 packets (UDP to
 * port 4791) only, so that whoever steers the test over the same cable is not disturbed. What
 * happens depends on the seed and the number of the packet, never on time.
 *
 *   faults guest|host [loss=N] [twice=N] [late=N] [flip=N] [mark=N] [seed=N]
 *          [drop=N]
 *       For packets toward the guest or the host: so many of 1000 are lost, doubled, overtaken by
 *       one to four others, have a bit flipped, are marked as congested (CE); drop: lose the Nth
 *       from now. What is not named is 0.
 *   count guest|host
 *       Answers: passed=N lost=N doubled=N delayed=N flipped=N marked=N since the last `faults`.
 *
 * Every line is answered by one line. The end of stdin ends the program. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	FRAME_MAX = 1 << 16,
	HELD_MAX = 16,
	OVERTAKE_MAX = 4,
	HOLD_MS = 20, /* a late packet that none follows goes then */
	ROCE_PORT = 4791,
};

struct frame {
	uint32_t length;
	uint8_t bytes[FRAME_MAX];
};

struct held {
	struct frame frame;
	unsigned after;	 /* goes when so many others have passed ... */
	uint64_t due_ms; /* ... or at this time */
	bool used;
};

struct way {
	int fd;
	bool stream; /* frames have their length before them */
	unsigned loss, twice, late, flip, mark;
	uint64_t random, drop, seen;
	uint64_t passed, lost, doubled, delayed, flipped, marked;
	struct held held[HELD_MAX];
};

static struct way to_guest, to_host;
static FILE *capture;

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t draw(struct way *way)
{
	uint64_t z = (way->random += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static bool chance(struct way *way, unsigned of_1000)
{
	return draw(way) % 1000 < of_1000;
}

/* Where the UDP header of a RoCEv2 packet starts; 0: it is something else. */
static size_t roce_at(const struct frame *frame)
{
	const uint8_t *bytes = frame->bytes;
	if (frame->length < 14 + 20 + 8)
		return 0;
	uint16_t type = (uint16_t)(bytes[12] << 8 | bytes[13]);
	size_t at = 0;
	if (type == 0x0800 && bytes[14 + 9] == 17)
		at = 14 + 4u * (bytes[14] & 15);
	else if (type == 0x86dd && bytes[14 + 6] == 17)
		at = 14 + 40;
	if (!at || at + 8 + 12 > frame->length)
		return 0;
	return (bytes[at + 2] << 8 | bytes[at + 3]) == ROCE_PORT ? at : 0;
}

static void record(const struct frame *frame)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint32_t head[] = {(uint32_t)now.tv_sec, (uint32_t)(now.tv_nsec / 1000), frame->length,
			   frame->length};
	fwrite(head, sizeof head, 1, capture);
	fwrite(frame->bytes, frame->length, 1, capture);
	fflush(capture);
}

/* The socket to QEMU blocks while the guest is busy: the tap's queue holds what comes meanwhile. */
static void write_frame(struct way *way, struct frame *frame)
{
	if (capture)
		record(frame);
	if (!way->stream) {
		if (write(way->fd, frame->bytes, frame->length) < 0)
			perror("wire: tap");
		return;
	}
	uint32_t length = htonl(frame->length);
	struct iovec parts[] = {{&length, sizeof length}, {frame->bytes, frame->length}};
	size_t left = sizeof length + frame->length;
	while (left) {
		ssize_t done = writev(way->fd, parts, 2);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			exit(0); /* QEMU is gone */
		left -= (size_t)done;
		for (int i = 0; i < 2; i++) {
			size_t part = (size_t)done < parts[i].iov_len ? (size_t)done
								      : parts[i].iov_len;
			parts[i].iov_base = (uint8_t *)parts[i].iov_base + part;
			parts[i].iov_len -= part;
			done -= (ssize_t)part;
		}
	}
}

/* Let late packets go whose time has come: `passed` more have overtaken them. */
static void release(struct way *way, unsigned passed)
{
	uint64_t now = now_ms();
	for (int i = 0; i < HELD_MAX; i++) {
		struct held *held = &way->held[i];
		if (!held->used)
			continue;
		held->after -= held->after < passed ? held->after : passed;
		if (held->after && now < held->due_ms)
			continue;
		held->used = false;
		write_frame(way, &held->frame);
	}
}

static bool hold(struct way *way, const struct frame *frame)
{
	for (int i = 0; i < HELD_MAX; i++) {
		struct held *held = &way->held[i];
		if (held->used)
			continue;
		held->frame.length = frame->length;
		memcpy(held->frame.bytes, frame->bytes, frame->length);
		held->after = 1 + (unsigned)(draw(way) % OVERTAKE_MAX);
		held->due_ms = now_ms() + HOLD_MS;
		held->used = true;
		return true;
	}
	return false;
}

/* Flip a bit behind the UDP header and take the UDP checksum away: only the ICRC can tell. */
static void flip_bit(struct way *way, struct frame *frame, size_t udp)
{
	size_t bit = draw(way) % ((frame->length - udp - 8) * 8);
	frame->bytes[udp + 8 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	frame->bytes[udp + 6] = frame->bytes[udp + 7] = 0;
}

/* Set both bits of ECN, as a switch does whose queue is long; IPv4 has a checksum over them. */
static void mark_congested(struct frame *frame)
{
	uint8_t *ip = frame->bytes + 14;
	if (ip[0] >> 4 == 6) {
		ip[1] |= 3 << 4;
		return;
	}
	uint32_t sum = 0;
	ip[1] |= 3;
	ip[10] = ip[11] = 0;
	for (unsigned i = 0; i < 4u * (ip[0] & 15); i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16)) & 0xffff;
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void pass(struct way *way, struct frame *frame)
{
	size_t udp = roce_at(frame);
	if (!udp) {
		write_frame(way, frame);
		return;
	}
	way->seen++;
	/* Always the same draws, so that one kind of fault does not move the others. */
	bool lost = chance(way, way->loss) || way->seen == way->drop;
	bool doubled = chance(way, way->twice), late = chance(way, way->late);
	bool flipped = chance(way, way->flip), marked = chance(way, way->mark);
	if (lost) {
		way->lost++;
		return;
	}
	if (flipped) {
		flip_bit(way, frame, udp);
		way->flipped++;
	}
	if (marked) {
		mark_congested(frame);
		way->marked++;
	}
	if (late && hold(way, frame)) {
		way->delayed++;
	} else {
		write_frame(way, frame);
		way->passed++;
		release(way, 1);
	}
	if (doubled) {
		write_frame(way, frame);
		way->doubled++;
	}
}

static void from_tap(int fd)
{
	static struct frame frame;
	ssize_t length = read(fd, frame.bytes, sizeof frame.bytes);
	if (length <= 0)
		return;
	frame.length = (uint32_t)length;
	pass(&to_guest, &frame);
}

static void from_stream(int fd)
{
	static uint8_t bytes[4 * FRAME_MAX];
	static size_t filled;
	static struct frame frame;
	ssize_t got = read(fd, bytes + filled, sizeof bytes - filled);
	if (got <= 0)
		exit(0);
	filled += (size_t)got;
	size_t at = 0;
	while (filled - at >= 4) {
		memcpy(&frame.length, bytes + at, 4);
		frame.length = ntohl(frame.length);
		if (frame.length > FRAME_MAX)
			exit(1);
		if (filled - at - 4 < frame.length)
			break;
		memcpy(frame.bytes, bytes + at + 4, frame.length);
		at += 4 + frame.length;
		pass(&to_host, &frame);
	}
	memmove(bytes, bytes + at, filled - at);
	filled -= at;
}

static bool set_number(struct way *way, const char *name, uint64_t value)
{
	if (!strcmp(name, "loss"))
		way->loss = (unsigned)value;
	else if (!strcmp(name, "twice"))
		way->twice = (unsigned)value;
	else if (!strcmp(name, "late"))
		way->late = (unsigned)value;
	else if (!strcmp(name, "flip"))
		way->flip = (unsigned)value;
	else if (!strcmp(name, "mark"))
		way->mark = (unsigned)value;
	else if (!strcmp(name, "seed"))
		way->random = value;
	else if (!strcmp(name, "drop"))
		way->drop = value;
	else
		return false;
	return true;
}

static bool set_faults(struct way *way, char *rest)
{
	release(way, OVERTAKE_MAX);
	way->loss = way->twice = way->late = way->flip = way->mark = 0;
	way->random = way->drop = way->seen = 0;
	way->passed = way->lost = way->doubled = way->delayed = way->flipped = way->marked = 0;
	for (char *word = strtok(rest, " "); word; word = strtok(NULL, " ")) {
		char *value = strchr(word, '=');
		if (!value)
			return false;
		*value++ = '\0';
		if (!set_number(way, word, strtoull(value, NULL, 0)))
			return false;
	}
	return true;
}

static void obey(char *line)
{
	char verb[16] = "", whom[16] = "";
	int at = 0;
	sscanf(line, "%15s %15s %n", verb, whom, &at);
	struct way *way = !strcmp(whom, "guest")  ? &to_guest
			  : !strcmp(whom, "host") ? &to_host
						  : NULL;
	if (way && !strcmp(verb, "faults") && set_faults(way, line + at))
		printf("ok\n");
	else if (way && !strcmp(verb, "count"))
		printf("passed=%ju lost=%ju doubled=%ju delayed=%ju flipped=%ju marked=%ju\n",
		       (uintmax_t)way->passed, (uintmax_t)way->lost, (uintmax_t)way->doubled,
		       (uintmax_t)way->delayed, (uintmax_t)way->flipped, (uintmax_t)way->marked);
	else
		printf("what?\n");
	fflush(stdout);
}

static void from_stdin(void)
{
	static char line[256];
	static size_t filled;
	ssize_t got = read(0, line + filled, sizeof line - filled - 1);
	if (got <= 0)
		exit(0);
	filled += (size_t)got;
	line[filled] = '\0';
	for (char *end; (end = strchr(line, '\n'));) {
		*end = '\0';
		obey(line);
		filled -= (size_t)(end + 1 - line);
		memmove(line, end + 1, filled + 1);
	}
	if (filled == sizeof line - 1)
		exit(1);
}

static void open_capture(const char *path)
{
	static const uint32_t head[] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, FRAME_MAX, 1};
	capture = fopen(path, "wb");
	if (!capture) {
		perror(path);
		exit(1);
	}
	fwrite(head, sizeof head, 1, capture);
}

int main(int count, char **arguments)
{
	if (count < 3)
		return 2;
	int tap = atoi(arguments[1]), stream = atoi(arguments[2]);
	if (count > 3)
		open_capture(arguments[3]);
	to_guest.fd = stream;
	to_guest.stream = true;
	to_host.fd = tap;
	for (;;) {
		struct pollfd fds[] = {{tap, POLLIN, 0}, {stream, POLLIN, 0}, {0, POLLIN, 0}};
		int ready = poll(fds, 3, HOLD_MS / 2);
		if (ready < 0 && errno != EINTR)
			return 1;
		if (fds[0].revents)
			from_tap(tap);
		if (fds[1].revents)
			from_stream(stream);
		if (fds[2].revents)
			from_stdin();
		release(&to_guest, 0);
		release(&to_host, 0);
	}
}
