/* ctl.c - sluice ctl: status and calls of a session by its name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sluice/client.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/ctl/host.h"
#include "cmd/ctl/screen.h"
#include "cmd/ctl/watch.h"
#include "monitor/result.h"

enum { CALL_MS = 10000, LOOK_MS = 20, KEY_BYTES = 72 };

struct ctl_options {
	bool json, wait, keep;
	double timeout_s;
	uint32_t interval_ms;
	char reason[16], telegram[1024];
	char host[1024], token_file[1024], ca[1024], name[64];
};

static const struct sl_option options[] = {
	SL_BOOL(struct ctl_options, json, false, "print replies as they came, as JSON"),
	SL_BOOL(struct ctl_options, wait, false,
		"return when the call has had its effect: armed, paused and drained, the run has "
		"ended"),
	SL_BOOL(struct ctl_options, keep, false,
		"of metadata: for later runs, too; between runs they always are"),
	SL_F64(struct ctl_options, timeout_s, 0, 0, 86400, "s",
	       "give up waiting after this time; 0: never"),
	SL_U32(struct ctl_options, interval_ms, 1000, 100, 3600000, "ms",
	       "of watch: from one line to the next"),
	SL_STRING(struct ctl_options, reason, "",
		  "of stop and abort: why, in at most 15 characters"),
	SL_STRING(struct ctl_options, host, "",
		  "URL of a service (sluice serve), on this or another host: its calls, over HTTP"),
	SL_STRING(struct ctl_options, token_file, "",
		  "of --host: a file that only you can read, with your token"),
	SL_STRING(struct ctl_options, ca, "",
		  "of --host: certificates to trust, as PEM; empty: those of the system"),
	SL_STRING(struct ctl_options, name, "", "of open: the name of the session"),
	SL_STRING(struct ctl_options, telegram, "",
		  "carry out the requests of this XML document (-: standard input), and print the "
		  "reply; no NAME"),
	SL_OPTION_END,
};

struct ctl {
	struct ctl_options options;
	struct sl_args args;
	const char *name, *verb;
	const char *const *word; /* behind the verb */
	unsigned words;
	struct sl_remote *remote;
	struct sl_remote_error error;
};

static int failed(const struct ctl *c)
{
	const struct sl_remote_error *e = &c->error;

	sl_error("%s%s%s%s%s%s%s", c->name, ": ", e->where, e->where[0] ? ": " : "", e->message,
		 e->hint[0] ? "; " : "", e->hint);
	return SL_RESULT_ERROR;
}

static int limit_ms(const struct ctl *c)
{
	return c->options.timeout_s > 0 ? (int)(c->options.timeout_s * 1e3) : -1;
}

/* ---- what is printed ---- */

void sl_ctl_print_status(const struct sl_remote_status *s)
{
	printf("%s: %s", s->session, s->state);
	if (s->run)
		printf(", run %llu", (unsigned long long)s->run);
	printf(": %llu", (unsigned long long)s->frames);
	if (s->expected_frames)
		printf(" of %llu", (unsigned long long)s->expected_frames);
	printf(" frames");
	if (s->frames_per_s >= 0)
		printf(", %.4g frames/s, %.3g GB/s", s->frames_per_s, s->bytes_per_s * 1e-9);
	printf(", %llu lost, %llu damaged", (unsigned long long)s->lost,
	       (unsigned long long)s->damaged);
	if (s->progress_age_ns != UINT64_MAX)
		printf(", last progress %.1f s ago", (double)s->progress_age_ns * 1e-9);
	if (!strcmp(s->state, "paused"))
		printf(s->drained ? ", drained" : ", not drained yet");
	if (s->result[0])
		printf(", %s", s->result);
	if (s->error[0])
		printf(", error %s: %s", s->error, s->error_message);
	putchar('\n');
	fflush(stdout);
}

