/* remote_attach.c - a follower of a share on another host: TCP, the secret, queue pairs. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/secret_file.h"
#include "base/secret.h"
#include "share/remote_follow.h"

enum { LINE_BYTES = 64, TRIES = 3 };

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

static int connect_to(struct sl_follower *f, uint16_t port, uint64_t end_ns,
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

/* The next answer, in f->in; a PONG is of an earlier call. */
static int hear(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	int err;

	while (!(err = sl_follower_hear(f, end_ns)) && f->in.head.type == SL_SHARE_FRAME_PONG)
		sl_share_in_next(&f->in);
	if (!err && f->in.head.type == SL_SHARE_FRAME_REFUSED)
		return was_refused(f, error);
	if (!err && f->in.head.type == SL_SHARE_FRAME_ENDED) {
		f->remote->over = err = -EPIPE;
		return sl_share_fail(error, err, "connection", "the share %s has ended", f->name);
	}
	if (!err)
		return 0;
	return sl_share_code(error, err, f->name,
			     err == -ECONNRESET ? "the share closed the connection"
			     : err == -EPROTO	? "no share listens there, but another program"
						: strerror(-err));
}

static int hear_type(struct sl_follower *f, enum sl_share_frame_type type, uint64_t bytes,
		     uint64_t end_ns, struct sl_remote_error *error)
{
	int err = hear(f, end_ns, error);

	if (err || (f->in.head.type == type && f->in.head.bytes == bytes))
		return err;
	return sl_share_code(error, -EPROTO, f->name, "its answer is not the one that is due");
}

/* ---- the secret ---- */

static int read_secret(struct sl_follower *f, const struct sl_follow_options *options,
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
	int err = hear_type(f, SL_SHARE_FRAME_CHALLENGE, SL_WIRE_NONCE, end_ns, error);

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
	err = hear_type(f, SL_SHARE_FRAME_PROOF, sizeof(proof.proof), end_ns, error);
	if (err)
		return err;
	memcpy(proof.proof, f->in.payload, sizeof(proof.proof));
	sl_share_in_next(&f->in);
	return sl_proof_is_right(SL_PROOF_LISTENS, r->secret, &terms, &proof)
		       ? 0
		       : sl_share_fail(error, -EACCES, "secret",
				       "cannot follow %s: it does not know the secret", f->name);
}

static int greet(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	int err =
		sl_follower_say(f, SL_SHARE_FRAME_GREETING, 0, &r->hello, sizeof(r->hello), end_ns);

	if (err)
		return sl_share_code(error, err, f->name, strerror(-err));
	if (r->secret[0])
		err = prove(f, end_ns, error);
	if (!err)
		err = hear_type(f, SL_SHARE_FRAME_WELCOME, 0, end_ns, error);
	sl_share_in_next(&f->in);
	return err;
}

/* ---- queue pairs ---- */

static const uint32_t access_of[SL_SHARE_QUEUES] = {
	[SL_SHARE_DATA] = 0,
	[SL_SHARE_LOOKS] = 0,
	[SL_SHARE_ARRIVALS] = SL_ROCE_REMOTE_WRITE,
};

static int check_offer(struct sl_follower *f, struct sl_share_remote_offer *offer, char *why,
		       size_t why_bytes)
{
	int err =
		sl_share_remote_check_offer(f->in.payload, f->in.head.bytes, offer, why, why_bytes);

	if (err)
		return err;
	if (strcmp(offer->header.name, f->remote->hello.name) ||
	    offer->header.generation < f->description.generation) {
		snprintf(why, why_bytes, "its header is that of another share");
		return -EPROTO;
	}
	return 0;
}

static int connect_queues(struct sl_follower *f, uint64_t end_ns,
			  struct sl_share_remote_offer *offer, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_share_remote_end ours = {
		.pmtu = sl_share_remote_pmtu(f->socket),
		.key = r->line_key,
		.at = (uint64_t)(uintptr_t)r->line,
	};
	char why[SL_SHARE_WHY] = "no queue pairs";
	uint8_t peer[SL_NET_GID_BYTES];
	int err;

	sl_share_remote_disconnect(r->qp);
	memset(r->line, 0, sizeof(*r->line));
	err = sl_share_remote_queues(r->endpoint, 0, access_of, r->qp, &ours);
	if (!err)
		err = sl_follower_say(f, SL_SHARE_FRAME_CONNECT, 0, &ours, sizeof(ours), end_ns);
	if (err)
		return sl_share_code(error, err, f->name, strerror(-err));
	err = hear_type(f, SL_SHARE_FRAME_CONNECTED, sizeof(*offer), end_ns, error);
	if (err)
		return err;
	err = check_offer(f, offer, why, sizeof(why));
	sl_share_in_next(&f->in);
	if (!err)
		err = sl_share_remote_address(f->socket, true, peer);
	if (!err)
		err = sl_share_remote_connect(r->qp, peer, &ours, &offer->end);
	return err ? sl_share_code(error, err, f->name, why) : 0;
}

