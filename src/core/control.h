/* control.h - how sources get their plans and report what they sent. Each way is one driver.
 *
 * Model:     a run has a list of drivers (control/controls.h); every module belongs to exactly one
 *            of them. The run waits in one poll(2) for the descriptors of all drivers, then calls
 *            poll() of each. A driver speaks to the receiver through struct sl_control_ops alone,
 *            so that a conformance suite can run each of them against a receiver that only records
 *            the calls (tests/lib/control_conformance.h).
 *              tcp      front ends connect, offer, count what they send
 *              feroce   FEROCE's connection manager
 *              one_way  nothing goes back to the sources
 *              resumed  the plans of an earlier receiver go on
 *            Storing plans for the next receiver (control/handover/keeper.h) is no driver: it works
 *            beside any.
 * Order:     open; poll until planned() of all drivers together is the number of modules and all
 *            are ready(); start; poll; stop, then perhaps abandon; poll until the receiver is done;
 *            the sinks close; bye; poll while leaving(); then again for the next run, or close.
 *            A driver that `starts_alone` has sources that begin by themselves: the receiver's
 *            threads run, and slots are open, before ready().
 * Threads:   the run's control thread; ops are called on it, too.
 * Ownership: state is zeroed memory of state_bytes; close() runs even when open() failed. The
 *            environment is borrowed until close().
 * Errors:    0 or -errno, logged by the driver. A stranger's message never ends the run.
 * Promises:  for each source that was accepted exactly one of final count, end, cut and source_lost
 *            is called after the start, or cancel_plan before it. */
#ifndef SL_CORE_CONTROL_H
#define SL_CORE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/plan.h"
#include "core/watch.h"

struct pollfd;
struct sl_experiment;

struct sl_control_ops { /* the receiver's side */
	/* For a source that makes no offers itself: the link's part of one. Logs. */
	int (*offer)(void *arg, struct sl_offer *offer);
	/* -EAGAIN: ask again soon. Another error: the reason is in `why`. */
	int (*accept)(void *arg, const struct sl_offer *offer, bool same_host, struct sl_plan *plan,
		      char *why, size_t why_bytes);
	/* Before the start: the queue pair of a source whose offer could not name it. */
	int (*set_queue)(void *arg, uint16_t transfer, uint32_t qpn);
	void (*cancel_plan)(void *arg, uint16_t transfer); /* its source left before the start */
	void (*cancel_offer)(void *arg, uint32_t module); /* left before -EAGAIN became an answer */

	/* -EPROTO, with the reason in `why`: a count that cannot be true; nothing is changed. */
	int (*count)(void *arg, uint32_t module, uint64_t next, uint64_t sent, uint64_t position,
		     bool final, char *why, size_t why_bytes);
	void (*end)(void *arg, uint32_t module);	 /* what was seen of it is what it sent */
	void (*cut)(void *arg, uint32_t module);	 /* it goes on, and is not listened to */
	void (*source_lost)(void *arg, uint32_t module); /* it vanished */
	void (*limit)(void *arg, uint64_t sequence);	 /* open no slot from here on */
	void (*progress)(void *arg, uint32_t module, struct sl_progress *progress);
};

struct sl_control_env {
	const struct sl_experiment *experiment;
	const char *file; /* of the experiment, for messages */
	uint32_t modules; /* that are this driver's: all of the experiment, or none */
	uint64_t block_bytes, pixel_bytes; /* of a module, with its record and without */
	const struct sl_geometry *geometry;
	const struct sl_control_ops *ops;
	void *arg;
};

struct sl_control {
	const char *name, *doc;
	size_t state_bytes;
	bool starts_alone;
	/* The option by which a front end that this run starts learns the port; NULL: none does. */
	const char *port_option;

	/* How many of the modules are this driver's; 0: it only answers those that come to the
	 * wrong receiver; -1: it has no part in this run. resumed: the sources have plans of an
	 * earlier receiver. */
	int (*modules)(const struct sl_experiment *experiment, bool resumed);

	int (*open)(void *state, const struct sl_control_env *env);
	void (*close)(void *state);

	/* Descriptors to wait for; how many. NULL: none. */
	unsigned (*fds)(void *state, struct pollfd *fds, unsigned most);
	void (*poll)(void *state, uint64_t now_ns); /* never blocks */

	uint32_t (*planned)(const void *state); /* modules with a plan */
	bool (*ready)(const void *state);	/* all of its modules may start */
	uint16_t (*port)(const void *state);	/* where sources find it; NULL: nowhere */
	/* For the user: what ready() waits for. NULL: nothing. */
	void (*waits_for)(const void *state, char *text, size_t bytes);

	void (*start)(void *state, uint64_t now_ns);
	void (*stop)(void *state); /* end soon, after what is under way */
	/* The program that sends has failed: a second of silence is enough. NULL: that shows on its
	 * connection. */
	void (*hurry)(void *state);
	void (*abandon)(void *state); /* sources that still run are lost */
	/* The account is final and the sinks have closed, whether they could store everything or
	 * not: sources may forget what they sent. NULL: nothing goes back. */
	void (*bye)(void *state, bool more); /* more: another run may follow */
	bool (*leaving)(const void *state);  /* after bye: poll on, it is not heard yet. NULL: no */

	/* After bye with `more`: another run of the same experiment; sources that stayed are asked
	 * for new offers. NULL: the driver is closed and opened. */
	int (*again)(void *state, const struct sl_control_env *env);
};

#endif
