/* measure.c - one measurement: a process of its own, a link of ours or a program of bench/,
 * and what it says at the end. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "bench/bench.h"
#include "bench/share/share.h"
#include "bench/stage/stage.h"

enum {
	SAID = 4096,	      /* bytes of a program's output that are read */
	PATIENCE_S = 30,      /* and fifty times what was asked for ... */
	LEAST_RATE = 8 << 20, /* ... and as long as pieces take at so many bytes/s */
};

static int enter(pid_t holder)
{
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)holder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

int sl_bench_take_side(const struct sl_bench *bench, const struct sl_bench_row *row, unsigned side)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (bench->core[side] >= 0) {
		CPU_SET((size_t)bench->core[side], &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	return row->cut ? enter(bench->holder[side]) : 0;
}

void sl_bench_take_cpu(const struct sl_bench *bench, const struct sl_bench_row *row, unsigned at)
{
	cpu_set_t set;

	if (!row->sources || at >= bench->cores)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)bench->core[at], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* On lo an address of this process's own in 127.0.0.0/8: others may have port 4791 elsewhere. */
const char *sl_bench_address(const struct sl_bench *bench, const struct sl_bench_row *row,
			     unsigned side, char text[64])
{
	static pid_t first;
	unsigned pid = (unsigned)(first ? first : (first = getpid()));

	if (row->cut)
		snprintf(text, 64, "10.77.0.%u", 1 + side);
	else if (bench->o.address[0])
		snprintf(text, 64, "%s", bench->o.address);
	else
		snprintf(text, 64, "127.%u.%u.%u", 101 + pid / 31250 % 100, 1 + pid / 125 % 250,
			 pid % 125 * 2 + 1 + side);
	return text;
}

/* ---- peers: programs beside this one ---- */

bool sl_bench_find_program(const char *name, char path[SL_BENCH_PATH])
{
	char self[SL_BENCH_PATH / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	snprintf(path, SL_BENCH_PATH, "%s/%s", dirname(self), name);
	return access(path, X_OK) == 0;
}

bool sl_bench_find_sluice(char path[SL_BENCH_PATH])
{
	const char *given = getenv("SLUICE");

	struct stat file;

	if (given)
		snprintf(path, SL_BENCH_PATH, "%s", given);
	else if (!sl_bench_find_program("../sluice", path))
		return false;
	return access(path, X_OK) == 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

static void set_env(const char *name, unsigned long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", value);
	setenv(name, text, 1);
}

/* What bench/peer/peer.h reads. */
static void describe(const struct sl_bench *bench, const struct sl_bench_row *row)
{
	char text[64], path[64];

	setenv("BENCH_RECEIVER", row->cut ? sl_bench_address(bench, row, 0, text) : "127.0.0.1", 1);
	set_env("BENCH_BUFFER", bench->o.receive_buffer);
	set_env("BENCH_RING", row->ring_bytes);
	set_env("BENCH_STREAMS", row->queues);
	if (row->work) {
		setenv("BENCH_SCENE", bench->stages->folder, 1);
		setenv("BENCH_SIZE", row->size == SL_BENCH_4M ? "4m" : "500k", 1);
		set_env("BENCH_CORES", row->cores);
	}
	for (unsigned i = 0; i < row->cores && bench->cores > 1; i++) {
		snprintf(text, sizeof(text), "BENCH_CORE_%u", i);
		set_env(text, (unsigned long long)bench->core[i]);
	}
	if (row->nocsum)
		setenv("BENCH_NOCSUM", "1", 1);
	if (bench->core[1] >= 0) { /* those that gain from it pin themselves */
		set_env("BENCH_RECEIVER_CORE", (unsigned long long)bench->core[0]);
		set_env("BENCH_SENDER_CORE", (unsigned long long)bench->core[1]);
	}
	if (!row->cut)
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)bench->holder[1]);
	setenv("BENCH_SENDER_NETNS", path, 1);
}

static void run_peer(const struct sl_bench *bench, const struct sl_bench_row *row)
{
	char path[SL_BENCH_PATH], bytes[32], seconds[32];

	if (!sl_bench_find_program(row->program, path) || (row->cut && enter(bench->holder[0])))
		_exit(127);
	describe(bench, row);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)row->bytes);
	snprintf(seconds, sizeof(seconds), "%.3f", bench->o.seconds);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* what libraries have opened */
	execl(path, path, row->mode, bytes, seconds, (char *)NULL);
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	_exit(126);
}

/* The number after "name": in a line of JSON that a program of ours printed. */
static const char *find_number(const char *text, const char *name)
{
	char key[40];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(text, key);
	return at ? at + strlen(key) : NULL;
}

static double number(const char *text, const char *name)
{
	const char *at = find_number(text, name);

	return at ? strtod(at, NULL) : 0;
}

