/* disk.c - disks and file systems that sinks write to, and what this process reads and writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "flight/host.h"

enum { SECTOR = 512 };

void sl_flight_find_disk(const char *root, struct sl_flight_disk *disk)
{
	struct sl_flight_host h = {.root = root, .text_bytes = 4096};
	char *text, *line;
	struct stat st;

	disk->major = disk->minor = 0;
	disk->name[0] = '\0';
	h.text = malloc(h.text_bytes);
	if (!h.text || stat(disk->path, &st))
		goto out;
	disk->major = major(st.st_dev);
	disk->minor = minor(st.st_dev);
	text = sl_flight_file(&h, "/proc/diskstats");
	while (text && (line = sl_flight_line(&text))) {
		uint64_t at[2] = {sl_flight_number(&line, 10), 0};
		char *name;

		at[1] = sl_flight_number(&line, 10);
		name = sl_flight_word(&line);
		if (name && at[0] == disk->major && at[1] == disk->minor)
			snprintf(disk->name, sizeof(disk->name), "%s", name);
	}
out:
	free(h.text);
}

/* "major minor name", then reads, merged, sectors, ms; writes, merged, sectors, ms; under way now,
 * ms busy, ... */
static void sample_disk(char *line, const char *name, struct sl_series_ring *ring)
{
	uint64_t field[10];

	for (unsigned i = 0; i < 10; i++)
		field[i] = sl_flight_number(&line, 10);
	sl_series_put(ring, SL_SERIES_COUNTER, "bytes", field[2] * SECTOR, "disk.%s.read", name);
	sl_series_put(ring, SL_SERIES_COUNTER, "bytes", field[6] * SECTOR, "disk.%s.written", name);
	sl_series_put(ring, SL_SERIES_COUNTER, "", field[4], "disk.%s.writes", name);
	sl_series_put(ring, SL_SERIES_COUNTER, "ms", field[7], "disk.%s.write_time", name);
	sl_series_put(ring, SL_SERIES_GAUGE, "", field[8], "disk.%s.under_way", name);
	sl_series_put(ring, SL_SERIES_COUNTER, "ms", field[9], "disk.%s.busy", name);
}

static void sample_diskstats(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	char *text = sl_flight_file(h, "/proc/diskstats"), *line;

	while (text && (line = sl_flight_line(&text))) {
		char *name;

		sl_flight_number(&line, 10);
		sl_flight_number(&line, 10);
		name = sl_flight_word(&line);
		for (unsigned i = 0; name && i < h->disks; i++)
			if (!strcmp(name, h->disk[i].name)) {
				sample_disk(line, name, ring);
				break;
			}
	}
}

static void sample_space(const struct sl_flight_host *h, struct sl_series_ring *ring)
{
	struct statvfs fs;

	for (unsigned i = 0; i < h->disks; i++)
		if (!statvfs(h->disk[i].path, &fs))
			sl_series_put(ring, SL_SERIES_GAUGE, "bytes",
				      (uint64_t)fs.f_bavail * fs.f_frsize, "space.%u", i);
}

static void sample_io(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	char *text = sl_flight_file(h, "/proc/self/io"), *line;

	while (text && (line = sl_flight_line(&text))) {
		char *key = sl_flight_word(&line);

		if (key && (!strcmp(key, "read_bytes:") || !strcmp(key, "write_bytes:") ||
			    !strcmp(key, "wchar:")))
			sl_series_put(ring, SL_SERIES_COUNTER, "bytes", sl_flight_number(&line, 10),
				      "io.%.*s", (int)strcspn(key, ":"), key);
	}
}

void sl_flight_sample_disks(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	sample_diskstats(h, ring);
	sample_space(h, ring);
	sample_io(h, ring);
}
