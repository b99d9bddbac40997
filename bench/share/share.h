/* share.h - what the files of `sluice bench share` share.
 *
 * Model:     a process of its own has the share and commits elements; the process that measures
 *            follows it. Both use nothing but <sluice/share.h>. In rows of a crowd it is the other
 *            way around: the process that measures commits, beside followers in processes of their
 *            own. */
#ifndef SL_BENCH_SHARE_SHARE_H
#define SL_BENCH_SHARE_SHARE_H

#include <sluice/share.h>

#include "bench/bench.h"

enum sl_bench_share_what {
	SL_BENCH_FETCH,	  /* the newest element again and again */
	SL_BENCH_FOLLOW,  /* every element; the writer waits for the follower */
	SL_BENCH_PING,	  /* from the follower to the share's thread and back */
	SL_BENCH_MESSAGE, /* from the follower to the writer and back */
	SL_BENCH_VIEW,	  /* from a commit until the follower has the element */
	SL_BENCH_ANSWER,  /* from a commit until the writer has a message about it */
	SL_BENCH_CROWD,	  /* a writer beside many followers */
};

struct sl_bench_share {
	enum sl_bench_share_what what;
	bool remote; /* rdma://, else share: */
	bool nic;    /* rdma:// with both ends on an RDMA NIC, else on UDP sockets */
	bool spins;  /* the follower polls the flag, else it sleeps */
	bool looks;  /* it looks at the element where it lies, else it copies */
	bool python;
	uint64_t bytes; /* of an element or of a message */
	uint32_t followers;
};

/* The most that is hoped for on two quiet cores; NULL: nothing is. */
struct sl_bench_share_limit {
	const char *row;
	unsigned which; /* an index into sl_bench_levels[] */
	double us;
};
const struct sl_bench_share_limit *sl_bench_share_limit(const char *row);

enum {
	SL_BENCH_CAMERA = 512 * 512, /* bytes of a frame */
	SL_BENCH_PLACES = 64,	     /* of a ring of frames */
	SL_BENCH_PERIOD_NS = 200000, /* of a camera: 5,000 frames a second */
	SL_BENCH_SHARE_TIMES = 1 << 20,
};

struct sl_bench_serving { /* shared memory between the two processes */
	_Atomic uint32_t ready, stop;
	_Atomic uint64_t taken; /* elements that the follower has had */
	char url[400];
	char device[64], secret[SL_BENCH_PATH]; /* of a row on an RDMA NIC */
	_Atomic uint32_t times; /* of the server's; ns has the first SL_BENCH_SHARE_TIMES */
	uint32_t ns[SL_BENCH_SHARE_TIMES];
};

struct sl_bench_server {
	struct sl_bench_serving *serving;
	pid_t pid;
};

/* serve.c: the process that has the share, until it is stopped. Errors are on stderr. */
int sl_bench_server_start(const struct sl_bench *bench, const struct sl_bench_row *row,
			  struct sl_bench_server *server);
int sl_bench_server_stop(struct sl_bench_server *server); /* -EIO: it failed */

/* A share of one array of bytes; its name is `stem` and the number of this process. listen, device,
 * secret: as in struct sl_share_options. */
struct sl_bench_share_way {
	const char *listen, *device, *secret;
};
int sl_bench_share_open(const struct sl_bench_share *what, const struct sl_bench_share_way *way,
			const char *stem, uint64_t places, struct sl_share **share);

/* nic.c: the RDMA NIC that rows sluice/verbs/... use at both ends: that of --address, else the
 * first. Returns why there is none; NULL: there is one. */
struct sl_bench_share_nic {
	char device[64], listen[80];
};
const char *sl_bench_share_nic(const struct sl_bench *bench, struct sl_bench_share_nic *nic);
/* A file with a new secret, which the caller removes. false: it is said on stderr. */
bool sl_bench_share_make_secret(char path[SL_BENCH_PATH]);

/* What the bytes of all elements are: the same in both processes. */
void sl_bench_share_fill(uint8_t *data, uint64_t bytes);
bool sl_bench_share_is(const uint8_t *data, uint64_t bytes);

/* Touched, in huge pages where the host gives them. */
void *sl_bench_share_memory(uint64_t bytes, int flags);

/* crowd.c */
int sl_bench_crowd(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample);

#endif
