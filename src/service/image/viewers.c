/* viewers.c - what becomes of each request. */
#include "service/image/viewers.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

#define MS	   UINT64_C(1000000)
#define LOOK_NS	   (3000 * MS)	/* for a look at the share */
#define DRAW_NS	   (3000 * MS)	/* in the queue of jobs */
#define STALLED_NS (10000 * MS) /* without taking a byte */
#define LINGER_NS  (2000 * MS)	/* that session and share are looked at beyond a request */

enum { PARTS = 4 };

void sl_image_viewers_init(struct sl_image_viewers *v)
{
	for (unsigned i = 0; i < SL_IMAGE_VIEWERS; i++)
		v->viewer[i].fd = -1;
}

static void drop(struct sl_image_viewers *v, struct sl_image_viewer *viewer)
{
	if (viewer->job)
		sl_image_job_drop(v->jobs, viewer->job);
	sl_image_payload_release(viewer->payload);
	sl_image_parts_fini(&viewer->parts);
	close(viewer->fd);
	memset(viewer, 0, sizeof(*viewer));
	viewer->fd = -1;
	v->n--;
}

void sl_image_viewers_fini(struct sl_image_viewers *v)
{
	for (unsigned i = 0; i < SL_IMAGE_VIEWERS; i++)
		if (v->viewer[i].fd >= 0)
			drop(v, &v->viewer[i]);
}

/* ---- answers ---- */

static void make_now(struct sl_image_viewers *v, const struct sl_image_payload *payload,
		     struct sl_image_news *news, struct sl_image_now *now)
{
	struct sl_image_view view;
	bool over;

	*news = (struct sl_image_news){.known = false};
	if (v->watch)
		sl_image_watch_news(v->watch, news);
	sl_image_follow_view(v->follow, &view);
	sl_image_element_release(view.element);
	/* The image may be one of the run before: what the session says is not about that. */
	over = view.facts.over || payload->share != view.facts.share;
	*now = (struct sl_image_now){
		.unix_ns = sl_clock_unix_ns(),
		.published = view.facts.published,
		.rate_Hz = view.facts.rate_Hz,
		.run = over || news->asked_ns < view.facts.since_ns ? 0 : news->run,
		.hit_frames = news->hit_frames,
		.hits = news->hits,
		.state = news->state,
		.over = over,
	};
}

/* payload: the viewer's from now on; NULL: no memory. */
static void answer(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
		   struct sl_image_payload *payload)
{
	struct sl_image_news news;
	struct sl_image_now now;

	if (viewer->job)
		sl_image_job_drop(v->jobs, viewer->job);
	viewer->job = NULL;
	viewer->payload = payload;
	viewer->state = SL_VIEWER_SENDS;
	viewer->moved_ns = sl_clock_ns();
	if (payload)
		make_now(v, payload, &news, &now);
	if (!payload || sl_image_parts_make(payload, &now, &viewer->parts))
		drop(v, viewer); /* the service says what an end without an answer means */
}

static void answer_nothing(struct sl_image_viewers *v, struct sl_image_viewer *viewer)
{
	answer(v, viewer, sl_image_payload_make(204, SL_IMAGE_NOTHING));
}

static void answer_busy(struct sl_image_viewers *v, struct sl_image_viewer *viewer, const char *why)
{
	answer(v, viewer,
	       sl_image_payload_error(503, "busy", "try again in a second, or ask for less", "%s",
				      why));
}

/* Head, prefix, payload, suffix: what is left of them. */
static int pieces(const struct sl_image_viewer *viewer, struct iovec piece[PARTS])
{
	const struct sl_image_parts *parts = &viewer->parts;
	const struct iovec all[PARTS] = {
		{(void *)&parts->head, sizeof(parts->head)},
		{parts->prefix, parts->prefix_bytes},
		{viewer->payload->data, viewer->payload->bytes},
		{(void *)parts->suffix, parts->suffix_bytes},
	};
	size_t skip = viewer->sent;
	int n = 0;

	for (int i = 0; i < PARTS; i++) {
		size_t over = skip < all[i].iov_len ? skip : all[i].iov_len;

		skip -= over;
		if (all[i].iov_len > over)
			piece[n++] = (struct iovec){(uint8_t *)all[i].iov_base + over,
						    all[i].iov_len - over};
	}
	return n;
}

