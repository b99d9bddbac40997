/* share_far_rig.h - what tests of shares between hosts have in common: a share that listens on
 * loopback, its followers, connections of other programs to its port. */
#ifndef TESTS_LIB_SHARE_FAR_RIG_H
#define TESTS_LIB_SHARE_FAR_RIG_H

#include <sys/socket.h>

#include "lib/share_rig.h"
#include "share/remote_follow.h"

static inline struct sl_share_options far_options(uint64_t count)
{
	struct sl_share_options options = share_options(count);

	options.listen = "127.0.0.1:0";
	return options;
}

static inline struct sl_share *far_open_with(const char *name,
					     const struct sl_share_options *options)
{
	struct sl_remote_error error;
	struct sl_share *share = NULL;

	if (sl_share_open(name, options, &share, &error))
		fail_msg("%s", error.message);
	return share;
}

static inline struct sl_share *far_open(const char *name, uint64_t count)
{
	const struct sl_share_options options = far_options(count);

	return far_open_with(name, &options);
}

static inline struct sl_follower *far_follower(const struct sl_share *share)
{
	return follower_open(sl_share_url(share));
}

static inline uint16_t far_port(const struct sl_share *share)
{
	return (uint16_t)atoi(strrchr(sl_share_url(share), ':') + 1);
}

/* A connection to the share's port, which blocks; type: SOCK_STREAM or SOCK_DGRAM. */
static inline int far_dial(const struct sl_share *share, int type)
{
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric("127.0.0.1", far_port(share), &at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	/* Small buffers: what is not read comes to a stand soon. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){1 << 15}, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){1 << 15}, sizeof(int));
	assert_int_equal(connect(fd, &at.any, bytes), 0);
	return fd;
}

#endif
