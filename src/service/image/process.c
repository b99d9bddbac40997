/* process.c - the main thread of an image process. */
#include "service/image/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/image/viewers.h"

enum { NICE = 10, BURST = 32 };

struct process {
	const struct sl_image_process_options *options;
	int bell;
	uint64_t used_ns; /* when a request came last */
	struct sl_image_follow follow;
	struct sl_image_watch watch;
	struct sl_image_jobs jobs;
	struct sl_image_viewers viewers;
	struct pollfd fd[SL_IMAGE_VIEWERS + 2];
	struct sl_image_viewer *of[SL_IMAGE_VIEWERS + 2];
};

/* What the run and the service need comes first. Where the host does not let us, it is no harm. */
static void be_modest(void)
{
	const struct sched_param none = {.sched_priority = 0};
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (setpriority(PRIO_PROCESS, 0, NICE) || sched_setscheduler(0, SCHED_BATCH, &none))
		sl_debug("images are made at the priority of the service: %s", strerror(errno));
	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		sl_debug("oom_score_adj stays as it is: %s", strerror(errno));
	close(fd);
}

/* ---- requests ---- */

/* The descriptor that came with a message; -1: none. Others are closed. */
static int take_descriptor(struct msghdr *message)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
			if (fd < 0)
				fd = one;
			else
				close(one);
		}
	}
	return fd;
}

/* 1: a request; 0: there is none now; -EPIPE: the service has gone. */
static int take_request(struct process *p)
{
	char text[SL_IMAGE_QUERY_BYTES + 1];
	struct iovec piece = {text, sizeof(text)};
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(p->options->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	fd = take_descriptor(&message);
	if (!n && fd < 0)
		return -EPIPE;
	if (fd < 0)
		return 1; /* there is nobody to answer to */
	p->used_ns = sl_clock_ns();
	/* One that is too long is cut, and has no key that is known. */
	sl_image_viewers_add(&p->viewers, text, message.msg_flags & MSG_TRUNC ? 0 : (size_t)n, fd);
	return 1;
}

static int take_requests(struct process *p)
{
	int got = 1;

	for (int i = 0; i < BURST && got > 0; i++)
		got = take_request(p);
	return got < 0 ? got : 0;
}

/* ---- the loop ---- */

static nfds_t collect(struct process *p)
{
	nfds_t n = 0;

	p->fd[n++] = (struct pollfd){.fd = p->options->control, .events = POLLIN};
	p->fd[n++] = (struct pollfd){.fd = p->bell, .events = POLLIN};
	for (unsigned i = 0; i < SL_IMAGE_VIEWERS; i++) {
		struct sl_image_viewer *viewer = &p->viewers.viewer[i];

		if (viewer->fd < 0)
			continue;
		p->of[n] = viewer;
		p->fd[n++] =
			(struct pollfd){.fd = viewer->fd, .events = sl_image_viewer_events(viewer)};
	}
	return n;
}

static int wait_for_events(struct process *p, uint64_t due_ns)
{
	uint64_t now_ns = sl_clock_ns(), most_ns = now_ns + UINT64_C(1000000000), count;
	nfds_t n = collect(p);
	int ms;

	due_ns = due_ns < most_ns ? due_ns : most_ns;
	ms = due_ns > now_ns ? (int)((due_ns - now_ns + 999999) / 1000000) : 0;
	if (poll(p->fd, n, ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (p->fd[1].revents && read(p->bell, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	for (nfds_t i = 2; i < n; i++)
		if (p->fd[i].revents)
			sl_image_viewer_handle(&p->viewers, p->of[i], p->fd[i].revents);
	return p->fd[0].revents ? take_requests(p) : 0;
}

static bool is_idle(const struct process *p)
{
	uint64_t idle_ns = p->options->idle_s * UINT64_C(1000000000);

	return idle_ns && !p->viewers.n && sl_clock_ns() > p->used_ns + idle_ns;
}

static int serve(struct process *p)
{
	int err = 0;

	while (!err && !is_idle(p))
		err = wait_for_events(p, sl_image_viewers_step(&p->viewers));
	return err == -EPIPE || err == -ECONNRESET ? 0 : err;
}

static int start(struct process *p)
{
	int err = sl_image_follow_start(&p->follow, p->bell);

	if (err)
		return err;
	err = sl_image_jobs_start(&p->jobs, p->bell);
	if (err) {
		sl_image_follow_stop(&p->follow);
		return err;
	}
	if (p->options->session)
		err = sl_image_watch_start(&p->watch, p->options->session, &p->follow, p->bell);
	else
		sl_image_follow_name(&p->follow, p->options->share);
	if (err) {
		sl_image_jobs_stop(&p->jobs);
		sl_image_follow_stop(&p->follow);
	}
	return err;
}

static void stop(struct process *p)
{
	sl_image_viewers_fini(&p->viewers);
	if (p->options->session)
		sl_image_watch_stop(&p->watch);
	sl_image_jobs_stop(&p->jobs);
	sl_image_follow_stop(&p->follow);
}

static int check(const struct sl_image_process_options *o)
{
	socklen_t bytes = sizeof(int);
	int type = 0;

	if (!getsockopt(o->control, SOL_SOCKET, SO_TYPE, &type, &bytes) && type == SOCK_SEQPACKET)
		return 0;
	sl_error("--fd %d is no control socket: the service starts image processes by itself",
		 o->control);
	return -EINVAL;
}

int sl_image_process(const struct sl_image_process_options *o)
{
	struct process *p;
	int err = check(o);

	if (err)
		return err;
	be_modest();
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->options = o;
	p->used_ns = sl_clock_ns();
	p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = p->bell < 0 ? -errno : 0;
	p->viewers.follow = &p->follow;
	p->viewers.watch = o->session ? &p->watch : NULL;
	p->viewers.jobs = &p->jobs;
	sl_image_viewers_init(&p->viewers);
	if (!err)
		err = start(p);
	if (!err) {
		err = serve(p);
		stop(p);
	}
	if (err)
		sl_error("images of '%s': %s", o->session ? o->session : o->share, strerror(-err));
	if (p->bell >= 0)
		close(p->bell);
	free(p);
	return err;
}
