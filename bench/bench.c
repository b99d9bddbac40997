/* bench.c - sluice-bench, which `sluice bench` starts: what links, detectors, stages, triggers,
 * codecs and shares do on this machine, beside what people use today. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/bench.h"
#include "cmd/cmd.h"
#include "cmd/signals.h"

static const struct sl_option table[] = {
	SL_STRING(struct sl_bench_options, json, "", "also write the results to this file"),
	SL_STRING(struct sl_bench_options, only, "",
		  "rows whose name matches this pattern, as in 'sluice/udp/*'"),
	SL_STRING(struct sl_bench_options, address, "",
		  "of this host, for both ends of the rows that are not /cut; for RDMA devices"),
	SL_BOOL(struct sl_bench_options, compared, false, "only the rows that ratios are taken of"),
	SL_U32(struct sl_bench_options, rounds, 5, 1, 100, "", "times that every row is measured"),
	SL_F64(struct sl_bench_options, seconds, 0.3, 0.01, 60, "s",
	       "how long a row is measured in a round"),
	SL_U64(struct sl_bench_options, receive_buffer, 212992, 4096, 1073741823, "bytes",
	       "of sockets, ours and peers': by default what Linux allows anybody"),
	SL_BOOL(struct sl_bench_options, flight, true,
		"our links sample packet headers, as in runs that have a flight recorder"),
	SL_BOOL(struct sl_bench_options, sweep, false,
		"also rows for messages of 64 bytes to 8 MiB; of shares: 1 byte to 1 GiB"),
	SL_BOOL(struct sl_bench_options, callgrind, false,
		"count instructions per byte with valgrind instead; slow"),
	SL_BOOL(struct sl_bench_options, list, false, "print the names of the rows and stop"),
	SL_OPTION_END,
};

/* The first core receives, the second sends; on one core nobody is pinned. */
static void choose_cores(struct sl_bench *bench)
{
	cpu_set_t set;

	for (unsigned i = 0; i < SL_BENCH_CORES; i++)
		bench->core[i] = -1;
	bench->cores = 1;
	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 2)
		return;
	bench->cores = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && bench->cores < SL_BENCH_CORES; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			bench->core[bench->cores++] = cpu;
}

static void leave_out(struct sl_bench_row *row, bool cannot, const char *why)
{
	row->broken = true;
	row->cannot = cannot;
	snprintf(row->failed, sizeof(row->failed), "%s", why);
}

static int prepare(struct sl_bench *bench)
{
	bool cut = false;

	for (unsigned i = 0; i < bench->rows; i++)
		cut |= bench->row[i].cut;
	if (cut)
		sl_bench_net_open(bench);
	for (unsigned i = 0; i < bench->rows; i++) {
		struct sl_bench_row *row = &bench->row[i];

		row->sample = calloc(bench->o.rounds, sizeof(*row->sample));
		if (!row->sample)
			return -ENOMEM;
		if (row->why)
			leave_out(row, true, row->why);
		else if (row->cores > bench->cores ||
			 (row->sources && row->pollers + row->sources > bench->cores))
			leave_out(row, true,
				  bench->cores > 1 ? "this process has fewer cores"
						   : "this process has one core");
		else if (row->cut && bench->no_cut[0])
			leave_out(row, true, bench->no_cut);
		else if (bench->o.callgrind && (row->cut || row->latency))
			leave_out(row, true,
				  "not counted: user space does the same as on lo, or waits");
	}
	return 0;
}

static void measure(struct sl_bench *bench, struct sl_bench_row *row)
{
	struct sl_bench_sample *sample = &row->sample[row->samples];

	if (row->broken)
		return;
	if (bench->o.callgrind)
		sl_bench_count(bench, row, sample);
	else
		sl_bench_measure(bench, row, sample);
	if (sample->why[0])
		leave_out(row, !sample->wrong && (sample->cannot || !sl_bench_is_ours(row)),
			  sample->why);
	else
		row->samples++;
}

/* Every other round backwards: none always has the same neighbour before it. */
static int rounds(struct sl_bench *bench, bool compared)
{
	for (unsigned round = 0; round < bench->o.rounds; round++) {
		uint64_t start = sl_clock_ns();
		unsigned measured = 0;

		for (unsigned i = 0; i < bench->rows; i++) {
			struct sl_bench_row *row = &bench->row[round % 2 ? bench->rows - 1 - i : i];

			if (sl_signal)
				return -EINTR;
			if (sl_bench_compared(row->name) != compared)
				continue;
			measure(bench, row);
			measured++;
		}
		if (bench->o.rounds > 1 && measured)
			fprintf(stderr, "round %u of %u: %u rows, %.0f s\n", round + 1,
				bench->o.rounds, measured, 1e-9 * (double)(sl_clock_ns() - start));
	}
	return 0;
}

/* Rows that ratios are taken of first, in short rounds: a shared machine may be twice as fast a
 * minute later, and what is compared must have seen the same machine. */
static int all_rounds(struct sl_bench *bench)
{
	int err = rounds(bench, true);

	return err ? err : rounds(bench, false);
}

