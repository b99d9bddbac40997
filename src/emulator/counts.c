/* counts.c - a queue per module, and the lines that become of it. */
#include "emulator/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/counts.h"
#include "base/clock.h"
#include "base/file/part_file.h"
#include "base/log.h"
#include "emulator/emulator.h"

enum { NOTES = 4096, NAP_NS = 100 * 1000 };

enum what { SENT, SENT_WITH_CRC, LEFT_OUT };

struct note {
	uint64_t sequence;
	uint32_t crc, what;
};

struct module_notes {
	_Alignas(64) _Atomic uint64_t noted;   /* by the sending thread */
	_Alignas(64) _Atomic uint64_t written; /* by the control thread */
	struct note note[NOTES];
};

struct sl_emulator_counts {
	FILE *file;
	struct module_notes module[];
};

int sl_emulator_counts_open(struct sl_emulator *em)
{
	const struct sl_fault_options *o = &em->experiment->faults;
	const char *transfer = em->experiment->transfer;
	size_t bytes = sizeof(*em->counts) + em->geometry.modules * sizeof(struct module_notes);
	char path[sizeof(o->counts) + SL_TRANSFER_NAME + 1];
	int fd;

	if (!o->counts[0])
		return 0;
	/* Transfers of one file have one front end, and a text each. */
	snprintf(path, sizeof(path), "%s%s%s", o->counts, transfer[0] ? "." : "", transfer);
	em->counts = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!em->counts)
		return -ENOMEM;
	em->counts->file = NULL;
	fd = sl_output_open(path);
	if (fd < 0)
		return fd;
	em->counts->file = fdopen(fd, "w");
	if (em->counts->file)
		return 0;
	close(fd);
	return -ENOMEM;
}

void sl_emulator_counts_close(struct sl_emulator *em)
{
	if (em->counts && em->counts->file)
		fclose(em->counts->file);
	free(em->counts);
	em->counts = NULL;
}

void sl_emulator_counts_begin(struct sl_emulator *em)
{
	struct sl_emulator_counts *c = em->counts;

	if (!c)
		return;
	for (uint32_t m = 0; m < em->geometry.modules; m++) {
		atomic_store(&c->module[m].noted, 0);
		atomic_store(&c->module[m].written, 0);
	}
	/* A front end that comes back to the same run goes on with its account. */
	if (!em->joined) {
		rewind(c->file);
		if (ftruncate(fileno(c->file), 0))
			sl_debug("frontend.counts: no ordinary file, and not emptied");
	}
	fprintf(c->file, SL_COUNTS_HEAD "\n");
}

static int add(struct sl_emulator *em, uint32_t module, const struct note *note)
{
	struct module_notes *m = &em->counts->module[module];
	uint64_t n = atomic_load_explicit(&m->noted, memory_order_relaxed);

	/* Acquire: pairs with the release of the control thread, which has read the note. */
	while (n - atomic_load_explicit(&m->written, memory_order_acquire) == NOTES) {
		if (atomic_load_explicit(&em->stop, memory_order_relaxed) > 1)
			return -ECANCELED;
		sl_clock_sleep_until(sl_clock_ns() + NAP_NS);
	}
	m->note[n % NOTES] = *note;
	atomic_store_explicit(&m->noted, n + 1, memory_order_release);
	return 0;
}

int sl_emulator_counts_note(struct sl_emulator *em, uint32_t module, const struct sl_record *record)
{
	const struct note note = {.sequence = record->sequence,
				  .crc = record->crc32c,
				  .what = record->flags & SL_RECORD_CRC ? SENT_WITH_CRC : SENT};

	return em->counts ? add(em, module, &note) : 0;
}

int sl_emulator_counts_leave_out(struct sl_emulator *em, uint32_t module, uint64_t sequence)
{
	const struct note note = {.sequence = sequence, .what = LEFT_OUT};

	/* Where sequences have no gaps, the next frame has its number. */
	return em->counts && em->module[module].gaps ? add(em, module, &note) : 0;
}

static void write_module(struct sl_emulator *em, uint32_t module)
{
	struct module_notes *m = &em->counts->module[module];
	uint64_t next = atomic_load_explicit(&em->module[module].next, memory_order_relaxed);
	uint64_t n = atomic_load_explicit(&m->written, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&m->noted, memory_order_acquire);

	for (; n < end && m->note[n % NOTES].sequence < next; n++) {
		const struct note *note = &m->note[n % NOTES];

		if (note->what == SENT_WITH_CRC)
			fprintf(em->counts->file, "crc %u %llu %08x\n", module,
				(unsigned long long)note->sequence, note->crc);
		else if (note->what == LEFT_OUT)
			fprintf(em->counts->file, "left_out %u %llu\n", module,
				(unsigned long long)note->sequence);
	}
	atomic_store_explicit(&m->written, n, memory_order_release);
}

void sl_emulator_counts_write(struct sl_emulator *em)
{
	for (uint32_t m = em->first_module; em->counts && m < em->end_module; m++)
		write_module(em, m);
}

void sl_emulator_counts_end(struct sl_emulator *em)
{
	if (!em->counts)
		return;
	sl_emulator_counts_write(em);
	for (uint32_t m = em->first_module; m < em->end_module; m++) {
		uint64_t first = em->module[m].plan.first_sequence;
		uint64_t next = atomic_load(&em->module[m].next);

		fprintf(em->counts->file, "module %u first %llu count %llu\n", m,
			(unsigned long long)first,
			(unsigned long long)(next > first ? next - first : 0));
	}
	fflush(em->counts->file);
}
