/* remains.c - what is known of a run folder that has neither a result nor a flight record. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explain/private.h"

enum { LOG_TAIL = 4096, LINE = 240, NAMES = 400 };

enum life { NO_RUN, LIVES, CRASHED };

static enum life life_of(int folder)
{
	int lock = openat(folder, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	enum life life = NO_RUN;

	if (lock < 0)
		return NO_RUN;
	life = flock(lock, LOCK_SH | LOCK_NB) ? LIVES : CRASHED;
	close(lock);
	return life;
}

/* The last line of the log; empty: there is none. */
static void last_line(int folder, char *line, size_t bytes)
{
	int fd = openat(folder, "run.log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char tail[LOG_TAIL + 1], *begin;
	struct stat st;
	ssize_t n = -1;

	line[0] = '\0';
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		n = pread(fd, tail, LOG_TAIL, st.st_size > LOG_TAIL ? st.st_size - LOG_TAIL : 0);
	close(fd);
	while (n > 0 && tail[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	tail[n] = '\0';
	begin = strrchr(tail, '\n');
	snprintf(line, bytes, "%s", begin ? begin + 1 : tail);
	for (char *c = line; *c; c++)
		*c = (unsigned char)*c < ' ' ? ' ' : *c;
}

static bool is_ours(const char *name)
{
	static const char *const ours[] = {"lock", "run.log", "experiment.yaml",
					   "result.json.part"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(name, ours[i]))
			return true;
	return name[0] == '.';
}

/* Files that sinks have written, with their sizes. */
static void list_data(int folder, char *text, size_t bytes)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	struct stat st;
	size_t at = 0;

	text[0] = '\0';
	if (!dir && copy >= 0)
		close(copy);
	while (dir && (entry = readdir(dir)) && at + 100 < bytes)
		if (!is_ours(entry->d_name) &&
		    !fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode))
			at += (size_t)snprintf(text + at, bytes - at, "%s%.64s (%lld bytes)",
					       at ? ", " : "", entry->d_name,
					       (long long)st.st_size);
	if (dir)
		closedir(dir);
}

static void tell_crashed(const char *path, int folder, const char *log, char *why, size_t bytes)
{
	char data[NAMES], word[SL_EXPLAIN_PATH];

	list_data(folder, data, sizeof(data));
	sl_shell_word(path, word, sizeof(word));
	snprintf(why, bytes,
		 "the run of '%s' crashed or was killed: its lock is free, and there is no "
		 "result.json. The flight recorder has written nothing, so nothing was lost, or "
		 "only in the last seconds%s%s%s. Data: %s%s. For more: less %s/run.log; sluice "
		 "recover %s/FILE makes a data file readable",
		 path, log[0] ? "; the log ends with \"" : "", log, log[0] ? "\"" : "",
		 data[0] ? data : "none in this folder",
		 data[0] ? "" : " (sinks may write elsewhere)", word, word);
}

void sl_explain_remains(const char *path, char *why, size_t bytes)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum life life = folder < 0 ? NO_RUN : life_of(folder);
	char log[LINE] = "";

	if (life != NO_RUN)
		last_line(folder, log, sizeof(log));
	if (life == LIVES)
		snprintf(
			why, bytes,
			"the run of '%s' still goes on (its lock is held), and its flight recorder "
			"has not written anything: nothing was lost yet, or only just now%s%s%s. "
			"Explain it by its session's name (sluice ps lists them)",
			path, log[0] ? "; its log ends with \"" : "", log, log[0] ? "\"" : "");
	else if (life == CRASHED)
		tell_crashed(path, folder, log, why, bytes);
	else
		snprintf(why, bytes,
			 "'%s' has no result.json and no flight.json, and no lock: it is no folder "
			 "of a run. A run that goes on is explained by its name (sluice ps)",
			 path);
	if (folder >= 0)
		close(folder);
}
