/* audit_json.h - audits as JSON: what an audit found, and the root that a summary has.
 *
 * Threads:   any but data threads: they allocate.
 * Ownership: texts are the caller's, by free(). */
#ifndef SL_MONITOR_AUDIT_JSON_H
#define SL_MONITOR_AUDIT_JSON_H

#include "audit/check.h"

/* The root that a run's summary or result.json has of the file of this name, whatever its folder.
 * -ENOENT: there is no such file, or it says nothing about it; -EBADMSG: it is no summary. */
int sl_audit_summary_root(const char *summary, const char *name, struct sl_hash *root);

struct sl_audit_document;

/* Collects the first `most` findings. NULL: no memory. */
struct sl_audit_document *sl_audit_document_open(uint64_t most);
void sl_audit_document_add(struct sl_audit_document *document, const struct sl_finding *finding);

/* One object, without a newline behind; frees the document. counts: NULL: there were none. NULL: no
 * memory. */
char *sl_audit_document_text(struct sl_audit_document *document, const char *path,
			     const struct sl_audit_result *result, const struct sl_counts *counts);

#endif
