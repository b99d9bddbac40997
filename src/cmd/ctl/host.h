/* host.h - sluice ctl --host: the same calls, and all others, over HTTP. */
#ifndef SL_CMD_CTL_HOST_H
#define SL_CMD_CTL_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct sl_ctl_host {
	const char *url, *token_file, *ca, *name, *reason;
	bool json, wait, keep;
	double timeout_s;
	uint32_t interval_ms;
	const char *const *word; /* of the command line */
	unsigned words;
	const char *const *set;
	unsigned sets;
};

/* The exit status. */
int sl_ctl_host(const struct sl_ctl_host *options);

#endif
