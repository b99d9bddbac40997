/* feed.c - a thread that watches sessions. */
#include "cmd/ctl/feed.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sluice/client.h>

#include "base/clock.h"
#include "base/thread.h"

enum { MOST = 256, WATCHED = 256, OPEN_MS = 1000, REPLY_MS = 2000, NAP_MS = 20, AGAIN_MS = 1000 };

struct watched {
	char name[64];
	struct sl_remote *remote; /* NULL: there is none */
	uint64_t again_ns;	  /* not opened before */
	bool seen;
};

struct sl_ctl_feed {
	struct sl_ctl_feed_options options;
	struct sl_thread thread;
	_Atomic int ends;
	int fd;
	pthread_mutex_t lock;
	struct sl_ctl_feed_message *first, **last; /* with `lock` held */
	unsigned messages;

	struct watched watched[WATCHED]; /* of the thread */
	unsigned n;
};

/* ---- messages ---- */

static void drop_first(struct sl_ctl_feed *f)
{
	struct sl_ctl_feed_message *m = f->first;

	f->first = m->next;
	f->last = f->first ? f->last : &f->first;
	f->messages--;
	free(m->text);
	free(m);
}

static void say(struct sl_ctl_feed *f, enum sl_ctl_feed_kind kind, const char *name,
		const char *text)
{
	struct sl_ctl_feed_message *m = calloc(1, sizeof(*m));
	const uint64_t one = 1;

	if (m)
		m->text = strdup(text);
	if (!m || !m->text) {
		free(m);
		return;
	}
	m->kind = kind;
	snprintf(m->name, sizeof(m->name), "%s", name);
	pthread_mutex_lock(&f->lock);
	if (f->messages == MOST)
		drop_first(f);
	*f->last = m;
	f->last = &m->next;
	f->messages++;
	pthread_mutex_unlock(&f->lock);
	if (write(f->fd, &one, sizeof(one)) < 0)
		return; /* it can be read already */
}

