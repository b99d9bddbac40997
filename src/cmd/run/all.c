/* all.c - a receiver per transfer, the detector side, and one end for all of them. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/part_file.h"
#include "base/log.h"
#include "cmd/print.h"
#include "cmd/run/all.h"
#include "cmd/run/scratch.h"
#include "cmd/signals.h"
#include "monitor/result.h"
#include "monitor/summary.h"
#include "session/child.h"
#include "session/folder/folder.h"
#include "session/outputs.h"

enum { RESULT_BYTES = 256 << 10 }; /* of all receivers together */
enum { PATH_BYTES = 256, STEP_NS = 5 * 1000 * 1000, ARGUMENTS = 2 * SL_ARGS_SETS + 32 };

struct receiver {
	const char *name;
	pid_t child;
	int status;
	char port_file[PATH_BYTES], report[PATH_BYTES], summary[PATH_BYTES], outcomes[1100];
	char session[64 + SL_TRANSFER_NAME];
};

struct all {
	const struct sl_run_all *run;
	struct receiver receiver[SL_TRANSFERS];
	unsigned receivers;
	pid_t front_end;
	int front_end_status;
	struct sl_scratch scratch; /* what the children leave for us */
	bool told;		   /* them to stop */

	struct sl_part_file summary;	 /* fd -1: none was asked for */
	struct sl_run_folder run_folder; /* with a root */
	char given[SL_STATUS_PATH + 16]; /* the same, for the receivers */
	struct sl_log_target log;
	uint64_t started_unix_ns;
};

static void path_in(const struct all *all, const char *name, const char *end, char *path)
{
	snprintf(path, PATH_BYTES, "%s/%s%s", all->scratch.path, name, end);
}

static int add(char **argv, int n, const char *name, const char *value)
{
	argv[n++] = (char *)name;
	argv[n++] = (char *)value;
	return n;
}

/* The arguments that they all have: the command, the file, --set as we were given. flight: what a
 * receiver is told of its flight record; NULL: nothing. */
static int common(const struct all *all, const char *command, const char *flight, char **argv)
{
	const struct sl_args *args = all->run->args;
	int n = 0;

	argv[n++] = (char *)"sluice";
	argv[n++] = (char *)command;
	if (all->given[0] && !strcmp(command, "run"))
		n = add(argv, n, SL_RUN_IN_FOLDER, all->given);
	if (flight)
		n = add(argv, n, SL_RUN_FLIGHT, flight);
	argv[n++] = (char *)args->plain[0];
	for (unsigned i = 0; i < args->sets; i++) {
		argv[n++] = (char *)"--set";
		argv[n++] = (char *)args->set[i];
	}
	return n;
}

/* own: what is set for it beside that, which a site file does not lock. */
static int start_child(const struct all *all, char *const *argv, const char *own,
		       const char *output, int keep_fd, pid_t *child)
{
	const struct sl_child_options options = {.program = sl_child_self(),
						 .output = output,
						 .errors_fd = -1,
						 .keep_fd = keep_fd,
						 .uses = all->run->token_file,
						 .own = own};

	return sl_child_start(&options, argv, child);
}

/* "S.NAME.json" for the summary "S.json": its own summary is a file that we remove. */
static void flight_beside(const struct all *all, const char *name, char *text, size_t bytes)
{
	const char *summary = all->run->summary;
	size_t length = strlen(summary);

	text[0] = '\0';
	if (length > 5 && !strcmp(summary + length - 5, ".json"))
		length -= 5;
	if (length)
		snprintf(text, bytes, "%.*s.%s.json", (int)length, summary, name);
}

