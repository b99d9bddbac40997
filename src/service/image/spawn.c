/* spawn.c - image processes are started, ended and reaped. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/registry.h"
#include "service/image/images_private.h"

enum { CONTROL = 3 }; /* the descriptor in the child */
#define MS	 UINT64_C(1000000)
#define PAUSE_NS (200 * MS) /* after a start that failed, doubled for each */
#define MOST_NS	 (10000 * MS)
#define END_NS	 (1000 * MS)

extern char **environ;

/* ---- one process ---- */

static int add_actions(posix_spawn_file_actions_t *actions, int control)
{
	int err = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (!err)
		err = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null",
						       O_WRONLY, 0);
	if (!err) /* onto itself, too: then it is not closed on exec */
		err = posix_spawn_file_actions_adddup2(actions, control, CONTROL);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(actions, CONTROL + 1);
	return err;
}

static int spawn(const struct sl_image_service *images, const char *session, int control,
		 pid_t *pid)
{
	char fd[16], idle_s[16];
	char *const argv[] = {(char *)"sluice",
			      (char *)"image-server",
			      (char *)"--session",
			      (char *)session,
			      (char *)"--fd",
			      fd,
			      (char *)"--idle_s",
			      idle_s,
			      NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	snprintf(fd, sizeof(fd), "%d", CONTROL);
	snprintf(idle_s, sizeof(idle_s), "%u", images->options.idle_s);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	/* In a group of its own: Ctrl-C on the service's terminal is for the service. */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	err = add_actions(&actions, control);
	if (!err)
		err = posix_spawnp(pid, images->program, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

static int start(struct sl_image_service *images, struct sl_image_child *child)
{
	int pair[2], err;
	pid_t pid = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	err = spawn(images, child->session, pair[1], &pid);
	close(pair[1]);
	if (err) {
		close(pair[0]);
		sl_warn("images of session '%s': cannot start '%s': %s", child->session,
			images->program, strerror(-err));
		return err;
	}
	pthread_mutex_lock(&images->lock);
	child->pid = pid;
	images->started++;
	pthread_mutex_unlock(&images->lock);
	child->control = pair[0];
	child->started_ns = sl_clock_ns();
	child->answered_ns = 0;
	return 0;
}

static void put_off(struct sl_image_child *child)
{
	uint64_t pause_ns = PAUSE_NS << (child->failures < 6 ? child->failures : 6);

	child->failures++;
	child->not_before_ns = sl_clock_ns() + (pause_ns < MOST_NS ? pause_ns : MOST_NS);
}

/* Where a process waits to be reaped. */
static struct sl_image_dying *find_dying(struct sl_image_service *images)
{
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_DYING; i++)
		if (!images->dying[i].pid)
			return &images->dying[i];
	return NULL;
}

void sl_image_child_gone(struct sl_image_service *images, struct sl_image_child *child, bool kills)
{
	struct sl_image_dying *dying;

	if (child->control >= 0)
		close(child->control);
	child->control = -1;
	sl_image_children_reap(images);
	dying = find_dying(images);
	if (kills || !dying)
		kill(child->pid, SIGKILL);
	if (dying) {
		dying->pid = child->pid;
		memcpy(dying->session, child->session, sizeof(dying->session));
	} else {
		waitpid(child->pid, NULL, 0);
	}
	pthread_mutex_lock(&images->lock);
	child->pid = 0;
	pthread_mutex_unlock(&images->lock);
	if (child->answered_ns)
		child->failures = 0;
	else
		put_off(child);
}

/* ---- all of them ---- */

void sl_image_children_reap(struct sl_image_service *images)
{
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_DYING; i++) {
		struct sl_image_dying *dying = &images->dying[i];
		int status = 0;

		if (!dying->pid || waitpid(dying->pid, &status, WNOHANG) == 0)
			continue;
		if (WIFSIGNALED(status))
			sl_warn("the process that makes images of session '%s' has ended: %s; "
				"another is started when one is asked for",
				dying->session, strsignal(WTERMSIG(status)));
		dying->pid = 0;
	}
}

static struct sl_image_child *find_started(struct sl_image_service *images, const char *session)
{
	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES; i++)
		if (!strcmp(images->child[i].session, session))
			return &images->child[i];
	return NULL;
}

/* A free place for a session, or that of one whose process has ended. */
static struct sl_image_child *find_place(struct sl_image_service *images, const char *session)
{
	struct sl_image_child *place = NULL;

	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES && !place; i++)
		if (!images->child[i].session[0] || images->child[i].control < 0)
			place = &images->child[i];
	if (!place)
		return NULL;
	pthread_mutex_lock(&images->lock);
	*place = (struct sl_image_child){.control = -1};
	snprintf(place->session, sizeof(place->session), "%s", session);
	pthread_mutex_unlock(&images->lock);
	return place;
}

static bool session_lives(const char *session)
{
	int folder[SL_REGISTRY_PLACES];
	struct sl_registry_facts facts;
	char why[200];
	unsigned n = sl_registry_places(folder, why, sizeof(why));
	bool lives = false, alive;

	for (unsigned i = 0; i < n; i++) {
		lives |= !sl_registry_look(folder[i], session, &facts, &alive) && alive;
		close(folder[i]);
	}
	return lives;
}

struct sl_image_child *sl_image_child_of(struct sl_image_service *images, const char *session,
					 struct sl_image_refusal *refusal)
{
	struct sl_image_child *child = find_started(images, session);

	if (child && child->control >= 0)
		return child;
	*refusal = (struct sl_image_refusal){404, "there is no such session"};
	if (!session_lives(session))
		return NULL;
	*refusal = (struct sl_image_refusal){503, "too many sessions are looked at"};
	child = child ? child : find_place(images, session);
	if (!child)
		return NULL;
	refusal->why = "the process that makes images has ended, and another is started soon";
	if (sl_clock_ns() < child->not_before_ns)
		return NULL;
	if (!start(images, child))
		return child;
	put_off(child);
	refusal->why = "no process that makes images can be started";
	return NULL;
}

/* They end with their control sockets; what does not is killed. */
void sl_image_children_end(struct sl_image_service *images)
{
	uint64_t end_ns = sl_clock_ns() + END_NS;
	bool left = true;

	for (unsigned i = 0; i < SL_IMAGE_SERVICE_PROCESSES; i++)
		if (images->child[i].control >= 0)
			sl_image_child_gone(images, &images->child[i], false);
	while (left) {
		left = false;
		sl_image_children_reap(images);
		for (unsigned i = 0; i < SL_IMAGE_SERVICE_DYING; i++) {
			left |= images->dying[i].pid > 0;
			if (images->dying[i].pid > 0 && sl_clock_ns() > end_ns)
				kill(images->dying[i].pid, SIGKILL);
		}
		if (left)
			sl_clock_sleep_until(sl_clock_ns() + 2 * MS);
	}
}
