/* recorded.c - raw files, opened and checked. */
#include "convert/recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "sink/raw/stored_end.h"

static int say(const struct sl_recorded *recorded, int err, const char *what)
{
	sl_error("%s: %s %s", recorded->path, what,
		 err == -EPROTO	   ? "was written by a later version of sluice: use that one"
		 : err == -EBADMSG ? "is damaged, or not of a run of sluice"
				   : strerror(-err));
	return err;
}

int sl_recorded_open(const char *path, struct sl_recorded *recorded)
{
	const void *data;
	size_t bytes;
	int r;

	*recorded = (struct sl_recorded){.path = path};
	r = sl_raw_open(path, 0, &recorded->reader);
	if (r)
		return r;
	sl_raw_facts(recorded->reader, &recorded->facts);
	data = sl_raw_head(recorded->reader, &bytes);
	r = sl_stored_run_read(data, bytes, &recorded->run);
	if (r)
		return say(recorded, r, "its description of the run");
	data = sl_raw_tail(recorded->reader, &bytes);
	if (data) {
		r = sl_stored_end_read(data, bytes, &recorded->run, &recorded->status);
		if (r)
			return say(recorded, r, "what it says of the run's end");
		recorded->ended = true;
	}
	recorded->frame_most = sl_stored_frame_most(&recorded->run.env, &recorded->run.choice);
	return 0;
}

void sl_recorded_close(struct sl_recorded *recorded)
{
	sl_raw_close(recorded->reader);
	recorded->reader = NULL;
	sl_stored_run_free(&recorded->run);
}

const char *sl_recorded_dataset(const struct sl_recorded *recorded)
{
	int32_t image = recorded->run.choice.image;

	return image < 0 ? NULL : recorded->run.result[image].name;
}

int sl_recorded_read(const struct sl_recorded *recorded, uint64_t i, void *buffer,
		     struct sl_frame_room *room)
{
	const struct sl_raw_entry *entry = sl_raw_entry(recorded->reader, i);
	int r = 0;

	if (entry->bytes <= recorded->frame_most) {
		r = sl_raw_read(recorded->reader, i, buffer, recorded->frame_most);
		if (r)
			return r;
	}
	if (entry->bytes > recorded->frame_most ||
	    sl_stored_frame_read(&recorded->run.env, &recorded->run.choice, buffer, entry->bytes,
				 room) ||
	    room->frame.sequence != entry->key.sequence || room->frame.number != entry->key.number)
		r = -EBADMSG;
	if (r)
		sl_error("%s: frame %" PRIu64 " (chunk %" PRIu64 ", %s at byte %" PRIu64
			 ") is damaged",
			 recorded->path, entry->key.number, entry->chunk,
			 sl_raw_file(recorded->reader, entry->file), entry->offset);
	return r;
}
