/* sinks.c - rules about frames that a sink did not write. */
#include <errno.h>
#include <string.h>

#include "explain/private.h"

/* The folder of a file, for df. */
static const char *folder_of(const struct sl_case_sink *s, char *text, size_t bytes)
{
	const char *slash = strrchr(s->where, '/');

	if (!slash)
		snprintf(text, bytes, ".");
	else
		snprintf(text, bytes, "%.*s", slash == s->where ? 1 : (int)(slash - s->where),
			 s->where);
	return text;
}

/* The required sink that failed with this error; 0: with any. */
static const struct sl_case_sink *failed_with(const struct sl_case *c, int error)
{
	for (unsigned i = 0; i < c->sinks; i++) {
		const struct sl_case_sink *s = &c->sink[i];

		if (s->required && s->error[0] && (!error || !strcmp(s->error, strerror(error))))
			return s;
	}
	return NULL;
}

/* The least space of any disk that sinks write to, in the record; below 0: not known. */
static double least_space(const struct sl_case *c)
{
	double least = -1;

	for (unsigned d = 0; d < SL_STATUS_DISKS; d++) {
		char name[16];
		const struct sl_case_series *s;

		snprintf(name, sizeof(name), "space.%u", d);
		s = sl_case_find(c, name);
		for (size_t i = 0; s && i < c->samples; i++) {
			uint64_t space = sl_series_of(s, i);

			if (space != SL_NO_VALUE && (least < 0 || (double)space < least))
				least = (double)space;
		}
	}
	return least;
}

static bool tell_failed(const struct sl_case *c, struct sl_finding *f, int error, const char *what)
{
	const struct sl_case_sink *s = failed_with(c, error);

	if (!s || !c->cause[SL_CAUSE_SINK])
		return false;
	f->score = 0.95;
	sl_finding_say(
		f, "%s: sink %s stopped writing %s (%s); %llu module-frames were not written.",
		what, s->name, s->where, s->error, (unsigned long long)c->cause[SL_CAUSE_SINK]);
	sl_finding_prove(f, "module_frames_unwritten", (double)c->cause[SL_CAUSE_SINK], "");
	return true;
}

bool sl_rule_full_disk(const struct sl_case *c, struct sl_finding *f)
{
	double space = least_space(c);
	char folder[512], word[1024];

	if (!tell_failed(c, f, ENOSPC, "The disk is full"))
		return false;
	sl_finding_advise(
		f, "Make room there, or write elsewhere; before a run, sluice run says whether "
		   "it fits.");
	sl_shell_word(folder_of(failed_with(c, ENOSPC), folder, sizeof(folder)), word,
		      sizeof(word));
	sl_finding_command(f, "df -h %s", word);
	if (space >= 0)
		sl_finding_prove(f, "least_free_space", space, "bytes");
	return true;
}

bool sl_rule_disk_quota(const struct sl_case *c, struct sl_finding *f)
{
	if (!tell_failed(c, f, EDQUOT, "The disk quota is used up"))
		return false;
	sl_finding_advise(f, "Make room, or have the quota raised.");
	sl_finding_command(f, "quota -s");
	return true;
}

bool sl_rule_file_size_limit(const struct sl_case *c, struct sl_finding *f)
{
	if (!tell_failed(c, f, EFBIG, "A file reached the limit of its size"))
		return false;
	sl_finding_advise(
		f, "Lift the limit (ulimit -f; of a service: LimitFSIZE=), or make smaller files "
		   "(frames_per_file).");
	sl_finding_command(f, "ulimit -f unlimited && sluice run %s", sl_case_file(c));
	return true;
}

/* With an error of its own, or a check that found the data wrong. */
bool sl_rule_failed_sink(const struct sl_case *c, struct sl_finding *f)
{
	if (!c->cause[SL_CAUSE_SINK] || failed_with(c, ENOSPC) || failed_with(c, EDQUOT) ||
	    failed_with(c, EFBIG))
		return false;
	if (tell_failed(c, f, 0, "A sink failed")) {
		f->score = 0.7;
	} else {
		f->score = 0.5;
		sl_finding_say(
			f,
			"A required sink refused %llu module-frames without an error of its own: "
			"its figures say why (a sink that checks found them wrong).",
			(unsigned long long)c->cause[SL_CAUSE_SINK]);
		sl_finding_prove(f, "module_frames_unwritten", (double)c->cause[SL_CAUSE_SINK], "");
	}
	sl_finding_advise(f, "The log has the first error of the sink.");
	sl_command_log(c, f);
	return true;
}

bool sl_rule_slow_disk(const struct sl_case *c, struct sl_finding *f)
{
	const struct sl_case_sink *slow = NULL;

	for (unsigned i = 0; i < c->sinks; i++)
		if (c->sink[i].required && c->sink[i].left_out &&
		    (!slow || c->sink[i].left_out > slow->left_out))
			slow = &c->sink[i];
	if (!c->cause[SL_CAUSE_SLOW])
		return false;
	f->score = 0.95;
	sl_finding_say(
		f,
		"The disk is slower than the data: sink %s could not keep pace%s%s, and left out "
		"%llu kept frames, as its on_slow says; it held %llu frames, and counts as slow "
		"from %llu on.",
		slow ? slow->name : "?", slow && slow->where[0] ? " writing " : "",
		slow ? slow->where : "", (unsigned long long)(slow ? slow->left_out : 0),
		(unsigned long long)(slow ? slow->waiting_most : 0),
		(unsigned long long)(slow ? slow->mark : 0));
	sl_finding_advise(
		f, "Write less (compression, a veto), to a faster disk, or let the data wait "
		   "(on_slow: wait).");
	sl_finding_command(f, "sluice run %s --set sinks.%s.on_slow=wait", sl_case_file(c),
			   slow ? slow->name : "nexus");
	sl_finding_prove(f, "module_frames_left_out", (double)c->cause[SL_CAUSE_SLOW], "");
	if (slow)
		sl_finding_prove(f, "frames_at_sink", (double)slow->waiting_most, "");
	return true;
}
