/* remote_greet.c - a follower of a share on another host: its TCP connection, and the secret. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/secret_file.h"
#include "base/secret.h"
#include "share/remote_follow.h"

/* ---- TCP ---- */

static int wait_until_connected(int fd, uint64_t end_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t bytes = sizeof(int);
	int n, err = 0;

	do
		n = poll(&p, 1, sl_share_left_ms(end_ns));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes);
	return -err;
}

static int connect_one(const struct addrinfo *at, uint64_t end_ns)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, at->ai_addr, at->ai_addrlen))
		err = errno == EINPROGRESS ? wait_until_connected(fd, end_ns) : -errno;
	if (err) {
		close(fd);
		return err;
	}
	sl_share_remote_keep(fd);
	return fd;
}

int sl_share_remote_dial(struct sl_follower *f, uint16_t port, uint64_t end_ns,
			 struct sl_remote_error *error)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char digits[8];
	int failed, fd = -ENOENT;

	snprintf(digits, sizeof(digits), "%u", port);
	failed = getaddrinfo(f->remote->host, digits, &hints, &found);
	if (failed)
		return sl_share_fail(error, -ENOENT, "absent", "cannot follow %s: %s: %s", f->name,
				     f->remote->host, gai_strerror(failed));
	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
		fd = connect_one(at, end_ns);
	freeaddrinfo(found);
	f->socket = fd < 0 ? -1 : fd;
	if (fd == -ECONNREFUSED)
		return sl_share_fail(error, -ENOENT, "absent",
				     "cannot follow %s: no share listens on that port", f->name);
	return fd < 0 ? sl_share_code(error, fd, f->name, strerror(-fd)) : 0;
}

/* ---- what the share says ---- */

static int was_refused(struct sl_follower *f, struct sl_remote_error *error)
{
	static const struct {
		int err;
		const char *code;
	} of[] = {
		[SL_SHARE_REFUSED_OTHER] = {-ECONNRESET, "connection"},
		[SL_SHARE_REFUSED_NAME] = {-ENOENT, "absent"},
		[SL_SHARE_REFUSED_SECRET] = {-EACCES, "secret"},
		[SL_SHARE_REFUSED_VERSION] = {-EPROTO, "reply"},
		[SL_SHARE_REFUSED_FULL] = {-ECONNRESET, "connection"},
	};
	uint64_t code = f->in.head.value < sizeof(of) / sizeof(of[0]) ? f->in.head.value : 0;
	char text[SL_SHARE_REMOTE_TEXT + 1];

	sl_share_remote_text(f->in.payload, f->in.head.bytes, text);
	sl_share_in_next(&f->in);
	return sl_share_fail(error, of[code].err, of[code].code, "cannot follow %s: %s", f->name,
			     text);
}

/* The next answer, in f->in; a PONG answers an earlier call. */
static int hear(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	int err;

	while (!(err = sl_follower_hear(f, end_ns)) && f->in.head.type == SL_SHARE_FRAME_PONG)
		sl_share_in_next(&f->in);
	if (!err && f->in.head.type == SL_SHARE_FRAME_REFUSED)
		return was_refused(f, error);
	if (!err)
		return 0;
	return sl_share_code(error, err, f->name,
			     err == -EPIPE	  ? "it has ended"
			     : err == -ECONNRESET ? "the share closed the connection"
			     : err == -EPROTO	  ? "no share listens there, but another program"
						  : strerror(-err));
}

int sl_share_remote_hear(struct sl_follower *f, enum sl_share_frame_type type, uint64_t bytes,
			 uint64_t end_ns, struct sl_remote_error *error)
{
	int err = hear(f, end_ns, error);

	if (err || (f->in.head.type == type && f->in.head.bytes == bytes))
		return err;
	return sl_share_code(error, -EPROTO, f->name, "its answer is not the one that is due");
}

/* ---- the secret ---- */

int sl_share_remote_read_secret(struct sl_follower *f, const struct sl_follow_options *options,
				struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	char why[SL_SHARE_WHY];

	if (!options || !options->secret_file)
		return 0;
	if (sl_secret_file_read(options->secret_file, r->secret, sizeof(r->secret), why,
				sizeof(why)))
		return sl_share_fail(error, -EINVAL, "request", "secret_file: %s", why);
	sl_secret_fill(r->hello.nonce, sizeof(r->hello.nonce));
	return 0;
}

/* The follower proves itself first: see control/tcp/proof.h. */
static int prove(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_proof_terms terms;
	struct sl_wire_proof proof;
	int err = sl_share_remote_hear(f, SL_SHARE_FRAME_CHALLENGE, SL_WIRE_NONCE, end_ns, error);

	if (err)
		return err;
	sl_share_remote_terms(&r->hello, &terms);
	memcpy(terms.challenge.nonce, f->in.payload, SL_WIRE_NONCE);
	sl_share_in_next(&f->in);
	err = sl_proof_set_listener(&terms, SL_PROOF_CONNECTS, f->socket);
	if (err)
		return sl_share_code(error, -ECONNRESET, f->name, "the connection is lost");
	sl_proof_make(SL_PROOF_CONNECTS, r->secret, &terms, &proof);
	err = sl_follower_say(f, SL_SHARE_FRAME_PROOF, 0, proof.proof, sizeof(proof.proof), end_ns);
	if (err)
		return sl_share_code(error, err, f->name, strerror(-err));
	err = sl_share_remote_hear(f, SL_SHARE_FRAME_PROOF, sizeof(proof.proof), end_ns, error);
	if (err)
		return err;
	memcpy(proof.proof, f->in.payload, sizeof(proof.proof));
	sl_share_in_next(&f->in);
	return sl_proof_is_right(SL_PROOF_LISTENS, r->secret, &terms, &proof)
		       ? 0
		       : sl_share_fail(error, -EACCES, "secret",
				       "cannot follow %s: it does not know the secret", f->name);
}

int sl_share_remote_greet(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	int err =
		sl_follower_say(f, SL_SHARE_FRAME_GREETING, 0, &r->hello, sizeof(r->hello), end_ns);

	if (err)
		return sl_share_code(error, err, f->name, strerror(-err));
	if (r->secret[0])
		err = prove(f, end_ns, error);
	if (!err)
		err = sl_share_remote_hear(f, SL_SHARE_FRAME_WELCOME, 0, end_ns, error);
	sl_share_in_next(&f->in);
	return err;
}
