/* fault_mix_test.c - whatever goes wrong, alone or together, the account is exact: experiments and
 * faults drawn from seeds, each run with both sides in one process, each outcome compared with what
 * the front ends' fault logs imply.
 *
 * Usage: receiver_fault_mix_test [FIRST [COUNT]]. Seeds FIRST.. each run in a process of their own,
 * a few at a time, under a watchdog. A failure names the seed and the command that repeats it; one
 * seed alone runs here, and says what it does. In the end it says what the seeds covered; 500
 * or more (tools/check.py --long) fail when something that can be drawn never was. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/fault_mix_draw.h"
#include "lib/fault_oracle.h"
#include "lib/fault_run.h"
#include "lib/fault_tally.h"
#include "lib/fault_verdict.h"
#include "lib/ledger_sums.h"
#include "lib/sanitized.h"

enum { AT_A_TIME = 6, WATCHDOG_S = SANITIZED ? 240 : 60, STANDARD = SANITIZED ? 40 : 150 };

static uint64_t first_seed = 1, seeds = STANDARD;
static bool verbose;
static const char *program;
static struct tally *tally; /* shared with the processes of the seeds */

/* ---- one seed, in a process of its own ---- */

static void consult(struct oracle *oracle)
{
	const struct mix *mix = &run.mix;
	bool missed = false;

	*oracle = (struct oracle){
		.way = mix->link == MIX_SHM	? ORACLE_MEMORY
		       : mix->rc		? ORACLE_RC
		       : mix->link == MIX_VERBS ? ORACLE_NIC
						: ORACLE_UC,
		.message = mix->message_packets,
		.crc = mix->crc,
		.gaps = mix->align == MIX_SEQUENCE,
		.modules = mix->modules,
		.packets = mix->packets,
		.record_packet = mix->record_packet,
		.hold = mix->hold,
		.frames = mix->frames,
		.restart_after = mix->restarts ? mix->restart_after : 0,
		.restart_frames = mix->restart_frames,
	};
	oracle_init(oracle);
	for (unsigned i = 0; i < run.mix.fronts; i++)
		if (!oracle_read(oracle, run.front[i].log))
			wrong("the fault log of front end %u cannot be true", i);
	if (run.wire && !oracle_read(oracle, run.wire_log))
		wrong("the log of the wire cannot be true");
	for (uint32_t m = 0; m < mix->modules; m++) {
		const struct run_front *front = &run.front[mix_front_of(mix, m)];
		uint64_t next = front->emulator->module[m].next;

		if (!oracle_end(oracle, m, run.stopped || front->missed ? next : UINT64_MAX))
			wrong("module %u: the fault log does not fit what was sent", m);
		missed |= front->missed;
	}
	/* A run is over when the others have sent all that they had, and not before. */
	for (uint32_t m = 0; missed && m < mix->modules; m++)
		if (!oracle->stream[m].restarted && oracle->stream[m].sequences > mix->limit)
			wrong("who came back was not taken, though the run went on");
	oracle_run(oracle);
}

/* What a column of the ledger has of what the log of outcomes calls so. */
static uint64_t in_ledger(const struct sl_tally *t, enum verdict_of of)
{
	static const enum sl_cause cause[VERDICTS] = {
		[DARK] = SL_CAUSE_DARK,	      [PARTNER] = SL_CAUSE_PARTNER,
		[LATE] = SL_CAUSE_LATE,	      [OLDEST] = SL_CAUSE_OLDEST,
		[NO_SLOT] = SL_CAUSE_NO_SLOT, [OVERWRITTEN] = SL_CAUSE_OVERWRITTEN,
		[LOST] = SL_CAUSE_NO_ARRIVAL, [DAMAGED] = SL_CAUSE_DAMAGED,
	};

	return of == STORED ? t->outcome[SL_STORED] : t->cause[cause[of]];
}

/* The front ends' counts, the ledger's and those of the log are one. */
static void check_counts(const struct oracle *oracle, const struct verdict *verdict)
{
	struct sl_ledger *ledger = &run.receiver->ledger;

	for (uint32_t m = 0; m < oracle->modules; m++) {
		const struct sl_emulator *em = run.front[mix_front_of(&run.mix, m)].emulator;
		const struct oracle_stream *s = &oracle->stream[m];
		uint64_t sent = em->module[m].sent, all = 0;
		uint64_t skipped = oracle->gaps ? s->skipped : 0;
		struct sl_tally *t = &ledger->tally[m];

		for (unsigned i = 0; i < SL_OUTCOMES; i++)
			all += t->outcome[i];
		if (t->sent != sent || sent + skipped != s->sequences || t->skipped != skipped)
			wrong("module %u: %llu sent, %llu counted here, %llu of %llu skipped", m,
			      (unsigned long long)sent, (unsigned long long)t->sent,
			      (unsigned long long)t->skipped, (unsigned long long)skipped);
		if (all != s->sequences)
			wrong("module %u: the ledger has %llu outcomes", m,
			      (unsigned long long)all);
		for (unsigned i = STORED; i <= DAMAGED; i++)
			if (in_ledger(t, i) != verdict->count[m][i])
				wrong("module %u: the ledger and the log of outcomes differ in %s",
				      m, verdict_name[i]);
	}
	if (!ledger_closed(ledger))
		wrong("the ledger does not close");
}

