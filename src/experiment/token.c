/* token.c - the secret that front ends and receiver share: where it comes from, and that it goes
 * nowhere else. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/secret_file.h"
#include "experiment/parts.h"

static struct sl_node *control_key(struct sl_node *of, const char *key)
{
	return sl_node_child(sl_node_child(of, "control"), key);
}

void sl_experiment_hide_tokens(struct sl_config *config)
{
	struct sl_node *transfers = sl_node_child(config->root, "transfers");
	struct sl_node *detectors = sl_node_child(config->root, "detectors");
	struct sl_node *token = control_key(config->root, "token");

	if (token)
		token->secret = true;
	for (struct sl_node *t = transfers ? transfers->child : NULL; t; t = t->next) {
		token = control_key(t, "token");
		if (token)
			token->secret = true;
	}
	for (struct sl_node *d = detectors ? detectors->child : NULL; d; d = d->next) {
		token = d->child ? control_key(d->child, "token") : NULL;
		if (token)
			token->secret = true;
	}
}

static void warn_of_readers(const struct sl_config *config, const struct sl_node *token)
{
	const char *file = token->file ? token->file : config->file;
	struct stat st;

	if (token->line && stat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH)
		sl_config_warn(
			config, token,
			"every user of this host can read the token in this file: chmod o-r, "
			"or keep it in a file of its own (control.token_file)");
}

static int read_file(struct sl_experiment *e)
{
	struct sl_node *node = control_key(e->config->root, "token_file");
	char why[512];
	int err = sl_secret_file_read(e->control.token_file, e->control.token,
				      sizeof(e->control.token), why, sizeof(why));

	if (!err)
		return 0;
	sl_config_error(e->config, node, "'%s' %s", e->control.token_file, why);
	return -EINVAL;
}

/* The text that a run stores has SL_CONFIG_NOT_STORED in the place of the token: run again, it has
 * none, and is for front ends of this host unless a file is named. */
static void forget_placeholder(struct sl_experiment *e, const struct sl_node *node)
{
	memset(e->control.token, 0, sizeof(e->control.token));
	if (!e->control.token_file[0])
		sl_config_warn(e->config, node,
			       "was not stored with the run: front ends that have one are refused; "
			       "--set control.token_file=FILE sets it again");
}

/* The section was read without a mistake. */
int sl_experiment_token(struct sl_experiment *e)
{
	struct sl_node *node = control_key(e->config->root, "token");

	if (node && !strcmp(e->control.token, SL_CONFIG_NOT_STORED))
		forget_placeholder(e, node);
	if (e->control.token_file[0] && e->control.token[0]) {
		sl_config_error(e->config, node,
				"is set, and so is control.token_file: leave one of them out");
		return -EINVAL;
	}
	if (e->control.token_file[0])
		return read_file(e);
	if (e->control.token[0] && node)
		warn_of_readers(e->config, node);
	return 0;
}
