/* start.c - a session is started: a name for it, a process of its own, and a look at how it begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/registry.h"
#include "service/process/process.h"
#include "service/sessions/private.h"

enum {
	BEGIN_MS = 30000,
	LOOK_MS = 20,
	NAMES = 99,
	STEM = 60, /* of a name with "-99" */
	ARGUMENTS = 24,
	LOG_BYTES = 8192,
	SYSTEMD_MS = 10000
};

extern char **environ;

/* ---- the thread that forks: it has the nice value that sessions should have ---- */

static void *serve_jobs(void *arg)
{
	struct sl_starter *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->stop) {
		if (!t->has_job) {
			pthread_cond_wait(&t->wake, &t->lock);
			continue;
		}
		t->result = sl_process_detach(t->job, &t->alive);
		t->has_job = false;
		pthread_cond_signal(&t->done);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int sl_starter_open(struct sl_starter *t)
{
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->one, NULL);
	pthread_cond_init(&t->wake, NULL);
	pthread_cond_init(&t->done, NULL);
	return sl_thread_start(&t->thread, "starter", NULL, serve_jobs, t);
}

void sl_starter_close(struct sl_starter *t)
{
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	sl_thread_join(&t->thread);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->one);
	pthread_mutex_destroy(&t->lock);
}

static int detach(struct sl_starter *t, const struct sl_detached *job, int *alive)
{
	int err;

	pthread_mutex_lock(&t->one);
	pthread_mutex_lock(&t->lock);
	t->job = job;
	t->has_job = true;
	pthread_cond_signal(&t->wake);
	while (t->has_job)
		pthread_cond_wait(&t->done, &t->lock);
	err = t->result;
	*alive = t->alive;
	pthread_mutex_unlock(&t->lock);
	pthread_mutex_unlock(&t->one);
	return err;
}

/* ---- its name ---- */

__attribute__((format(printf, 4, 5))) static int fail(struct sl_remote_error *error, int err,
						      const char *code, const char *format, ...)
{
	va_list arguments;

	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "%s", code);
	va_start(arguments, format);
	vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	return err;
}

/* Whether a session of that name lives. */
static bool is_taken(const char *name)
{
	int folder[SL_REGISTRY_PLACES];
	char why[SL_REGISTRY_PATH];
	unsigned places = sl_registry_places(folder, why, sizeof(why));
	bool taken = false;

	for (unsigned i = 0; i < places; i++) {
		struct sl_registry_facts facts;
		bool alive;

		taken |= !sl_registry_look(folder[i], name, &facts, &alive) && alive;
		close(folder[i]);
	}
	return taken;
}

static int choose_name(const struct sl_session_start *start, char name[64],
		       struct sl_remote_error *error)
{
	const char *slash = strrchr(start->experiment, '/'),
		   *stem = slash ? slash + 1 : start->experiment, *ending = strrchr(stem, '.');
	int length = (int)(ending && ending > stem ? (size_t)(ending - stem) : strlen(stem));

	if (start->name) {
		if (is_taken(start->name))
			return fail(error, -EEXIST, "name",
				    "a session '%s' is running already; choose another name",
				    start->name);
		snprintf(name, 64, "%s", start->name);
		return 0;
	}
	snprintf(name, 64, "%.*s", length, stem);
	for (int i = 2; is_taken(name) && i <= NAMES; i++)
		snprintf(name, 64, "%.*s-%d", length < STEM ? length : STEM, stem, i);
	return is_taken(name) ? fail(error, -EEXIST, "name",
				     "%d sessions '%.*s' are running already", NAMES, length, stem)
			      : 0;
}

/* Where it will have its socket: a session would end for this, and say so in its log alone. */
static int check_folder(struct sl_remote_error *error)
{
	char why[SL_REGISTRY_PATH + 100] = "";
	int folder, err = sl_registry_open(true, &folder, why, sizeof(why));

	if (err)
		return fail(error, err, "access", "%.500s", why);
	close(folder);
	return 0;
}

/* ---- its command ---- */

struct command {
	const char *argv[2 * SL_SESSIONS_SETS + 2 * ARGUMENTS];
	size_t n;
};

static void add(struct command *c, const char *word)
{
	c->argv[c->n++] = word;
	c->argv[c->n] = NULL;
}

static void add_pair(struct command *c, const char *option, const char *value)
{
	if (!value)
		return;
	add(c, option);
	add(c, value);
}

static void add_session(struct command *c, const struct sl_sessions *s,
			const struct sl_session_start *start, const char *name)
{
	add(c, s->program);
	add(c, "session");
	add(c, start->experiment);
	add_pair(c, "--root", s->root);
	add_pair(c, "--name", name);
	add(c, "--live"); /* a share for viewers, and a picture of each run */
	add_pair(c, "--transfer", start->transfer);
	add_pair(c, "--outcomes", start->outcomes);
	for (size_t i = 0; i < start->sets; i++)
		add_pair(c, "--set", start->set[i]);
}

/* ---- as a transient unit of systemd ---- */

struct unit {
	char name[96], folder[1300], output[1300], error[1300];
	char variable[8][1300];
};

/* What a session needs of our environment; a unit begins with an empty one. */
static void add_environment(struct command *c, struct unit *u)
{
	static const char *const names[] = {"SLUICE_RUN_DIR",
					    "SLUICE_SITE",
					    "SLUICE_PLUGINS",
					    "XDG_RUNTIME_DIR",
					    "XDG_CONFIG_HOME",
					    "HOME",
					    "PATH"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (!value)
			continue;
		snprintf(u->variable[i], sizeof(u->variable[i]), "--setenv=%s=%s", names[i], value);
		add(c, u->variable[i]);
	}
}

