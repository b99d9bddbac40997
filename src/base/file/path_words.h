/* path_words.h - words in braces in a path: "{sample}_{run}.nxs".
 *
 * Model:     "{name}" is replaced by the value of that word, "{{" and "}}" stand for one brace, a
 *            "}" alone for itself. A value is one piece of a file's name whatever it says: '/'
 *            and control characters become '_', and so does a '.' at its beginning; an empty one
 *            is "_". So no value leads to another folder.
 * Threads:   functions of their arguments. */
#ifndef SL_BASE_FILE_PATH_WORDS_H
#define SL_BASE_FILE_PATH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct sl_path_word {
	const char *name;
	const char *value; /* NULL: it has none */
	const char *lacks; /* then: why, and what to do instead */
};

/* `why`: what is wrong, for a message behind the name of the option. -EINVAL: no such word, or a
 * brace without its partner; -ENODATA: a word without a value; -ENAMETOOLONG: out is too small. */
int sl_path_words_expand(const char *text, const struct sl_path_word *words, size_t n, char *out,
			 size_t bytes, char *why, size_t why_bytes);

/* The next of several paths with commas between them: where it is in the text, without blanks
 * around it. Empty ones are skipped. False: there is no more. */
bool sl_path_list_next(const char **rest, const char **path, size_t *bytes);

/* Each of these paths with its words replaced, behind `folder` and a slash where it is relative
 * (NULL: as it is). A comma in a value becomes '_'. As sl_path_words_expand(). */
int sl_path_list_expand(const char *text, const char *folder, const struct sl_path_word *words,
			size_t n, char *out, size_t bytes, char *why, size_t why_bytes);

/* Whether the text has "{name}". */
bool sl_path_words_has(const char *text, const char *name);

#endif
