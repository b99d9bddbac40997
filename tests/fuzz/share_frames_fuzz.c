/* share_frames_fuzz.c - any bytes, in any pieces and with any number of descriptors, on the socket
 * of a share: frames come out that are those of a plain reading of the same bytes, and descriptors
 * do not stay open. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "share/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONTROL = 5, MOST = 4096, LONGEST = 1 << 16, MOST_FDS = 6 };

static void require(int good)
{
	if (!good)
		abort();
}

static int lowest_free(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD, 0);

	require(fd >= 0);
	close(fd);
	return fd;
}

static void transmit(int socket, const uint8_t *data, size_t bytes, unsigned fds)
{
	union {
		char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec piece = {(void *)data, bytes};
	struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};

	if (fds) {
		int fd[MOST_FDS] = {STDIN_FILENO, STDIN_FILENO, STDIN_FILENO,
				    STDIN_FILENO, STDIN_FILENO, STDIN_FILENO};
		struct cmsghdr *c;

		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(c), fd, fds * sizeof(int));
	}
	require(sendmsg(socket, &m, MSG_NOSIGNAL) == (ssize_t)bytes);
}

struct plain { /* the same bytes, read the simple way */
	const uint8_t *data;
	size_t bytes, at;
	int skips; /* frames that are too long are skipped; or else they are the end */
};

/* 1: a frame is there; 0: not yet, or never; -EPROTO: none of ours; -EMSGSIZE: it is too long. */
static int plain_next(struct plain *plain, size_t arrived, struct sl_share_frame *head,
		      const uint8_t **payload)
{
	if (arrived - plain->at < sizeof(*head))
		return 0;
	memcpy(head, plain->data + plain->at, sizeof(*head));
	if (head->magic != SL_SHARE_FRAME_MAGIC)
		return -EPROTO;
	if (head->bytes > MOST && !plain->skips)
		return -EMSGSIZE;
	if (arrived - plain->at - sizeof(*head) < head->bytes)
		return 0;
	*payload = plain->data + plain->at + sizeof(*head);
	plain->at += sizeof(*head) + head->bytes;
	return 1;
}

/* All that has arrived. False: it is over. */
static int read_all(struct sl_share_in *in, int socket, struct plain *plain, size_t arrived)
{
	for (;;) {
		struct sl_share_frame head;
		const uint8_t *payload = NULL;
		int wanted = plain_next(plain, arrived, &head, &payload);
		int got = sl_share_in_read(in, socket, MOST);

		if (got == -EMSGSIZE && plain->skips) {
			sl_share_in_skip(in);
			got = sl_share_in_read(in, socket, MOST);
		}
		require(got == wanted);
		if (got <= 0)
			return got == 0;
		require(memcmp(&in->head, &head, sizeof(head)) == 0);
		require(in->skips == (head.bytes > MOST));
		require(!head.bytes || in->skips || memcmp(in->payload, payload, head.bytes) == 0);
		require(in->fds <= 2);
		if (head.value & 1)
			free(sl_share_in_take(in));
		sl_share_in_next(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_share_in in = {0};
	struct plain plain;
	uint32_t seed;
	int pair[2], before;

	if (size < CONTROL || size > LONGEST)
		return 0;
	memcpy(&seed, data, sizeof(seed));
	before = lowest_free();
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	plain = (struct plain){data + CONTROL, size - CONTROL, 0, data[4] & 0x80};
	for (size_t at = 0; at < plain.bytes;) {
		size_t bytes;

		seed = seed * 1664525 + 1013904223;
		bytes = 1 + (seed >> 8) % (data[4] % 8 ? 100 : 5000);
		bytes = bytes < plain.bytes - at ? bytes : plain.bytes - at;
		transmit(pair[0], plain.data + at, bytes,
			 seed >> 28 < data[4] % 16 ? (seed >> 24) % (MOST_FDS + 1) : 0);
		at += bytes;
		if (!read_all(&in, pair[1], &plain, at))
			break;
	}
	close(pair[0]);
	close(pair[1]);
	sl_share_in_fini(&in);
	require(lowest_free() == before);
	return 0;
}
