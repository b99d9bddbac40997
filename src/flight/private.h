/* private.h - what the files of the recorder share.
 *
 * Files:     recorder.c the thread, and when it freezes; status.c series of a run; record.c what
 *            is frozen; pcapng.c packets as a file for tshark; write.c flight.json.
 * Ownership: a record is a copy: it is written while the recorder goes on. */
#ifndef SL_FLIGHT_PRIVATE_H
#define SL_FLIGHT_PRIVATE_H

#include <stddef.h>

#include "flight/host.h"
#include "flight/recorder.h"

struct sl_flight_record {
	struct sl_flight_facts facts;
	struct sl_series_ring *series; /* a copy */
	struct sl_flight_packet *packet;
	size_t packets;
	unsigned disks;
	struct sl_flight_disk disk[SL_FLIGHT_DISKS];
	uint64_t loss_ns;  /* CLOCK_MONOTONIC, of the first sample with a loss */
	uint64_t taken_ns; /* when it was frozen */
	uint64_t unix_ns;  /* to be added to CLOCK_MONOTONIC for the wall clock */
	int dir;	   /* a duplicate; -1: none */
	char json[SL_RECORDER_NAME], pcapng[SL_RECORDER_NAME];
};

/* status.c */
void sl_flight_sample_status(const struct sl_status *status, struct sl_series_ring *ring);
/* Module-frames with an outcome that is a loss. */
uint64_t sl_flight_lost(const struct sl_status *status);

/* record.c. NULL: no memory. */
struct sl_flight_record *sl_flight_record_take(const struct sl_recorder_run *run,
					       const struct sl_series_ring *series,
					       const struct sl_flight_host *host, uint64_t loss_ns);
/* Both files, whole or not at all; 0 or -errno, not logged. Frees the record. */
int sl_flight_record_write(struct sl_flight_record *record);

/* pcapng.c, write.c: a whole file as text; NULL: no memory. */
char *sl_flight_pcapng(const struct sl_flight_record *record, size_t *bytes);
char *sl_flight_json(const struct sl_flight_record *record, size_t *bytes);

#endif