void sl_ctl_feed_take(struct sl_ctl_feed *f,
		      void (*each)(void *arg, const struct sl_ctl_feed_message *message), void *arg)
{
	struct sl_ctl_feed_message *m, *next;
	uint64_t count;

	if (read(f->fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&f->lock);
	m = f->first;
	f->first = NULL;
	f->last = &f->first;
	f->messages = 0;
	pthread_mutex_unlock(&f->lock);
	for (; m; m = next) {
		next = m->next;
		each(arg, m);
		free(m->text);
		free(m);
	}
}

/* ---- this host ---- */

static bool is_wanted(const struct sl_ctl_feed *f, const char *name)
{
	for (size_t i = 0; i < f->options.onlys; i++)
		if (!strcmp(f->options.only[i], name))
			return true;
	return !f->options.onlys;
}

static struct watched *find(struct sl_ctl_feed *f, const char *name)
{
	for (unsigned i = 0; i < f->n; i++)
		if (!strcmp(f->watched[i].name, name))
			return &f->watched[i];
	if (f->n == WATCHED)
		return NULL;
	memset(&f->watched[f->n], 0, sizeof(f->watched[0]));
	snprintf(f->watched[f->n].name, sizeof(f->watched[0].name), "%s", name);
	return &f->watched[f->n++];
}

static void hang_up(struct watched *w, const char *state, struct sl_ctl_feed *f)
{
	sl_remote_close(w->remote);
	w->remote = NULL;
	w->again_ns = sl_clock_ns() + AGAIN_MS * UINT64_C(1000000);
	say(f, SL_CTL_FEED_STATE, w->name, state);
}

static void begin(struct sl_ctl_feed *f, struct watched *w)
{
	char request[80], *line = NULL;

	snprintf(request, sizeof(request), "{\"call\":\"watch\",\"interval_ms\":%u}",
		 f->options.interval_ms);
	if (sl_remote_open(w->name, OPEN_MS, &w->remote, NULL) ||
	    sl_remote_request(w->remote, request, REPLY_MS, &line, NULL))
		hang_up(w, "silent", f);
	else
		say(f, SL_CTL_FEED_STATUS, w->name, line);
	sl_remote_free(line);
}

/* All that has come since; its connection ends when the session does. */
static void read_lines(struct sl_ctl_feed *f, struct watched *w)
{
	for (;;) {
		char *line = NULL;
		int err = sl_remote_next(w->remote, 0, &line, NULL);

		if (!err)
			say(f, SL_CTL_FEED_STATUS, w->name, line);
		sl_remote_free(line);
		if (err && err != -ETIMEDOUT)
			hang_up(w, "closed", f);
		if (err)
			return;
	}
}

static void list(struct sl_ctl_feed *f)
{
	struct sl_remote_info *info = NULL;
	size_t n = 0;
	int err = sl_remote_list(&info, &n);
	char why[200];

	snprintf(why, sizeof(why), "the folder of sessions cannot be used: %s", strerror(-err));
	say(f, SL_CTL_FEED_PROBLEM, "", err ? why : "");
	for (unsigned i = 0; i < f->n; i++)
		f->watched[i].seen = false;
	for (size_t i = 0; i < n; i++) {
		struct watched *w = is_wanted(f, info[i].name) ? find(f, info[i].name) : NULL;

		if (!w)
			continue;
		w->seen = true;
		if (!info[i].alive && !w->remote)
			say(f, SL_CTL_FEED_STATE, w->name, "crashed");
		else if (!w->remote && sl_clock_ns() >= w->again_ns)
			begin(f, w);
	}
	for (unsigned i = 0; i < f->n; i++) {
		struct watched *w = &f->watched[i];

		if (w->seen || w->remote)
			continue;
		say(f, SL_CTL_FEED_STATE, w->name, "closed");
		*w = f->watched[--f->n];
		i--;
	}
	sl_remote_free(info);
}

static void *watch_here(void *arg)
{
	struct sl_ctl_feed *f = arg;
	uint64_t list_ns = 0;

	while (!atomic_load(&f->ends)) {
		if (sl_clock_ns() >= list_ns) {
			list(f);
			list_ns = sl_clock_ns() + AGAIN_MS * UINT64_C(1000000);
		}
		for (unsigned i = 0; i < f->n; i++)
			if (f->watched[i].remote)
				read_lines(f, &f->watched[i]);
		sl_clock_sleep_until(sl_clock_ns() + NAP_MS * UINT64_C(1000000));
	}
	for (unsigned i = 0; i < f->n; i++)
		sl_remote_close(f->watched[i].remote);
	return NULL;
}

/* ---- a service ---- */

static bool take_event(void *arg, const char *name, const char *data)
{
	struct sl_ctl_feed *f = arg;

	if (!strcmp(name, "status"))
		say(f, SL_CTL_FEED_STATUS, "", data);
	else if (!strcmp(name, "sessions"))
		say(f, SL_CTL_FEED_LIST, "", data);
	if (!strcmp(name, "hello"))
		say(f, SL_CTL_FEED_PROBLEM, "", "");
	return !atomic_load(&f->ends);
}

static void *watch_there(void *arg)
{
	struct sl_ctl_feed *f = arg;
	char path[100];

	snprintf(path, sizeof(path), "/api/v1/events?interval_ms=%u", f->options.interval_ms);
	while (!atomic_load(&f->ends)) {
		struct sl_api_answer answer;
		int err = sl_api_events(f->options.host, path, take_event, f, &answer);
		char message[300] = "";

		if (err == -EPROTO)
			sl_api_text(&answer, "error.message", message, sizeof(message));
		if (err)
			say(f, SL_CTL_FEED_PROBLEM, "",
			    message[0] ? message : sl_api_problem(f->options.host));
		sl_api_free(&answer);
		sl_clock_sleep_until(sl_clock_ns() + AGAIN_MS * UINT64_C(1000000));
	}
	return NULL;
}

/* ---- open and close ---- */

int sl_ctl_feed_open(const struct sl_ctl_feed_options *options, struct sl_ctl_feed **feed)
{
	struct sl_ctl_feed *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->options = *options;
	f->last = &f->first;
	pthread_mutex_init(&f->lock, NULL);
	f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = f->fd < 0 ? -errno
			: sl_thread_start(&f->thread, "watch", NULL,
					  options->host ? watch_there : watch_here, f);
	if (err) {
		if (f->fd >= 0)
			close(f->fd);
		free(f);
		return err;
	}
	*feed = f;
	return 0;
}

int sl_ctl_feed_fd(const struct sl_ctl_feed *f)
{
	return f->fd;
}

void sl_ctl_feed_close(struct sl_ctl_feed *f)
{
	atomic_store(&f->ends, 1);
	if (f->options.host)
		sl_api_stop(f->options.host);
	sl_thread_join(&f->thread);
	while (f->first)
		drop_first(f);
	close(f->fd);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
