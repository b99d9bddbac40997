/* control_conformance.h - what every control driver must do, run over each of them against a
 * receiver that only records calls (control_recorder.h). Time is the suite's own: nothing here
 * waits. */
#ifndef TESTS_LIB_CONTROL_CONFORMANCE_H
#define TESTS_LIB_CONTROL_CONFORMANCE_H

#include <stddef.h>

#include "experiment/experiment.h"
#include "lib/control_recorder.h"

enum { CONTROL_SILENCE_S = 3 };

struct control_world {
	const struct control_rig *rig;
	struct recorder recorder;
	struct sl_experiment *experiment;
	struct sl_geometry geometry;
	void *state; /* the driver's */
	uint64_t now_ns;
	bool blind;	  /* the link does not look */
	char address[32]; /* this process's own on loopback */
	void *sources;	  /* the rig's, [RECORDER_MODULES] and more */
};

/* A driver, and sources that speak as it expects. A call that is NULL: its sources cannot. */
struct control_rig {
	const struct sl_control *driver;
	const char *experiment; /* YAML, but for frames and modules; %s: the address */
	/* An override with which open() must fail; NULL: see refuses_plans; both unset: it
	 * cannot. */
	const char *bad_override;
	bool emulated;	    /* the run starts its front end: any port will do */
	bool resumed;	    /* sources have plans before open() */
	bool offers_itself; /* plans are made in open() */
	bool limits;	    /* slots are opened for the frames of the run, and no more */
	bool holds;	    /* its sources cannot be told to stop: slots are closed to them */
	bool looks;	    /* silence counts only if the link has looked */
	size_t source_bytes;
	void (*come)(struct control_world *world, uint32_t module);   /* offer it; plan and ready */
	void (*ask)(struct control_world *world, uint32_t module);    /* offer it, and no more */
	void (*finish)(struct control_world *world, uint32_t module); /* it says: all is sent */
	void (*obey)(struct control_world *world, uint32_t module);  /* what it does after a stop */
	void (*leave)(struct control_world *world, uint32_t module); /* hang up */
	void (*stranger)(struct control_world *world);
	bool (*heard_bye)(struct control_world *world, uint32_t module);
	bool returns; /* a source that left in a run may be followed by another */
	void (*quit)(struct control_world *world); /* close what sources have open */
};

/* Let the driver work for a while of the world's time. */
void control_pass(struct control_world *world, uint64_t ms);

/* All cases over these drivers; as cmocka's run of a group. */
int control_conform(const struct control_rig *rigs, size_t n);

#endif
