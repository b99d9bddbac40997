/* print.c - an element of a share, as a line. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sluice/frame.h>

#include "cmd/share/follower.h"

static double age_s(const struct sl_share_note *note)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec - (double)(note->commit_unix_ns / 1000000000) +
	       1e-9 * ((double)now.tv_nsec - (double)(note->commit_unix_ns % 1000000000));
}

static const char *age_words(double s, char *text, size_t bytes)
{
	if (s < 1e-3)
		snprintf(text, bytes, "%.0f us", s > 0 ? s * 1e6 : 0);
	else if (s < 1)
		snprintf(text, bytes, "%.1f ms", s * 1e3);
	else
		snprintf(text, bytes, "%.1f s", s);
	return text;
}

/* A share whose writer is a run has frames. */
static bool is_frame(const struct sl_share_description *d)
{
	return d->run[0] != 0;
}

static bool is_broken(const struct sl_share_note *note)
{
	return !(note->flags & (SL_FRAME_COMPLETE | SL_FRAME_PARTIAL));
}

static const char *verdict(const struct sl_share_note *note)
{
	if (is_broken(note))
		return "broken";
	if (note->flags & SL_FRAME_DARK)
		return "dark";
	return note->keep ? "kept" : "rejected";
}

/* Lists whose length a line tells. Those about events, and those about the places of peaks, have
 * the same one: one of them is enough. */
static bool counts(const struct sl_share_description *d, const struct sl_share_note *note,
		   uint32_t i)
{
	const char *name = d->array[i].name, *end = strrchr(name, '_');

	return d->array[i].ragged && !(note->absent >> i & 1) && strcmp(name, "event_score") != 0 &&
	       strcmp(name, "event_keep") != 0 && !(end && !strcmp(end, "_image"));
}

void sl_print_element(const struct sl_share_description *d, const struct sl_follow_element *e,
		      double rate)
{
	const struct sl_share_note *note = &e->note;
	char age[32];

	printf("%-8" PRIu64 " ", e->n);
	if (is_frame(d))
		printf("frame %-8" PRIu64 " %-8s %-13s score %-8.4g ", note->number, verdict(note),
		       is_broken(note) ? "-" : sl_reason_name(note->reason), (double)note->score);
	if (note->missing)
		printf("missing modules 0x%" PRIx64 "  ", note->missing);
	for (uint32_t i = 0; i < d->arrays; i++)
		if (counts(d, note, i))
			printf("%s %u  ", d->array[i].name, note->rows[i]);
	printf("age %s", age_words(age_s(note), age, sizeof(age)));
	if (rate >= 0)
		printf("  %.4g/s", rate);
	if (e->missed)
		printf("  missed %" PRIu64, e->missed);
	putchar('\n');
}

/* ---- JSON ---- */

void sl_print_json_text(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	putchar('"');
}

static void print_rows(const struct sl_share_description *d, const struct sl_share_note *note)
{
	const char *between = "";

	printf(",\"rows\":{");
	for (uint32_t i = 0; i < d->arrays; i++) {
		if (!d->array[i].ragged || note->absent >> i & 1)
			continue;
		printf("%s", between);
		sl_print_json_text(d->array[i].name);
		printf(":%u", note->rows[i]);
		between = ",";
	}
	printf("},\"absent\":[");
	between = "";
	for (uint32_t i = 0; i < d->arrays; i++) {
		if (!(note->absent >> i & 1))
			continue;
		printf("%s", between);
		sl_print_json_text(d->array[i].name);
		between = ",";
	}
	putchar(']');
}

void sl_print_element_json(const struct sl_share_description *d, const struct sl_follow_element *e,
			   double rate)
{
	const struct sl_share_note *note = &e->note;

	printf("{\"n\":%" PRIu64 ",\"missed\":%" PRIu64 ",\"age_s\":%.6f", e->n, e->missed,
	       age_s(note));
	if (rate >= 0)
		printf(",\"rate\":%.6g", rate);
	printf(",\"number\":%" PRIu64 ",\"timestamp\":%" PRIu64 ",\"commit_unix_ns\":%" PRIu64,
	       note->number, note->timestamp, note->commit_unix_ns);
	if (is_frame(d)) {
		printf(",\"verdict\":\"%s\",\"keep\":%s,\"reason\":\"%s\"", verdict(note),
		       note->keep ? "true" : "false", sl_reason_name(note->reason));
		if (isfinite(note->score))
			printf(",\"score\":%.9g", (double)note->score);
		printf(",\"missing\":%" PRIu64 ",\"sequence\":%" PRIu64, note->missing,
		       note->user[0]);
	}
	print_rows(d, note);
	puts("}");
}
