/* recorder.h - the flight recorder: the last minute of a run, kept in memory, and written into
 * files when something is lost.
 *
 * Model:     a thread of low priority takes a sample four times a second: the status of the run,
 *            and what this host counts (host.h). Link threads sample headers of packets meanwhile
 *            (core/flight.h). When the first module-frame is lost the recorder goes on for a
 *            moment and then freezes: what it has is written as flight.json and flight.pcapng,
 *            once in a run. explain/explain.h makes a sentence of the former.
 * Threads:   open, begin, end and close on the control thread; is_frozen() on any thread.
 * Ownership: between begin and end the recorder reads the status and the taps of the run.
 * Errors:    none that matters to the run: what cannot be written is left out, with a warning.
 * Cost:      about 2.5 MiB; at most 1 % of a cpu, at nice 10: on hosts where a sample takes long,
 *            it is taken less often. Between runs the thread sleeps. The end of a run waits for a
 *            sample that is under way, and for its own files where something was lost. */
#ifndef SL_FLIGHT_RECORDER_H
#define SL_FLIGHT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/status.h>

#include "core/flight.h"
#include "flight/facts.h"

enum { SL_RECORDER_INTERVAL_MS = 250, SL_RECORDER_NAME = 256 };

struct sl_recorder;

struct sl_recorder_run {
	void (*status)(void *arg, struct sl_status *status);
	void *arg;
	const struct sl_flight_tap *tap; /* [taps]; NULL: no packets */
	unsigned taps;
	struct sl_flight_facts facts;
	/* Where the files go: an open folder, which stays open until end(), and their names in it;
	 * files of these names are replaced. */
	int dir;
	char json[SL_RECORDER_NAME], pcapng[SL_RECORDER_NAME];
	double after_s; /* how long it goes on after the first loss */
};

/* root: of /proc and /sys (base/sysfile.h). 0 or -errno. */
int sl_recorder_open(const char *root, struct sl_recorder **recorder);
void sl_recorder_close(struct sl_recorder *recorder); /* NULL: nothing */

void sl_recorder_begin(struct sl_recorder *recorder, const struct sl_recorder_run *run);
/* The run is over, its status final: freezes, if something was lost and it has not. True: there are
 * files. */
bool sl_recorder_end(struct sl_recorder *recorder);

/* The files of this run are there. recorder NULL: false. */
bool sl_recorder_is_frozen(const struct sl_recorder *recorder);

#endif