static int start_receiver(struct all *all, struct receiver *receiver)
{
	char own[SL_TRANSFER_NAME + 60] = "emulate=none";
	char *argv[ARGUMENTS], flight[1200];
	int n;

	flight_beside(all, receiver->name, flight, sizeof(flight));
	n = common(all, "run", all->given[0] ? NULL : flight, argv);
	path_in(all, receiver->name, ".port", receiver->port_file);
	path_in(all, receiver->name, ".report", receiver->report);
	path_in(all, receiver->name, ".json", receiver->summary);
	if (all->run->emulate) /* any port will do: the front end is ours, too */
		snprintf(own, sizeof(own), "emulate=none\ntransfers.%s.control.port=0",
			 receiver->name);
	n = add(argv, n, "--transfer", receiver->name);
	n = add(argv, n, "--port_file", receiver->port_file);
	n = add(argv, n, "--summary", receiver->summary);
	n = add(argv, n, "--summary_version", all->run->summary_version == 1 ? "1" : "2");
	if (all->run->outcomes[0]) {
		snprintf(receiver->outcomes, sizeof(receiver->outcomes), "%s.%s",
			 all->run->outcomes, receiver->name);
		n = add(argv, n, "--outcomes", receiver->outcomes);
	}
	if (all->run->name[0]) {
		snprintf(receiver->session, sizeof(receiver->session), "%s.%s", all->run->name,
			 receiver->name);
		n = add(argv, n, "--name", receiver->session);
	}
	if (all->run->live)
		argv[n++] = (char *)"--live";
	argv[n++] = (char *)(all->run->quiet ? "--quiet" : "--still");
	argv[n] = NULL;
	/* With the lock of the run folder: it is held until the last of them has ended. */
	return start_child(all, argv, own, receiver->report, all->run_folder.lock,
			   &receiver->child);
}

static unsigned port_of(const struct receiver *receiver)
{
	FILE *file = fopen(receiver->port_file, "r");
	unsigned port = 0;
	char end = 0;

	/* Whole only with the end of its line. */
	if (file && (fscanf(file, "%5u%c", &port, &end) != 2 || end != '\n'))
		port = 0;
	if (file)
		fclose(file);
	return port;
}

static int start_front_end(struct all *all)
{
	char own[SL_TRANSFERS * (SL_TRANSFER_NAME + 40)] = "";
	char *argv[ARGUMENTS];
	int n = common(all, "emulate", NULL, argv);
	size_t used = 0;

	for (unsigned i = 0; i < all->receivers; i++)
		used += (size_t)snprintf(own + used, sizeof(own) - used,
					 "transfers.%s.control.port=%u\n", all->receiver[i].name,
					 port_of(&all->receiver[i]));
	argv[n++] = (char *)"--once";
	argv[n++] = (char *)"--quiet";
	if (!all->run->quiet)
		argv[n++] = (char *)"--report";
	argv[n] = NULL;
	return start_child(all, argv, own, NULL, -1, &all->front_end);
}

/* Ours was asked to stop, or one of them could not begin: pass it on, once. */
static void tell_all(struct all *all, int signal)
{
	if (all->told)
		return;
	all->told = true;
	for (unsigned i = 0; i < all->receivers; i++)
		if (all->receiver[i].child)
			kill(all->receiver[i].child, signal);
}

/* Until each has said where it listens. False: one of them ended instead. */
static bool wait_for_ports(struct all *all)
{
	for (unsigned i = 0; i < all->receivers && !sl_signal;) {
		struct receiver *receiver = &all->receiver[i];

		if (port_of(receiver)) {
			i++;
			continue;
		}
		if (!sl_child_alive(&receiver->child, &receiver->status))
			return false;
		sl_clock_sleep_until(sl_clock_ns() + STEP_NS);
	}
	return !sl_signal;
}

/* Receivers that it had begun with find out by themselves; others would wait for it. */
static void tell_of_its_end(const struct all *all)
{
	for (unsigned i = 0; i < all->receivers; i++)
		if (all->receiver[i].child)
			kill(all->receiver[i].child, SIGUSR1);
}

/* One that listens stays until it has its answers. */
static void end_front_end(struct all *all)
{
	uint64_t end = sl_clock_ns() + (uint64_t)(all->run->feedback_wait_s * 1e9);

	while (all->front_end && !sl_signal && sl_clock_ns() < end &&
	       sl_child_alive(&all->front_end, &all->front_end_status))
		sl_clock_sleep_until(sl_clock_ns() + STEP_NS);
	sl_child_end(&all->front_end, &all->front_end_status);
}

