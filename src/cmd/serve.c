/* serve.c - sluice serve: sessions, runs and experiment files over HTTP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/signals.h"
#include "service/service.h"
#include "session/child.h"

enum { LOOK_MS = 50 };

struct serve_options {
	char listen[128], root[1024], experiments[1024], data_roots[2048], host[1024], tokens[1024],
		tls_cert[1024], tls_key[1024], port_file[1024];
	uint32_t sessions;
	bool insecure, recover, openapi;
};

static const struct sl_option options[] = {
	SL_STRING(struct serve_options, listen, "127.0.0.1:8765",
		  "ADDRESS:PORT, numeric; beyond loopback only with tokens and TLS"),
	SL_STRING(struct serve_options, root, "runs", "the folder in which each run gets its own"),
	SL_STRING(struct serve_options, experiments, ".",
		  "the folder of experiment files; sessions run there"),
	SL_STRING(struct serve_options, data_roots, "",
		  "more folders, with commas between them, that paths in experiments and overrides "
		  "may name when they "
		  "come over the network; those of root and experiments always may be"),
	SL_STRING(struct serve_options, host, "",
		  "further names by which clients call this host, with commas between them"),
	SL_STRING(struct serve_options, tokens, "",
		  "a file that only you can read, with lines of ROLE NAME TOKEN; ROLE is view, "
		  "operate or configure"),
	SL_STRING(struct serve_options, tls_cert, "", "certificate and its chain, as PEM"),
	SL_STRING(struct serve_options, tls_key, "",
		  "its key, as PEM, in a file that only you can read"),
	SL_BOOL(struct serve_options, insecure, false,
		"tokens without TLS beyond loopback: behind a proxy that has TLS"),
	SL_STRING(struct serve_options, port_file, "",
		  "write the port to this file once it listens"),
	SL_CHOICE(struct serve_options, sessions, auto, "auto|detached|systemd",
		  "how sessions are started: as transient units of systemd, or as processes that "
		  "are no children of "
		  "the service; auto: as units where systemd runs"),
	SL_BOOL(struct serve_options, recover, true,
		"recover the files of runs that crashed, with low priority"),
	SL_BOOL(struct serve_options, openapi, false,
		"print the OpenAPI document of the API, and end"),
	SL_OPTION_END,
};

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int add_hosts(char *list, struct sl_service_options *o)
{
	char *rest = list;

	for (char *host; (host = strtok_r(rest, ", ", &rest)); o->host[o->hosts++] = host)
		if (o->hosts == SL_SERVICE_HOSTS) {
			sl_error("--host: more than %d names", SL_SERVICE_HOSTS);
			return 1;
		}
	return 0;
}

static int write_port(const char *path, const char *url)
{
	FILE *file = fopen(path, "we");

	if (file && fprintf(file, "%s\n", strrchr(url, ':') + 1) > 0 && !fclose(file))
		return 0;
	sl_error("cannot write '%s'", path);
	return 1;
}

static int serve(const struct sl_service_options *o, const char *port_file)
{
	struct sl_service *service;
	int status = 0;

	if (sl_service_open(o, &service))
		return 1;
	if (port_file[0])
		status = write_port(port_file, sl_service_url(service));
	if (!status)
		sl_info("the service is at %s; Ctrl-C ends it, sessions go on",
			sl_service_url(service));
	while (!sl_signal && !status)
		sl_clock_sleep_until(sl_clock_ns() + LOOK_MS * UINT64_C(1000000));
	sl_service_close(service);
	return status;
}

static int print_openapi(void)
{
	char *text = sl_service_openapi();

	if (text)
		puts(text);
	free(text);
	return text && !fflush(stdout) ? 0 : 1;
}

int sl_cmd_serve(const struct sl_command *command, int argc, char **argv)
{
	struct serve_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);
	struct sl_service_options all = {
		.listen = o.listen,
		.root = o.root,
		.experiments = o.experiments,
		.tokens = or_null(o.tokens),
		.tls_cert = or_null(o.tls_cert),
		.tls_key = or_null(o.tls_key),
		.insecure = o.insecure,
		.recover = o.recover,
		.sessions = o.sessions,
		.data_roots = o.data_roots,
		.program = sl_child_self(),
	};

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains || args.sets) {
		sl_error("serve takes no '%s'; usage: sluice %s",
			 args.plains ? args.plain[0] : "--set", command->usage);
		return 1;
	}
	if (o.openapi)
		return print_openapi();
	if (add_hosts(o.host, &all))
		return 1;
	sl_signals_catch();
	return serve(&all, o.port_file);
}
