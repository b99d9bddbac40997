/* controls.h - the control drivers of a run, together.
 *
 * Model:     each driver says itself whether it has a part in a run (struct sl_control, modules()).
 *            Calls here go to all drivers of the run; core/control.h has their order. Each
 *            detector of the run has an environment and drivers of its own.
 * Threads:   the control thread.
 * Ownership: the caller's memory. */
#ifndef SL_CONTROL_CONTROLS_H
#define SL_CONTROL_CONTROLS_H

#include "core/control.h"

extern const struct sl_control sl_control_tcp, sl_control_feroce, sl_control_one_way,
	sl_control_resumed;

/* NULL-terminated. */
extern const struct sl_control *const sl_control_drivers[];

enum { SL_CONTROLS_MOST = 32 };

struct sl_controls {
	unsigned drivers;
	const struct sl_control *driver[SL_CONTROLS_MOST];
	void *state[SL_CONTROLS_MOST];
	unsigned env[SL_CONTROLS_MOST]; /* the environment of the driver: an index */
};

/* One environment for each detector. env->modules is set here, for each driver its own. Logs. After
 * an error: close. */
int sl_controls_open(struct sl_controls *controls, const struct sl_control_env *env, unsigned envs,
		     bool resumed);
void sl_controls_close(struct sl_controls *controls);
/* Another run: the same drivers and detectors. After an error: close. */
int sl_controls_again(struct sl_controls *controls, const struct sl_control_env *env);

/* Wait at most timeout_ms until a source has something to say, and handle what there is. */
void sl_controls_poll(struct sl_controls *controls, int timeout_ms);

bool sl_controls_start_alone(const struct sl_controls *controls);
uint32_t sl_controls_planned(const struct sl_controls *controls);
bool sl_controls_ready(const struct sl_controls *controls);
/* What ready() waits for, for the user; false: nothing. */
bool sl_controls_wait_for(const struct sl_controls *controls, char *text, size_t bytes);
/* Where sources of this detector find the receiver; option: by which a front end that this run
 * starts is told. 0, NULL: nowhere. */
uint16_t sl_controls_port(const struct sl_controls *controls, unsigned env, const char **option);

void sl_controls_start(struct sl_controls *controls);
void sl_controls_stop(struct sl_controls *controls);
bool sl_controls_hurry(struct sl_controls *controls); /* false: no driver needs that */
void sl_controls_abandon(struct sl_controls *controls);
/* Tell sources that what they sent is safe, and wait a moment until they have heard it. */
void sl_controls_bye(struct sl_controls *controls, bool more);

#endif
