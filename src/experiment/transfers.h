/* transfers.h - the transfers of an experiment file, and what one of them changes in it.
 *
 * Model:     `transfers` names transfers that leave the detector side by side: each has a cut of
 *            the detector (detector/cut.h) and a receiver of its own. Its sections (control, link,
 *            ring, unit, stages, sinks, threads, frontend, answers) are laid over those of the
 *            file, key by key. A file without transfers has one, without a name, that carries
 *            everything.
 * Threads:   one. */
#ifndef SL_EXPERIMENT_TRANSFERS_H
#define SL_EXPERIMENT_TRANSFERS_H

#include <stddef.h>

#include "base/config/config.h"

enum { SL_TRANSFERS = 64, SL_TRANSFER_NAME = 32 };

struct sl_transfer_names {
	unsigned n;
	char name[SL_TRANSFERS][SL_TRANSFER_NAME];
};

/* In the order of the file; n is 0 when there is no such section. Logged: names that are not
 * letters, digits, - and _; too many. */
int sl_transfer_names(const struct sl_config *config, struct sl_transfer_names *names);

struct sl_transfer_choice {
	struct sl_node *options; /* its own; NULL: the file has no transfers */
	/* Receivers of one file listen on consecutive ports, unless a transfer names its own. */
	unsigned port_offset;
	unsigned transfers; /* in the file */
};

/* Make the file that of one transfer. `name` may be NULL or empty when there is no choice. */
int sl_transfer_choose(struct sl_config *config, const char *name,
		       struct sl_transfer_choice *choice);

#endif
