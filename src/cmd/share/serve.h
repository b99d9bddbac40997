/* serve.h - sluice share serve: memory that other programs can follow, for a try. */
#ifndef SL_CMD_SHARE_SERVE_H
#define SL_CMD_SHARE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

struct sl_serve_options {
	char npy[1024], raw[1024], type[8], shape[128], array[32];
	char listen[128], secret_file[1024], device[64];
	uint64_t size, count, elements;
	double rate_Hz, duration_s;
	bool ring, echo;
};

/* Until a signal comes, or duration_s is over. 0 or -errno, logged. */
int sl_serve(const char *name, const struct sl_serve_options *options);

#endif
