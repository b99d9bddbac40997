/* log.c - lines for the user on stderr, each in one write(), so that lines of threads and of the
 * child process do not mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/datathread.h"

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

static void write_all(const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(STDERR_FILENO, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* stderr is gone */
		text += n;
		bytes -= (size_t)n;
	}
}

void sl_log(enum sl_log_level level, const char *format, ...)
{
	static const char erase[] = "\r\033[K", cut[] = " ...";
	const struct sl_log_target *to = target && target->line ? target : NULL;
	int saved = errno;
	char line[4096];
	size_t length = 0, start;
	va_list arguments;
	int n;

	sl_data_thread_check("sl_log");
	if ((int)level > atomic_load_explicit(&most, memory_order_relaxed))
		return;
	if (!to && atomic_load_explicit(&progress_shown, memory_order_relaxed) &&
	    isatty(STDERR_FILENO))
		length = sizeof(erase) - 1;
	memcpy(line, erase, length);
	start = length;
	if (!to)
		length +=
			(size_t)snprintf(line + length, sizeof(line) - length, "%s", prefix(level));
	errno = saved; /* for %m */
	va_start(arguments, format);
	n = vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
	va_end(arguments);
	length += n > 0 ? (size_t)n : 0;
	if (length > sizeof(line) - 2) {
		length = sizeof(line) - 2;
		memcpy(line + length - (sizeof(cut) - 1), cut, sizeof(cut) - 1);
	}
	line[length] = 0;
	disarm(line + start);
	if (to) {
		to->line(to->arg, level, line + start);
	} else if (!seen(line + start)) {
		line[length++] = '\n';
		write_all(line, length);
	}
	errno = saved;
}
