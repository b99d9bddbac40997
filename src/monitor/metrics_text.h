/* metrics_text.h - the text format of Prometheus, version 0.0.4.
 *
 * Model:     a family (one metric name with its type and help) and then its samples, each with
 *            labels and a value. The lines HELP and TYPE come with the first sample, so a family
 *            without samples leaves no line. All samples of a family must follow each other, and
 *            no two may have the same labels: Prometheus rejects the whole text otherwise.
 * Values:    base units. Nanoseconds are printed as seconds without a loss of digits. Label values
 *            may be any UTF-8: they are escaped here.
 * Threads:   one at a time. It allocates.
 * Ownership: sl_metrics_text_end() gives the text to the caller, who frees it. */
#ifndef SL_MONITOR_METRICS_TEXT_H
#define SL_MONITOR_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SL_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum sl_metric_type { SL_METRIC_COUNTER, SL_METRIC_GAUGE, SL_METRIC_HISTOGRAM };
const char *sl_metric_type_name(enum sl_metric_type type); /* "counter", ... */

struct sl_metric_label { /* the last one of a list has a NULL name */
	const char *name, *value;
};

struct sl_metrics_text { /* private */
	FILE *stream;
	char *text;
	size_t bytes;
	const char *name, *help;
	enum sl_metric_type type;
	bool begun; /* the lines HELP and TYPE of this family are there */
};

int sl_metrics_text_begin(struct sl_metrics_text *out); /* -ENOMEM */
/* The text, with a NUL. NULL: no memory. */
char *sl_metrics_text_end(struct sl_metrics_text *out);

/* name and help must live until the next family. */
void sl_metrics_family(struct sl_metrics_text *out, const char *name, enum sl_metric_type type,
		       const char *help);

/* suffix: "", or "_bucket", "_sum", "_count" of a histogram. */
void sl_metrics_count(struct sl_metrics_text *out, const char *suffix,
		      const struct sl_metric_label *labels, uint64_t value);
void sl_metrics_seconds(struct sl_metrics_text *out, const char *suffix,
			const struct sl_metric_label *labels, uint64_t ns);
void sl_metrics_real(struct sl_metrics_text *out, const char *suffix,
		     const struct sl_metric_label *labels, double value);

/* Nanoseconds as seconds, all digits: "0.001048576"; 24 bytes are enough. */
void sl_metrics_seconds_text(uint64_t ns, char *text, size_t bytes);

#endif
