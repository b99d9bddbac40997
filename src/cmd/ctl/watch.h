/* watch.h - sluice ctl watch on a terminal: a full-screen status of sessions, of this host or of a
 * service. On a pipe there are lines instead. */
#ifndef SL_CMD_CTL_WATCH_H
#define SL_CMD_CTL_WATCH_H

#include "cmd/ctl/feed.h"

struct sl_remote_status;

/* Until q is pressed; the exit status. url: for people; "": this host. On a pipe, or with json:
 * lines, until standard output is closed. */
int sl_ctl_watch(const struct sl_ctl_feed_options *options, const char *url, bool json);

/* A line for people. */
void sl_ctl_print_status(const struct sl_remote_status *status);

#endif