/* The first look shows that packets get through. */
static int first_look(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t number = r->looks_posted + 1;

	while (!r->failed && !r->over && r->looks_done < number) {
		sl_share_look_post(r);
		if (!sl_share_pump(f) && !r->failed)
			sl_share_pump_wait(f, UINT64_MAX);
	}
	return r->over ? r->over : r->failed ? -EIO : 0;
}

int sl_share_remote_attach(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t before = f->description.generation;
	struct sl_share_remote_offer offer = {0};
	int err = -EIO;

	for (unsigned i = 0; i < TRIES && err == -EIO && sl_share_left_ms(end_ns); i++) {
		err = connect_queues(f, end_ns, &offer, error);
		if (err)
			return err;
		r->there = offer;
		if (offer.header.generation != f->description.generation) {
			sl_follower_describe(f, &offer.header);
			i = 0; /* it was resized between its offer and our look */
		}
		sl_share_slots_reset(f);
		err = first_look(f);
	}
	if (err == -EIO)
		return sl_share_fail(
			error, err, "connection",
			"cannot follow %s: READs of UDP port %u fail: %s; a firewall must let "
			"UDP through as well as TCP",
			f->name, offer.end.port, sl_status_name((unsigned)r->failed));
	if (err)
		return sl_share_code(error, err, f->name, "the share closed the connection");
	return before && f->description.generation != before ? -ESTALE : 0;
}

/* ---- open and close ---- */

static int make_endpoint(struct sl_follower *f, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_endpoint_memory memory = {
		.bytes = LINE_BYTES, .access = SL_ROCE_REMOTE_WRITE, .domain = SL_SHARE_DOMAIN};
	uint8_t address[SL_NET_GID_BYTES];
	char why[SL_SHARE_WHY] = "no memory";
	int err = sl_share_remote_address(f->socket, false, address);

	if (!err)
		err = sl_share_remote_endpoint(address, 0, SL_SHARE_QUEUES, &r->endpoint, why,
					       sizeof(why));
	if (!err) {
		memory.at = r->line;
		err = sl_endpoint_register(r->endpoint, &memory, &r->line_key);
	}
	return err ? sl_share_code(error, err, f->name, why) : 0;
}

static int prepare(struct sl_follower *f, const char *url, const struct sl_follow_options *options,
		   uint16_t *port, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = calloc(1, sizeof(*r));

	f->remote = r;
	f->ops = &sl_follower_there;
	if (r)
		r->line = aligned_alloc(LINE_BYTES, LINE_BYTES);
	if (!r || !r->line)
		return sl_share_fail(error, -ENOMEM, "memory", "no memory");
	r->hello.version = SL_SHARE_REMOTE_VERSION;
	sl_idle_init(&r->idle, SL_POLLING_ADAPTIVE, SL_SHARE_SPIN_NS, true);
	if (!sl_share_remote_place(url + strlen("rdma://"), r->host, port, r->hello.name))
		return sl_share_fail(error, -EINVAL, "request",
				     "'%s' is no share: rdma://HOST:PORT/NAME", url);
	if (options && options->device)
		return sl_share_fail(error, -EOPNOTSUPP, "request",
				     "device: followers use a UDP socket; leave out '%s', and they "
				     "use any NIC",
				     options->device);
	return read_secret(f, options, error);
}

int sl_follower_open_remote(struct sl_follower *f, const char *url,
			    const struct sl_follow_options *options, uint64_t end_ns,
			    struct sl_remote_error *error)
{
	uint16_t port;
	int err;

	snprintf(f->name, sizeof(f->name), "%s", url);
	err = prepare(f, url, options, &port, error);
	if (!err)
		err = connect_to(f, port, end_ns, error);
	if (!err)
		err = greet(f, end_ns, error);
	if (!err)
		err = make_endpoint(f, error);
	if (!err)
		err = sl_share_remote_attach(f, end_ns, error);
	if (err)
		return err;
	/* The first element that it gets is the newest that is there. */
	f->next = f->remote->published > f->first ? f->remote->published - 1 : f->first;
	return 0;
}

void sl_share_remote_leave(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;

	if (!r)
		return;
	sl_endpoint_close(r->endpoint);
	sl_share_slots_fini(r);
	memset(r->secret, 0, sizeof(r->secret));
	free(r->line);
	free(r);
}
