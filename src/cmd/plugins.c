/* plugins.c - --plugins and SLUICE_PLUGINS, for all commands that use add-ons. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "plugin/plugin.h"

static const char variable[] = "SLUICE_PLUGINS";

/* Put a folder behind those that the environment names. */
static int add_folder(const char *folder)
{
	const char *before = getenv(variable);
	char *all;
	int err;

	if (!folder || !folder[0] || strchr(folder, ':')) {
		sl_error("--plugins takes a folder, whose path has no ':'");
		return -EINVAL;
	}
	if (asprintf(&all, "%s%s%s", before ? before : "", before && before[0] ? ":" : "", folder) <
	    0)
		return -ENOMEM;
	err = setenv(variable, all, 1) ? -errno : 0;
	free(all);
	return err;
}

int sl_cmd_plugins(int argc, char **argv)
{
	static const char name[] = "--plugins";
	const size_t length = sizeof(name) - 1;
	int left = 1, err = 0;

	for (int i = 1; i < argc && !err; i++) {
		if (!strcmp(argv[i], name)) {
			i++;
			err = add_folder(i < argc ? argv[i] : NULL);
		} else if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			err = add_folder(argv[i] + length + 1);
		else
			argv[left++] = argv[i];
	}
	if (!err)
		err = sl_plugin_load_folders(getenv(variable));
	argv[left] = NULL;
	return err ? err : left;
}
