/* option.h - the options of an add-on or a section, as data.
 *
 * Model:     one table of rows per struct; a row names a field of that struct. The same table
 *            drives the YAML file, the command line, --help, `sluice list` and the error messages,
 *            so that an option exists in one place. Numbers may end in k, M, G (powers of 1000)
 *            or Ki, Mi, Gi (powers of 1024); whole numbers may be written 0x hexadecimal.
 * Threads:   tables are const; filling a struct happens before any thread starts.
 * Ownership: strings are copied into char arrays of the struct; nothing to free. */
#ifndef SLUICE_OPTION_H
#define SLUICE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sl_option_type {
	SL_OPTION_U32,
	SL_OPTION_U64,
	SL_OPTION_F64,
	SL_OPTION_BOOL,
	SL_OPTION_STRING, /* char[] */
	SL_OPTION_CHOICE, /* uint32_t, index into choices */
	/* char[]: the path of a file that the add-on writes. Where each run has a folder of its
	 * own, a relative path begins there: it is set anew before each open(). */
	SL_OPTION_OUTPUT,
	/* char[]: a secret. No message, file or list shows it, and it is not taken from the command
	 * line, which every user of the host can read. */
	SL_OPTION_SECRET,
	/* char[]: paths of folders that the add-on writes files in, with commas between them. Each
	 * is like the path of an output. */
	SL_OPTION_OUTPUT_FOLDERS,
};

struct sl_option {
	const char *name;
	enum sl_option_type type;
	size_t offset, size;
	const char *def;  /* as one would write it in the file */
	double min, max;  /* numbers only; u64 is exact up to 2^53, which no option here exceeds */
	const char *unit; /* "" when it has none */
	const char *doc;  /* one line */
	/* "a|b|c", choices only; of SL_OPTION_U32: a word that may stand in the place of a number,
	 * and is stored as 0 */
	const char *choices;
	const char *was; /* its former name, which still works and warns; NULL: it has none */
};

#define SL_OPTION_FIELD(S, f) offsetof(S, f), sizeof(((S *)0)->f)

#define SL_U32(S, f, def, min, max, unit, doc)                                                  \
	{                                                                                       \
#f, SL_OPTION_U32, SL_OPTION_FIELD(S, f), #def, min, max, unit, doc, NULL, NULL \
	}
/* A number, at least 1, or the word auto: the program chooses, and the field is 0. */
#define SL_U32_AUTO(S, f, def, max, unit, doc)                                                  \
	{                                                                                       \
#f, SL_OPTION_U32, SL_OPTION_FIELD(S, f), #def, 1, max, unit, doc, "auto", NULL \
	}
#define SL_U64(S, f, def, min, max, unit, doc)                                                  \
	{                                                                                       \
#f, SL_OPTION_U64, SL_OPTION_FIELD(S, f), #def, min, max, unit, doc, NULL, NULL \
	}
#define SL_F64(S, f, def, min, max, unit, doc)                                                  \
	{                                                                                       \
#f, SL_OPTION_F64, SL_OPTION_FIELD(S, f), #def, min, max, unit, doc, NULL, NULL \
	}
#define SL_BOOL(S, f, def, doc)                                                            \
	{                                                                                  \
#f, SL_OPTION_BOOL, SL_OPTION_FIELD(S, f), #def, 0, 1, "", doc, NULL, NULL \
	}
/* def is a string literal here; in SL_CHOICE it is the bare word of the choice. */
#define SL_STRING(S, f, def, doc)                                                           \
	{                                                                                   \
#f, SL_OPTION_STRING, SL_OPTION_FIELD(S, f), def, 0, 0, "", doc, NULL, NULL \
	}
#define SL_OUTPUT(S, f, def, doc)                                                           \
	{                                                                                   \
#f, SL_OPTION_OUTPUT, SL_OPTION_FIELD(S, f), def, 0, 0, "", doc, NULL, NULL \
	}
#define SL_OUTPUT_FOLDERS(S, f, doc)                                                               \
	{                                                                                          \
#f, SL_OPTION_OUTPUT_FOLDERS, SL_OPTION_FIELD(S, f), "", 0, 0, "", doc, NULL, NULL \
	}
#define SL_SECRET(S, f, doc)                                                               \
	{                                                                                  \
#f, SL_OPTION_SECRET, SL_OPTION_FIELD(S, f), "", 0, 0, "", doc, NULL, NULL \
	}
#define SL_CHOICE(S, f, def, choices, doc)                                                      \
	{                                                                                       \
#f, SL_OPTION_CHOICE, SL_OPTION_FIELD(S, f), #def, 0, 0, "", doc, choices, NULL \
	}
#define SL_OPTION_END                                                          \
	{                                                                      \
		NULL, SL_OPTION_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL, NULL \
	}

/* A table together with the struct that it fills. Sections often have two: what all kinds share,
 * and the kind's own. */
struct sl_option_set {
	const struct sl_option *options;
	void *base;
};

/* Its value is a text that may be shown. */
static inline bool sl_option_is_text(const struct sl_option *option)
{
	return option->type == SL_OPTION_STRING || option->type == SL_OPTION_OUTPUT ||
	       option->type == SL_OPTION_OUTPUT_FOLDERS;
}

/* Write every default of the table into base. A default that does not parse is a programming error
 * and aborts. */
void sl_options_defaults(const struct sl_option *options, void *base);

/* Whether the table fits a struct of `bytes` bytes, and every default parses. -EINVAL: it does not;
 * the first row that is wrong is in `why`. */
int sl_options_check(const struct sl_option *options, size_t bytes, char *why, size_t why_bytes);

/* Set one option from text. On error returns -EINVAL (not that type), -ERANGE (outside min..max, or
 * a string that is too long) and leaves in `why` what would have been right, e.g. "takes 1..64
 * slots". */
int sl_option_set(const struct sl_option *option, void *base, const char *text, char *why,
		  size_t why_bytes);

/* Set the option of that name from text, as the file and --set do. -ENOENT: the table has no option
 * of that name; otherwise as sl_option_set(). */
int sl_options_set(const struct sl_option *options, void *base, const char *name, const char *text,
		   char *why, size_t why_bytes);

/* The row of that name, or NULL. For the machinery of options: what the pipeline must know of an
 * add-on is a member of its descriptor. */
const struct sl_option *sl_option_find(const struct sl_option *options, const char *name);

/* The row that had that name before it was renamed, or NULL. */
const struct sl_option *sl_option_find_former(const struct sl_option *options, const char *name);

/* The value as one would write it in the file; of a secret, nothing. */
void sl_option_print(const struct sl_option *option, const void *base, char *text, size_t bytes);

/* "1..64 slots", "true or false", "udp or shm": what the option takes, for errors and help. */
void sl_option_takes(const struct sl_option *option, char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