static int start_unit(const struct sl_sessions *s, const struct sl_session_start *start,
		      const char *name, const char *log, struct sl_remote_error *error)
{
	struct sl_process_result result;
	struct command c = {.n = 0};
	struct unit u;
	const struct sl_process p = {.argv = c.argv, .most_bytes = 2000, .timeout_ms = SYSTEMD_MS};
	int err;

	unlink(log);
	snprintf(u.name, sizeof(u.name), "--unit=sluice-session-%s", name);
	snprintf(u.folder, sizeof(u.folder), "--working-directory=%s", s->folder);
	snprintf(u.output, sizeof(u.output), "--property=StandardOutput=append:%s", log);
	snprintf(u.error, sizeof(u.error), "--property=StandardError=append:%s", log);
	add(&c, "systemd-run");
	if (geteuid() != 0)
		add(&c, "--user");
	add(&c, u.name);
	add(&c, "--collect");
	add(&c, "--quiet");
	add(&c, u.folder);
	add(&c, u.output);
	add(&c, u.error);
	add_environment(&c, &u);
	add(&c, "--");
	add_session(&c, s, start, name);
	err = sl_process_run(&p, &result);
	if (err)
		return fail(error, err, "system", "systemd-run: %s", strerror(-err));
	if (result.status)
		err = fail(error, -EIO, "system", "systemd-run: %.300s", result.err);
	sl_process_free(&result);
	return err;
}

/* ---- how it begins ---- */

/* The first mistake that it printed; "" without one. */
static void read_log(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? 0 : read(fd, text, bytes - 1);
	const char *mistake;

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	mistake = strstr(text, "error: ");
	if (mistake)
		memmove(text, mistake + strlen("error: "), strlen(mistake + strlen("error: ")) + 1);
	text[strcspn(text, "\n")] = 0;
}

static int ended(const char *log, const char *name, struct sl_remote_error *error)
{
	char text[LOG_BYTES];

	read_log(log, text, sizeof(text));
	if (strstr(text, "is running already"))
		return fail(error, -EEXIST, "name", "%.400s", text);
	return fail(error, -EINVAL, "experiment", "%.450s",
		    text[0] ? text : "the session ended at once");
}

/* Whether the program behind the descriptor still runs; -1: the unit. Waits a moment for its end.
 */
static bool still_runs(int alive, const char *name)
{
	char unit[96];
	const char *const argv[] = {
		"systemctl", geteuid() ? "--user" : "--system", "is-active", "--quiet", unit, NULL};
	const struct sl_process p = {.argv = argv, .most_bytes = 100, .timeout_ms = SYSTEMD_MS};
	struct sl_process_result result;
	bool runs;

	if (alive >= 0)
		return sl_process_lives(alive, LOOK_MS);
	sl_clock_sleep_until(sl_clock_ns() + LOOK_MS * UINT64_C(1000000));
	snprintf(unit, sizeof(unit), "sluice-session-%s.service", name);
	if (sl_process_run(&p, &result))
		return true;
	runs = !result.status;
	sl_process_free(&result);
	return runs;
}

/* Until it answers. */
static int await(const char *name, const char *log, int alive, struct sl_remote_error *error)
{
	uint64_t end_ns = sl_clock_ns() + BEGIN_MS * UINT64_C(1000000);
	struct sl_remote *remote;

	while (sl_clock_ns() < end_ns) {
		/* before it is asked: what has answered has begun */
		bool runs = still_runs(alive, name);

		if (!sl_remote_open(name, LOOK_MS, &remote, NULL)) {
			sl_remote_close(remote);
			return 0;
		}
		if (!runs)
			return ended(log, name, error);
	}
	return fail(error, -ETIMEDOUT, "timeout",
		    "the session '%s' did not begin within %d s; %s says how far it came", name,
		    BEGIN_MS / 1000, log);
}

static int start_named(struct sl_sessions *s, const struct sl_session_start *start,
		       const char *name, struct sl_remote_error *error)
{
	struct command c = {.n = 0};
	char log[1200];
	const struct sl_detached d = {c.argv, s->folder, log};
	int alive = -1, err;

	snprintf(log, sizeof(log), "%s/%s.log", s->logs, name);
	if (s->options.systemd) {
		err = start_unit(s, start, name, log, error);
	} else {
		add_session(&c, s, start, name);
		err = detach(&s->starter, &d, &alive);
		if (err)
			fail(error, err, "system", "cannot start '%s session': %s", s->program,
			     strerror(-err));
	}
	if (!err)
		err = await(name, log, alive, error);
	if (alive >= 0)
		close(alive);
	return err;
}

int sl_sessions_start(struct sl_sessions *s, const struct sl_session_start *start, char name[64],
		      struct sl_remote_error *error)
{
	int err = start->sets > SL_SESSIONS_SETS ? fail(error, -E2BIG, "request",
							"more than %d overrides", SL_SESSIONS_SETS)
						 : 0;

	pthread_mutex_lock(&s->starting);
	if (!err)
		err = check_folder(error);
	if (!err)
		err = choose_name(start, name, error);
	if (!err)
		err = start_named(s, start, name, error);
	pthread_mutex_unlock(&s->starting);
	sl_sessions_look(s);
	return err;
}
