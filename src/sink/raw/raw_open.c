/* raw_open.c - the options of the sink `raw`, and the beginning of its files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/part_file.h"
#include "base/file/path_words.h"
#include "base/log.h"
#include "sink/raw/raw_sink.h"

/* Of a data file with one frame: head, header, trailer, index. And frames in the least window. */
enum { FILE_OVERHEAD = 4 * 4096, WINDOW_FRAMES = 10 };

/* For the status and the metadata at the end (stored_end.h). */
enum { TAIL_BYTES = 512 << 10 };

const struct sl_option sl_raw_sink_options[] = {
	SL_OUTPUT(struct sl_raw_sink, path, "run.raw",
		  "the run file; data files NAME_raw_000001.bin and so on lie beside it, or in "
		  "folders"),
	SL_STRING(struct sl_raw_sink, dataset, "image",
		  "the stage's result that is stored; raw: pixels as the detector sent them; none: "
		  "rows and small results alone"),
	SL_OUTPUT_FOLDERS(struct sl_raw_sink, folders,
			  "folders for data files, separated by commas, on as many disks: they are "
			  "filled in turn; words in braces are replaced as in path; empty: the "
			  "folder of path"),
	SL_F64(struct sl_raw_sink, keep_s, 0, 0, 1e6, "s",
	       "a rolling buffer of the last seconds, for sluice cut; 0: keep everything"),
	SL_U64(struct sl_raw_sink, keep_bytes, 0, 0, 1e15, "bytes",
	       "a rolling buffer of at most this size; 0: no limit"),
	SL_CHOICE(struct sl_raw_sink, frames, auto, "auto|kept|all",
		  "whose images are stored: of kept frames, or of rejected and dark ones, too; "
		  "auto: kept, and all in a rolling buffer. Every frame has a row in any case"),
	SL_F64(struct sl_raw_sink, flush_s, 1, 0.01, 3600, "s",
	       "what is older than this survives a killed receiver and a power failure"),
	SL_U64(struct sl_raw_sink, file_bytes, 0, 0, 1e15, "bytes",
	       "size of a data file; 0: 1 GiB, in a rolling buffer 128 MiB"),
	SL_BOOL(struct sl_raw_sink, cached, false,
		"write through the page cache: for disks that are slow with O_DIRECT"),
	SL_BOOL(struct sl_raw_sink, overwrite, false,
		"replace a raw file that is at path already, and its data files"),
	SL_CHOICE(struct sl_raw_sink, on_slow, auto, "auto|wait|prescale|stop|drop",
		  "when it cannot keep pace: front ends wait; or of N kept frames one is stored, "
		  "with N as small as possible; or the run stops; or, in a rolling buffer, frames "
		  "that come meanwhile are left out. auto: wait, and drop in a rolling buffer"),
	SL_REQUIRED(struct sl_raw_sink, required),
	SL_OPTION_END};

/* The result to store, or a message that says which there are. */
static int choose(const struct sl_raw_sink *raw, const struct sl_env *env, int32_t *image)
{
	char names[SL_RESULTS * (SL_NAME_BYTES + 2)] = "";
	size_t at = 0;

	*image = SL_STORED_NO_IMAGE;
	if (!strcmp(raw->dataset, "none"))
		return 0;
	for (uint32_t i = 0; i < env->results; i++) {
		if (!strcmp(env->result[i].name, raw->dataset)) {
			*image = (int32_t)i;
			return 0;
		}
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       env->result[i].name);
	}
	if (env->results)
		sl_error("raw: no stage makes '%s'; set dataset to what there is: %s, raw or none",
			 raw->dataset, names);
	else
		sl_error("raw: no stage makes '%s': add one to stages, for example '- correct:', "
			 "or set dataset: raw",
			 raw->dataset);
	return -EINVAL;
}