/* Send a request that is answered with a status, and print that; its brief form, too. */
static int ask_and_show(struct ctl *c, const char *request, int timeout_ms,
			struct sl_remote_status *status)
{
	char *reply = NULL;
	int err = sl_remote_request(c->remote, request, timeout_ms, &reply, &c->error);

	if (!err)
		err = sl_remote_status_of(reply, status, sizeof(*status));
	if (!err && c->options.json)
		puts(reply);
	else if (!err)
		sl_ctl_print_status(status);
	sl_remote_free(reply);
	return err ? failed(c) : 0;
}

static int do_status(struct ctl *c)
{
	struct sl_remote_status status;

	return ask_and_show(c, "{\"call\":\"status\"}", CALL_MS, &status);
}

/* ---- calls ---- */

static int exit_of(const struct sl_remote_status *s)
{
	if (s->error[0])
		return SL_RESULT_ERROR;
	for (int i = SL_RESULT_INTACT; i <= SL_RESULT_EMPTY; i++)
		if (!strcmp(s->result, sl_result_name(i)))
			return sl_result_exit(i);
	return SL_RESULT_ERROR;
}

/* Until that state; the run's exit status where the run has ended instead, or was waited for. */
static int wait_for_state(struct ctl *c, const char *wanted)
{
	int limit = limit_ms(c);
	struct sl_remote_status status;
	char request[128];

	snprintf(request, sizeof(request),
		 "{\"call\":\"wait\",\"states\":[\"%s\"],\"timeout_ms\":%d}", wanted, limit);
	if (ask_and_show(c, request, limit < 0 ? -1 : limit + 1000, &status))
		return SL_RESULT_ERROR;
	if (!strcmp(wanted, "ended"))
		return exit_of(&status);
	return strcmp(status.state, wanted) ? SL_RESULT_ERROR : 0;
}

static void pause_ms(int ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000L};

	nanosleep(&time, NULL);
}

static int wait_for_drained(struct ctl *c)
{
	struct sl_remote_status status;
	int left = limit_ms(c);

	for (;;) {
		if (sl_remote_status(c->remote, CALL_MS, &status, sizeof(status), &c->error))
			return failed(c);
		if (!strcmp(status.state, "ended") || !strcmp(status.state, "fault") ||
		    (!strcmp(status.state, "paused") && status.drained))
			return do_status(c) ? SL_RESULT_ERROR : strcmp(status.state, "paused") != 0;
		if (left == 0) {
			sl_error("%s: not drained within %g s", c->name, c->options.timeout_s);
			return SL_RESULT_ERROR;
		}
		pause_ms(LOOK_MS);
		left = left < 0 ? -1 : left > LOOK_MS ? left - LOOK_MS : 0;
	}
}

/* Its connection ends when the session does. */
static int wait_for_close(struct ctl *c)
{
	char *line;
	int err;

	do {
		line = NULL;
		err = sl_remote_next(c->remote, limit_ms(c), &line, &c->error);
		sl_remote_free(line);
	} while (!err);
	return err == -ETIMEDOUT ? failed(c) : 0;
}

static int do_call(struct ctl *c)
{
	static const struct {
		const char *verb, *leads_to;
	} effects[] = {{"arm", "armed"},
		       {"start", "ended"},
		       {"resume", "running"},
		       {"stop", "ended"},
		       {"abort", "ended"}};
	char state[16];

	if (sl_remote_call(c->remote, c->verb, c->options.reason[0] ? c->options.reason : NULL,
			   CALL_MS, state, &c->error))
		return failed(c);
	if (c->options.wait && !strcmp(c->verb, "pause"))
		return wait_for_drained(c);
	if (!strcmp(c->verb, "close"))
		return c->options.wait ? wait_for_close(c) : 0;
	for (size_t i = 0; c->options.wait && i < sizeof(effects) / sizeof(effects[0]); i++)
		if (!strcmp(c->verb, effects[i].verb))
			return wait_for_state(c, effects[i].leads_to);
	printf("%s: %s asked for, %s now\n", c->name, c->verb, state);
	return 0;
}

