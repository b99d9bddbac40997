/* config_fuzz.c - any bytes as an experiment file: what parses must survive being written, read
 * again, overridden and filled into structs. With a line "#site" in them, what is before it is a
 * site file: its defaults are laid under the rest, and its locks over it. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config/config.h"
#include "base/config/layers.h"
#include "base/config/node.h"
#include "base/log.h"

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct sample {
	uint32_t modules;
	uint64_t bytes;
	double rate_Hz;
	bool verify;
	char listen[16];
	uint32_t mode;
};

static const struct sl_option options[] = {
	SL_U32(struct sample, modules, 2, 1, 64, "modules", "how many"),
	SL_U64(struct sample, bytes, 4Ki, 0, 1e15, "bytes", "how large"),
	SL_F64(struct sample, rate_Hz, 100, 0.5, 1e6, "Hz", "how often"),
	SL_BOOL(struct sample, verify, false, "look again"),
	SL_STRING(struct sample, listen, "127.0.0.1", "where"),
	SL_CHOICE(struct sample, mode, slow, "slow|fast", "how"),
	SL_OPTION_END,
};

/* Messages are written, so that their code runs too, but to nobody: libFuzzer keeps its own copy of
 * stderr only when asked (-close_fd_mask), so descriptor 2 is swapped around each input. */
static int nobody, saved;

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	nobody = open("/dev/null", O_WRONLY | O_CLOEXEC);
	saved = dup(STDERR_FILENO);
	return 0;
}

static bool same(const struct sl_node *a, const struct sl_node *b)
{
	if (a->kind != b->kind || !a->key != !b->key || (a->key && strcmp(a->key, b->key)))
		return false;
	if (a->kind == SL_NODE_SCALAR && strcmp(a->text, b->text))
		return false;
	for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
		if (!same(a, b))
			return false;
	return !a && !b;
}

static void use(struct sl_config *config)
{
	struct sample sample;
	const struct sl_option_set set = {options, &sample};

	sl_config_fill(config, config->root, &set, 1, NULL);
	for (struct sl_node *node = config->root->child; node; node = node->next)
		sl_config_fill(config, node, &set, 1, NULL);
	sl_config_override(config, "modules=3");
	sl_config_override(config, "stages[0].veto.threshold=3");
	sl_config_override(config, "stages.veto.threshold=3");
	if (sl_config_fill(config, NULL, &set, 1, NULL))
		abort(); /* defaults always fit */
}

/* Comments behind values change nothing. */
static void check_origins(struct sl_config *config)
{
	char *text = sl_config_text_with_origins(config);
	struct sl_config *again;

	/* Comments make a text longer: it may have grown beyond what is read. */
	if (!text)
		abort();
	if (strlen(text) <= SL_CONFIG_FILE_BYTES) {
		if (sl_config_parse("again.yaml", text, strlen(text), &again) ||
		    !same(config->root, again->root))
			abort();
		sl_config_close(again);
	}
	free(text);
}

static void lay(struct sl_config *config, const struct sl_config *site)
{
	const struct sl_node *defaults = sl_node_child(site->root, "defaults");
	const struct sl_node *locked = sl_node_child(site->root, "locked");

	if (defaults && defaults->kind == SL_NODE_MAP)
		sl_config_defaults(config, defaults);
	for (struct sl_node *list = config->root->child; list; list = list->next) {
		const struct sl_node *options = sl_node_child(defaults, list->key);

		if (options && options->kind == SL_NODE_MAP)
			sl_config_item_defaults(config, list, options);
		options = sl_node_child(locked, list->key);
		if (options && options->kind == SL_NODE_MAP)
			sl_config_item_lock(config, list, options);
	}
	/* What is wrong is told once, and replaced. */
	if (locked && locked->kind == SL_NODE_MAP && sl_config_lock(config, locked) != -E2BIG &&
	    sl_config_lock(config, locked))
		abort();
	sl_config_settle(config);
}

static void check(const uint8_t *data, size_t bytes)
{
	static const char mark[] = "\n#site\n";
	const uint8_t *end = memmem(data, bytes, mark, sizeof(mark) - 1);
	struct sl_config *config, *again, *site = NULL;
	char *text;

	if (end && sl_config_parse("site.yaml", (const char *)data, (size_t)(end - data), &site))
		return;
	if (end) {
		end += sizeof(mark) - 1;
		bytes -= (size_t)(end - data);
		data = end;
	}
	if (sl_config_parse("fuzz.yaml", (const char *)data, bytes, &config)) {
		sl_config_close(site);
		return;
	}
	if (site)
		lay(config, site);
	sl_config_close(site);
	if (sl_tree_of(config)->nodes > SL_CONFIG_NODES - 100) { /* no room for what use() adds */
		sl_config_close(config);
		return;
	}
	check_origins(config);
	for (int round = 0; round < 2; round++) {
		text = sl_config_text(config);
		if (!text || sl_config_parse("again.yaml", text, strlen(text), &again))
			abort();
		if (!same(config->root, again->root))
			abort();
		sl_config_close(again);
		free(text);
		use(config); /* the second round writes what the overrides made */
	}
	sl_config_close(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *overrides = malloc(bytes + 1);
	struct sl_config *config;

	dup2(nobody, STDERR_FILENO);
	check(data, bytes);
	/* The same bytes as a command-line override. */
	memcpy(overrides, data, bytes);
	overrides[bytes] = 0;
	if (!sl_config_parse("fuzz.yaml", "a: {b: 1}\nl: [{x: 1}, y]\n", 25, &config)) {
		sl_config_override(config, overrides);
		sl_config_close(config);
	}
	free(overrides);
	dup2(saved, STDERR_FILENO);
	return 0;
}
