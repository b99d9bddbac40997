/* cmd.h - what the subcommands share: their entry points, and command lines read with option
 * tables. */
#ifndef SL_CMD_CMD_H
#define SL_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/option.h>

enum { SL_ARGS_SETS = 64, SL_ARGS_PLAIN = 68 };

struct sl_command {
	const char *name, *usage, *doc;
	int (*run)(const struct sl_command *command, int argc, char **argv);
	const char *details; /* for --help; may be NULL */
	bool plugins;	     /* it uses add-ons: takes --plugins */
	bool hidden;	     /* started by sluice itself: not in lists */
};

extern const struct sl_command sl_commands[]; /* ends with a NULL name */

int sl_cmd_run(const struct sl_command *command, int argc, char **argv);
int sl_cmd_emulate(const struct sl_command *command, int argc, char **argv);
int sl_cmd_check(const struct sl_command *command, int argc, char **argv);
int sl_cmd_calibrate(const struct sl_command *command, int argc, char **argv);
int sl_cmd_geometry(const struct sl_command *command, int argc, char **argv);
int sl_cmd_image_server(const struct sl_command *command, int argc, char **argv);
int sl_cmd_keeper(const struct sl_command *command, int argc, char **argv);
int sl_cmd_list(const struct sl_command *command, int argc, char **argv);
int sl_cmd_audit(const struct sl_command *command, int argc, char **argv);
int sl_cmd_recover(const struct sl_command *command, int argc, char **argv);
int sl_cmd_session(const struct sl_command *command, int argc, char **argv);
int sl_cmd_serve(const struct sl_command *command, int argc, char **argv);
int sl_cmd_show(const struct sl_command *command, int argc, char **argv);
int sl_cmd_convert(const struct sl_command *command, int argc, char **argv);
int sl_cmd_cut(const struct sl_command *command, int argc, char **argv);
int sl_cmd_densify(const struct sl_command *command, int argc, char **argv);
int sl_cmd_truth(const struct sl_command *command, int argc, char **argv);
int sl_cmd_explain(const struct sl_command *command, int argc, char **argv);
int sl_cmd_doctor(const struct sl_command *command, int argc, char **argv);
int sl_cmd_ps(const struct sl_command *command, int argc, char **argv);
int sl_cmd_ctl(const struct sl_command *command, int argc, char **argv);
int sl_cmd_share(const struct sl_command *command, int argc, char **argv);
int sl_cmd_fetch(const struct sl_command *command, int argc, char **argv);
int sl_cmd_follow(const struct sl_command *command, int argc, char **argv);
int sl_cmd_message(const struct sl_command *command, int argc, char **argv);
int sl_cmd_bench(const struct sl_command *command, int argc, char **argv);
int sl_cmd_pingpong(const struct sl_command *command, int argc, char **argv);

/* ctl --telegram: the requests of a document ("-": standard input), the reply on standard output;
 * the exit status. */
int sl_cmd_telegram(const char *path);

/* Take every --plugins DIR out of a command line, and load what is in these folders and in those of
 * SLUICE_PLUGINS. Children load the same: it sets SLUICE_PLUGINS. The number of arguments left, or
 * -errno, logged. */
int sl_cmd_plugins(int argc, char **argv);

struct sl_args {
	const char *plain[SL_ARGS_PLAIN]; /* arguments without dashes */
	unsigned plains;
	const char *set[SL_ARGS_SETS]; /* of --set */
	unsigned sets;
};

/* Read argv[1..] with a table: --name value, --name=value, --flag. --site becomes SLUICE_SITE in
 * the environment (experiment/site.h). 0; 1: --help was asked for and printed; -EINVAL: logged. */
int sl_args_read(const struct sl_command *command, const struct sl_option *options, void *base,
		 int argc, char **argv, struct sl_args *args);

/* One line per option: name, what it takes, default, doc. */
void sl_print_options(const struct sl_option *options, const char *indent);

#endif
