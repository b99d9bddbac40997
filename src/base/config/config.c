/* config.c - from YAML to the tree, with line numbers. libyaml does the syntax; here is what an
 * experiment file may use of it: maps, lists and scalars, one document, no anchors, no tags. */
#include "base/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/config/node.h"
#include "base/log.h"

struct parse {
	yaml_parser_t yaml;
	struct sl_tree *tree;
	unsigned depth;
	unsigned errors; /* found and reported; what makes sense without them is still looked at */
};

/* The file as far as libyaml read it decides where a bad byte is: it gives only an offset. */
static unsigned line_of(const char *text, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < offset && text[i]; i++)
		line += text[i] == '\n';
	return line;
}

static int syntax_error(struct parse *parse)
{
	const struct sl_config *config = &parse->tree->config;
	const yaml_parser_t *yaml = &parse->yaml;
	const char *problem = yaml->problem ? yaml->problem : "malformed";
	const char *hint = "";
	unsigned line = (unsigned)yaml->problem_mark.line + 1;
	unsigned column = (unsigned)yaml->problem_mark.column + 1;

	if (yaml->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (yaml->error == YAML_READER_ERROR) {
		sl_error("%s:%u: not UTF-8 text: %s", config->file,
			 line_of(config->source, yaml->problem_offset), problem);
		return -EINVAL;
	}
	/* The mark counts characters, the text is in bytes: good enough for a hint. */
	if (yaml->problem_mark.index < strlen(config->source) &&
	    config->source[yaml->problem_mark.index] == '\t')
		hint = "; indent with spaces, not tabs";
	if (yaml->context)
		sl_error("%s:%u:%u: %s %s from line %zu%s", config->file, line, column, problem,
			 yaml->context, yaml->context_mark.line + 1, hint);
	else
		sl_error("%s:%u:%u: %s%s", config->file, line, column, problem, hint);
	return -EINVAL;
}

static int next_event(struct parse *parse, yaml_event_t *event)
{
	if (!yaml_parser_parse(&parse->yaml, event))
		return syntax_error(parse);
	return 0;
}

static unsigned line_number(const yaml_event_t *event)
{
	return (unsigned)event->start_mark.line + 1;
}

/* Report what an experiment file may not use, and go on: there may be more to report. */
static void refuse(struct parse *parse, const yaml_event_t *event, const char *what)
{
	sl_error("%s:%u: %s", parse->tree->config.file, line_number(event), what);
	parse->errors++;
}

static void refuse_extras(struct parse *parse, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (event->type == YAML_SCALAR_EVENT) {
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
	} else if (event->type == YAML_MAPPING_START_EVENT) {
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
	} else if (event->type == YAML_SEQUENCE_START_EVENT) {
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
	}
	if (anchor)
		refuse(parse, event, "anchors (&name) are not supported; write the value out");
	if (tag)
		refuse(parse, event, "tags (!name) are not supported; leave them out");
}

static bool has_control(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return true;
	return false;
}

/* The key of a map entry: its text, or NULL with the error counted. */
static int read_key(struct parse *parse, const yaml_event_t *event, const struct sl_node *map,
		    const char **key)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t bytes = event->data.scalar.length;
	const struct sl_node *gpu;

	refuse_extras(parse, event);
	*key = NULL;
	if (!bytes)
		refuse(parse, event, "a key is empty");
	else if (bytes > SL_CONFIG_KEY_BYTES)
		refuse(parse, event, "a key is longer than 128 bytes");
	else if (has_control(value, bytes))
		refuse(parse, event, "a key contains a control character");
	if (!bytes || bytes > SL_CONFIG_KEY_BYTES)
		return 0;
	*key = sl_tree_text(parse->tree, value, bytes);
	if (!*key)
		return -ENOMEM;
	gpu = sl_node_child(map, *key);
	if (gpu) {
		sl_error("%s:%u: %s: given twice; the first is on line %u",
			 parse->tree->config.file, line_number(event), gpu->path, gpu->line);
		parse->errors++;
	}
	return 0;
}

static int read_scalar(struct parse *parse, const yaml_event_t *event, struct sl_node *node)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t bytes = event->data.scalar.length;

	if (memchr(value, 0, bytes))
		refuse(parse, event, "a value contains a NUL");
	node->text = NULL;
	if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		node->text = sl_null_text(value, bytes);
	if (!node->text)
		node->text = sl_tree_text(parse->tree, value, bytes);
	return node->text ? 0 : -ENOMEM;
}

static int read_children(struct parse *parse, struct sl_node *node);

/* The node that starts with this event. `key_line` 0: take the event's own. */
static int read_node(struct parse *parse, const yaml_event_t *event, struct sl_node *parent,
		     const char *key, unsigned key_line, struct sl_node **made)
{
	unsigned line = key_line ? key_line : line_number(event);
	enum sl_node_kind kind = event->type == YAML_MAPPING_START_EVENT    ? SL_NODE_MAP
				 : event->type == YAML_SEQUENCE_START_EVENT ? SL_NODE_LIST
									    : SL_NODE_SCALAR;
	struct sl_node *node;
	int err;

	if (parse->tree->nodes >= SL_CONFIG_NODES) {
		refuse(parse, event, "more than 10000 values: this is no experiment file");
		return -EINVAL;
	}
	err = sl_node_add(parse->tree, parent, key, kind, line, &node);
	if (err)
		return err;
	refuse_extras(parse, event);
	if (event->type == YAML_ALIAS_EVENT) {
		refuse(parse, event, "aliases (*name) are not supported; write the value out");
		node->text = "";
	} else if (kind == SL_NODE_SCALAR) {
		err = read_scalar(parse, event, node);
	} else if (parse->depth >= SL_CONFIG_DEPTH) {
		refuse(parse, event, "nested deeper than 16 levels");
		err = -EINVAL;
	} else {
		parse->depth++;
		err = read_children(parse, node);
		parse->depth--;
	}
	if (!err && made)
		*made = node;
	return err;
}

