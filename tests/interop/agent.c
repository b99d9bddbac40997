/* agent.c - run commands in the guest for the driver outside.
 *
 * One TCP connection is one command. Both directions carry frames: a letter, the length of the
 * rest in 32 bits (big endian), the rest.
 *
 *   driver to agent   r  the command, for /bin/sh (first)    i  its stdin; empty: the end of it
 *   agent to driver   o  of its stdout    e  of its stderr    x  exit status, 32 bits (last)
 *
 * A connection that is closed before the x kills the command and what it started. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAME_MAX = 1 << 20, CHUNK = 1 << 16 };

static char frame[FRAME_MAX + 1];

static bool write_all(int fd, const void *bytes, size_t length)
{
	for (const char *at = bytes; length;) {
		ssize_t done = write(fd, at, length);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		length -= (size_t)done;
	}
	return true;
}

static bool read_all(int fd, void *bytes, size_t length)
{
	for (char *at = bytes; length;) {
		ssize_t done = read(fd, at, length);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		length -= (size_t)done;
	}
	return true;
}

static bool send_frame(int fd, char kind, const void *bytes, uint32_t length)
{
	char head[5] = {kind};
	uint32_t wire = htonl(length);
	memcpy(head + 1, &wire, sizeof wire);
	return write_all(fd, head, sizeof head) && write_all(fd, bytes, length);
}

/* The next frame into `frame`, with a NUL behind it; its length, or -1 at the end. */
static ssize_t receive_frame(int fd, char *kind)
{
	char head[5];
	uint32_t length;
	if (!read_all(fd, head, sizeof head))
		return -1;
	memcpy(&length, head + 1, sizeof length);
	length = ntohl(length);
	if (length > FRAME_MAX || !read_all(fd, frame, length))
		return -1;
	frame[length] = '\0';
	*kind = head[0];
	return (ssize_t)length;
}

struct command {
	pid_t pid;
	int in, out, err;    /* our ends of its pipes; -1: closed */
	size_t fed, to_feed; /* of `frame`, which is for its stdin */
};

static bool start(struct command *command)
{
	int in[2], out[2], err[2];
	if (pipe(in) || pipe(out) || pipe(err))
		return false;
	command->pid = fork();
	if (command->pid < 0)
		return false;
	if (command->pid == 0) {
		setsid();
		signal(SIGPIPE, SIG_DFL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		for (int fd = 3; fd < 32; fd++)
			close(fd);
		execl("/bin/sh", "sh", "-c", frame, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	command->in = in[1];
	command->out = out[0];
	command->err = err[0];
	command->fed = command->to_feed = 0;
	return true;
}

static void close_pipe(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Pass on what there is in a pipe. */
static bool forward(int driver, char kind, int *fd)
{
	char bytes[CHUNK];
	ssize_t length = read(*fd, bytes, sizeof bytes);
	if (length > 0)
		return send_frame(driver, kind, bytes, (uint32_t)length);
	close_pipe(fd);
	return true;
}

/* As much of its stdin as it takes now. A command that reads no more loses the rest. */
static void feed(struct command *command)
{
	ssize_t done = write(command->in, frame + command->fed, command->to_feed - command->fed);
	if (done < 0 && errno != EAGAIN && errno != EINTR)
		close_pipe(&command->in);
	command->fed += done > 0 ? (size_t)done : 0;
	if (command->in < 0)
		command->fed = command->to_feed;
}

/* The next frame from the driver; false: it is gone, or talks nonsense. */
static bool listen_to(int driver, struct command *command)
{
	char kind;
	ssize_t length = receive_frame(driver, &kind);
	if (length < 0 || kind != 'i')
		return false;
	if (length == 0)
		close_pipe(&command->in);
	command->fed = 0;
	command->to_feed = command->in < 0 ? 0 : (size_t)length;
	return true;
}

/* Until both its outputs are at their end; false: the driver is gone. */
static bool attend(int driver, struct command *command)
{
	while (command->out >= 0 || command->err >= 0) {
		bool feeding = command->fed < command->to_feed;
		struct pollfd fds[] = {
			{driver, feeding ? POLLRDHUP : POLLIN, 0},
			{command->out, POLLIN, 0},
			{command->err, POLLIN, 0},
			{feeding ? command->in : -1, POLLOUT, 0},
		};
		if (poll(fds, 4, -1) < 0 && errno != EINTR)
			return false;
		if (fds[1].revents && !forward(driver, 'o', &command->out))
			return false;
		if (fds[2].revents && !forward(driver, 'e', &command->err))
			return false;
		if (fds[3].revents)
			feed(command);
		if (fds[0].revents && (feeding || !listen_to(driver, command)))
			return false;
	}
	return true;
}

static void serve(int driver)
{
	struct command command;
	char kind;
	if (receive_frame(driver, &kind) < 0 || kind != 'r' || !start(&command))
		return;
	bool there = attend(driver, &command);
	if (!there)
		kill(-command.pid, SIGKILL);
	int status = 0;
	waitpid(command.pid, &status, 0);
	kill(-command.pid, SIGKILL); /* what it left behind */
	uint32_t code = htonl(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	if (there)
		send_frame(driver, 'x', &code, sizeof code);
}

int main(int count, char **arguments)
{
	int on = 1;
	struct sockaddr_in6 here = {.sin6_family = AF_INET6};
	here.sin6_port = htons((uint16_t)(count > 1 ? atoi(arguments[1]) : 0));
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* connections are reaped by the kernel */
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) ||
	    listen(listener, 64)) {
		perror("agent");
		return 1;
	}
	for (;;) {
		int driver = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (driver < 0)
			continue;
		if (fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			setsockopt(driver, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
			close(listener);
			serve(driver);
			_exit(0);
		}
		close(driver);
	}
}
