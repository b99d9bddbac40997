/* controls.c - the control drivers of a run, together. */
#include "control/controls.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LEAVING_NS UINT64_C(2000000000)

enum { FDS_MOST = 512, LEAVING_MS = 10 };

const struct sl_control *const sl_control_drivers[] = {
	&sl_control_tcp, &sl_control_feroce, &sl_control_one_way, &sl_control_resumed, NULL,
};

static int open_one(struct sl_controls *c, const struct sl_control_env *env, unsigned index,
		    bool resumed)
{
	int err = 0;

	for (const struct sl_control *const *d = sl_control_drivers; *d && !err; d++) {
		int modules = (*d)->modules(env->experiment, resumed);
		struct sl_control_env own = *env;
		void *state;

		if (modules < 0)
			continue;
		if (c->drivers == SL_CONTROLS_MOST)
			return -ENOSPC;
		state = calloc(1, (*d)->state_bytes);
		if (!state)
			return -ENOMEM;
		c->driver[c->drivers] = *d;
		c->env[c->drivers] = index;
		c->state[c->drivers++] = state; /* close() is due even when open() failed */
		own.modules = (uint32_t)modules;
		err = (*d)->open(state, &own);
	}
	return err;
}

int sl_controls_open(struct sl_controls *c, const struct sl_control_env *env, unsigned envs,
		     bool resumed)
{
	int err = 0;

	c->drivers = 0;
	for (unsigned i = 0; i < envs && !err; i++)
		err = open_one(c, &env[i], i, resumed);
	return err;
}

void sl_controls_close(struct sl_controls *c)
{
	while (c->drivers) {
		c->drivers--;
		c->driver[c->drivers]->close(c->state[c->drivers]);
		free(c->state[c->drivers]);
	}
}

int sl_controls_again(struct sl_controls *c, const struct sl_control_env *env)
{
	int err = 0;

	for (unsigned i = 0; i < c->drivers && !err; i++) {
		const struct sl_control *d = c->driver[i];
		struct sl_control_env own = env[c->env[i]];

		own.modules = (uint32_t)d->modules(own.experiment, false);
		if (d->again) {
			err = d->again(c->state[i], &own);
			continue;
		}
		d->close(c->state[i]);
		memset(c->state[i], 0, d->state_bytes);
		err = d->open(c->state[i], &own);
	}
	return err;
}

void sl_controls_poll(struct sl_controls *c, int timeout_ms)
{
	struct pollfd fds[FDS_MOST];
	unsigned n = 0;

	for (unsigned i = 0; i < c->drivers; i++)
		if (c->driver[i]->fds)
			n += c->driver[i]->fds(c->state[i], &fds[n], FDS_MOST - n);
	poll(fds, n, timeout_ms);
	for (unsigned i = 0; i < c->drivers; i++)
		c->driver[i]->poll(c->state[i], sl_clock_ns());
}

bool sl_controls_start_alone(const struct sl_controls *c)
{
	for (unsigned i = 0; i < c->drivers; i++)
		if (c->driver[i]->starts_alone)
			return true;
	return false;
}

uint32_t sl_controls_planned(const struct sl_controls *c)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < c->drivers; i++)
		sum += c->driver[i]->planned(c->state[i]);
	return sum;
}

bool sl_controls_ready(const struct sl_controls *c)
{
	for (unsigned i = 0; i < c->drivers; i++)
		if (!c->driver[i]->ready(c->state[i]))
			return false;
	return true;
}

bool sl_controls_wait_for(const struct sl_controls *c, char *text, size_t bytes)
{
	text[0] = '\0';
	for (unsigned i = 0; i < c->drivers && !text[0]; i++)
		if (c->driver[i]->waits_for)
			c->driver[i]->waits_for(c->state[i], text, bytes);
	return text[0] != '\0';
}

uint16_t sl_controls_port(const struct sl_controls *c, unsigned env, const char **option)
{
	for (unsigned i = 0; i < c->drivers; i++)
		if (c->env[i] == env && c->driver[i]->port) {
			*option = c->driver[i]->port_option;
			return c->driver[i]->port(c->state[i]);
		}
	*option = NULL;
	return 0;
}

void sl_controls_start(struct sl_controls *c)
{
	for (unsigned i = 0; i < c->drivers; i++)
		c->driver[i]->start(c->state[i], sl_clock_ns());
}

void sl_controls_stop(struct sl_controls *c)
{
	for (unsigned i = 0; i < c->drivers; i++)
		c->driver[i]->stop(c->state[i]);
}

bool sl_controls_hurry(struct sl_controls *c)
{
	bool any = false;

	for (unsigned i = 0; i < c->drivers; i++)
		if (c->driver[i]->hurry) {
			c->driver[i]->hurry(c->state[i]);
			any = true;
		}
	return any;
}

void sl_controls_abandon(struct sl_controls *c)
{
	for (unsigned i = 0; i < c->drivers; i++)
		c->driver[i]->abandon(c->state[i]);
}

static bool leaving(const struct sl_controls *c)
{
	for (unsigned i = 0; i < c->drivers; i++)
		if (c->driver[i]->leaving && c->driver[i]->leaving(c->state[i]))
			return true;
	return false;
}

void sl_controls_bye(struct sl_controls *c, bool more)
{
	uint64_t end = sl_clock_ns() + LEAVING_NS;

	for (unsigned i = 0; i < c->drivers; i++)
		if (c->driver[i]->bye)
			c->driver[i]->bye(c->state[i], more);
	while (leaving(c) && sl_clock_ns() < end)
		sl_controls_poll(c, LEAVING_MS);
}
