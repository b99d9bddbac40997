/* serve_absent.c - stands in for sluice serve where libmicrohttpd was not found. */
#include "base/log.h"
#include "cmd/cmd.h"

int sl_cmd_serve(const struct sl_command *command, int argc, char **argv)
{
	sl_error("libmicrohttpd-dev was not found when this was built: there is no service");
	return 1;
}
