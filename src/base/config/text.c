/* text.c - the tree as YAML again, so that it parses back to the same tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/node.h"

static const char alnum[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

size_t sl_utf8_decode(const char *text, unsigned *code)
{
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *t = (const unsigned char *)text;
	size_t bytes = t[0] < 0x80 ? 1 : t[0] < 0xc0 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : 4;
	unsigned value;

	if (bytes < 2) {
		*code = t[0];
		return bytes;
	}
	if (t[0] >= 0xf8)
		return 0;
	value = t[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if ((t[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (t[i] & 0x3f);
	}
	/* Longer than needed, a surrogate, or beyond Unicode. */
	if (value < least[bytes] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff)
		return 0;
	*code = value;
	return bytes;
}

/* Words, numbers and paths need no quotes; for all else quotes are the safe choice. */
static bool is_plain(const char *text)
{
	bool number = text[0] == '-' && text[1] >= '0' && text[1] <= '9';

	if (!*text || !(number || strchr(alnum, *text) || *text == '_' || *text == '/'))
		return false;
	text++;
	text += strspn(text, alnum);
	while (*text && strchr("_./-+", *text)) {
		text++;
		text += strspn(text, alnum);
	}
	return !*text;
}

/* Characters that YAML lets stand in quotes and folds or strips nowhere. */
static bool is_literal(unsigned code)
{
	return (code >= 0x20 && code < 0x7f) || (code > 0xa0 && code < 0x2000) ||
	       (code >= 0x3000 && code < 0xd800);
}

static void put_quoted(FILE *out, const char *text)
{
	unsigned code;
	size_t n;

	putc('"', out);
	for (; *text; text += n) {
		n = sl_utf8_decode(text, &code);
		if (!n)
			n = 1; /* cannot be: both ways in check it */
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (int)code);
		else if (code == '\n')
			fputs("\\n", out);
		else if (code == '\t')
			fputs("\\t", out);
		else if (is_literal(code))
			fwrite(text, 1, n, out);
		else
			fprintf(out, code > 0xffff ? "\\U%08X" : "\\u%04X", code);
	}
	putc('"', out);
}

enum { ORIGIN_COLUMN = 40 }; /* values are rarely longer, and a line stays within 100 columns */

struct writer {
	FILE *out;
	bool origins;
	off_t line; /* where the line began */
};

/* A name in a comment: one that would end the comment, or is not UTF-8, is made harmless. */
static void put_comment(FILE *out, const char *text)
{
	unsigned code;
	size_t n;

	for (; *text; text += n) {
		n = sl_utf8_decode(text, &code);
		if (n && is_literal(code))
			fwrite(text, 1, n, out);
		else
			putc('?', out);
		n = n ? n : 1;
	}
}

/* What ends the line of a value. */
static void put_end(struct writer *w, const struct sl_node *node)
{
	off_t used = ftello(w->out) - w->line;

	if (w->origins) {
		fprintf(w->out, "%*s # ", used < ORIGIN_COLUMN ? (int)(ORIGIN_COLUMN - used) : 1,
			"");
		if (node->origin == SL_ORIGIN_DEFAULT)
			fputs("default", w->out);
		else if (node->line)
			put_comment(w->out, node->file ? node->file : "?");
		else
			fputs(node->origin == SL_ORIGIN_PROGRAM ? "this program" : "--set", w->out);
		if (node->line && node->origin != SL_ORIGIN_DEFAULT)
			fprintf(w->out, ":%u%s", node->line,
				node->origin == SL_ORIGIN_LOCKED ? " (locked)" : "");
	}
	putc('\n', w->out);
	w->line = ftello(w->out);
}

static void put_text(FILE *out, const char *text)
{
	if (is_plain(text))
		fputs(text, out);
	else
		put_quoted(out, text);
}

static void put_children(struct writer *w, const struct sl_node *node, int indent,
			 bool inline_first);

static void put_scalar(FILE *out, const struct sl_node *node)
{
	if (sl_node_is_null(node)) {
		fprintf(out, "%s%s", *node->text ? " " : "", node->text);
		return;
	}
	putc(' ', out);
	if (node->secret)
		put_quoted(out, SL_CONFIG_NOT_STORED);
	/* Unquoted, these would be no value. */
	else if (sl_null_text(node->text, strlen(node->text)))
		put_quoted(out, node->text);
	else
		put_text(out, node->text);
}

/* What follows "key:" or "-". */
static void put_value(struct writer *w, const struct sl_node *node, int indent)
{
	bool in_list = node->parent && node->parent->kind == SL_NODE_LIST;

	if (node->kind == SL_NODE_SCALAR) {
		put_scalar(w->out, node);
		put_end(w, node);
	} else if (!node->child) {
		fputs(node->kind == SL_NODE_MAP ? " {}" : " []", w->out);
		put_end(w, node);
	} else {
		putc(in_list ? ' ' : '\n', w->out);
		if (!in_list)
			w->line = ftello(w->out);
		put_children(w, node, indent + 2, in_list);
	}
}

/* `inline_first`: the first child goes behind the dash of the item that it is in. */
static void put_children(struct writer *w, const struct sl_node *node, int indent,
			 bool inline_first)
{
	for (const struct sl_node *child = node->child; child; child = child->next) {
		fprintf(w->out, "%*s", inline_first && child == node->child ? 0 : indent, "");
		if (node->kind == SL_NODE_LIST) {
			putc('-', w->out);
		} else {
			put_text(w->out, child->key);
			putc(':', w->out);
		}
		put_value(w, child, indent);
	}
}

static char *write_text(const struct sl_config *config, bool origins)
{
	char *text = NULL;
	size_t bytes;
	struct writer w = {.out = open_memstream(&text, &bytes), .origins = origins};
	bool failed;

	if (!w.out)
		return NULL;
	if (config->root->child)
		put_children(&w, config->root, 0, false);
	else
		fputs("{}\n", w.out);
	failed = ferror(w.out);
	if (fclose(w.out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

char *sl_config_text(const struct sl_config *config)
{
	return write_text(config, false);
}

char *sl_config_text_with_origins(const struct sl_config *config)
{
	return write_text(config, true);
}