/* Keys that are maps or lists are legal YAML; they are read, so that parsing goes on, as an item
 * without a key, of a tree that is already refused. */
static int read_entry(struct parse *parse, const yaml_event_t *first, struct sl_node *map)
{
	const char *key = NULL;
	unsigned line = line_number(first);
	yaml_event_t value;
	int err;

	if (first->type == YAML_SCALAR_EVENT) {
		err = read_key(parse, first, map, &key);
	} else {
		refuse(parse, first, "a key must be a word");
		err = read_node(parse, first, map, NULL, 0, NULL);
	}
	if (err)
		return err;
	err = next_event(parse, &value);
	if (err)
		return err;
	err = read_node(parse, &value, map, key, line, NULL);
	yaml_event_delete(&value);
	return err;
}

static int read_children(struct parse *parse, struct sl_node *node)
{
	yaml_event_t event;
	int err = 0;

	while (!err) {
		err = next_event(parse, &event);
		if (err)
			return err;
		if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			return 0;
		}
		err = node->kind == SL_NODE_MAP ? read_entry(parse, &event, node)
						: read_node(parse, &event, node, NULL, 0, NULL);
		yaml_event_delete(&event);
	}
	return err;
}

static int read_document(struct parse *parse)
{
	struct sl_node *root = NULL;
	yaml_event_t event;
	int err = next_event(parse, &event);

	if (err)
		return err;
	err = read_node(parse, &event, NULL, NULL, 0, &root);
	if (!err && root->kind != SL_NODE_MAP) {
		refuse(parse, &event, "not a map of sections ('name: ...')");
		err = -EINVAL;
	}
	yaml_event_delete(&event);
	parse->tree->config.root = root;
	return err;
}

static int read_stream(struct parse *parse)
{
	yaml_event_type_t type = YAML_NO_EVENT;
	unsigned documents = 0;
	yaml_event_t event;
	int err;

	while (type != YAML_STREAM_END_EVENT) {
		err = next_event(parse, &event);
		if (err)
			return err;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && documents++) {
			refuse(parse, &event,
			       "a second document ('---') starts; use one file each");
			err = -EINVAL;
		} else if (type == YAML_DOCUMENT_START_EVENT) {
			err = read_document(parse);
		}
		yaml_event_delete(&event);
		if (err)
			return err;
	}
	if (!documents) {
		sl_error("%s: is empty; it should be a map of sections ('name: ...')",
			 parse->tree->config.file);
		return -EINVAL;
	}
	return parse->errors ? -EINVAL : 0;
}

static int too_large(const char *file)
{
	sl_error("%s: larger than %d MiB: this is no experiment file", file,
		 SL_CONFIG_FILE_BYTES >> 20);
	return -EFBIG;
}

int sl_config_parse(const char *file, const char *text, size_t bytes, struct sl_config **config)
{
	struct parse parse = {.tree = calloc(1, sizeof(struct sl_tree))};
	struct sl_config *made;
	int err = -ENOMEM;

	if (bytes > SL_CONFIG_FILE_BYTES) {
		free(parse.tree);
		return too_large(file);
	}
	if (!parse.tree)
		return err;
	made = &parse.tree->config;
	made->file = sl_tree_text(parse.tree, file, strlen(file));
	made->source = sl_tree_text(parse.tree, text, bytes);
	if (!made->file || !made->source || !yaml_parser_initialize(&parse.yaml))
		goto undo_tree;
	if (memchr(text, 0, bytes)) {
		sl_error("%s:%u: not UTF-8 text: it contains a NUL", file,
			 line_of(text, strnlen(text, bytes)));
		err = -EINVAL;
		goto undo_parser;
	}
	yaml_parser_set_input_string(&parse.yaml, (const unsigned char *)made->source, bytes);
	err = read_stream(&parse);
	if (err)
		goto undo_parser;
	yaml_parser_delete(&parse.yaml);
	*config = made;
	return 0;

undo_parser:
	yaml_parser_delete(&parse.yaml);
undo_tree:
	sl_config_close(made);
	return err;
}

/* The whole file, or -EFBIG. Reads what is no regular file (a pipe) as well. */
static int read_file(int fd, char **text, size_t *bytes)
{
	char *buffer = malloc(SL_CONFIG_FILE_BYTES + 1);
	size_t used = 0;
	ssize_t n;

	if (!buffer)
		return -ENOMEM;
	while (used <= SL_CONFIG_FILE_BYTES) {
		n = read(fd, buffer + used, SL_CONFIG_FILE_BYTES + 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = -errno;

			free(buffer);
			return err;
		}
		if (!n) {
			*text = buffer;
			*bytes = used;
			return 0;
		}
		used += (size_t)n;
	}
	free(buffer);
	return -EFBIG;
}

int sl_config_read(int fd, const char *file, struct sl_config **config)
{
	char *text = NULL;
	size_t bytes = 0;
	int err = read_file(fd, &text, &bytes);

	if (err == -EFBIG)
		return too_large(file);
	if (err) {
		sl_error("%s: cannot read: %s", file, strerror(-err));
		return err;
	}
	err = sl_config_parse(file, text, bytes, config);
	free(text);
	return err;
}

int sl_config_open(const char *path, struct sl_config **config)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0) {
		err = -errno;
		sl_error("%s: cannot open: %s", path, strerror(-err));
		return err;
	}
	/* A descriptor of this process holds a text that came without a file. */
	err = sl_config_read(fd, strncmp(path, "/proc/self/fd/", 14) ? path : "text", config);
	close(fd);
	return err;
}
