/* counts.c - the source's own account, read and compared. */
#include "audit/counts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/outcome.h>

enum { LINE_BYTES = 256, WORDS_MOST = 6 };

/* ---- one line ---- */

static int grow(void **array, size_t n, size_t bytes)
{
	void *more;

	if (n & (n - 1)) /* memory is doubled at powers of two */
		return 0;
	more = realloc(*array, (n ? 2 * n : 1) * bytes);
	if (!more)
		return -ENOMEM;
	*array = more;
	return 0;
}

static bool read_number(const char *word, int base, uint64_t most, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)word[0]))
		return false;
	errno = 0;
	*value = strtoull(word, &end, base);
	return !*end && !errno && *value <= most;
}

static int add_range(struct sl_counts_module *m, uint64_t first, uint64_t count)
{
	const struct sl_counts_range *last = m->ranges ? &m->range[m->ranges - 1] : NULL;
	int r;

	if (count > UINT64_MAX - 1 - first || (last && first < last->first + last->count))
		return -EBADMSG;
	r = grow((void **)&m->range, m->ranges, sizeof(*m->range));
	if (!r)
		m->range[m->ranges++] = (struct sl_counts_range){first, count};
	return r;
}

static int add_left_out(struct sl_counts_module *m, uint64_t sequence)
{
	int r;

	if (m->left_outs && sequence <= m->left_out[m->left_outs - 1])
		return -EBADMSG;
	r = grow((void **)&m->left_out, m->left_outs, sizeof(*m->left_out));
	if (!r)
		m->left_out[m->left_outs++] = sequence;
	return r;
}

static int add_crc(struct sl_counts_module *m, uint64_t sequence, uint32_t crc)
{
	int r;

	if (m->crcs && sequence <= m->crc[m->crcs - 1].sequence)
		return -EBADMSG;
	r = grow((void **)&m->crc, m->crcs, sizeof(*m->crc));
	if (!r)
		m->crc[m->crcs++] = (struct sl_counts_crc){sequence, crc};
	return r;
}

/* NULL: it was understood; else what is wrong. `r` is set where there is no memory. */
static const char *take_line(struct sl_counts *c, char *const *word, unsigned words, int *r)
{
	static const char *const order = "sequences of a module must grow from line to line";
	uint64_t module, sequence, value;
	struct sl_counts_module *m;

	if (words < 3 || !read_number(word[1], 10, SL_LEAF_MODULES - 1, &module))
		return "not understood: module, left_out or crc, with the number of a module "
		       "(0 to 63) behind it, is expected";
	m = &c->module[module];
	if (!strcmp(word[0], "module") && words == 6 && !strcmp(word[2], "first") &&
	    !strcmp(word[4], "count") && read_number(word[3], 10, UINT64_MAX, &sequence) &&
	    read_number(word[5], 10, UINT64_MAX, &value)) {
		*r = add_range(m, sequence, value);
		return *r ? order : NULL;
	}
	if (!strcmp(word[0], "left_out") && words == 3 &&
	    read_number(word[2], 10, UINT64_MAX, &sequence)) {
		*r = add_left_out(m, sequence);
		return *r ? order : NULL;
	}
	if (!strcmp(word[0], "crc") && words == 4 && strlen(word[3]) == 8 &&
	    read_number(word[2], 10, UINT64_MAX, &sequence) &&
	    read_number(word[3], 16, UINT32_MAX, &value)) {
		*r = add_crc(m, sequence, (uint32_t)value);
		return *r ? order : NULL;
	}
	return "not understood: 'module M first F count N', 'left_out M SEQUENCE' or "
	       "'crc M SEQUENCE XXXXXXXX' is expected";
}

static unsigned split(char *line, char **word)
{
	unsigned n = 0;
	char *rest = NULL;

	for (char *w = strtok_r(line, " \t\r\n", &rest); w && n <= WORDS_MOST;
	     w = strtok_r(NULL, " \t\r\n", &rest))
		word[n++] = w;
	return n;
}

/* Sequences that were left out, or have a checksum, are among those that the module counts. */
static const char *check(struct sl_counts *c)
{
	bool any = false;

	for (int i = 0; i < SL_LEAF_MODULES; i++) {
		struct sl_counts_module *m = &c->module[i];
		uint64_t left_out = 0;

		if (!m->ranges && (m->left_outs || m->crcs))
			return "a module has checksums or sequences that were left out, but no "
			       "line 'module'";
		if (!m->ranges)
			continue;
		any = true;
		m->next = m->range[0].first;
		for (size_t k = 0, at = 0; k < m->left_outs; k++) {
			while (at < m->ranges &&
			       m->left_out[k] >= m->range[at].first + m->range[at].count)
				at++;
			left_out += at < m->ranges && m->left_out[k] >= m->range[at].first;
		}
		for (size_t k = 0; k < m->ranges; k++)
			c->sent += m->range[k].count;
		c->sent -= left_out;
	}
	return any ? NULL : "it has no line 'module'";
}

int sl_counts_read(FILE *from, struct sl_counts *counts, char *why, size_t why_bytes)
{
	char line[LINE_BYTES];
	const char *wrong = NULL;
	uint64_t number = 0;
	int r = 0;

	*counts = (struct sl_counts){.sent = 0};
	while (!wrong && !r && fgets(line, sizeof(line), from)) {
		char *word[WORDS_MOST + 1];
		unsigned words;

		number++;
		if (!strchr(line, '\n') && !feof(from)) {
			wrong = "the line is too long, or has a zero byte";
			break;
		}
		words = split(line, word);
		if (!words || word[0][0] == '#')
			continue;
		if (words == 3 && !strcmp(word[0], "sluice") && !strcmp(word[1], "counts")) {
			wrong = strcmp(word[2], "1") ? "another version than 1" : NULL;
			continue;
		}
		wrong = take_line(counts, word, words, &r);
	}
	if (r == -ENOMEM)
		return r;
	if (wrong) {
		snprintf(why, why_bytes, "line %" PRIu64 ": %s", number, wrong);
		return -EBADMSG;
	}
	wrong = ferror(from) ? "it cannot be read" : check(counts);
	if (!wrong)
		return 0;
	snprintf(why, why_bytes, "%s", wrong);
	return -EBADMSG;
}

