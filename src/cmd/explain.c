/* explain.c - sluice explain: why a run lost frames. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice/client.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "explain/load.h"

enum { CALL_MS = 10000, EXIT_FAILED = 1, EXIT_UNKNOWN = 2 };

struct explain_options {
	bool json, list;
};

static const struct sl_option options[] = {
	SL_BOOL(struct explain_options, json, false, "print it as JSON"),
	SL_BOOL(struct explain_options, list, false, "print the causes that are told apart"),
	SL_OPTION_END,
};

struct explained {
	struct sl_explanation *list;
	size_t n;
	char why[2000];
};

/* A session on this host, by its name. */
static int ask(const char *name, struct explained *x)
{
	struct sl_remote_error error = {.message = ""};
	struct sl_remote *remote = NULL;
	char *reply = NULL;
	int err = sl_remote_open(name, CALL_MS, &remote, &error);

	if (!err)
		err = sl_remote_request(remote, "{\"call\":\"status\"}", CALL_MS, &reply, &error);
	if (err)
		snprintf(x->why, sizeof(x->why), "%s", error.message);
	else
		err = sl_explain_reply(name, reply, &x->list, &x->n, x->why, sizeof(x->why));
	sl_remote_free(reply);
	sl_remote_close(remote);
	return err;
}

static int explain(const char *what, struct explained *x)
{
	int err;

	if (!access(what, F_OK) || strchr(what, '/'))
		return sl_explain_path(what, &x->list, &x->n, x->why, sizeof(x->why));
	err = ask(what, x);
	if (err == -ENOENT)
		snprintf(x->why, sizeof(x->why),
			 "'%s' is no file or folder, and no session has this name (sluice ps)",
			 what);
	return err;
}

static int print(const struct explained *x, bool json)
{
	char *text;

	if (!json) {
		for (size_t i = 0; i < x->n; i++) {
			if (i)
				putchar('\n');
			sl_explain_print(stdout, &x->list[i]);
		}
		return 0;
	}
	text = sl_explain_json(x->list, x->n);
	if (text)
		puts(text);
	free(text);
	return text ? 0 : -ENOMEM;
}

/* Whether every loss, and what keeps the ledger from closing, has a cause. */
static bool is_known(const struct explained *x)
{
	for (size_t i = 0; i < x->n; i++)
		if ((x->list[i].lost || x->list[i].is_unclosed) && !x->list[i].findings)
			return false;
	return true;
}

static int list_causes(void)
{
	for (const struct sl_cause_word *c = sl_explain_causes; c->name; c++)
		printf("%-22s %s\n", c->name, c->doc);
	return 0;
}

int sl_cmd_explain(const struct sl_command *command, int argc, char **argv)
{
	struct explained x = {NULL};
	struct explain_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : EXIT_FAILED;
	if (o.list)
		return list_causes();
	if (args.plains != 1) {
		sl_error("which run? usage: sluice %s", command->usage);
		return EXIT_FAILED;
	}
	err = explain(args.plain[0], &x);
	if (err)
		sl_error("%s", x.why);
	else
		err = print(&x, o.json);
	if (!err && !is_known(&x))
		err = EXIT_UNKNOWN;
	free(x.list);
	return err < 0 ? EXIT_FAILED : err;
}