void sl_bench_parse(const char *said, bool latency, struct sl_bench_sample *sample)
{
	const char *at = find_number(said, "quantiles_us");

	sample->GB_per_s = number(said, "GB_per_s");
	sample->lost = (uint64_t)number(said, "lost");
	sample->count = (uint64_t)number(said, "count");
	sample->bytes = (uint64_t)number(said, "bytes");
	sample->frame_bytes = (uint64_t)number(said, "frame_bytes");
	sample->check = (uint32_t)number(said, "check");
	sample->planted = (uint32_t)number(said, "planted");
	sample->found = (uint32_t)number(said, "found");
	sample->picked = (uint32_t)number(said, "picked");
	for (unsigned i = 0; at && i < SL_BENCH_QUANTILES; i++) {
		char *end;

		sample->quantile_us[i] = strtod(at + strspn(at, " [,"), &end);
		at = end;
	}
	if (latency ? !at : sample->GB_per_s <= 0)
		snprintf(sample->why, sizeof(sample->why), "it said nothing that is understood");
}

/* ---- the process ---- */

void sl_bench_last_line(int fd, char *text, size_t bytes)
{
	static const char ours[] = "sluice: error: ";
	char said[SAID + 1];
	off_t all = lseek(fd, 0, SEEK_END);
	ssize_t n = pread(fd, said, SAID, all > SAID ? all - SAID : 0);
	char *line;

	text[0] = '\0';
	while (n > 0 && strchr("\n\r ", said[n - 1]))
		n--;
	if (n <= 0)
		return;
	said[n] = '\0';
	line = strrchr(said, '\n');
	line = line ? line + 1 : said;
	if (!strncmp(line, ours, strlen(ours)))
		line += strlen(ours);
	snprintf(text, bytes, "%.*s", (int)bytes - 1, line);
}

static void run_child(const struct sl_bench *bench, const struct sl_bench_row *row, int out,
		      int err)
{
	struct sl_bench_sample sample = {0};
	int failed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	if (!sl_bench_is_ours(row))
		run_peer(bench, row);
	failed = row->gpu	 ? sl_bench_gpu(bench, row, &sample)
		 : row->codec	 ? sl_bench_codec(bench, row, &sample)
		 : row->share	 ? sl_bench_share(bench, row, &sample)
		 : row->trigger	 ? sl_bench_trigger(bench, row, &sample)
		 : row->work	 ? sl_bench_stage(bench, row, &sample)
		 : row->detector ? sl_bench_detector(bench, row, &sample)
				 : sl_bench_link(bench, row, &sample);
	if (failed && lseek(err, 0, SEEK_END) == 0)
		fprintf(stderr, "%s\n", strerror(-failed));
	if (write(out, &sample, sizeof(sample)) != sizeof(sample))
		failed = 1;
	_exit(failed == -ENODEV || failed == -EPERM || failed == -EACCES || failed == -EMSGSIZE
		      ? SL_BENCH_CANNOT
	      : failed ? 1
		       : 0);
}

/* How long a row may take: the least number of pieces of 1 GiB takes minutes on a busy machine. */
static double patience_s(const struct sl_bench *bench, const struct sl_bench_row *row)
{
	uint64_t bytes = row->share ? row->share->bytes : row->bytes;

	return PATIENCE_S + 50 * bench->o.seconds + (double)bytes / LEAST_RATE;
}

/* Its wait status; -1 when it had to be ended. */
static int await(pid_t child, double patience)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0), status = -1;
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	bool ended = pidfd < 0 || poll(&poll_fd, 1, (int)(1000 * patience)) > 0;

	if (!ended)
		kill(child, SIGKILL);
	waitpid(child, &status, 0);
	if (pidfd >= 0)
		close(pidfd);
	return ended ? status : -1;
}

static void judge(const struct sl_bench_row *row, int status, int out, int err,
		  struct sl_bench_sample *sample)
{
	char said[SAID + 1];
	ssize_t n;

	if (status == -1) {
		snprintf(sample->why, sizeof(sample->why), "ran too long and was ended");
		return;
	}
	if (status) {
		sample->cannot = WIFEXITED(status) && WEXITSTATUS(status) == SL_BENCH_CANNOT;
		sl_bench_last_line(err, sample->why, sizeof(sample->why));
		if (!sample->why[0])
			snprintf(sample->why, sizeof(sample->why), "ended with status %#x", status);
		return;
	}
	n = pread(out, said, SAID, 0);
	if (sl_bench_is_ours(row) && n == sizeof(*sample)) {
		memcpy(sample, said, sizeof(*sample));
	} else {
		said[n > 0 ? n : 0] = '\0';
		sl_bench_parse(said, row->latency, sample);
	}
}

static void in_a_process(const struct sl_bench *bench, const struct sl_bench_row *row,
			 struct sl_bench_sample *sample)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	char path[SL_BENCH_PATH], text[64];
	pid_t child = -1;

	sl_bench_address(bench, row, 0, text); /* fixes whose address it is */
	if (!sl_bench_is_ours(row) && !sl_bench_find_program(row->program, path)) {
		snprintf(sample->why, sizeof(sample->why),
			 "bench/%s is not beside this program: its library was not there when "
			 "this was built",
			 row->program);
	} else if (out >= 0 && err >= 0 && (child = fork()) >= 0) {
		if (!child)
			run_child(bench, row, out, err);
		judge(row, await(child, patience_s(bench, row)), out, err, sample);
	} else {
		snprintf(sample->why, sizeof(sample->why), "%s", strerror(errno));
	}
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
}

void sl_bench_measure(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	if (row->work && row->work->python)
		sl_bench_python_measure(bench, row, sample);
	else
		in_a_process(bench, row, sample);
	if (row->work && !row->trigger && !row->gpu)
		sl_bench_agree(bench, row, sample);
}