/* folder[i] points into text. */
static int split_folders(char *text, const char **folder, unsigned *folders)
{
	const char *rest = text, *one;
	size_t bytes;

	*folders = 0;
	while (sl_path_list_next(&rest, &one, &bytes)) {
		if (*folders == SL_RAW_SINK_FOLDERS) {
			sl_error("raw: folders: more than %d", SL_RAW_SINK_FOLDERS);
			return -EINVAL;
		}
		folder[(*folders)++] = one;
		text[one - text + (ptrdiff_t)bytes] = 0; /* at most a comma, which rest is behind */
	}
	return 0;
}

void sl_raw_sink_end_old(struct sl_raw_sink *raw, bool bring_back)
{
	char aside[PATH_MAX + sizeof(SL_RAW_REPLACED)];

	for (uint32_t i = 0; i < raw->olds; i++) {
		snprintf(aside, sizeof(aside), "%s" SL_RAW_REPLACED, raw->old[i]);
		if (bring_back)
			sl_rename_new(aside, raw->old[i]);
		else
			unlink(aside);
		free(raw->old[i]);
	}
	free(raw->old);
	raw->old = NULL;
	raw->olds = 0;
}

static int set_aside(struct sl_raw_sink *raw, const char *file)
{
	char aside[PATH_MAX + sizeof(SL_RAW_REPLACED)], *name;
	int r;

	if (strlen(file) >= PATH_MAX)
		return -ENAMETOOLONG;
	name = strdup(file);
	if (!name)
		return -ENOMEM;
	snprintf(aside, sizeof(aside), "%s" SL_RAW_REPLACED, file);
	r = sl_rename_new(file, aside);
	if (r) {
		if (r == -EEXIST)
			sl_error(
				"raw: %s: is of an earlier run, set aside by a run that was killed "
				"before it had frames: 'sluice recover %s' brings it back; or move "
				"it away",
				aside, raw->path);
		else
			sl_error("raw: %s: cannot be set aside as %s: %s", file, aside,
				 strerror(-r));
		free(name);
		return r;
	}
	raw->old[raw->olds++] = name;
	return 0;
}

static int refuse_copy(const struct sl_raw_sink *raw, struct sl_raw_reader *old, uint32_t file)
{
	const char *was = sl_raw_written_as(old);

	sl_error(
		"raw: %s was written %s%s, and is a copy or was moved: its data file %s may belong "
		"to the run there, so overwrite does not replace it. To do: move %s away, or "
		"choose another path",
		raw->path, was[0] ? "as " : "elsewhere", was, sl_raw_file(old, file), raw->path);
	return -EEXIST;
}

static int set_run_aside(struct sl_raw_sink *raw, struct sl_raw_reader *old)
{
	struct sl_raw_facts facts;
	int r = 0;

	sl_raw_facts(old, &facts);
	if (facts.state == SL_RAW_WRITING) {
		sl_error("raw: %s is being written by another run: choose another path", raw->path);
		return -EBUSY;
	}
	for (uint32_t i = 0; i < facts.files && !r; i++)
		r = sl_raw_owns(old, i) ? 0 : refuse_copy(raw, old, i);
	if (r)
		return r;
	raw->old = calloc(facts.files + 1, sizeof(*raw->old));
	if (!raw->old)
		return -ENOMEM;
	for (uint32_t i = 0; i < facts.files && !r; i++)
		r = set_aside(raw, sl_raw_file(old, i));
	return r ? r : set_aside(raw, raw->path);
}

/* With overwrite the files of a raw run that is there, and nothing else, make room: they go when
 * this run has a frame, and come back if it never begins. */
static int make_place(struct sl_raw_sink *raw)
{
	struct sl_raw_reader *old;
	struct stat st;
	int r;

	if (lstat(raw->path, &st))
		return 0;
	if (!raw->overwrite) {
		sl_error("raw: %s exists: move it away, choose another path, or set overwrite: "
			 "true",
			 raw->path);
		return -EEXIST;
	}
	r = sl_raw_open(raw->path, SL_RAW_DAMAGED, &old);
	if (r)
		return r;
	r = set_run_aside(raw, old);
	sl_raw_close(old);
	return r;
}

