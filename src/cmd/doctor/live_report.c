/* live_report.c - what sluice doctor --live has measured: for people, and as JUnit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/doctor/live.h"

/* ---- for people ---- */

static void say(bool good, const char *text)
{
	printf("  %s%s\n", good ? "ok    " : "fault ", text);
}

static void print_numbers(const struct sl_live *l)
{
	char text[200];

	snprintf(text, sizeof(text), "first frame %.1f ms after the start", l->first_frame_ms);
	say(l->sent > 0, text);
	snprintf(text, sizeof(text), "%llu of %llu module-frames lost", (unsigned long long)l->lost,
		 (unsigned long long)l->sent);
	say(!l->lost, text);
	snprintf(text, sizeof(text),
		 "%llu module-frames split: a part of them, or a partner, is "
		 "missing",
		 (unsigned long long)l->split);
	say(!l->split, text);
	if (l->other) {
		snprintf(text, sizeof(text),
			 "%llu module-frames found no room, or were not "
			 "written",
			 (unsigned long long)l->other);
		say(false, text);
	}
	snprintf(text, sizeof(text), "%llu frames differ from what was sent",
		 (unsigned long long)l->wrong);
	say(!l->wrong, text);
	snprintf(text, sizeof(text),
		 "%.0f frames/s, %.2f GB/s; on the way for %.0f us (p50), %.0f us (p99)",
		 l->frames_per_s, l->bytes_per_s * 1e-9, l->wire_p50_us, l->wire_p99_us);
	say(true, text);
}

void sl_live_print(const struct sl_live *l)
{
	if (l->error[0]) {
		printf("\nLive: frames from this host to itself\n");
		say(false, l->error);
		return;
	}
	printf("\nLive: frames from this host to itself, link %s, %s, %u module%s\n", l->link,
	       l->address, l->modules, l->modules == 1 ? "" : "s");
	print_numbers(l);
	if (!l->explained)
		return;
	putchar('\n');
	sl_explain_print(stdout, &l->explanation);
}

/* ---- JUnit ---- */

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '<')
			fputs("&lt;", out);
		else if (c == '>')
			fputs("&gt;", out);
		else if (c == '&')
			fputs("&amp;", out);
		else if (c == '"')
			fputs("&quot;", out);
		else
			fputc(c < 32 && c != '\n' ? ' ' : c, out);
	}
}

static void put_case(FILE *out, const char *name, double seconds, const char *failure)
{
	fprintf(out, "    <testcase classname=\"sluice.live\" name=\"%s\" time=\"%.6f\"", name,
		seconds);
	if (!failure) {
		fputs("/>\n", out);
		return;
	}
	fputs(">\n      <failure message=\"", out);
	put_text(out, failure);
	fputs("\"/>\n    </testcase>\n", out);
}

/* 0: the case passed. */
static const char *failed(char *text, size_t bytes, const struct sl_live *l, uint64_t n,
			  const char *what)
{
	if (l->error[0])
		return l->error;
	if (!n)
		return NULL;
	snprintf(text, bytes, "%llu %s of %llu%s%s", (unsigned long long)n, what,
		 (unsigned long long)l->sent, l->explained && l->explanation.findings ? ": " : "",
		 l->explained && l->explanation.findings ? l->explanation.finding[0].sentence : "");
	return text;
}

static void put_property(FILE *out, const char *name, double value)
{
	fprintf(out, "      <property name=\"%s\" value=\"%.9g\"/>\n", name, value);
}

static void put_properties(FILE *out, const struct sl_live *l)
{
	fprintf(out, "    <properties>\n      <property name=\"link\" value=\"%s\"/>\n", l->link);
	fputs("      <property name=\"address\" value=\"", out);
	put_text(out, l->address);
	fputs("\"/>\n", out);
	put_property(out, "modules", l->modules);
	put_property(out, "first_frame_ms", l->first_frame_ms);
	put_property(out, "module_frames_sent", (double)l->sent);
	put_property(out, "module_frames_lost", (double)l->lost);
	put_property(out, "module_frames_split", (double)l->split);
	put_property(out, "frames_per_s", l->frames_per_s);
	put_property(out, "bytes_per_s", l->bytes_per_s);
	put_property(out, "wire_p50_us", l->wire_p50_us);
	put_property(out, "wire_p99_us", l->wire_p99_us);
	fputs("    </properties>\n", out);
}

static void put_cases(FILE *out, const struct sl_live *l)
{
	char text[800];

	put_case(out, "a first frame comes", l->first_frame_ms * 1e-3,
		 l->error[0] ? l->error : (l->sent ? NULL : "no frame came"));
	put_case(out, "no module-frame is lost", l->seconds,
		 failed(text, sizeof(text), l, l->lost, "module-frames lost"));
	put_case(out, "no module-frame is split", l->seconds,
		 failed(text, sizeof(text), l, l->split, "module-frames split"));
	put_case(out, "every module-frame finds room", l->seconds,
		 failed(text, sizeof(text), l, l->other, "module-frames without room"));
	put_case(out, "every pixel is as it was sent", l->seconds,
		 failed(text, sizeof(text), l, l->wrong, "frames wrong"));
}

static unsigned failures(const struct sl_live *l)
{
	if (l->error[0])
		return 5;
	return (unsigned)(!l->sent + !!l->lost + !!l->split + !!l->other + !!l->wrong);
}

int sl_live_write_junit(const struct sl_live *l, const char *path)
{
	FILE *out = fopen(path, "we");
	char host[256] = "", time[64];
	int err = out ? 0 : -errno;

	if (out) {
		gethostname(host, sizeof(host) - 1);
		sl_clock_iso8601(sl_clock_unix_ns(), time, sizeof(time));
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
		fprintf(out,
			"  <testsuite name=\"sluice doctor --live\" tests=\"5\" failures=\"%u\" "
			"errors=\"0\" skipped=\"0\" time=\"%.6f\" timestamp=\"%s\" hostname=\"",
			failures(l), l->seconds, time);
		put_text(out, host);
		fputs("\">\n", out);
		put_properties(out, l);
		put_cases(out, l);
		fputs("  </testsuite>\n</testsuites>\n", out);
		if (ferror(out))
			err = -EIO;
		if (fclose(out) && !err)
			err = -errno;
	}
	if (err)
		sl_error("cannot write '%s': %s", path, strerror(-err));
	return err;
}
