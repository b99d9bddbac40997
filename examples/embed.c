/* embed.c - run an experiment inside a program of your own, and print its ledger.
 *
 *   cc embed.c $(pkg-config --cflags --libs sluice) -o embed
 *   ./embed examples/jungfrau-laptop.yaml [section.key=value ...] */
#include <sluice/sluice.h>
#include <stdio.h>

static struct sl_status status; /* 70 kB: not on the stack */

int main(int argc, char **argv)
{
	const struct sl_session_options options = {
		.bytes = sizeof(options),
		.path = argc > 1 ? argv[1] : "experiment.yaml",
		.set = (const char *const *)argv + 2,
		.sets = argc > 2 ? (size_t)argc - 2 : 0,
	};
	const uint32_t over = 1u << SL_STATE_ENDED | 1u << SL_STATE_FAULT;
	struct sl_session *session;
	struct sl_error error;
	int result;

	if (sl_session_open(&options, &session, &error))
		return sl_error_exit(error.code);
	sl_session_start(session);
	while (sl_session_wait(session, over, 1000) < 0) {
		sl_session_status(session, &status, sizeof(status));
		printf("%llu of %llu frames\n", (unsigned long long)status.frames,
		       (unsigned long long)status.expected_frames);
	}
	sl_session_status(session, &status, sizeof(status));
	for (uint32_t m = 0; m < status.modules; m++)
		for (int o = SL_STORED; o < SL_OUTCOMES; o++)
			if (status.column[m].outcome[o])
				printf("module %u: %llu %s\n", m,
				       (unsigned long long)status.column[m].outcome[o],
				       sl_outcome_name((enum sl_outcome)o));
	result = sl_session_exit(session);
	sl_session_close(session);
	return result;
}
