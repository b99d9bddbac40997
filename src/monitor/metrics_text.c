/* metrics_text.c - the text format of Prometheus. */
#include "monitor/metrics_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

const char *sl_metric_type_name(enum sl_metric_type type)
{
	static const char *const name[] = {"counter", "gauge", "histogram"};

	return name[type];
}

int sl_metrics_text_begin(struct sl_metrics_text *out)
{
	*out = (struct sl_metrics_text){.name = "", .help = ""};
	out->stream = open_memstream(&out->text, &out->bytes);
	return out->stream ? 0 : -ENOMEM;
}

char *sl_metrics_text_end(struct sl_metrics_text *out)
{
	bool failed = ferror(out->stream);

	if (fclose(out->stream) || failed) {
		free(out->text);
		out->text = NULL;
	}
	return out->text;
}

void sl_metrics_family(struct sl_metrics_text *out, const char *name, enum sl_metric_type type,
		       const char *help)
{
	out->name = name;
	out->type = type;
	out->help = help;
	out->begun = false;
}

/* quotes: of a label's value, in which a quotation mark is escaped, too. */
static void put_escaped(FILE *stream, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", stream);
		else if (*text == '\\' || (quotes && *text == '"'))
			fprintf(stream, "\\%c", *text);
		else
			putc(*text, stream);
	}
}

/* Everything of a line before its value. */
static void put_head(struct sl_metrics_text *out, const char *suffix,
		     const struct sl_metric_label *labels)
{
	if (!out->begun) {
		fprintf(out->stream, "# HELP %s ", out->name);
		put_escaped(out->stream, out->help, false);
		fprintf(out->stream, "\n# TYPE %s %s\n", out->name, sl_metric_type_name(out->type));
		out->begun = true;
	}
	fprintf(out->stream, "%s%s", out->name, suffix);
	for (const struct sl_metric_label *l = labels; l && l->name; l++) {
		fprintf(out->stream, "%c%s=\"", l == labels ? '{' : ',', l->name);
		put_escaped(out->stream, l->value, true);
		putc('"', out->stream);
	}
	fputs(labels && labels->name ? "} " : " ", out->stream);
}

void sl_metrics_count(struct sl_metrics_text *out, const char *suffix,
		      const struct sl_metric_label *labels, uint64_t value)
{
	put_head(out, suffix, labels);
	fprintf(out->stream, "%" PRIu64 "\n", value);
}

void sl_metrics_seconds_text(uint64_t ns, char *text, size_t bytes)
{
	uint64_t rest = ns % 1000000000;
	int digits = 9;

	while (digits && rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	if (digits)
		snprintf(text, bytes, "%" PRIu64 ".%0*" PRIu64, ns / 1000000000, digits, rest);
	else
		snprintf(text, bytes, "%" PRIu64, ns / 1000000000);
}

void sl_metrics_seconds(struct sl_metrics_text *out, const char *suffix,
			const struct sl_metric_label *labels, uint64_t ns)
{
	char text[32];

	put_head(out, suffix, labels);
	sl_metrics_seconds_text(ns, text, sizeof(text));
	fprintf(out->stream, "%s\n", text);
}

void sl_metrics_real(struct sl_metrics_text *out, const char *suffix,
		     const struct sl_metric_label *labels, double value)
{
	put_head(out, suffix, labels);
	fprintf(out->stream, "%.15g\n", value);
}
