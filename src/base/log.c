/* log.c - lines for the user on stderr, each in one write(), so that lines of threads and of the
 * child process do not mix. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/datathread.h"
#include "base/log_limit.h"

/* With a prefix and the end of the line below PIPE_BUF: a pipe takes it as a whole. */
enum { LINE_BYTES = 4000 };

/* Settings, not signals: nothing else is read on the strength of them, hence relaxed throughout. */
static _Atomic int most = SL_LOG_INFO;
static _Atomic int progress_shown;
static _Thread_local const struct sl_log_target *target;

void sl_log_set_target(const struct sl_log_target *to)
{
	target = to;
}

const struct sl_log_target *sl_log_target(void)
{
	return target;
}

void sl_log_level(enum sl_log_level level)
{
	atomic_store_explicit(&most, level, memory_order_relaxed);
}

void sl_log_progress_shown(int shown)
{
	atomic_store_explicit(&progress_shown, shown, memory_order_relaxed);
}

/* What sl_log_once() has seen: hashes of lines. When the table is full, lines may come again. */
static struct {
	bool on;
	unsigned n;
	uint64_t hash[1024];
} once;

void sl_log_once(void)
{
	once.on = true;
}

static bool seen(const char *line)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	if (!once.on)
		return false;
	for (; *line; line++)
		hash = (hash ^ (unsigned char)*line) * UINT64_C(0x100000001b3);
	for (unsigned i = 0; i < once.n; i++)
		if (once.hash[i] == hash)
			return true;
	if (once.n < sizeof(once.hash) / sizeof(once.hash[0]))
		once.hash[once.n++] = hash;
	return false;
}

static const char *prefix(enum sl_log_level level)
{
	switch (level) {
	case SL_LOG_ERROR:
		return "sluice: error: ";
	case SL_LOG_WARN:
		return "sluice: warning: ";
	case SL_LOG_INFO:
		return "sluice: ";
	case SL_LOG_DEBUG:
		return "sluice: debug: ";
	}
	return "sluice: ";
}

/* Text of files and peers ends up in messages: it must not steer the terminal. */
static void disarm(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if ((*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7f)
			*c = '?';
}

static _Atomic uint64_t unread; /* lines that stderr had no room for, not said yet */

/* Without waiting: a pipe that is not read must not stop a run. True: the line is out, or stderr
 * is gone. A pipe that says it has room takes a page at least; with RWF_NOWAIT, in kernels that
 * have it for pipes, it cannot block even if another process writes to it meanwhile. */
static bool write_now(const char *text, size_t bytes)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
	const struct iovec part = {.iov_base = (void *)text, .iov_len = bytes};
	struct stat st;
	ssize_t n = -1;

	if (poll(&fd, 1, 0) == 0)
		return false;
	errno = EOPNOTSUPP;
	if (!fstat(STDERR_FILENO, &st) && S_ISFIFO(st.st_mode))
		n = pwritev2(STDERR_FILENO, &part, 1, -1, RWF_NOWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	while (n < 0) {
		n = write(STDERR_FILENO, text, bytes);
		if (n < 0 && errno != EINTR)
			return errno != EAGAIN;
	}
	return true;
}

void sl_log_write(const char *text, size_t bytes)
{
	uint64_t missed = atomic_exchange(&unread, 0);
	char line[96];
	int n;

	if (missed) {
		n = snprintf(
			line, sizeof(line),
			"sluice: warning: %llu lines were left out here: stderr was not read\n",
			(unsigned long long)missed);
		if (!write_now(line, (size_t)n)) {
			atomic_fetch_add(&unread, missed + 1);
			return;
		}
	}
	if (!write_now(text, bytes))
		atomic_fetch_add(&unread, 1);
}

static void put(enum sl_log_level level, const char *text)
{
	static const char erase[] = "\r\033[K";
	const struct sl_log_target *to = target && target->line ? target : NULL;
	bool shown = atomic_load_explicit(&progress_shown, memory_order_relaxed);
	char line[LINE_BYTES + 64];
	int n;

	if (to) {
		to->line(to->arg, level, text);
		return;
	}
	if (seen(text))
		return;
	n = snprintf(line, sizeof(line), "%s%s%s\n", shown && isatty(STDERR_FILENO) ? erase : "",
		     prefix(level), text);
	sl_log_write(line, (size_t)n);
}

void sl_log_line(enum sl_log_level level, const char *line)
{
	int saved = errno;

	if ((int)level <= atomic_load_explicit(&most, memory_order_relaxed))
		put(level, line);
	errno = saved;
}

void sl_log_left_out(void)
{
	uint64_t lines = sl_log_take_left_out();
	char text[96];

	if (!lines)
		return;
	snprintf(text, sizeof(text), "%llu lines like earlier ones were left out",
		 (unsigned long long)lines);
	sl_log_line(SL_LOG_WARN, text);
}

void sl_log(enum sl_log_level level, const char *format, ...)
{
	static const char cut[] = " ...";
	int saved = errno;
	char text[LINE_BYTES];
	uint64_t left_out;
	va_list arguments;
	int n;

	sl_data_thread_check("sl_log");
	if ((int)level > atomic_load_explicit(&most, memory_order_relaxed))
		return;
	/* Every mistake in a file is told; no stranger causes errors. */
	if (level != SL_LOG_ERROR && !sl_log_may(format, sl_clock_ns(), &left_out))
		return;
	if (level != SL_LOG_ERROR && left_out) {
		snprintf(text, sizeof(text), "%llu lines like the next were left out",
			 (unsigned long long)left_out);
		put(level, text);
	}
	errno = saved; /* for %m */
	va_start(arguments, format);
	n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (n >= (int)sizeof(text))
		memcpy(text + sizeof(text) - sizeof(cut), cut, sizeof(cut));
	disarm(text);
	put(level, text);
	errno = saved;
}
