/* record.c - what is frozen: a copy of everything, and its two files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "flight/private.h"

static int by_time(const void *a, const void *b)
{
	uint64_t x = ((const struct sl_flight_packet *)a)->at_ns;
	uint64_t y = ((const struct sl_flight_packet *)b)->at_ns;

	return (x > y) - (x < y);
}

/* Of all taps, in the order of their times. */
static int copy_packets(struct sl_flight_record *record, const struct sl_recorder_run *run)
{
	size_t room = 0;

	for (unsigned i = 0; i < run->taps; i++)
		room += (size_t)run->tap[i].mask + 1;
	record->packet = calloc(room ? room : 1, sizeof(*record->packet));
	if (!record->packet)
		return -ENOMEM;
	for (unsigned i = 0; i < run->taps; i++)
		record->packets += sl_flight_read(&run->tap[i], record->packet + record->packets,
						  room - record->packets);
	qsort(record->packet, record->packets, sizeof(*record->packet), by_time);
	return 0;
}

static void free_record(struct sl_flight_record *record)
{
	if (record->dir >= 0)
		close(record->dir);
	sl_series_close(record->series);
	free(record->packet);
	free(record);
}

struct sl_flight_record *sl_flight_record_take(const struct sl_recorder_run *run,
					       const struct sl_series_ring *series,
					       const struct sl_flight_host *host, uint64_t loss_ns)
{
	struct sl_flight_record *record = calloc(1, sizeof(*record));

	if (!record)
		return NULL;
	record->dir = fcntl(run->dir, F_DUPFD_CLOEXEC, 3);
	record->series = sl_series_open();
	if (!record->series || copy_packets(record, run)) {
		free_record(record);
		return NULL;
	}
	*record->series = *series;
	record->facts = run->facts;
	record->disks = host->disks;
	memcpy(record->disk, host->disk, sizeof(record->disk));
	record->loss_ns = loss_ns;
	record->taken_ns = sl_clock_ns();
	record->unix_ns = sl_clock_unix_ns() - record->taken_ns;
	memcpy(record->json, run->json, sizeof(record->json));
	memcpy(record->pcapng, run->pcapng, sizeof(record->pcapng));
	return record;
}

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Under another name until it is whole. */
static int write_file(int dir, const char *name, const char *text, size_t bytes)
{
	char part[SL_RECORDER_NAME + 8];
	int err = text ? 0 : -ENOMEM, fd;

	snprintf(part, sizeof(part), "%s.part", name);
	if (err)
		return err;
	fd = openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	err = write_all(fd, text, bytes);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(dir, part, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, part, 0);
	return err;
}

/* The packets first: flight.json is there only when they are. */
int sl_flight_record_write(struct sl_flight_record *record)
{
	size_t bytes = 0;
	char *text = sl_flight_pcapng(record, &bytes);
	int err = write_file(record->dir, record->pcapng, text, bytes);

	free(text);
	if (!err) {
		text = sl_flight_json(record, &bytes);
		err = write_file(record->dir, record->json, text, bytes);
		free(text);
	}
	free_record(record);
	return err;
}
