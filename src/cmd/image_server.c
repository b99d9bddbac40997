/* image_server.c - sluice image-server: makes images of a session; the service starts it. */
#include "base/log.h"
#include "cmd/cmd.h"
#include "service/image/process.h"

struct image_options {
	char session[64], share[64];
	uint32_t fd, idle_s;
};

static const struct sl_option options[] = {
	SL_STRING(struct image_options, session, "", "whose share is looked at"),
	SL_STRING(struct image_options, share, "", "or a share by its name, without a session"),
	SL_U32(struct image_options, fd, 0, 0, 1048576, "",
	       "the control socket, which this process got from the one that started it"),
	SL_U32(struct image_options, idle_s, 60, 0, 86400, "s",
	       "end after this time without a request; 0: no limit"),
	SL_OPTION_END,
};

int sl_cmd_image_server(const struct sl_command *command, int argc, char **argv)
{
	struct sl_image_process_options process;
	struct image_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains || args.sets || !o.session[0] == !o.share[0]) {
		sl_error("takes either --session or --share; usage: sluice %s", command->usage);
		return 1;
	}
	process = (struct sl_image_process_options){.session = o.session[0] ? o.session : NULL,
						    .share = o.share,
						    .control = (int)o.fd,
						    .idle_s = o.idle_s};
	return sl_image_process(&process) ? 1 : 0;
}
