/* ps.c - sluice ps: the sessions and runs of this user on this host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/client.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "monitor/metrics.h"

enum { PATIENCE_MS = 2000 };

struct ps_options {
	bool json, metrics, clean;
};

static const struct sl_option options[] = {
	SL_BOOL(struct ps_options, json, false, "print all that is known, as JSON"),
	SL_BOOL(struct ps_options, metrics, false,
		"print metrics for Prometheus (text format 0.0.4)"),
	SL_BOOL(struct ps_options, clean, false,
		"forget sessions that crashed; their data stay where they are"),
	SL_OPTION_END,
};

/* "1.2 s", "3 min", "2 h", "5 d" */
static const char *age_text(uint64_t ns, char *text, size_t bytes)
{
	static const struct {
		double seconds;
		const char *unit;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
	double seconds = (double)ns * 1e-9;

	if (ns == UINT64_MAX) {
		snprintf(text, bytes, "-");
		return text;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (seconds >= 2 * units[i].seconds) {
			snprintf(text, bytes, "%.0f %s", seconds / units[i].seconds, units[i].unit);
			return text;
		}
	snprintf(text, bytes, "%.1f s", seconds);
	return text;
}

static void print_row(const char *name, const char *state, uint64_t run, const char *frames,
		      const char *rate, const char *lost, const char *age, const char *experiment)
{
	char number[24] = "-";

	if (run)
		snprintf(number, sizeof(number), "%06llu", (unsigned long long)run);
	printf("%-20s %-10s %6s %12s %12s %10s %8s  %s\n", name, state, number, frames, rate, lost,
	       age, experiment);
}

static void print_alive(const struct sl_remote_info *info, const struct sl_remote_status *s)
{
	char frames[24], rate[32] = "-", lost[24], age[32];

	snprintf(frames, sizeof(frames), "%llu", (unsigned long long)s->frames);
	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)(s->lost + s->damaged));
	if (s->frames_per_s >= 0)
		snprintf(rate, sizeof(rate), "%.4g/s", s->frames_per_s);
	/* A detector side knows what it sent, not what became of it. */
	print_row(info->name, s->state, s->run, frames, rate, info->detector ? "-" : lost,
		  age_text(s->progress_age_ns, age, sizeof(age)), info->experiment);
}

static void print_session(const struct sl_remote_info *info)
{
	struct sl_remote_status status;
	struct sl_remote *remote;
	int err = -1;

	if (info->alive && !sl_remote_open(info->name, PATIENCE_MS, &remote, NULL)) {
		err = sl_remote_status(remote, PATIENCE_MS, &status, sizeof(status), NULL);
		sl_remote_close(remote);
	}
	if (!err)
		print_alive(info, &status);
	else
		print_row(info->name, info->alive ? "silent" : "crashed", info->run, "-", "-", "-",
			  "-", info->experiment);
	if (!info->alive && info->folder[0])
		printf("%-20s   its run folder is %s\n", "", info->folder);
}

static int failed(int err)
{
	if (err == -EPERM)
		sl_error("the folder of sockets is refused: it must belong to you, with mode 0700, "
			 "and be no symbolic link; docs/reference/status.md says which it is");
	else
		sl_error("cannot list sessions: %s", strerror(-err));
	return 1;
}

static int print_table(void)
{
	struct sl_remote_info *list;
	size_t n;

	int err = sl_remote_list(&list, &n);

	if (err)
		return failed(err);
	printf("%-20s %-10s %6s %12s %12s %10s %8s  %s\n", "NAME", "STATE", "RUN", "FRAMES", "RATE",
	       "LOST", "AGE", "EXPERIMENT");
	for (size_t i = 0; i < n; i++)
		print_session(&list[i]);
	sl_remote_free(list);
	return 0;
}

static int print_json(void)
{
	char *json;
	int err = sl_remote_list_json(PATIENCE_MS, &json);

	if (err)
		return failed(err);
	puts(json);
	sl_remote_free(json);
	return 0;
}

static int print_metrics(void)
{
	uint64_t begin_ns = sl_clock_ns();
	char *json, *text;
	int err = sl_remote_list_json(PATIENCE_MS, &json);

	if (err)
		return failed(err);
	err = sl_metrics_text_of(json, strlen(json), sl_clock_ns() - begin_ns, &text);
	sl_remote_free(json);
	if (err)
		return failed(err);
	fputs(text, stdout);
	free(text);
	return 0;
}

int sl_cmd_ps(const struct sl_command *command, int argc, char **argv)
{
	struct ps_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains) {
		sl_error("'%s': usage: sluice %s", args.plain[0], command->usage);
		return 1;
	}
	if (o.clean) {
		int n = sl_remote_forget_crashed();

		if (n >= 0)
			printf("%d forgotten\n", n);
		return n < 0 ? failed(n) : 0;
	}
	if (o.json && o.metrics) {
		sl_error("--json and --metrics: choose one");
		return 1;
	}
	return o.metrics ? print_metrics() : o.json ? print_json() : print_table();
}