static int create(struct sl_raw_sink *raw, const struct sl_bytes *head)
{
	const char *folder[SL_RAW_SINK_FOLDERS];
	char names[sizeof(raw->folders)];
	struct sl_raw_options o = {
		.path = raw->path,
		.folder = folder,
		.file_bytes = raw->file_bytes,
		.keep_ns = (uint64_t)(raw->keep_s * 1e9),
		.keep_bytes = raw->keep_bytes,
		.flush_ns = (uint64_t)(raw->flush_s * 1e9),
		.tail_bytes = TAIL_BYTES,
		.cached = raw->cached,
	};
	int r;

	memcpy(names, raw->folders, sizeof(names));
	r = split_folders(names, folder, &o.folders);
	if (!r)
		r = make_place(raw);
	if (!r)
		r = sl_raw_create(&o, head->data, head->used, &raw->writer);
	if (r)
		sl_raw_sink_end_old(raw, true);
	return r;
}

static int check_on_slow(const struct sl_raw_sink *raw)
{
	enum sl_on_slow on_slow = sl_raw_sink_on_slow(raw);

	if (raw->choice.all && on_slow == SL_ON_SLOW_PRESCALE) {
		sl_error("raw: on_slow: prescale leaves out kept frames, and here rejected ones "
			 "have images, too; set frames: kept, or on_slow: %s",
			 sl_raw_sink_rolls(raw) ? "drop" : "wait");
		return -EINVAL;
	}
	if (on_slow == SL_ON_SLOW_DROP && !sl_raw_sink_rolls(raw)) {
		sl_error("raw: on_slow: drop is for a rolling buffer (keep_s, keep_bytes): any "
			 "other raw file has a row about every frame; set on_slow: prescale");
		return -EINVAL;
	}
	return 0;
}

/* Data files go as a whole: a buffer that is to have frames at any time takes several. */
static int check_window(const struct sl_raw_sink *raw, const struct sl_env *env)
{
	uint64_t frame = sl_stored_frame_most(env, &raw->choice) + FILE_OVERHEAD;
	uint64_t least = frame * WINDOW_FRAMES;

	if (!raw->keep_bytes || raw->keep_bytes >= least)
		return 0;
	sl_error("raw: keep_bytes: %llu bytes are too few: a frame takes up to %llu, and a buffer "
		 "has "
		 "room for at least %d; set it to %llu or more",
		 (unsigned long long)raw->keep_bytes, (unsigned long long)frame, WINDOW_FRAMES,
		 (unsigned long long)least);
	return -EINVAL;
}

int sl_raw_sink_open(void *state, const struct sl_env *env)
{
	struct sl_raw_sink *raw = state;
	struct sl_bytes head = {.used = 0};
	struct sl_env stored = *env;
	int r;

	raw->refusal = -EINVAL; /* until it is open */
	raw->env = env;
	raw->images = raw->rows = raw->refused = 0;
	raw->began_ns = sl_clock_ns();
	raw->began_unix_ns = stored.began_unix_ns = sl_clock_unix_ns();
	raw->choice.all = sl_raw_sink_all(raw);
	if (env->others) {
		sl_error("raw: recordings are of one detector, and this experiment has %u: store "
			 "its events with the sink nexus",
			 env->others + 1);
		return -EINVAL;
	}
	r = check_on_slow(raw);
	if (!r)
		r = choose(raw, env, &raw->choice.image);
	if (r)
		return r;
	r = check_window(raw, env);
	if (r)
		return r;
	r = sl_frame_room_open(&raw->room, env);
	if (!r)
		r = sl_stored_run_write(&stored, &raw->choice, &head);
	if (r)
		sl_error("raw: no memory for the head of %s", raw->path);
	else
		r = create(raw, &head);
	sl_bytes_free(&head);
	if (r)
		return r;
	if (!realpath(raw->path, raw->where))
		raw->where[0] = 0;
	raw->refusal = 0;
	return 0;
}
