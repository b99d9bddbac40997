/* path_words.c - from a path with words to a path. */
#include "base/file/path_words.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct to {
	char *text;
	size_t used, bytes;
};

static void put(struct to *to, char c)
{
	if (to->used < to->bytes)
		to->text[to->used] = c;
	to->used++;
}

static void put_value(struct to *to, const char *value)
{
	for (const char *c = value; *c; c++) {
		unsigned char u = (unsigned char)*c;

		put(to, u < 0x20 || u == 0x7f || u == '/' || (u == '.' && c == value) ? '_' : *c);
	}
	if (!*value)
		put(to, '_');
}

static void list_words(const struct sl_path_word *words, size_t n, char *list, size_t bytes)
{
	size_t used = 0;

	list[0] = 0;
	for (size_t i = 0; i < n && used < bytes; i++)
		used += (size_t)snprintf(list + used, bytes - used, "%s{%s}", i ? ", " : "",
					 words[i].name);
}

static int unknown(const char *word, size_t length, const struct sl_path_word *words, size_t n,
		   char *why, size_t why_bytes)
{
	char list[256];

	list_words(words, n, list, sizeof(list));
	snprintf(why, why_bytes, "'{%.*s}' is no word; there are: %s; '{{' stands for a brace",
		 (int)(length > 64 ? 64 : length), word, list);
	return -EINVAL;
}

/* "name}" at `text`; *length: bytes of name. */
static int put_word(struct to *to, const char *text, const struct sl_path_word *words, size_t n,
		    size_t *length, char *why, size_t why_bytes)
{
	*length = strcspn(text, "{}");
	if (text[*length] != '}') {
		snprintf(why, why_bytes, "'{%.64s' has no '}'; '{{' stands for a brace", text);
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		if (strlen(words[i].name) != *length || memcmp(words[i].name, text, *length))
			continue;
		if (words[i].value) {
			put_value(to, words[i].value);
			return 0;
		}
		snprintf(why, why_bytes, "{%s}: %s", words[i].name, words[i].lacks);
		return -ENODATA;
	}
	return unknown(text, *length, words, n, why, why_bytes);
}

int sl_path_words_expand(const char *text, const struct sl_path_word *words, size_t n, char *out,
			 size_t bytes, char *why, size_t why_bytes)
{
	struct to to = {out, 0, bytes};
	size_t length;
	int err = 0;

	for (; *text && !err; text++) {
		if (text[0] != '{' || text[1] == '{') {
			put(&to, *text);
			text += (*text == '{' || *text == '}') && text[1] == *text;
			continue;
		}
		err = put_word(&to, text + 1, words, n, &length, why, why_bytes);
		text += err ? 0 : length + 1;
	}
	if (err)
		return err;
	put(&to, '\0');
	if (to.used <= bytes)
		return 0;
	snprintf(why, why_bytes, "is longer than %zu bytes with its words replaced", bytes - 1);
	return -ENAMETOOLONG;
}

bool sl_path_words_has(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (; *text; text++) {
		if (text[0] == '{' && text[1] == '{')
			text++;
		else if (text[0] == '{' && !strncmp(text + 1, name, length) &&
			 text[1 + length] == '}')
			return true;
	}
	return false;
}

/* ---- lists ---- */

bool sl_path_list_next(const char **rest, const char **path, size_t *bytes)
{
	while (**rest) {
		const char *from = *rest + strspn(*rest, " ");
		const char *end = from + strcspn(from, ",");

		*rest = end + (*end == ',');
		while (end > from && end[-1] == ' ')
			end--;
		*path = from;
		*bytes = (size_t)(end - from);
		if (*bytes)
			return true;
	}
	return false;
}

/* `one` has no comma: one in `to` is of a value. */
static int expand_one(const char *one, const char *folder, const struct sl_path_word *words,
		      size_t n, char *to, size_t bytes, char *why, size_t why_bytes)
{
	size_t used = 0;
	int err;

	if (folder && one[0] != '/')
		used = (size_t)snprintf(to, bytes, "%s/", folder);
	if (used >= bytes) {
		snprintf(why, why_bytes, "is longer than %zu bytes with its folder", bytes - 1);
		return -ENAMETOOLONG;
	}
	err = sl_path_words_expand(one, words, n, to + used, bytes - used, why, why_bytes);
	for (char *c = to + used; !err && *c; c++)
		if (*c == ',')
			*c = '_';
	return err;
}

int sl_path_list_expand(const char *text, const char *folder, const struct sl_path_word *words,
			size_t n, char *out, size_t bytes, char *why, size_t why_bytes)
{
	size_t used = 0, length;
	const char *path;
	int err = 0;

	out[0] = 0;
	while (!err && sl_path_list_next(&text, &path, &length)) {
		char one[PATH_MAX];

		if (length >= sizeof(one) || used + 2 > bytes) {
			snprintf(why, why_bytes, "is too long");
			return -ENAMETOOLONG;
		}
		memcpy(one, path, length);
		one[length] = 0;
		if (used)
			out[used++] = ',';
		err = expand_one(one, folder, words, n, out + used, bytes - used, why, why_bytes);
		used += err ? 0 : strlen(out + used);
	}
	return err;
}
