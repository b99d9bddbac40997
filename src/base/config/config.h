/* config.h - an experiment file as a tree that remembers its lines. The one place with <yaml.h> is
 * config.c.
 *
 * Model:     maps, lists and scalars; every node knows file, line and path ("link.listen",
 *            "stages[1].veto.threshold"), so that an error can name them. Overrides ("--set
 *            path=value") edit the tree before anyone reads it. Sections are read with option
 *            tables (sluice/option.h): a key that no table has is an error that lists what is
 *            allowed. A key without a value ("veto:") is a scalar: as a section it stands for
 *            all defaults, as an option it is an error.
 * Threads:   one.
 * Ownership: the config owns all nodes; strings stay valid until sl_config_close().
 * Errors:    logged here, with file and line; callers only pass on the code. */
#ifndef SL_BASE_CONFIG_CONFIG_H
#define SL_BASE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/option.h>

/* In the place of a secret, wherever the tree is written. */
#define SL_CONFIG_NOT_STORED "(not stored)"

enum sl_node_kind { SL_NODE_SCALAR, SL_NODE_MAP, SL_NODE_LIST };

/* Where a value comes from; the weakest first. */
enum sl_origin {
	SL_ORIGIN_DEFAULT, /* an option table; only in trees that are made to be shown */
	SL_ORIGIN_SITE,	   /* defaults that were laid under the file (layers.h) */
	SL_ORIGIN_FILE,	   /* the file that was opened */
	SL_ORIGIN_SET,	   /* --set */
	SL_ORIGIN_LOCKED,  /* a locked key (layers.h) */
	SL_ORIGIN_PROGRAM, /* set by the program itself, for a child process */
};

struct sl_node {
	enum sl_node_kind kind;
	const char *key;  /* in a map; NULL otherwise */
	const char *text; /* scalar */
	char *path;
	const char *file; /* that has the line; NULL: from the command line */
	unsigned line;	  /* 0: from the command line */
	struct sl_node *child, *next, *parent;
	enum sl_origin origin;
	const char *only_kind; /* a default for sections of this `kind`; NULL: of any */
	bool read;   /* a reader asked for the node; a node without a reader is an unknown key */
	bool secret; /* written as SL_CONFIG_NOT_STORED */
	/* The row that it was printed from; only in trees that are made to be shown. */
	const struct sl_option *option;
};

struct sl_config {
	char *file;
	struct sl_node *root; /* always a map */
	char *source;	      /* the text as read */
};

/* Parse a file, or text (file is then only a name for messages). -ENOENT, -EINVAL (malformed:
 * logged with line and column; also duplicate keys, anchors/aliases, more than one document, a root
 * that is not a map, and nesting deeper than 16), -EFBIG (larger than SL_CONFIG_FILE_BYTES). */
int sl_config_open(const char *path, struct sl_config **config);
int sl_config_read(int fd, const char *file, struct sl_config **config); /* fd stays open */
int sl_config_parse(const char *file, const char *text, size_t bytes, struct sl_config **config);
void sl_config_close(struct sl_config *config);

/* "path.to.key=value"; creates missing maps on the way; list items as stages[0].x or by the name of
 * a one-key item: stages.veto.x; sinks[+]=null and sinks[+].share.every=10 make a new item behind
 * the others. Errors name the path, never the value. */
int sl_config_override(struct sl_config *config, const char *assignment);
/* The same of the program itself, for a child process: locked keys (layers.h) give way to it. */
int sl_config_override_own(struct sl_config *config, const char *assignment);

/* The child of a map, or NULL. Marks it as read. */
struct sl_node *sl_node_get(struct sl_node *map, const char *key);

/* Fill structs from a map: defaults first, then what is there. `section` may be NULL: only
 * defaults. Keys in `also` (NULL-terminated, may be NULL) are known but not options. Unknown keys,
 * wrong types and values out of range are logged with file, line, and what is allowed; all of them
 * are reported, then -EINVAL. */
int sl_config_fill(const struct sl_config *config, struct sl_node *section,
		   const struct sl_option_set *sets, size_t n_sets, const char *const *also);

/* An error at a node: "file:line: path: message". */
void sl_config_error(const struct sl_config *config, const struct sl_node *node, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));
void sl_config_warn(const struct sl_config *config, const struct sl_node *node, const char *format,
		    ...) __attribute__((format(printf, 3, 4)));

/* The node that decides an option: its own, or the one with its former name where that is
 * stronger. NULL: the section has neither. */
struct sl_node *sl_config_option(const struct sl_node *section, const struct sl_option *option);

/* How many letters to insert, delete or replace to get from one name to the other. SIZE_MAX: `b` is
 * longer than any key. */
size_t sl_config_distance(const char *a, const char *b);

/* The tree as YAML text again, overrides applied (malloc'ed): stored with the run. */
char *sl_config_text(const struct sl_config *config);
/* The same with a comment behind each value: "port: 4791  # site.yaml:7". */
char *sl_config_text_with_origins(const struct sl_config *config);

#endif