static void wait_for_all(struct all *all)
{
	unsigned alive = 1;

	while (alive) {
		alive = 0;
		if (sl_signal)
			tell_all(all, sl_signal);
		for (unsigned i = 0; i < all->receivers; i++) {
			struct receiver *receiver = &all->receiver[i];

			if (receiver->child)
				alive += sl_child_alive(&receiver->child, &receiver->status);
		}
		if (!sl_child_alive(&all->front_end, &all->front_end_status))
			tell_of_its_end(all);
		sl_clock_sleep_until(sl_clock_ns() + STEP_NS);
	}
	end_front_end(all);
}

static void write_report(FILE *out, const struct receiver *receiver)
{
	FILE *file = fopen(receiver->report, "r");
	int c;

	fprintf(out, "\n== transfer %s ==\n", receiver->name);
	if (receiver->status < 0)
		fprintf(out, "\nResult: unclosed: this receiver was killed by signal %d (%s)\n",
			-receiver->status, strsignal(-receiver->status));
	while (file && (c = getc(file)) != EOF)
		putc(c, out);
	if (file)
		fclose(file);
}

static int worst(const struct all *all)
{
	int status = 0;

	for (unsigned i = 0; i < all->receivers; i++) {
		int one = all->receiver[i].status;

		if (one < 0) /* killed: it received, and nobody knows what became of it */
			one = SL_RESULT_UNCLOSED;
		else if (one > SL_RESULT_UNCLOSED) /* ended at once by a second signal */
			one = SL_RESULT_ERROR;
		status = sl_result_worse(status, one);
	}
	return status;
}

/* As for a run with one receiver. */
static int with_front_end(const struct all *all, int status)
{
	if (all->run->feedback_wait_s <= 0 || !all->front_end_status)
		return status;
	sl_error("the front end did not hear exactly one answer to each event, or failed");
	return status == SL_RESULT_INTACT || status == SL_RESULT_EMPTY ? SL_RESULT_ERROR : status;
}

/* Locked from the beginning, as a run with one receiver does it. */
static int open_summary(struct all *all)
{
	bool in_folder = all->given[0] && all->run->summary[0] != '/';
	char path[2 * SL_STATUS_PATH];
	const char *const list = path;
	int err;

	if (!all->run->summary[0])
		return 0;
	snprintf(path, sizeof(path), "%s%s%s", in_folder ? all->run_folder.path : "",
		 in_folder ? "/" : "", all->run->summary);
	err = sl_outputs_check(&list, 1, 1);
	if (!err)
		err = sl_part_file_open(path, &all->summary);
	return err ? err : sl_outputs_forget(path);
}

static int write_result(struct all *all, const char *const *name, int status)
{
	char path[SL_TRANSFERS][SL_STATUS_PATH + 160],
		*whole = realpath(all->run->args->plain[0], NULL);
	char *here = getcwd(NULL, 0), *text;
	const char *file[SL_TRANSFERS];
	const struct sl_summary_run run = {
		.number = all->run_folder.number,
		.folder = all->run_folder.path,
		.state = "ended",
		.exit = status,
		.file = whole,
		.working_directory = here,
		.started_unix_ns = all->started_unix_ns,
		.ended_unix_ns = sl_clock_unix_ns(),
	};
	int err;

	for (unsigned i = 0; i < all->receivers; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/result.%s.json", all->run_folder.path,
			 name[i]);
		file[i] = path[i];
	}
	text = sl_summary_join_result(name, file, all->receivers, &run);
	err = text ? sl_run_folder_write_result(&all->run_folder, text) : -ENOMEM;
	free(text);
	free(whole);
	free(here);
	return err;
}

/* A pipe that is not read must not keep this process. */
static int print_reports(const struct all *all)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int err = -ENOMEM;

	for (unsigned i = 0; i < all->receivers && out; i++)
		write_report(out, &all->receiver[i]);
	if (out && !fclose(out))
		err = sl_print_bounded(text, bytes);
	free(text);
	if (err)
		sl_error("the report could not be written: %s",
			 err == -ETIMEDOUT ? "stdout is not read" : strerror(-err));
	return err;
}

