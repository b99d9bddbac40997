/* host.c - sluice ctl --host: calls of a service, on this or another host. */
#include "cmd/ctl/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice/client.h>

#include "base/clock.h"
#include "base/file/secret_file.h"
#include "base/log.h"
#include "cmd/ctl/screen.h"
#include "cmd/ctl/watch.h"
#include "monitor/result.h"
#include "service/remote/remote.h"

enum { LOOK_MS = 200, PATH = 600, FILE_BYTES = 1 << 20, TOKEN = 256 };
#define API "/api/v1"

struct call {
	const struct sl_ctl_host *o;
	struct sl_api *host;
};

/* ---- answers ---- */

static int no_answer(const struct call *c)
{
	sl_error("%s: %s", c->o->url, sl_api_problem(c->host));
	return 1;
}

static int refused(const struct call *c, const struct sl_api_answer *answer)
{
	if (c->o->json)
		fwrite(answer->body, 1, answer->bytes, stdout);
	else
		sl_api_print_error(stderr, answer);
	return 1;
}

static void print_session(const struct sl_api_answer *answer)
{
	struct sl_remote_status s;

	if (sl_remote_status_of(answer->body, &s, sizeof(s))) {
		puts("no status yet");
		return;
	}
	printf("%s: %s, run %llu: %llu", s.session, s.state, (unsigned long long)s.run,
	       (unsigned long long)s.frames);
	if (s.expected_frames) /* 0: the run has no end */
		printf(" of %llu", (unsigned long long)s.expected_frames);
	printf(" frames, %llu lost, %llu damaged%s%s%s%s\n", (unsigned long long)s.lost,
	       (unsigned long long)s.damaged, s.result[0] ? ", " : "", s.result,
	       s.error[0] ? ", error: " : "", s.error_message);
}

static bool is_session(const char *path)
{
	const char *name = path + strlen(API "/sessions/");

	return !strncmp(path, API "/sessions/", strlen(API "/sessions/")) && !strchr(name, '/');
}

/* What was asked for: a table or a few lines, else the bytes as they are. */
static void show(const struct call *c, const char *path, const struct sl_api_answer *answer)
{
	bool json = !strcmp(answer->type, "application/json");

	if (!answer->bytes)
		return;
	if (!c->o->json && is_session(path))
		print_session(answer);
	else if (c->o->json || !sl_api_print(stdout, path, answer)) {
		fwrite(answer->body, 1, answer->bytes, stdout);
		if (json && answer->body[answer->bytes - 1] != '\n')
			putchar('\n');
	}
	fflush(stdout);
}

/* What was done: the name or state that it led to. */
static void show_done(const struct call *c, const struct sl_api_answer *answer)
{
	char text[128];

	sl_api_text(answer, "name", text, sizeof(text));
	if (!text[0])
		sl_api_text(answer, "state", text, sizeof(text));
	if (!c->o->json && text[0])
		puts(text);
	else if (answer->bytes)
		printf("%s\n", answer->body);
	fflush(stdout);
}

/* A call, and what it answers; the exit status. body: NULL: none; freed here. */
static int call(struct call *c, const char *method, const char *path, const char *type, char *body,
		size_t bytes)
{
	struct sl_api_answer answer;
	int err = sl_api_call(c->host, method, path, type, body ? body : "", bytes, &answer),
	    status = 0;

	free(body);
	if (err)
		return no_answer(c);
	if (answer.status >= 400)
		status = refused(c, &answer);
	else if (!strcmp(method, "GET") || strstr(path, "/check") || strstr(path, "/metadata"))
		show(c, path, &answer);
	else
		show_done(c, &answer);
	sl_api_free(&answer);
	return status;
}

static int call_json(struct call *c, const char *method, const char *path, char *body)
{
	return call(c, method, path, "application/json", body, body ? strlen(body) : 0);
}

static int wrong_word(const char *const *word, size_t wrong)
{
	sl_error("'%s': takes NAME=VALUE", word[wrong]);
	return 1;
}

/* ---- files ---- */

/* "-": stdin. */
static char *read_file(const char *path, size_t *bytes)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	char *text = fd < 0 ? NULL : malloc(FILE_BYTES + 1);
	ssize_t n = 1;

	*bytes = 0;
	while (text && n > 0 && *bytes <= FILE_BYTES) {
		n = read(fd, text + *bytes, FILE_BYTES + 1 - *bytes);
		*bytes += n > 0 ? (size_t)n : 0;
	}
	if (!text || n < 0 || *bytes > FILE_BYTES) {
		sl_error("cannot read '%s': %s", path,
			 *bytes > FILE_BYTES ? "it has more than 1 MiB" : strerror(errno));
		free(text);
		text = NULL;
	}
	if (fd >= 0)
		close(fd);
	return text;
}

/* ---- sessions ---- */

static int exit_of(const struct sl_remote_status *s)
{
	for (int i = SL_RESULT_INTACT; i <= SL_RESULT_EMPTY; i++)
		if (!s->error[0] && !strcmp(s->result, sl_result_name(i)))
			return sl_result_exit(i);
	return SL_RESULT_ERROR;
}