static void send_some(struct sl_image_viewers *v, struct sl_image_viewer *viewer)
{
	struct iovec piece[PARTS];
	struct msghdr message = {.msg_iov = piece};
	ssize_t n;

	message.msg_iovlen = (size_t)pieces(viewer, piece);
	if (!message.msg_iovlen) {
		drop(v, viewer);
		return;
	}
	n = sendmsg(viewer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		viewer->sent += (size_t)n;
		viewer->moved_ns = sl_clock_ns();
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		drop(v, viewer);
	}
}

/* ---- requests ---- */

static void begin(struct sl_image_viewers *v, struct sl_image_viewer *viewer, const char *text,
		  size_t bytes)
{
	char why[200];

	if (sl_image_request_parse(text, bytes, &viewer->request, why, sizeof(why))) {
		answer(v, viewer, sl_image_payload_error(400, "request", NULL, "%s", why));
		return;
	}
	viewer->state = SL_VIEWER_WAITS;
	viewer->until_ns = viewer->came_ns + viewer->request.wait_ms * MS;
	viewer->ticket = sl_image_follow_look(v->follow, viewer->until_ns);
	if (v->watch)
		sl_image_watch_look(v->watch, viewer->until_ns + LINGER_NS);
}

static void refuse(int fd)
{
	struct sl_image_payload *payload = sl_image_payload_error(
		503, "busy", "try again in a second", "too many viewers look at this session");
	struct sl_image_viewer viewer = {.fd = fd, .payload = payload};
	const struct sl_image_now now = {.unix_ns = 0};
	struct iovec piece[PARTS];
	struct msghdr message = {.msg_iov = piece};

	if (payload && !sl_image_parts_make(payload, &now, &viewer.parts)) {
		message.msg_iovlen = (size_t)pieces(&viewer, piece);
		/* It fits into an empty socket. */
		if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			errno = 0;
		sl_image_parts_fini(&viewer.parts);
	}
	sl_image_payload_release(payload);
	close(fd);
}

void sl_image_viewers_add(struct sl_image_viewers *v, const char *text, size_t bytes, int fd)
{
	for (unsigned i = 0; i < SL_IMAGE_VIEWERS; i++) {
		struct sl_image_viewer *viewer = &v->viewer[i];

		if (viewer->fd >= 0)
			continue;
		*viewer = (struct sl_image_viewer){.fd = fd, .came_ns = sl_clock_ns()};
		v->n++;
		begin(v, viewer, text, bytes);
		return;
	}
	refuse(fd);
}

/* ---- steps ---- */

/* No element has ever been seen. */
static void answer_absence(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
			   const struct sl_image_view *view, uint64_t now_ns)
{
	struct sl_image_news news = {.known = true, .there = true};

	if (v->watch)
		sl_image_watch_news(v->watch, &news);
	if (now_ns < viewer->until_ns)
		return; /* there may be one yet */
	if (news.known && !news.there)
		answer(v, viewer,
		       sl_image_payload_error(404, "not_found", NULL,
					      "there is no such session any more"));
	else if (view->answered >= viewer->ticket || (news.known && !news.has_share))
		answer(v, viewer,
		       sl_image_payload_error(
			       404, "not_found",
			       "frames appear when the run has begun and keeps some; a session "
			       "needs the sink share: sluice session --live",
			       "there is no image yet"));
	else if (now_ns > viewer->came_ns + LOOK_NS)
		answer_busy(v, viewer, "the session does not answer");
}

static void answer_trouble(struct sl_image_viewers *v, struct sl_image_viewer *viewer, int error)
{
	if (error == -EFBIG)
		answer(v, viewer,
		       sl_image_payload_error(413, "too_large",
					      "select fewer results for the sink share",
					      "an element has more than %llu bytes",
					      (unsigned long long)SL_IMAGE_ELEMENT_BYTES));
	else
		answer_busy(v, viewer, "there is no memory for an image");
}