/* Nothing that is called good was not looked at. */
static void check_pixels(const struct verdict *verdict)
{
	uint64_t good = 0;

	for (uint32_t m = 0; m < run.mix.modules; m++)
		good += verdict->count[m][STORED] + verdict->count[m][DARK];
	if (good != pixels.blocks)
		wrong("%llu module-frames are called good, the pixels of %llu were looked at",
		      (unsigned long long)good, (unsigned long long)pixels.blocks);
}

static void run_seed(uint64_t seed)
{
	struct oracle oracle;
	struct verdict verdict;

	alarm(WATCHDOG_S);
	mix_draw(&run.mix, seed);
	run_write_file(verbose);
	run_begin();
	run_finish();
	consult(&oracle);
	if (!verdict_init(&verdict, &run.mix, &oracle) || !verdict_read(&verdict, run.outcomes) ||
	    !verdict_compare(&verdict))
		wrong("%s", verdict.problem);
	check_counts(&oracle, &verdict);
	check_pixels(&verdict);
	tally_outcomes(tally, &verdict);
	run_end();
	for (unsigned i = STORED; i < VERDICTS && verbose; i++) {
		uint64_t n = 0;

		for (uint32_t m = 0; m < run.mix.modules; m++)
			n += verdict.count[m][i];
		if (n)
			printf("%llu %s\n", (unsigned long long)n, verdict_name[i]);
	}
	verdict_fini(&verdict);
	oracle_fini(&oracle);
	run_remove_files();
}

/* ---- many of them ---- */

struct child {
	pid_t pid;
	uint64_t seed;
	FILE *said;
};

static void start(struct child *child, uint64_t seed)
{
	child->seed = seed;
	child->said = tmpfile();
	assert_non_null(child->said);
	fflush(stdout);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid)
		return;
	if (dup2(fileno(child->said), 1) < 0 || dup2(fileno(child->said), 2) < 0)
		_exit(2);
	run_seed(seed);
	fflush(stdout);
	_exit(0);
}

/* What it said, unless all is well. */
static bool judge(struct child *child, int status)
{
	bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	char line[512];

	rewind(child->said);
	if (!good) {
		print_error("seed %llu: %s\n", (unsigned long long)child->seed,
			    !WIFSIGNALED(status)	  ? "failed"
			    : WTERMSIG(status) == SIGALRM ? "it hangs"
							  : strsignal(WTERMSIG(status)));
		while (fgets(line, sizeof(line), child->said))
			print_error("  %s", line);
		print_error("  repeat it with: %s %llu\n", program,
			    (unsigned long long)child->seed);
	}
	fclose(child->said);
	child->pid = 0;
	return good;
}

static void every_outcome_is_what_the_fault_log_implies(void **state)
{
	struct child child[AT_A_TIME] = {{0}};
	uint64_t next = 0, done = 0, failed = 0;

	while (done < seeds) {
		int status;
		pid_t pid;

		for (unsigned i = 0; i < AT_A_TIME && next < seeds; i++)
			if (!child[i].pid)
				start(&child[i], first_seed + next++);
		pid = wait(&status);
		for (unsigned i = 0; i < AT_A_TIME; i++)
			if (child[i].pid == pid) {
				failed += !judge(&child[i], status);
				done++;
			}
		if (verbose && done % 500 == 0)
			fprintf(stderr, "%llu seeds, %llu failed\n", (unsigned long long)done,
				(unsigned long long)failed);
	}
	assert_int_equal(failed, 0);
}

static void what_can_be_drawn_was(void **state)
{
	static struct mix mix;
	const char *missing;

	for (uint64_t i = 0; i < seeds; i++) {
		mix_draw(&mix, first_seed + i);
		tally_mix(tally, &mix);
	}
	missing = tally_print(tally, stderr, first_seed, seeds);
	/* A few seeds need not have it all. */
	if (missing && seeds >= 500)
		fail_msg("never: %s", missing);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_outcome_is_what_the_fault_log_implies),
		cmocka_unit_test(what_can_be_drawn_was),
	};

	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (tally == MAP_FAILED)
		return 1;
	program = argv[0];
	verbose = argc > 1;
	if (getenv("SLUICE_LONG")) /* tools/check.py --long */
		seeds = SANITIZED ? 60 : 500;
	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seeds = strtoull(argv[2], NULL, 0);
	if (argc == 2) {
		run_seed(first_seed);
		return 0;
	}
	return cmocka_run_group_tests_name("fault_mix", tests, NULL, NULL);
}
