/* keeper.c - sluice keeper: holds memory and sockets of a receiver, so that another can take its
 * place. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/signals.h"
#include "control/handover/keeper.h"

enum { POLL_MS = 200 };

struct keeper_options {
	bool forget, quiet;
};

static const struct sl_option options[] = {
	SL_BOOL(struct keeper_options, forget, false,
		"tell the keeper of that name to let go of what it holds, and end"),
	SL_BOOL(struct keeper_options, quiet, false, "say nothing but errors"),
	SL_OPTION_END,
};

static int forget(const char *name)
{
	struct sl_handover_message *handover = malloc(sizeof(*handover));
	int socket, err;

	if (!handover)
		return 1;
	err = sl_keeper_claim(name, &socket, handover);
	if (!err) {
		sl_handover_message_close(handover);
		err = sl_keeper_store(socket, NULL);
		close(socket);
	}
	free(handover);
	return err ? 1 : 0;
}

int sl_cmd_keeper(const struct sl_command *command, int argc, char **argv)
{
	struct sl_keeper *keeper;
	struct keeper_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("which name? usage: sluice %s", command->usage);
		return 1;
	}
	if (o.quiet)
		sl_log_level(SL_LOG_WARN);
	if (o.forget)
		return forget(args.plain[0]);
	sl_signals_catch();
	if (sl_keeper_open(args.plain[0], &keeper))
		return 1;
	sl_info("keeping for receivers with control.keeper: %s", args.plain[0]);
	while (!sl_signal)
		sl_keeper_poll(keeper, POLL_MS);
	if (sl_keeper_holds(keeper))
		sl_warn("what was held is let go: its sources must be planned anew");
	sl_keeper_close(keeper);
	return 0;
}
