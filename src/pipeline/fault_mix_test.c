/* fault_mix_test.c - whatever goes wrong, alone or together, the account is exact: experiments and
 * faults drawn from seeds, each run with both sides in one process, each outcome compared with what
 * the front end's fault log implies.
 *
 * Usage: pipeline_fault_mix_test [FIRST [COUNT]]. Seeds FIRST.. each run in a process of their own,
 * a few at a time, under a watchdog. A failure names the seed and the command that repeats it; one
 * seed alone runs here, and says what it does. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "lib/fault_mix.h"
#include "lib/fault_oracle.h"
#include "pipeline/emulate.h"
#include "pipeline/receive.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { AT_A_TIME = 4, WATCHDOG_S = SANITIZED ? 240 : 60 };

static uint64_t first_seed = 1, seeds = SANITIZED ? 60 : 400;
static bool verbose;
static const char *program;

static struct run {
	struct mix mix;
	char folder[64], file[96], log[96], outcomes[96];
	struct sl_experiment *here, *there;
	struct sl_receive *receive;
	struct sl_emulate *emulate;
	uint64_t wrong_pixels;
	pthread_t server;
	_Atomic uint32_t ended;
} run;

/* ---- one seed, in a process of its own ---- */

static void wrong(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

static void write_file(void)
{
	unsigned pid = (unsigned)getpid(), net = 11 + pid / 31250 % 80, sub = 1 + pid / 125 % 250;
	char listen[32], source[32];
	const char *tmp = getenv("TMPDIR");
	FILE *file;

	snprintf(run.folder, sizeof(run.folder), "%s/sluice-mix-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(run.folder))
		wrong("no folder: %s", strerror(errno));
	snprintf(run.file, sizeof(run.file), "%s/mix.yaml", run.folder);
	snprintf(run.log, sizeof(run.log), "%s/faults.txt", run.folder);
	snprintf(run.outcomes, sizeof(run.outcomes), "%s/outcomes.txt", run.folder);
	snprintf(listen, sizeof(listen), "127.%u.%u.%u", net, sub, pid % 125 * 2 + 1);
	snprintf(source, sizeof(source), "127.%u.%u.%u", net, sub, pid % 125 * 2 + 2);
	file = fopen(run.file, "w");
	if (!file)
		wrong("no file: %s", strerror(errno));
	mix_write(&run.mix, file, listen, source, run.log);
	if (verbose)
		mix_write(&run.mix, stdout, listen, source, run.log);
	fclose(file);
	if (run.mix.stacked) /* each transfer has a log of its own */
		snprintf(run.log, sizeof(run.log), "%s/faults.txt.part", run.folder);
}

static void remove_files(void)
{
	unlink(run.file);
	unlink(run.log);
	unlink(run.outcomes);
	rmdir(run.folder);
}

/* Shared memory is handed over in a conversation: who asks here must be answered elsewhere. */
static void *serve(void *arg)
{
	while (!atomic_load(&run.ended)) {
		sl_receive_serve(run.receive);
		sl_clock_sleep_until(sl_clock_ns() + 500000);
	}
	return arg;
}

static void begin(void)
{
	const char *transfer = run.mix.stacked ? "part" : NULL;
	char why[128] = "";

	if (sl_experiment_open(run.file, transfer, NULL, 0, &run.here) ||
	    sl_experiment_open(run.file, transfer, NULL, 0, &run.there) ||
	    sl_receive_open(run.here, run.outcomes, &run.receive) ||
	    sl_emulate_open(run.there, 0, UINT32_MAX, &run.emulate) ||
	    sl_emulate_plan_begin(run.emulate))
		wrong("it cannot be opened");
	if (pthread_create(&run.server, NULL, serve, NULL))
		wrong("no thread");
	for (uint32_t m = 0; m < run.mix.modules; m++) {
		struct sl_offer offer;
		struct sl_plan plan;

		if (sl_emulate_offer(run.emulate, m, &offer))
			wrong("module %u cannot offer", m);
		if (run.mix.open_loop)
			offer.credit_va = 0;
		if (sl_receive_accept(run.receive, &offer, true, &plan, why, sizeof(why)) ||
		    sl_emulate_connect(run.emulate, &plan))
			wrong("module %u finds no plan: %s", m, why);
		if (plan.packets != run.mix.packets)
			wrong("%u packets a block, not %u", plan.packets, run.mix.packets);
	}
	if (sl_receive_start(run.receive) || sl_emulate_start(run.emulate))
		wrong("it cannot be started");
}

static void pass_counts(bool final)
{
	for (uint32_t m = 0; m < run.mix.modules; m++) {
		struct sl_emulate_module *module = &run.emulate->module[m];
		uint64_t position = atomic_load(&module->position);
		uint64_t sent = atomic_load(&module->sent), next = atomic_load(&module->next);
		char why[128];

		if (sl_receive_count(run.receive, m, next, sent, position, final, why, sizeof(why)))
			wrong("%s", why);
	}
}

static void figure(void *arg, const char *name, uint64_t value, int failed)
{
	*(uint64_t *)arg += failed ? value : 0;
}

static void finish(void)
{
	int err;

	while (!sl_emulate_finished(run.emulate)) {
		pass_counts(false);
		sl_emulate_log_faults(run.emulate);
		sl_clock_sleep_until(sl_clock_ns() + 2000000);
	}
	pass_counts(true);
	while (!sl_receive_done(run.receive))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	err = sl_emulate_plan_end(run.emulate);
	if (err)
		wrong("sending failed: %s", strerror(-err));
	err = sl_receive_finish(run.receive);
	if (err)
		wrong("a sink failed: %s", strerror(-err));
	atomic_store(&run.ended, 1);
	pthread_join(run.server, NULL);
	if (run.here->sinks > 1)
		run.here->sink[1]->figures(run.here->sink_state[1], figure, &run.wrong_pixels);
}

static void end(void)
{
	sl_emulate_close(run.emulate);
	sl_receive_close(run.receive);
	sl_experiment_close(run.here);
	sl_experiment_close(run.there);
}

/* ---- what must be true of it ---- */

static void consult(struct oracle *oracle)
{
	const struct mix *mix = &run.mix;

	*oracle = (struct oracle){
		.way = mix->shm	 ? ORACLE_MEMORY
		       : mix->rc ? ORACLE_RC
				 : ORACLE_UC,
		.message = mix->message_packets,
		.crc = mix->crc,
		.modules = mix->modules,
		.packets = mix->packets,
		.hold = mix->hold,
		.frames = mix->frames,
		.darks = mix->darks,
	};
	oracle_init(oracle);
	if (!oracle_read(oracle, run.log))
		wrong("the fault log cannot be true");
	oracle_run(oracle);
}

/* Without credits more may be lost than was hurt, as fast as it goes. What is called good must
 * still be. */
static bool bad(const char *outcome)
{
	return !strcmp(outcome, "overrun") || !strcmp(outcome, "lost") ||
	       !strcmp(outcome, "incomplete");
}

/* Every sequence of every module has one outcome, and it is the one that was foretold. How many of
 * them were good. */
static uint64_t compare(const struct oracle *oracle)
{
	uint64_t blocks = (uint64_t)oracle->modules * oracle->frames, good = 0;
	uint8_t *seen = calloc(blocks, 1);
	FILE *file = fopen(run.outcomes, "r");
	char outcome[32], cause[32], both[64];
	unsigned long long k;
	unsigned m;

	if (!seen || !file)
		wrong("no outcomes");
	while (fscanf(file, "%llu %u %31s %31s", &k, &m, outcome, cause) == 4) {
		if (m >= oracle->modules || k >= oracle->frames)
			wrong("outcome of module %u, sequence %llu: there is none", m, k);
		if (seen[oracle_at(oracle, m, k)]++)
			wrong("module %u, sequence %llu has two outcomes", m, k);
		snprintf(both, sizeof(both), "%s %s", outcome, cause);
		if (strcmp(both, oracle_says(oracle, m, k)) != 0 &&
		    !(run.mix.open_loop && bad(outcome)))
			wrong("module %u, sequence %llu: %s, but the fault log implies %s", m, k,
			      both, oracle_says(oracle, m, k));
		good += !oracle_hurt(oracle, m, k);
		blocks--;
	}
	if (blocks)
		wrong("%llu module-frames have no outcome", (unsigned long long)blocks);
	fclose(file);
	free(seen);
	return good;
}

static void check_counts(const struct oracle *oracle)
{
	struct sl_ledger *ledger = &run.receive->ledger;

	for (uint32_t m = 0; m < oracle->modules; m++) {
		uint64_t sent = run.emulate->module[m].sent, all = 0;
		struct sl_tally *tally = &ledger->tally[m];

		for (unsigned i = 0; i < SL_OUTCOMES; i++)
			all += tally->outcome[i];
		if (tally->sent != sent || sent + oracle->skipped[m] != oracle->frames ||
		    tally->skipped != oracle->skipped[m])
			wrong("module %u: %llu sent, %llu counted here, %llu of %llu skipped", m,
			      (unsigned long long)sent, (unsigned long long)tally->sent,
			      (unsigned long long)tally->skipped,
			      (unsigned long long)oracle->skipped[m]);
		if (all != oracle->frames)
			wrong("module %u: the ledger has %llu outcomes", m,
			      (unsigned long long)all);
	}
	if (!sl_ledger_closed(ledger))
		wrong("the ledger does not close");
	if (run.wrong_pixels)
		wrong("%llu frames called complete are wrong",
		      (unsigned long long)run.wrong_pixels);
}

static void run_seed(uint64_t seed)
{
	struct oracle oracle;
	uint64_t good;

	alarm(WATCHDOG_S);
	mix_draw(&run.mix, seed);
	write_file();
	begin();
	finish();
	consult(&oracle);
	good = compare(&oracle);
	check_counts(&oracle);
	end();
	if (verbose)
		printf("%llu faults; %llu of %llu module-frames unhurt\n",
		       (unsigned long long)oracle.faults, (unsigned long long)good,
		       (unsigned long long)(oracle.modules * oracle.frames));
	oracle_fini(&oracle);
	remove_files();
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_outcome_is_what_the_fault_log_implies),
	};

	program = argv[0];
	verbose = argc > 1;
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
