/* name.c - a name for what an experiment file describes. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "experiment/experiment.h"

void sl_experiment_name(const char *path, const char *transfer, char *name, size_t bytes)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path, *dot = strrchr(file, '.');
	/* Room for ".TRANSFER" and "-99". */
	size_t most = bytes - 4 - (transfer[0] ? strlen(transfer) + 1 : 0);
	size_t length = dot && dot > file ? (size_t)(dot - file) : strlen(file);
	int n = snprintf(name, bytes, "%.*s", (int)(length < most ? length : most - 1), file);

	if (transfer[0])
		snprintf(name + n, bytes - (size_t)n, ".%s", transfer);
	/* At the beginning '.' would hide it, and '-' make it an option of a command. */
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && (*c != '.' || c == name))
			*c = c == name ? '_' : '-';
	if (!name[0])
		snprintf(name, bytes, "run");
}
