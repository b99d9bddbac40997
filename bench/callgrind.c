/* callgrind.c - instructions per byte: this program runs itself under valgrind with one row
 * and one round, and adds up what callgrind counted in the loops that send and receive. User space
 * only: the kernel's work is not in it. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

enum { PATHS = 512, SECONDS_MIN = 1 /* fifty times slower: less is mostly start-up */ };

static int run_self(const struct sl_bench *bench, const struct sl_bench_row *row,
		    const char *folder)
{
	char self[PATHS / 2], command[4 * PATHS];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	double seconds = bench->o.seconds < SECONDS_MIN ? SECONDS_MIN : bench->o.seconds;
	int status;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	snprintf(
		command, sizeof(command),
		"exec valgrind -q --tool=callgrind --trace-children=yes --collect-atstart=no "
		"--callgrind-out-file=%s/count.%%p --toggle-collect='bench_send_all*' "
		"--toggle-collect='bench_receive_until*' --toggle-collect='bench_receive_all*' "
		"'%s' link --only '%s' --rounds 1 --seconds %.3f --receive_buffer %llu --flight=%s "
		"--json %s/result >/dev/null 2>&1",
		folder, self, row->name, seconds, (unsigned long long)bench->o.receive_buffer,
		bench->o.flight ? "true" : "false", folder);
	status = system(command);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENOEXEC;
}

/* The number in the first line that begins with `key`, after spaces. */
static double read_number(const char *path, const char *key)
{
	FILE *file = fopen(path, "r");
	char line[256];
	double value = 0;

	while (file && fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, key);

		if (!at)
			continue;
		value = strtod(at + strlen(key), NULL);
		break;
	}
	if (file)
		fclose(file);
	return value;
}

static double add_up(const char *folder)
{
	DIR *dir = opendir(folder);
	double sum = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[PATHS];

		snprintf(path, sizeof(path), "%s/%.200s", folder, e->d_name);
		if (!strncmp(e->d_name, "count.", 6))
			sum += read_number(path, "summary:");
	}
	if (dir)
		closedir(dir);
	return sum;
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[PATHS];

		snprintf(path, sizeof(path), "%s/%.200s", folder, e->d_name);
		if (e->d_name[0] != '.')
			unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

void sl_bench_count(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample)
{
	char folder[] = "/tmp/sluice-callgrind-XXXXXX", path[PATHS];
	double bytes;

	memset(sample, 0, sizeof(*sample));
	if (!mkdtemp(folder)) {
		snprintf(sample->why, sizeof(sample->why), "/tmp: %s", strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), "%s/result", folder);
	if (run_self(bench, row, folder) == 0 && (bytes = read_number(path, "\"bytes\":")) > 0) {
		sample->bytes = (uint64_t)bytes;
		sample->instructions_per_B = add_up(folder) / bytes;
	} else {
		snprintf(sample->why, sizeof(sample->why),
			 "it does not run under valgrind (is valgrind installed?)");
	}
	remove_folder(folder);
}