static int do_configure(struct ctl *c)
{
	const char *set[SL_ARGS_SETS + SL_ARGS_PLAIN];
	unsigned n = 0;

	for (unsigned i = 0; i < c->args.sets; i++)
		set[n++] = c->args.set[i];
	for (unsigned i = 0; i < c->words; i++)
		set[n++] = c->word[i];
	if (sl_remote_configure(c->remote, set, n, limit_ms(c), &c->error))
		return failed(c);
	return do_status(c);
}

/* ---- other requests ---- */

static void print_metadata(void *arg, const char *key, const char *value)
{
	printf("%s=%s\n", key, value);
}

static int set_metadata(struct ctl *c, const char *word)
{
	const char *equals = strchr(word, '='), *value;
	char key[KEY_BYTES];

	if (!equals || (size_t)(equals - word) >= sizeof(key)) {
		sl_error("'%s': metadata are KEY=VALUE, with at most 63 characters in KEY", word);
		return SL_RESULT_ERROR;
	}
	snprintf(key, sizeof(key), "%.*s", (int)(equals - word), word);
	value = equals[1] ? equals + 1 : NULL;
	if (c->options.keep ? sl_remote_keep_metadata(c->remote, key, value, CALL_MS, &c->error)
			    : sl_remote_set_metadata(c->remote, key, value, CALL_MS, &c->error))
		return failed(c);
	return 0;
}

static int do_metadata(struct ctl *c)
{
	char *reply = NULL;

	for (unsigned i = 0; i < c->words; i++)
		if (set_metadata(c, c->word[i]))
			return SL_RESULT_ERROR;
	if (!c->options.json)
		return sl_remote_metadata(c->remote, CALL_MS, print_metadata, NULL, &c->error)
			       ? failed(c)
			       : 0;
	if (sl_remote_request(c->remote, "{\"call\":\"metadata\"}", CALL_MS, &reply, &c->error))
		return failed(c);
	puts(reply);
	sl_remote_free(reply);
	return 0;
}

static int do_wait(struct ctl *c)
{
	char state[16];

	if (!c->words) {
		sl_error("wait for which state? sluice list states shows them");
		return SL_RESULT_ERROR;
	}
	if (sl_remote_wait(c->remote, c->word, c->words, limit_ms(c), state, &c->error))
		return failed(c);
	printf("%s: %s\n", c->name, state);
	for (unsigned i = 0; i < c->words; i++)
		if (!strcmp(c->word[i], state))
			return 0;
	return SL_RESULT_ERROR;
}

static int watch_many(const struct ctl *c, const char *const *name, unsigned names)
{
	const struct sl_ctl_feed_options feed = {
		.only = name, .onlys = names, .interval_ms = c->options.interval_ms};

	return sl_ctl_watch(&feed, "", c->options.json);
}

static int do_watch(struct ctl *c)
{
	struct sl_remote_status status;
	char request[80], *line = NULL;
	int err;

	if (sl_screen_is_there() && !c->options.json)
		return watch_many(c, &c->name, 1);
	snprintf(request, sizeof(request), "{\"call\":\"watch\",\"interval_ms\":%u}",
		 c->options.interval_ms);
	err = sl_remote_request(c->remote, request, CALL_MS, &line, &c->error);
	while (!err) {
		if (c->options.json)
			puts(line);
		else if (!sl_remote_status_of(line, &status, sizeof(status)))
			sl_ctl_print_status(&status);
		fflush(stdout);
		sl_remote_free(line);
		line = NULL;
		err = ferror(stdout) ? -EPIPE
				     : sl_remote_next(c->remote, limit_ms(c), &line, &c->error);
	}
	sl_remote_free(line);
	return err == -ECONNRESET || err == -EPIPE ? 0 : failed(c);
}

