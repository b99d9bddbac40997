/* args.c - command lines, driven by the same option tables as experiment files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"

void sl_print_options(const struct sl_option *options, const char *indent)
{
	for (; options && options->name; options++) {
		char takes[200];

		sl_option_takes(options, takes, sizeof(takes));
		printf("%s%-22s %s\n%s%-22s   takes %s", indent, options->name, options->doc,
		       indent, "", takes);
		if (options->def && options->def[0])
			printf("; default %s", options->def);
		putchar('\n');
	}
}

static void print_help(const struct sl_command *command, const struct sl_option *options)
{
	printf("usage: sluice %s\n\n%s\n", command->usage, command->doc);
	if (command->details)
		printf("\n%s\n", command->details);
	printf("\noptions:\n");
	for (const struct sl_option *o = options; o && o->name; o++) {
		bool flag = o->type == SL_OPTION_BOOL;
		char name[64];

		snprintf(name, sizeof(name), "--%s%s", o->name, flag ? "" : " VALUE");
		printf("  %-22s %s\n", name, o->doc);
	}
	printf("  %-22s %s\n  %-22s %s\n", "--set KEY=VALUE",
	       "override a key of the experiment file, as in --set link.kind=shm", "--site FILE",
	       "site file in the place of the host's and the user's; none: no site file");
	if (command->plugins)
		printf("  %-22s %s\n", "--plugins DIR",
		       "load all plug-ins (*.so) of this folder, too; may be repeated");
	printf("  %-22s %s\n", "--help", "this text");
}

static int set_one(const struct sl_option *option, void *base, const char *value)
{
	char why[200];

	if (sl_option_set(option, base, value, why, sizeof(why)) == 0)
		return 0;
	sl_error("--%s: '%s': %s", option->name, value, why);
	return -EINVAL;
}

/* --summary-version is --summary_version, too. */
static bool is_called(const struct sl_option *option, const char *name, size_t length)
{
	if (strlen(option->name) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (option->name[i] != (name[i] == '-' ? '_' : name[i]))
			return false;
	return true;
}

static const struct sl_option *find(const struct sl_option *options, const char *name,
				    size_t length)
{
	for (; options && options->name; options++)
		if (is_called(options, name, length))
			return options;
	return NULL;
}

static int add_set(struct sl_args *args, const char *value)
{
	if (args->sets == SL_ARGS_SETS) {
		sl_error("more than %d times --set", SL_ARGS_SETS);
		return -EINVAL;
	}
	args->set[args->sets++] = value;
	return 0;
}

/* In the environment, so that child processes read the same file. */
static int use_site(const char *value)
{
	return setenv("SLUICE_SITE", value, 1) ? -ENOMEM : 0;
}

/* One --option at argv[*i]; takes its value from the next argument if need be. */
static int read_option(const struct sl_command *command, const struct sl_option *options,
		       void *base, int argc, char **argv, int *i, struct sl_args *args)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	bool is_set = length == 3 && !strncmp(name, "set", 3);
	bool is_site = length == 4 && !strncmp(name, "site", 4);
	const struct sl_option *option = find(options, name, length);
	const char *value = equals ? equals + 1 : NULL;

	if (!option && !is_set && !is_site) {
		sl_error("unknown option '--%.*s'; see sluice %s --help", (int)length, name,
			 command->name);
		return -EINVAL;
	}
	if (!value && option && option->type == SL_OPTION_BOOL)
		value = "true";
	if (!value && *i + 1 < argc)
		value = argv[++*i];
	if (!value) {
		sl_error("'%s' needs a value; see sluice %s --help", argv[*i], command->name);
		return -EINVAL;
	}
	if (option)
		return set_one(option, base, value);
	return is_set ? add_set(args, value) : use_site(value);
}

int sl_args_read(const struct sl_command *command, const struct sl_option *options, void *base,
		 int argc, char **argv, struct sl_args *args)
{
	*args = (struct sl_args){0};
	if (options)
		sl_options_defaults(options, base);
	for (int i = 1; i < argc; i++) {
		int err = 0;

		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help(command, options);
			return 1;
		}
		if (!strncmp(argv[i], "--", 2))
			err = read_option(command, options, base, argc, argv, &i, args);
		else if (argv[i][0] == '-' && argv[i][1]) {
			sl_error("unknown option '%s'; see sluice %s --help", argv[i],
				 command->name);
			err = -EINVAL;
		} else if (args->plains == SL_ARGS_PLAIN) {
			sl_error("too many arguments; see sluice %s --help", command->name);
			err = -EINVAL;
		} else
			args->plain[args->plains++] = argv[i];
		if (err)
			return err;
	}
	return 0;
}