static void draw(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
		 struct sl_image_element *element, uint64_t now_ns)
{
	int lacks = sl_image_lacks(&viewer->request, element);

	if (lacks >= 0) {
		sl_image_follow_want(v->follow, (unsigned)lacks);
		if (now_ns > viewer->came_ns + viewer->request.wait_ms * MS + LOOK_NS)
			answer_busy(v, viewer, "this array could not be copied in time");
		return;
	}
	viewer->job = sl_image_job_take(v->jobs, &viewer->request, element);
	viewer->state = SL_VIEWER_DRAWS;
	viewer->moved_ns = now_ns;
	if (!viewer->job)
		answer_busy(v, viewer, "too many images are being made");
}

static void step_waiting(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
			 const struct sl_image_view *view, uint64_t now_ns)
{
	const struct sl_image_request *r = &viewer->request;
	bool is_new = view->element && (!r->has_after || view->element->id != r->after);

	if (view->error && view->answered >= viewer->ticket)
		answer_trouble(v, viewer, view->error);
	else if (!view->element)
		answer_absence(v, viewer, view, now_ns);
	else if (view->answered < viewer->ticket && now_ns > viewer->until_ns + LOOK_NS)
		answer_busy(v, viewer, "the run does not answer");
	else if (is_new && view->answered >= viewer->ticket)
		draw(v, viewer, view->element, now_ns);
	else if (!is_new && view->answered >= viewer->ticket && now_ns >= viewer->until_ns)
		answer_nothing(v, viewer);
}

static void step_drawing(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
			 uint64_t now_ns)
{
	struct sl_image_payload *payload;

	if (sl_image_job_done(v->jobs, viewer->job, &payload))
		answer(v, viewer, payload);
	else if (now_ns > viewer->moved_ns + DRAW_NS)
		answer_busy(v, viewer, "this host is too busy to make images");
}

static uint64_t due(const struct sl_image_viewer *viewer, uint64_t now_ns)
{
	switch (viewer->state) {
	case SL_VIEWER_WAITS:
		return now_ns < viewer->until_ns ? viewer->until_ns : now_ns + 100 * MS;
	case SL_VIEWER_DRAWS:
		return viewer->moved_ns + DRAW_NS + 1;
	default:
		return viewer->moved_ns + STALLED_NS + 1;
	}
}

static void step(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
		 const struct sl_image_view *view, uint64_t now_ns)
{
	if (viewer->state == SL_VIEWER_WAITS)
		step_waiting(v, viewer, view, now_ns);
	if (viewer->fd >= 0 && viewer->state == SL_VIEWER_DRAWS)
		step_drawing(v, viewer, now_ns);
	if (viewer->fd >= 0 && viewer->state == SL_VIEWER_SENDS) {
		if (now_ns > viewer->moved_ns + STALLED_NS)
			drop(v, viewer);
		else
			send_some(v, viewer);
	}
}

uint64_t sl_image_viewers_step(struct sl_image_viewers *v)
{
	uint64_t now_ns = sl_clock_ns(), next_ns = UINT64_MAX;
	struct sl_image_view view;

	if (!v->n)
		return UINT64_MAX;
	sl_image_follow_view(v->follow, &view);
	if (view.element)
		sl_image_jobs_newest(v->jobs, view.element->id);
	for (unsigned i = 0; i < SL_IMAGE_VIEWERS; i++) {
		struct sl_image_viewer *viewer = &v->viewer[i];

		if (viewer->fd < 0)
			continue;
		step(v, viewer, &view, now_ns);
		if (viewer->fd >= 0) {
			uint64_t at_ns = due(viewer, now_ns);

			next_ns = at_ns < next_ns ? at_ns : next_ns;
		}
	}
	sl_image_element_release(view.element);
	return next_ns;
}

short sl_image_viewer_events(const struct sl_image_viewer *viewer)
{
	return viewer->state == SL_VIEWER_SENDS ? POLLOUT : POLLRDHUP;
}

void sl_image_viewer_handle(struct sl_image_viewers *v, struct sl_image_viewer *viewer,
			    short events)
{
	if (events & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL))
		drop(v, viewer); /* nobody waits for it any longer */
}
