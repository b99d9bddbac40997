/* reach.c - the way to a share, and what is said where there is none. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/share/follower.h"
#include "cmd/signals.h"

enum { AGAIN_NS = 20000000, PATIENCE_MS = 5000 };

/* Refused: on its host no program listens yet. Reset: the share before it is being closed. */
static bool may_come(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ECONNRESET;
}

int sl_reach_share(const char *url, const struct sl_reach *reach, struct sl_follower **follower)
{
	const struct sl_follow_options options = {
		.bytes = sizeof(options),
		.timeout_ms = PATIENCE_MS,
		.secret_file = reach->secret_file[0] ? reach->secret_file : NULL,
		.device = reach->device[0] ? reach->device : NULL,
	};
	uint64_t end_ns = sl_clock_ns() + (uint64_t)(reach->wait_s * 1e9);
	struct sl_remote_error error;
	int err;

	while ((err = sl_follow_open(url, &options, follower, &error)) && may_come(err) &&
	       sl_clock_ns() < end_ns && !sl_signal)
		sl_clock_sleep_until(sl_clock_ns() + AGAIN_NS);
	if (err && sl_signal)
		return -EINTR;
	if (err)
		sl_error("%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
	return err;
}

void sl_follow_failed(const char *url, int err)
{
	switch (err) {
	case -EPIPE:
		sl_error("%s: the share has ended", url);
		break;
	case -ECONNRESET:
		sl_error("%s: the program that wrote the share has ended without closing it", url);
		break;
	case -EAGAIN:
		sl_warn("%s: its writer overtakes every copy, 1000 times in a row: the share has "
			"too few places for elements of this size (count)",
			url);
		break;
	case -ENODATA:
		sl_error("%s: no element is published yet", url);
		break;
	case -ESTALE:
		sl_error("%s: that element was overtaken; the newest are kept", url);
		break;
	default:
		sl_error("%s: %s", url, strerror(-err));
	}
}