static int do_wait(struct call *c, const char *name, const char *const *state, unsigned states)
{
	uint64_t end_ns = c->o->timeout_s > 0 ? sl_clock_ns() + (uint64_t)(c->o->timeout_s * 1e9)
					      : UINT64_MAX;
	char path[PATH];

	snprintf(path, sizeof(path), API "/sessions/%s", name);
	while (sl_clock_ns() < end_ns) {
		struct sl_api_answer answer;
		struct sl_remote_status s = {.bytes = 0};
		bool over;

		if (sl_api_call(c->host, "GET", path, NULL, NULL, 0, &answer))
			return no_answer(c);
		if (answer.status >= 400) {
			int status = refused(c, &answer);

			sl_api_free(&answer);
			return status;
		}
		sl_remote_status_of(answer.body, &s, sizeof(s));
		over = !strcmp(s.state, "ended") || !strcmp(s.state, "fault");
		for (unsigned i = 0; i < states; i++)
			if (!strcmp(s.state, state[i]) || over) {
				show(c, path, &answer);
				sl_api_free(&answer);
				return strcmp(s.state, state[i]) ? 1 : over ? exit_of(&s) : 0;
			}
		sl_api_free(&answer);
		sl_clock_sleep_until(sl_clock_ns() + LOOK_MS * UINT64_C(1000000));
	}
	sl_error("%s: the state did not come within %g s", name, c->o->timeout_s);
	return 1;
}

static bool watch_one(void *arg, const char *name, const char *data)
{
	struct call *c = arg;
	const struct sl_api_answer answer = {.body = (char *)data, .bytes = strlen(data)};

	if (strcmp(name, "status") != 0)
		return true;
	if (c->o->json)
		puts(data);
	else
		print_session(&answer);
	return fflush(stdout) == 0;
}

static int watch_many(struct call *c, const char *const *name, unsigned names)
{
	const struct sl_ctl_feed_options options = {
		.host = c->host, .only = name, .onlys = names, .interval_ms = c->o->interval_ms};

	return sl_ctl_watch(&options, c->o->url, c->o->json);
}

static int do_watch(struct call *c, const char *name)
{
	struct sl_api_answer answer;
	char path[PATH];
	int err, status;

	if (sl_screen_is_there() && !c->o->json)
		return watch_many(c, &name, 1);
	snprintf(path, sizeof(path), API "/events?session=%s&interval_ms=%u", name,
		 c->o->interval_ms);
	err = sl_api_events(c->host, path, watch_one, c, &answer);
	status = err == -EPROTO ? refused(c, &answer) : err ? no_answer(c) : 0;
	sl_api_free(&answer);
	return status;
}

/* A call of the session itself; then, with --wait, its effect. */
static int do_change(struct call *c, const char *name, const char *verb)
{
	static const struct {
		const char *verb, *leads_to;
		bool reasoned;
	} calls[] = {{"arm", "armed", false},	 {"start", "ended", false},
		     {"pause", "paused", false}, {"resume", "running", false},
		     {"stop", "ended", true},	 {"abort", "ended", true}};
	char path[PATH];

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		int status;

		if (strcmp(verb, calls[i].verb) != 0)
			continue;
		snprintf(path, sizeof(path), API "/sessions/%s/%s", name, verb);
		status = call_json(c, "POST", path,
				   sl_api_reason_body(calls[i].reasoned ? c->o->reason : NULL));
		return status || !c->o->wait ? status : do_wait(c, name, &calls[i].leads_to, 1);
	}
	sl_error("no call is named '%s'; see sluice ctl --help", verb);
	return 1;
}

static int do_verb(struct call *c, const char *name, const char *verb, const char *const *word,
		   unsigned words)
{
	char path[PATH], *body;
	size_t wrong;

	snprintf(path, sizeof(path), API "/sessions/%s", name);
	if (!strcmp(verb, "status"))
		return call(c, "GET", path, NULL, NULL, 0);
	if (!strcmp(verb, "close") || !strcmp(verb, "forget"))
		return call(c, "DELETE", path, NULL, NULL, 0);
	if (!strcmp(verb, "wait"))
		return do_wait(c, name, word, words);
	if (!strcmp(verb, "watch"))
		return do_watch(c, name);
	snprintf(path, sizeof(path), API "/sessions/%s/%s", name, verb);
	if (!strcmp(verb, "ledger") || !strcmp(verb, "results") || !strcmp(verb, "explain") ||
	    (!strcmp(verb, "metadata") && !words))
		return call(c, "GET", path, NULL, NULL, 0);
	if (!strcmp(verb, "metadata")) {
		body = sl_api_metadata_body(word, words, c->o->keep, &wrong);
		return body ? call_json(c, "PATCH", path, body) : wrong_word(word, wrong);
	}
	if (!strcmp(verb, "configure")) {
		body = sl_api_start_body(NULL, NULL, word, words, c->o->set, c->o->sets, &wrong);
		return body ? call_json(c, "POST", path, body) : wrong_word(word, wrong);
	}
	return do_change(c, name, verb);
}

/* ---- all else ---- */