/* Zero loss is what our own rows promise; a row of ours that failed is an error. */
static int verdict(const struct sl_bench *bench)
{
	int status = 0;

	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (sl_bench_is_ours(row) && sl_bench_lost(row)) {
			sl_error("%s lost %llu packets", row->name,
				 (unsigned long long)sl_bench_lost(row));
			status = 2;
		}
		if (row->broken && !row->cannot) {
			sl_error("%s failed: %s", row->name, row->failed);
			status = status ? status : 1;
		}
	}
	return status;
}

static int bench_rows(struct sl_bench *bench)
{
	int err = bench->kind == SL_BENCH_STAGES      ? sl_bench_stage_rows(bench)
		  : bench->kind == SL_BENCH_TRIGGERS  ? sl_bench_trigger_rows(bench)
		  : bench->kind == SL_BENCH_GPUS      ? sl_bench_gpu_rows(bench)
		  : bench->kind == SL_BENCH_CODECS    ? sl_bench_codec_rows(bench)
		  : bench->kind == SL_BENCH_SHARES    ? sl_bench_share_rows(bench)
		  : bench->kind == SL_BENCH_DETECTORS ? sl_bench_detector_rows(bench)
						      : sl_bench_rows(bench);

	if (err)
		return 1;
	if (!bench->rows) {
		sl_error("--only: no row is called '%s'; --list shows them", bench->o.only);
		return 1;
	}
	if (bench->o.list) {
		for (unsigned i = 0; i < bench->rows; i++)
			puts(bench->row[i].name);
		return 0;
	}
	choose_cores(bench);
	err = prepare(bench);
	if (!err && bench->kind == SL_BENCH_STAGES)
		err = sl_bench_stage_prepare(bench);
	if (!err && bench->kind == SL_BENCH_TRIGGERS)
		err = sl_bench_trigger_prepare(bench);
	if (!err && bench->kind == SL_BENCH_GPUS)
		err = sl_bench_gpu_prepare(bench);
	if (!err)
		err = all_rounds(bench);
	sl_bench_net_close(bench);
	if (err)
		return err == -EINTR ? 130 : 1;
	sl_bench_print(bench, stdout);
	if (bench->o.json[0] && sl_bench_write_json(bench, bench->o.json))
		return 1;
	return verdict(bench);
}

/* What is to be measured, by its name on the command line. */
static int read_kind(const struct sl_args *args, struct sl_bench *bench)
{
	static const char *const name[] = {"link", "detector", "stage", "trigger",
					   "gpu",  "codec",    "share"};

	for (unsigned i = 0; args->plains == 1 && i < sizeof(name) / sizeof(name[0]); i++)
		if (!strcmp(args->plain[0], name[i])) {
			bench->kind = (enum sl_bench_kind)i;
			return 0;
		}
	sl_error("say what is to be measured: sluice bench link, detector, stage, trigger, "
		 "gpu, codec or share");
	return -EINVAL;
}

static int check_options(const struct sl_bench *bench)
{
	bool sweeps = bench->kind == SL_BENCH_LINKS || bench->kind == SL_BENCH_SHARES;

	if ((bench->kind != SL_BENCH_LINKS && bench->o.callgrind) || (!sweeps && bench->o.sweep)) {
		sl_error("--callgrind is for sluice bench link, --sweep for link and share");
		return -EINVAL;
	}
	if ((bench->kind == SL_BENCH_DETECTORS || bench->kind == SL_BENCH_GPUS) &&
	    bench->o.compared) {
		sl_error("--compared is for sluice bench link, stage, trigger, codec and share");
		return -EINVAL;
	}
	return 0;
}

static const struct sl_command bench_command = {
	.name = "bench",
	.usage = "bench link|detector|stage|trigger|gpu|codec|share [options]",
	.doc = "Measure what links, emulated detectors, stages, codecs and shares do on this "
	       "machine, "
	       "beside what "
	       "people use today.",
	.details =
		"Every row is measured once a round, in turn, links by two processes on two cores; "
		"shown "
		"are medians and\n"
		"ranges over the rounds, and what was lost. Rows that end in /cut go over a veth "
		"pair "
		"that cuts and\n"
		"merges nothing (made and removed here; needs root), all others over lo. In those "
		"that "
		"end in /nocsum\n"
		"the sender leaves the UDP checksum 0. Stages have frames of 4.5 Mpixel in stacks "
		"of 16 "
		"on "
		"one core,\n"
		"unless the row ends in /1 (frame by frame), /2cores or /500k (512 x 1024 pixels). "
		"docs/reference/benchmarks.md\n"
		"explains every row.\n\n"
		"exit status: 0 all went well; 1 it did not; 2 a row of ours lost packets."};

int main(int argc, char **argv)
{
	struct sl_bench bench = {0};
	struct sl_args args;
	int err = sl_args_read(&bench_command, table, &bench.o, argc, argv, &args);

	signal(SIGPIPE, SIG_IGN);     /* a closed socket is an error where it happens */
	setenv("SLUICE_SITE", "", 1); /* what is measured does not depend on the host's site file */
	if (err)
		return err < 0;
	if (args.sets) {
		sl_error("bench has no experiment file: --set means nothing here");
		return 1;
	}
	if (read_kind(&args, &bench) || check_options(&bench))
		return 1;
	sl_signals_catch();
	err = bench_rows(&bench);
	for (unsigned i = 0; i < bench.rows; i++)
		free(bench.row[i].sample);
	free(bench.row);
	sl_bench_stage_end(&bench);
	return err;
}
