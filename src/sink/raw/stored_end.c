/* stored_end.c - the end of a run as bytes. */
#include "sink/raw/stored_end.h"

#include <sluice/sink.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/raw/stored_tags.h"

/* What the first version of the status had. */
enum { STATUS_LEAST = offsetof(struct sl_status, dark) };

int sl_stored_end_write(const struct sl_status *status, const char *where,
			const struct sl_env_metadata *metadata, struct sl_bytes *b)
{
	size_t begun;

	sl_bytes_u32(b, SL_STORED_VERSION);
	sl_bytes_u32(b, 0); /* reserved */
	begun = sl_bytes_begin(b, SL_TAG_STATUS);
	sl_bytes_put(b, status, sizeof(*status));
	sl_bytes_end(b, begun);
	begun = sl_bytes_begin(b, SL_TAG_WHERE);
	sl_bytes_text(b, where);
	sl_bytes_end(b, begun);
	sl_stored_metadata_write(metadata, b);
	sl_stored_changes_write(metadata, b);
	return b->error;
}

static void end_text(char *text, size_t bytes)
{
	text[bytes - 1] = 0;
}

/* Counts that say how much of an array is in use, and texts, are made safe to read. */
static int check_status(struct sl_status *s, uint32_t modules)
{
	if (s->modules != modules || s->latencies > SL_STATUS_LATENCIES ||
	    s->addons > SL_STATUS_ADDONS || s->figures > SL_STATUS_FIGURES ||
	    s->progress_threads > SL_STATUS_PROGRESS || s->threads.cpus > SL_STATUS_CPUS ||
	    s->changes > SL_STATUS_CHANGES || s->texts > SL_STATUS_TEXTS ||
	    s->disks > SL_STATUS_DISKS || s->too_slow > s->addons)
		return -EBADMSG;
	for (uint32_t i = 0; i < s->addons; i++) {
		struct sl_status_addon *a = &s->addon[i];

		if (a->figures > s->figures || a->first_figure > s->figures - a->figures ||
		    s->pace[i].on_slow > SL_ON_SLOW_DROP)
			return -EBADMSG;
		end_text(a->name, sizeof(a->name));
		end_text(a->where, sizeof(a->where));
	}
	for (uint32_t i = 0; i < s->figures; i++)
		end_text(s->figure[i].name, sizeof(s->figure[i].name));
	for (uint32_t i = 0; i < s->texts; i++) {
		end_text(s->text[i].name, sizeof(s->text[i].name));
		end_text(s->text[i].value, sizeof(s->text[i].value));
	}
	for (uint32_t i = 0; i < s->disks; i++)
		end_text(s->disk[i].path, sizeof(s->disk[i].path));
	end_text(s->experiment, sizeof(s->experiment));
	end_text(s->transfer, sizeof(s->transfer));
	end_text(s->link, sizeof(s->link));
	end_text(s->guard, sizeof(s->guard));
	end_text(s->proof, sizeof(s->proof));
	end_text(s->stopped_by, sizeof(s->stopped_by));
	end_text(s->early, sizeof(s->early));
	end_text(s->session, sizeof(s->session));
	end_text(s->folder, sizeof(s->folder));
	return 0;
}

static void read_status(struct sl_bytes_reader *r, struct sl_status *status)
{
	size_t bytes = r->left < sizeof(*status) ? r->left : sizeof(*status);
	const void *at = bytes < STATUS_LEAST ? NULL : sl_bytes_get(r, bytes);

	*status = (struct sl_status){.bytes = 0};
	if (at)
		memcpy(status, at, bytes);
	else
		sl_bytes_bad(r);
	status->bytes = sizeof(*status);
}

static void read_one(struct sl_bytes_reader *section, uint32_t tag, struct sl_stored_run *run,
		     struct sl_status *status)
{
	switch (tag) {
	case SL_TAG_STATUS:
		read_status(section, status);
		break;
	case SL_TAG_METADATA:
		sl_stored_metadata_read(section, &run->metadata);
		run->env.metadata = &run->each;
		break;
	case SL_TAG_CHANGES:
		sl_stored_changes_read(section, run);
		break;
	case SL_TAG_WHERE:
		free(run->where);
		run->where = sl_bytes_get_text(section);
		break;
	default:
		break; /* of a later version */
	}
}

int sl_stored_end_read(const void *data, size_t bytes, struct sl_stored_run *run,
		       struct sl_status *status)
{
	struct sl_bytes_reader r = {.at = data, .left = bytes}, section = {.error = 0};
	uint32_t version = sl_bytes_get_u32(&r), tag;
	bool found = false;

	sl_bytes_get_u32(&r);
	if (r.error || version != SL_STORED_VERSION)
		return -EBADMSG;
	while (!section.error && sl_bytes_section(&r, &tag, &section)) {
		read_one(&section, tag, run, status);
		found |= tag == SL_TAG_STATUS;
	}
	if (section.error || r.error || !found)
		return section.error ? section.error : -EBADMSG;
	return check_status(status, run->geometry.modules);
}