static int do_open(struct call *c, const char *const *word, unsigned words)
{
	size_t wrong;
	char *body;

	if (!words) {
		sl_error("open which experiment? sluice ctl --host URL experiments lists them");
		return 1;
	}
	body = sl_api_start_body(word[0], c->o->name, word + 1, words - 1, c->o->set, c->o->sets,
				 &wrong);
	return body ? call_json(c, "POST", API "/sessions", body) : wrong_word(word + 1, wrong);
}

/* check NAME [FILE], get NAME, put NAME FILE */
static int do_experiment(struct call *c, const char *verb, const char *const *word, unsigned words)
{
	char path[PATH], *body = NULL;
	struct sl_api_answer answer;
	size_t bytes = 0;

	if (!words || (!strcmp(verb, "put") && words < 2)) {
		sl_error("usage: sluice ctl --host URL %s EXPERIMENT%s", verb,
			 !strcmp(verb, "put") ? " FILE" : "");
		return 1;
	}
	if (words > 1 && !(body = read_file(word[1], &bytes)))
		return 1;
	snprintf(path, sizeof(path), API "/experiments/%.200s", word[0]);
	if (!strcmp(verb, "put"))
		return call(c, "PUT", path, "text/yaml", body, bytes);
	if (!strcmp(verb, "check")) {
		strcat(path, "/check");
		return call(c, "POST", path, body ? "text/yaml" : NULL, body, bytes);
	}
	free(body);
	if (sl_api_call(c->host, "GET", path, NULL, NULL, 0, &answer))
		return no_answer(c);
	if (answer.status >= 400 || c->o->json) {
		int status = answer.status >= 400 ? refused(c, &answer) : 0;

		if (!status)
			show(c, path, &answer);
		sl_api_free(&answer);
		return status;
	}
	body = malloc(answer.bytes + 1);
	if (body)
		sl_api_text(&answer, "text", body, answer.bytes + 1);
	fputs(body ? body : "", stdout);
	free(body);
	sl_api_free(&answer);
	return 0;
}

/* GET /path [FILE]: any call that there is. */
static int do_path(struct call *c, const char *method, const char *const *word, unsigned words)
{
	const char *path = word[0];
	char whole[PATH], *body = NULL;
	size_t bytes = 0;

	snprintf(whole, sizeof(whole), "%s%s",
		 !strncmp(path, "/api/", 5) || !strcmp(path, "/metrics") ? "" : API, path);
	if (words > 1 && !(body = read_file(word[1], &bytes)))
		return 1;
	return call(c, method, whole, body ? "application/json" : NULL, body, bytes);
}

static bool is_method(const char *word)
{
	for (const char *c = word; *c; c++)
		if (!isupper((unsigned char)*c))
			return false;
	return *word != 0;
}

static int do_words(struct call *c, const char *const *word, unsigned words)
{
	static const char *const lists[] = {"sessions", "experiments", "runs"};
	const char *first = words ? word[0] : "sessions";
	char path[PATH];

	if (first[0] == '/')
		return do_path(c, "GET", word, words);
	if (words > 1 && is_method(first) && word[1][0] == '/')
		return do_path(c, first, word + 1, words - 1);
	if (!strcmp(first, "watch"))
		return watch_many(c, word + 1, words - 1);
	if (!strcmp(first, "capabilities"))
		return call(c, "GET", API, NULL, NULL, 0);
	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(first, lists[i])) {
			snprintf(path, sizeof(path), API "/%s", first);
			return call(c, "GET", path, NULL, NULL, 0);
		}
	if (!strcmp(first, "run") && words > 1) {
		snprintf(path, sizeof(path), API "/runs/%.30s%s%.100s", word[1],
			 words > 2 ? "/" : "", words > 2 ? word[2] : "");
		return call(c, "GET", path, NULL, NULL, 0);
	}
	if (!strcmp(first, "open"))
		return do_open(c, word + 1, words - 1);
	if (!strcmp(first, "check") || !strcmp(first, "get") || !strcmp(first, "put"))
		return do_experiment(c, first, word + 1, words - 1);
	if (strlen(first) > 63) {
		sl_error("no session has such a long name");
		return 1;
	}
	return do_verb(c, first, words > 1 ? word[1] : "status", word + 2,
		       words > 2 ? words - 2 : 0);
}

int sl_ctl_host(const struct sl_ctl_host *o)
{
	struct call c = {.o = o};
	char token[TOKEN] = "", why[600];
	struct sl_api_options options = {.url = o->url, .ca = o->ca[0] ? o->ca : NULL};
	int status;

	if (o->token_file[0] &&
	    sl_secret_file_read(o->token_file, token, sizeof(token), why, sizeof(why))) {
		sl_error("--token_file %s: %s", o->token_file, why);
		return 1;
	}
	options.token = token[0] ? token : NULL;
	status = sl_api_open(&options, &c.host, why, sizeof(why));
	explicit_bzero(token, sizeof(token));
	if (status) {
		sl_error("--host: %s", why);
		return 1;
	}
	status = do_words(&c, o->word, o->words);
	sl_api_close(c.host);
	return status;
}
