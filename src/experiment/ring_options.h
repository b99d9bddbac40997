/* ring_options.h - the experiment file's `ring`: its size, how modules are put together, what
 * happens when they cannot be or when there is no room.
 *
 * Threads:   one.
 * Ownership: plain data. */
#ifndef SL_EXPERIMENT_RING_OPTIONS_H
#define SL_EXPERIMENT_RING_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/detector.h>
#include <sluice/option.h>

#include "base/config/config.h"
#include "core/ring.h"
#include "receiver/assemble/align.h"

enum sl_incomplete { SL_INCOMPLETE_DROP, SL_INCOMPLETE_KEEP };
enum sl_overrun {
	SL_OVERRUN_STOP,
	SL_OVERRUN_DROP_NEWEST,
	SL_OVERRUN_DROP_OLDEST,
	SL_OVERRUN_PAUSE,
};

struct sl_ring_options {
	uint32_t slots, late_frames, late_timeout_ms, late_timeout_us;
	uint32_t line_pitch; /* bytes; 0: none */
	uint32_t x, y;	     /* of the rectangle in its block */
	uint32_t align;	     /* enum sl_align_by */
	uint64_t window_ns;
	uint32_t wrap_bits;
	char offsets[512];
	uint32_t incomplete; /* enum sl_incomplete */
	uint32_t overrun;    /* enum sl_overrun */
	bool poison;
};
extern const struct sl_option sl_ring_options[];

/* Before the section is read: offsets may be a map or a list. */
int sl_ring_options_flatten(struct sl_config *config, struct sl_node *ring);

/* Rules 0..SL_RING_RULES-1 of the options together: what breaks one, or NULL. */
enum { SL_RING_RULES = 4 };
const char *sl_ring_rule_broken(const struct sl_ring_options *run, uint32_t modules, unsigned rule);

/* How blocks of this detector lie in the ring. -EINVAL, logged: they do not fit the options. */
int sl_ring_options_lines(const struct sl_ring_options *run, const struct sl_geometry *geometry,
			  struct sl_lines *lines);

int sl_ring_options_align(const struct sl_ring_options *run, uint32_t modules,
			  struct sl_align *align);

#endif
