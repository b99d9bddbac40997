/* message.c - sluice message: something said to the writer of a share, and what it answers. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/share/follower.h"
#include "cmd/share/message.h"
#include "cmd/signals.h"

enum { SEND_MS = 10000, LOOK_MS = 200 };
#define MOST_BYTES (UINT64_C(1) << 32)

struct message_options {
	uint32_t kind, answers;
	char text[4096], file[1024], out[1024];
	double listen_s;
	struct sl_reach reach;
};

static const struct sl_option options[] = {
	SL_U32(struct message_options, kind, 0, 0, 4294967295., "",
	       "a number that the program which gets the message knows"),
	SL_STRING(struct message_options, text, "", "what to say"),
	SL_STRING(struct message_options, file, "", "say what is in this file"),
	SL_F64(struct message_options, listen_s, 0, 0, 1e9, "s",
	       "for messages of the writer: print them for this time"),
	SL_U32(struct message_options, answers, 1, 0, 4294967295., "messages",
	       "of --listen_s: end after this many; 0: when the time is over"),
	SL_STRING(struct message_options, out, "",
		  "of --listen_s: write the last message to this file; -: to stdout"),
	SL_REACH_OPTIONS(struct message_options),
	SL_OPTION_END,
};

/* ---- what is shown of a message ---- */

static bool is_text(const struct sl_share_message *m)
{
	for (uint64_t i = 0; i < m->bytes; i++)
		if (!isprint(m->data[i]) && m->data[i] < 0x80 && !isspace(m->data[i]))
			return false;
	return m->bytes > 0;
}

void sl_print_message(const struct sl_share_message *m)
{
	enum { SHOWN = 200, BYTES = 16 };
	uint64_t n = m->bytes;

	printf("kind %u, %" PRIu64 " bytes", m->kind, m->bytes);
	if (is_text(m)) {
		n = n < SHOWN ? n : SHOWN;
		printf(": ");
		for (uint64_t i = 0; i < n; i++)
			putchar(isspace(m->data[i]) ? ' ' : m->data[i]);
	} else {
		n = n < BYTES ? n : BYTES;
		for (uint64_t i = 0; i < n; i++)
			printf("%s%02x", i ? " " : ": ", m->data[i]);
	}
	puts(n < m->bytes ? " ..." : "");
	fflush(stdout);
}

/* ---- the file to send ---- */

int sl_read_whole(const char *path, void **data, uint64_t *bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	int err = 0;

	*data = NULL;
	if (!file || fstat(fileno(file), &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	else if ((uint64_t)st.st_size > MOST_BYTES)
		err = -EFBIG;
	*bytes = err ? 0 : (uint64_t)st.st_size;
	if (!err && !(*data = malloc(*bytes + 1)))
		err = -ENOMEM;
	if (!err && fread(*data, 1, *bytes, file) != *bytes)
		err = -EIO;
	if (err)
		sl_error("cannot read '%s': %s", path,
			 err == -EINVAL ? "it is no plain file" : strerror(-err));
	if (err) {
		free(*data);
		*data = NULL;
	}
	if (file)
		fclose(file);
	return err;
}

static int say(const char *url, const struct message_options *o, struct sl_follower *follower)
{
	uint64_t bytes = strlen(o->text);
	void *data = NULL;
	int err = o->file[0] ? sl_read_whole(o->file, &data, &bytes) : 0;

	if (err)
		return err;
	err = sl_follow_send(follower, o->kind, o->file[0] ? data : o->text, bytes, SEND_MS);
	free(data);
	if (err == -EAGAIN)
		sl_error("%s: its writer has not taken messages for %d s", url, SEND_MS / 1000);
	else if (err == -EMSGSIZE)
		sl_error("%s: the message has %" PRIu64
			 " bytes, more than the queue of the share's "
			 "writer holds (queue_bytes of its options)",
			 url, bytes);
	else if (err)
		sl_follow_failed(url, err);
	return err;
}

static int listen_to(const char *url, const struct message_options *o, struct sl_follower *follower)
{
	uint64_t end_ns = sl_clock_ns() + (uint64_t)(o->listen_s * 1e9);
	struct sl_share_message m;
	uint32_t got = 0;
	int err = 0;

	while (!err && !sl_signal && (!o->answers || got < o->answers) && sl_clock_ns() < end_ns) {
		uint64_t left_ms = (end_ns - sl_clock_ns()) / 1000000 + 1;

		err = sl_follow_receive(follower, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS, &m);
		if (err == -ETIMEDOUT) {
			err = 0;
			continue;
		}
		if (err) {
			sl_follow_failed(url, err);
			break;
		}
		got++;
		if (strcmp(o->out, "-") != 0)
			sl_print_message(&m);
		if (o->out[0])
			err = sl_save_bytes(o->out, m.data, m.bytes);
		sl_remote_free(m.data);
	}
	if (err || got)
		return err;
	sl_error("%s: no message has come within %g s", url, o->listen_s);
	return -ETIMEDOUT;
}

static int check(const struct message_options *o)
{
	if (o->text[0] && o->file[0]) {
		sl_error("--text and --file exclude each other");
		return -EINVAL;
	}
	if (o->text[0] || o->file[0] || o->listen_s > 0)
		return 0;
	sl_error(
		"nothing to do: give --text or --file to send, or --listen_s to wait for messages");
	return -EINVAL;
}

int sl_cmd_message(const struct sl_command *command, int argc, char **argv)
{
	struct sl_follower *follower = NULL;
	struct message_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("to which share? sluice share lists them; usage: sluice %s",
			 command->usage);
		return 1;
	}
	sl_signals_catch();
	err = check(&o);
	if (!err)
		err = sl_reach_share(args.plain[0], &o.reach, &follower);
	if (!err && (o.text[0] || o.file[0]))
		err = say(args.plain[0], &o, follower);
	if (!err && o.listen_s > 0)
		err = listen_to(args.plain[0], &o, follower);
	sl_follow_close(follower);
	return err ? 1 : 0;
}