static int report(struct all *all)
{
	const char *name[SL_TRANSFERS], *file[SL_TRANSFERS];
	int status = with_front_end(all, worst(all));
	int err = 0;

	for (unsigned i = 0; i < all->receivers; i++) {
		name[i] = all->receiver[i].name;
		file[i] = all->receiver[i].summary;
	}
	if (!all->run->quiet)
		err = print_reports(all);
	if (all->summary.fd >= 0 && sl_summary_join(&all->summary, name, file, all->receivers,
						    status, all->run->summary_version))
		status = SL_RESULT_ERROR;
	if (all->given[0] && write_result(all, name, status))
		status = SL_RESULT_ERROR;
	return err ? SL_RESULT_ERROR : status;
}

static int start(struct all *all)
{
	for (unsigned i = 0; i < all->run->names->n; i++) {
		struct receiver *receiver = &all->receiver[all->receivers++];

		receiver->name = all->run->names->name[i];
		receiver->status = SL_RESULT_ERROR;
		if (start_receiver(all, receiver))
			return -ECHILD;
	}
	if (!all->run->emulate) {
		sl_info("waiting for front ends of %u transfers (sluice emulate %s)",
			all->receivers, all->run->args->plain[0]);
		return 0;
	}
	if (!wait_for_ports(all))
		return -ECHILD;
	return start_front_end(all);
}

/* Lines of this program go to run.log, too; those of the receivers are in run.NAME.log. */
static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	struct all *all = arg;

	sl_run_log_line(&all->run_folder.log, level, line);
	sl_log_set_target(NULL);
	sl_log_line(level, line);
	sl_log_set_target(&all->log);
}

static int make_run_folder(struct all *all)
{
	const char *root = all->run->root;
	char *whole, line[1200];
	int err;

	if (!root[0])
		return 0;
	sl_run_folder_warn_of_crashes(root);
	if (mkdir(root, 0777) && errno != EEXIST)
		whole = NULL;
	else
		whole = realpath(root, NULL);
	if (!whole) {
		sl_error("cannot make the root of the runs '%s': %s", root, strerror(errno));
		return -errno;
	}
	err = sl_run_folder_make(&all->run_folder, whole, RESULT_BYTES);
	free(whole);
	if (err)
		return err;
	sl_run_folder_give(&all->run_folder, all->given, sizeof(all->given));
	snprintf(line, sizeof(line), "run %" PRIu64 " of %.1000s, %u transfers, sluice %s",
		 all->run_folder.number, all->run->args->plain[0], all->run->names->n, SL_VERSION);
	sl_run_log_line(&all->run_folder.log, SL_LOG_INFO, line);
	all->log = (struct sl_log_target){take_line, all};
	sl_log_set_target(&all->log);
	if (!all->run->quiet)
		sl_info("run %" PRIu64 ": %s", all->run_folder.number, all->run_folder.path);
	return 0;
}

static int run_in(struct all *all)
{
	int status;

	if (start(all))
		tell_all(all, SIGTERM);
	wait_for_all(all);
	status = report(all);
	sl_scratch_remove(&all->scratch);
	return status;
}

int sl_run_all(const struct sl_run_all *run)
{
	struct all all = {.run = run, .started_unix_ns = sl_clock_unix_ns(), .summary = {.fd = -1}};
	int status;

	if (run->summary[0] && (!run->root[0] || run->summary[0] == '/') &&
	    sl_outputs_check(&run->summary, 1, 1))
		return SL_RESULT_ERROR;
	if (sl_scratch_make(&all.scratch))
		return SL_RESULT_ERROR;
	sl_run_folder_init(&all.run_folder);
	if (make_run_folder(&all) || open_summary(&all)) {
		if (all.summary.fd >= 0)
			sl_part_file_discard(&all.summary);
		sl_scratch_remove(&all.scratch);
		status = SL_RESULT_ERROR;
	} else {
		status = run_in(&all);
	}
	sl_log_set_target(NULL);
	sl_run_folder_fini(&all.run_folder);
	return status;
}