void sl_counts_free(struct sl_counts *counts)
{
	for (int i = 0; i < SL_LEAF_MODULES; i++) {
		free(counts->module[i].range);
		free(counts->module[i].left_out);
		free(counts->module[i].crc);
	}
	*counts = (struct sl_counts){.sent = 0};
}

/* ---- rows ---- */

/* Behind all that were sent. */
static bool is_past(struct sl_counts_module *m, uint64_t sequence)
{
	while (m->at_range < m->ranges &&
	       sequence >= m->range[m->at_range].first + m->range[m->at_range].count)
		m->at_range++;
	return m->at_range == m->ranges;
}

/* Grows from call to call. */
static bool was_sent(struct sl_counts_module *m, uint64_t sequence)
{
	if (is_past(m, sequence) || sequence < m->range[m->at_range].first)
		return false;
	while (m->at_left_out < m->left_outs && m->left_out[m->at_left_out] < sequence)
		m->at_left_out++;
	return m->at_left_out == m->left_outs || m->left_out[m->at_left_out] != sequence;
}

/* The sequence behind those from m->next on that were sent without a gap; m->next: it was not. */
static uint64_t end_of_sent(struct sl_counts_module *m, uint64_t end)
{
	const struct sl_counts_range *range = &m->range[m->at_range];

	if (range->first + range->count < end)
		end = range->first + range->count;
	while (m->at_left_out < m->left_outs && m->left_out[m->at_left_out] < m->next)
		m->at_left_out++;
	return m->at_left_out < m->left_outs && m->left_out[m->at_left_out] < end
		       ? m->left_out[m->at_left_out]
		       : end;
}

/* Those from m->next on, up to `end`, that were sent and have no row. Those that follow each other
 * are told as one. */
static void tell_missing(struct sl_counts_module *m, uint32_t module, uint64_t end,
			 sl_counts_say *say, void *arg)
{
	while (m->next < end && !is_past(m, m->next)) {
		uint64_t first = m->next, begin = m->range[m->at_range].first, n;
		char text[160];

		if (first < begin) {
			m->next = begin < end ? begin : end;
			continue;
		}
		n = end_of_sent(m, end) - first;
		m->next += n ? n : 1; /* 0: it was left out */
		if (!n)
			continue;
		snprintf(text, sizeof(text),
			 n == 1 ? "the source sent it, the run has no row about it"
				: "the source sent it and the %" PRIu64
				  " behind it, the run has no rows about them",
			 n - 1);
		say(arg, module, first, text);
	}
}

static void compare_crc(struct sl_counts *c, struct sl_counts_module *m, uint32_t module,
			const struct sl_leaf *leaf, sl_counts_say *say, void *arg)
{
	uint64_t sequence = leaf->module_sequence[module];
	char text[160];

	while (m->at_crc < m->crcs && m->crc[m->at_crc].sequence < sequence)
		m->at_crc++;
	if (m->at_crc == m->crcs || m->crc[m->at_crc].sequence != sequence ||
	    !(leaf->source_known >> module & 1))
		return;
	if (m->crc[m->at_crc].crc == leaf->source_crc[module]) {
		c->compared++;
		return;
	}
	snprintf(text, sizeof(text),
		 "the source's checksum is %08" PRIx32 " by its own account, %08" PRIx32
		 " in the run",
		 m->crc[m->at_crc].crc, leaf->source_crc[module]);
	say(arg, module, sequence, text);
}

static void compare(struct sl_counts *c, uint32_t module, const struct sl_leaf *leaf,
		    sl_counts_say *say, void *arg)
{
	struct sl_counts_module *m = &c->module[module];
	uint64_t sequence = leaf->module_sequence[module];

	if (m->ranges && sequence < m->next) {
		say(arg, module, sequence,
		    sequence < m->range[0].first ? "the run has a row about it, the source did not "
						   "send it"
						 : "the run has a second row about it");
		return;
	}
	if (m->ranges)
		tell_missing(m, module, sequence, say, arg);
	if (!m->ranges || is_past(m, sequence)) {
		say(arg, module, sequence,
		    "the run has a row about it, the source did not send "
		    "it");
		return;
	}
	m->next = sequence + 1;
	if (!was_sent(m, sequence) && leaf->outcome[module] != SL_LOST) {
		say(arg, module, sequence, "the source left it out, the run says that it came");
		return;
	}
	compare_crc(c, m, module, leaf, say, arg);
}

void sl_counts_row(struct sl_counts *counts, const struct sl_leaf *leaf, sl_counts_say *say,
		   void *arg)
{
	for (uint32_t m = 0; m < leaf->modules; m++)
		if (leaf->outcome[m] != SL_NO_OUTCOME && leaf->module_sequence[m] != UINT64_MAX)
			compare(counts, m, leaf, say, arg);
}

void sl_counts_end(struct sl_counts *counts, uint32_t modules, sl_counts_say *say, void *arg)
{
	for (uint32_t i = 0; i < SL_LEAF_MODULES; i++) {
		struct sl_counts_module *m = &counts->module[i];

		if (m->ranges && i >= modules)
			say(arg, i, m->next, "the source counts it, the run has no such module");
		else if (m->ranges)
			tell_missing(m, i, UINT64_MAX, say, arg);
	}
}
