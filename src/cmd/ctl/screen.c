/* screen.c - the terminal as a screen. */
#include "cmd/ctl/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The other buffer, no cursor, no line breaks at the edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

enum { COLUMNS = 80, ROWS = 24 };

static struct {
	struct termios before, ours;
	bool has_keys; /* standard input is a terminal */
	_Atomic int open, resized;
	int wake; /* eventfd: `resized` is set */
} screen;

bool sl_screen_is_there(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

bool sl_screen_has_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && value[0])
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

bool sl_screen_has_colours(void)
{
	const char *none = getenv("NO_COLOR");

	return !none || !none[0];
}

/* ---- in handlers, too ---- */

static int put(const char *bytes, size_t n)
{
	while (n) {
		ssize_t sent = write(STDOUT_FILENO, bytes, n);

		if (sent < 0 && errno != EINTR)
			return -errno;
		if (sent > 0) {
			bytes += sent;
			n -= (size_t)sent;
		}
	}
	return 0;
}

static void enter(void)
{
	if (screen.has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.ours);
	put(ENTER, sizeof(ENTER) - 1);
}

static void leave(void)
{
	if (!atomic_exchange(&screen.open, 0))
		return;
	put(LEAVE, sizeof(LEAVE) - 1);
	if (screen.has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

static void wake(void)
{
	const uint64_t one = 1;

	atomic_store(&screen.resized, 1);
	if (write(screen.wake, &one, sizeof(one)) < 0)
		return; /* it is awake */
}

static void end(int number)
{
	leave();
	raise(number); /* SA_RESETHAND: the effect that it has without us, behind this handler */
}

static void stop(int number)
{
	int err = errno;

	leave();
	raise(SIGSTOP);
	atomic_store(&screen.open, 1);
	enter();
	wake();
	errno = err;
}

static void resize(int number)
{
	int err = errno;

	wake();
	errno = err;
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigfillset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/* ---- open and close ---- */

int sl_screen_open(void)
{
	static const int ends[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1,
				   SIGUSR2, SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,	SIGILL,	 SIGXCPU};

	screen.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (screen.wake < 0)
		return -errno;
	screen.has_keys = isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &screen.before);
	screen.ours = screen.before;
	screen.ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	screen.ours.c_cc[VMIN] = 1;
	screen.ours.c_cc[VTIME] = 0;
	atomic_store(&screen.open, 1);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		handle(ends[i], end, SA_RESETHAND);
	handle(SIGTSTP, stop, SA_RESTART);
	handle(SIGWINCH, resize, SA_RESTART);
	atexit(leave);
	enter();
	return 0;
}

void sl_screen_close(void)
{
	leave();
}

void sl_screen_size(unsigned *columns, unsigned *rows)
{
	struct winsize size = {0};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : COLUMNS;
	*rows = size.ws_row ? size.ws_row : ROWS;
}

/* ---- keys ---- */

static int read_key(void)
{
	char bytes[64];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : -EPIPE;
	if (n >= 3 && bytes[0] == '\033' && (bytes[1] == '[' || bytes[1] == 'O'))
		return bytes[2] == 'A' ? SL_KEY_UP : bytes[2] == 'B' ? SL_KEY_DOWN : 0;
	return bytes[0] > 0 ? bytes[0] : 0;
}

int sl_screen_wait(int fd, int timeout_ms, bool *resized)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN},
			     {.fd = screen.wake, .events = POLLIN},
			     {.fd = screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
	uint64_t count;
	int n = poll(p, 3, timeout_ms);

	if (n > 0 && p[1].revents && read(screen.wake, &count, sizeof(count)) < 0)
		count = 0;
	*resized = atomic_exchange(&screen.resized, 0);
	if (n <= 0 || !p[2].revents)
		return 0;
	return p[2].revents & POLLIN ? read_key() : -EPIPE;
}

int sl_screen_write(const char *bytes, size_t n)
{
	return put(bytes, n);
}