static const struct {
	const char *verb;
	int (*run)(struct ctl *c);
	bool words; /* it takes some */
} verbs[] = {
	{"status", do_status, false}, {"configure", do_configure, true},
	{"arm", do_call, false},      {"start", do_call, false},
	{"pause", do_call, false},    {"resume", do_call, false},
	{"stop", do_call, false},     {"abort", do_call, false},
	{"close", do_call, false},    {"metadata", do_metadata, true},
	{"wait", do_wait, true},      {"watch", do_watch, false},
};

/* comes: the session may begin a moment later than this command, in a script that starts both; wait
 * for it within --timeout_s. */
static int open_remote(struct ctl *c, bool comes)
{
	int err = sl_remote_open(c->name, CALL_MS, &c->remote, &c->error);

	/* What a session that crashed has left is no reason to give up: the next takes its name. */
	for (int left = limit_ms(c); comes && (err == -ENOENT || err == -ECONNREFUSED) && left > 0;
	     left -= LOOK_MS) {
		pause_ms(LOOK_MS);
		err = sl_remote_open(c->name, CALL_MS, &c->remote, &c->error);
	}
	return err;
}

static int run_verb(struct ctl *c)
{
	int status;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(c->verb, verbs[i].verb) != 0)
			continue;
		if (c->words && !verbs[i].words) {
			sl_error("%s takes no '%s'; see sluice ctl --help", c->verb, c->word[0]);
			return SL_RESULT_ERROR;
		}
		if (open_remote(c, verbs[i].run == do_wait)) {
			sl_error("%s", c->error.message);
			return SL_RESULT_ERROR;
		}
		status = verbs[i].run(c);
		sl_remote_close(c->remote);
		return status;
	}
	sl_error("no call is named '%s'; see sluice ctl --help", c->verb);
	return SL_RESULT_ERROR;
}

static bool is_verb(const char *word)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(word, verbs[i].verb))
			return true;
	return false;
}

/* "watch", or "watch NAME ..."; "watch stop" is a call of the session with the name watch. */
static bool watches_all(const struct ctl *c)
{
	return c->args.plains && !strcmp(c->args.plain[0], "watch") &&
	       (c->args.plains < 2 || !is_verb(c->args.plain[1]));
}

static int on_host(const struct ctl *c)
{
	const struct ctl_options *o = &c->options;
	const struct sl_ctl_host host = {.url = o->host,
					 .token_file = o->token_file,
					 .ca = o->ca,
					 .name = o->name,
					 .reason = o->reason,
					 .json = o->json,
					 .wait = o->wait,
					 .keep = o->keep,
					 .timeout_s = o->timeout_s,
					 .interval_ms = o->interval_ms,
					 .word = c->args.plain,
					 .words = c->args.plains,
					 .set = c->args.set,
					 .sets = c->args.sets};

	return sl_ctl_host(&host);
}

int sl_cmd_ctl(const struct sl_command *command, int argc, char **argv)
{
	struct ctl c = {0};
	int err = sl_args_read(command, options, &c.options, argc, argv, &c.args);

	if (err)
		return err > 0 ? 0 : SL_RESULT_ERROR;
	if (c.options.host[0])
		return on_host(&c);
	if (c.options.telegram[0] && c.args.plains) {
		sl_error("'%s': with --telegram the document says which session; usage: sluice %s",
			 c.args.plain[0], command->usage);
		return SL_RESULT_ERROR;
	}
	if (c.options.telegram[0])
		return sl_cmd_telegram(c.options.telegram);
	if (watches_all(&c))
		return watch_many(&c, c.args.plain + 1, c.args.plains - 1);
	if (c.args.plains < 1) {
		sl_error("which session? sluice ps lists them; usage: sluice %s", command->usage);
		return SL_RESULT_ERROR;
	}
	c.name = c.args.plain[0];
	c.verb = c.args.plains > 1 ? c.args.plain[1] : "status";
	c.word = c.args.plain + 2;
	c.words = c.args.plains > 2 ? c.args.plains - 2 : 0;
	return run_verb(&c);
}
