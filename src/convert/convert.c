/* convert.c - raw file to NeXus file. */
#include "convert/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "convert/journal.h"
#include "convert/pump.h"
#include "hdf5/rolled/data_files.h"
#include "hdf5/rolled/old_files.h"
#include "sink/nexus/nexus.h"
#include "sink/row.h"

#ifndef SL_VERSION
#define SL_VERSION "unknown"
#endif

struct conversion {
	const struct sl_convert_options *o;
	struct sl_recorded recorded;
	void *state;
	struct sl_journal journal;
	struct sl_status *status;
	struct sl_converted *converted;
	bool opened;	   /* the sink has begun the file */
	uint32_t files;	   /* data files that were begun */
	uint64_t *entries; /* [files]: with which each began */
};

/* Fields that decide how the file looks; which threads write it and when does not. */
static bool decides(const char *option)
{
	static const char *const others[] = {"path", "workers", "flush_s"};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(option, others[i]))
			return false;
	return true;
}

/* What is converted and how; malloc'ed. */
static char *describe(const struct conversion *c)
{
	char *text = NULL, value[1100];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fprintf(out,
		SL_JOURNAL_HEAD "1\nversion %s\ngeneration %016" PRIx64 "\nframes %" PRIu64 "\n",
		SL_VERSION, c->recorded.facts.generation, c->recorded.facts.chunks);
	for (const struct sl_option *o = sl_sink_nexus.options; o->name; o++) {
		if (!decides(o->name))
			continue;
		sl_option_print(o, c->state, value, sizeof(value));
		fprintf(out, "option %s=%s\n", o->name, value);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int check_state(const struct sl_recorded *r)
{
	if (r->facts.state == SL_RAW_WRITING) {
		sl_error("%s: is being written: wait for the end of the run, or take a part of it "
			 "with sluice cut",
			 r->path);
		return -EBUSY;
	}
	if (r->facts.first) {
		sl_error("%s: is a rolling buffer, and its first %" PRIu64 " frames are gone: take "
			 "what is there with sluice cut %s --last 1000000s OUT",
			 r->path, r->facts.first, r->path);
		return -EINVAL;
	}
	return 0;
}

void sl_convert_count(struct sl_status *status, const struct sl_frame *frame)
{
	uint8_t outcome[SL_STATUS_MODULES], cause[SL_STATUS_MODULES];

	sl_row_outcomes(frame, status->modules, outcome, cause);
	for (uint32_t m = 0; m < status->modules; m++) {
		struct sl_status_column *column = &status->column[m];

		if (outcome[m] == SL_NO_OUTCOME)
			continue;
		column->outcome[outcome[m]]++;
		column->cause[cause[m]]++;
		column->settled++;
		column->sent++;
	}
	status->frames++;
}

/* ---- an earlier conversion ---- */

/* A file without data files began as OUT.part, after the journal. One that is older is not of that
 * conversion; one that another process writes stays. */
static void drop_part(const struct conversion *c)
{
	char part[PATH_MAX];
	struct stat st;
	int fd;

	if ((size_t)snprintf(part, sizeof(part), "%s.part", c->o->out) >= sizeof(part))
		return;
	fd = open(part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && !flock(fd, LOCK_EX | LOCK_NB) &&
	    sl_h5_is_since(&st, c->journal.begun_ns))
		sl_own_file_remove(fd, part);
	if (fd >= 0)
		close(fd);
}

/* What is at OUT now: what the earlier conversion left, nothing, or another file, which stays.
 * *done: the earlier one has finished it. */
static int look_at_out(const struct conversion *c, bool *done)
{
	struct sl_h5 *file;
	char state[16] = "";
	struct stat st;

	*done = false;
	if (!c->journal.resumes || c->o->overwrite || lstat(c->o->out, &st))
		return 0;
	if (!sl_h5_open(c->o->out, &file)) {
		sl_h5_read_text(file, SL_NEXUS_STATE, 0, state, sizeof(state));
		sl_h5_close(file);
	}
	if (!strcmp(state, "writing"))
		return 0;
	/* Of a run that had come to its end, sluice recover makes a file with fewer rows. */
	*done = c->journal.closing && !strcmp(state, c->recorded.ended ? "complete" : "recovered");
	if (*done)
		return 0;
	sl_error("%s exists, and is not what an earlier conversion left: move it away, choose "
		 "another name, or give --overwrite",
		 c->o->out);
	return -EEXIST;
}

/* What the earlier conversion left goes, but for data files that are whole. If it had come to none,
 * the files that it was to replace come back first. */
static int make_place(const struct conversion *c)
{
	uint32_t back;
	int r = 0;

	drop_part(c);
	if (!c->journal.files)
		r = sl_h5_old_bring_back(c->o->out, &back);
	return r ? r
		 : sl_h5_remove_set(c->o->out, c->journal.file_set, c->journal.files,
				    c->journal.begun_ns);
}

/* ---- the conversion ---- */

/* Data files that are on disk by now. */
static int note_files(struct conversion *c, uint64_t entry)
{
	uint32_t files = sl_nexus_data_files(c->state), safe = sl_nexus_safe_files(c->state);
	int r = 0;

	if (files > c->files) {
		uint64_t *more = realloc(c->entries, files * sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->entries = more;
		c->entries[c->files++] = entry;
	}
	while (c->journal.files < safe && c->journal.files + 1 < c->files && !r)
		r = sl_journal_add(&c->journal, c->entries[c->journal.files + 1]);
	return r;
}

static int after(void *arg, uint64_t entry, const struct sl_frame *frame)
{
	struct conversion *c = arg;

	c->converted->rows++;
	if (!c->recorded.ended)
		sl_convert_count(c->status, frame);
	if (c->o->progress)
		c->o->progress(c->o->arg, entry + 1, c->recorded.facts.chunks);
	return note_files(c, entry);
}

static int pump(struct conversion *c)
{
	struct sl_pump pump = {.from = &c->recorded,
			       .end = c->recorded.facts.chunks,
			       .sink = &sl_sink_nexus,
			       .state = c->state,
			       .after = after,
			       .arg = c};

	if (c->journal.files && !sl_nexus_reads_images(c->state))
		pump.prepared = c->journal.file[c->journal.files - 1].entries;
	return sl_pump_run(&pump);
}

static void find_images(void *arg, const char *name, uint64_t value, int failed)
{
	(void)failed;
	if (!strcmp(name, "frames"))
		*(uint64_t *)arg = value;
}

/* The end as the recording has it, or as far as its rows tell. */
static void make_status(struct conversion *c)
{
	const struct sl_recorded *r = &c->recorded;
	struct sl_status *s = c->status;

	if (r->ended) {
		*s = r->status;
		return;
	}
	s->modules = r->run.geometry.modules;
	s->sources_gone = s->modules;
	s->sources_alive = 1; /* it is not known that they have ended: the ledger stays open */
	s->ended_unix_ns = r->facts.chunks
				   ? sl_raw_entry(r->reader, r->facts.chunks - 1)->key.arrived_ns
				   : r->run.env.began_unix_ns;
}

static int write_file(struct conversion *c)
{
	struct sl_nexus_rebuild rebuild = {
		.kept_files = c->journal.files,
		.file_set = c->journal.file_set,
		.state = c->recorded.ended ? NULL : "recovered",
		.recorder = "raw",
		.recorded_at = c->recorded.run.where,
	};
	const struct sl_recorded *r = &c->recorded;
	int err;

	if (r->ended && r->status.frames > r->facts.chunks)
		rebuild.refused = r->status.frames - r->facts.chunks;
	make_status(c);
	sl_nexus_set_rebuild(c->state, &rebuild);
	err = sl_sink_nexus.open(c->state, &r->run.env);
	if (err) {
		sl_sink_nexus.close(c->state, NULL);
		return err;
	}
	c->opened = true;
	err = pump(c);
	if (err) {
		sl_nexus_leave(c->state);
		return err;
	}
	sl_sink_nexus.figures(c->state, find_images, &c->converted->images);
	err = sl_journal_closing(&c->journal);
	if (err) {
		sl_nexus_leave(c->state);
		return err;
	}
	return sl_sink_nexus.close(c->state, c->status);
}

static int convert(struct conversion *c)
{
	char *what;
	bool begun, done = false;
	int r = check_state(&c->recorded);

	if (r)
		return r;
	c->state = sl_convert_sink(&c->recorded, c->o->out, c->o->overwrite, c->o->set, c->o->sets);
	if (!c->state)
		return -EINVAL;
	what = describe(c);
	r = what ? sl_journal_open(c->o->out, what, c->o->overwrite, &c->journal) : -ENOMEM;
	free(what);
	begun = !r;
	if (!r)
		r = look_at_out(c, &done);
	c->converted->done = done;
	if (!r && !done) {
		c->converted->kept_files = c->journal.files;
		c->converted->whole = c->recorded.ended;
		r = c->journal.resumes ? make_place(c) : 0;
		r = r ? r : write_file(c);
	}
	/* Nothing was written: there is nothing to go on with. */
	sl_journal_close(&c->journal, begun && (!r || (!c->journal.resumes && !c->opened)));
	return r;
}

int sl_convert(const struct sl_convert_options *o, struct sl_converted *converted)
{
	struct conversion *c = calloc(1, sizeof(*c));
	int r;

	*converted = (struct sl_converted){.rows = 0};
	if (!c)
		return -ENOMEM;
	c->o = o;
	c->converted = converted;
	c->journal.fd = -1;
	c->status = calloc(1, sizeof(*c->status));
	r = c->status ? sl_recorded_open(o->raw, &c->recorded) : -ENOMEM;
	if (!r)
		r = convert(c);
	if (c->status)
		sl_recorded_close(&c->recorded);
	free(c->status);
	free(c->state);
	free(c->entries);
	free(c);
	return r;
}
