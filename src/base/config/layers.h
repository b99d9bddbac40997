/* layers.h - defaults laid under a file, and keys that are locked: what a site file does to an
 * experiment (src/experiment/site.h).
 *
 * Model:     a layer is a map of another config. Maps merge key by key; a list or a value of the
 *            stronger side stands whole. A default that lies beside a `kind` is meant for that
 *            kind: sl_config_settle() drops it where the section has another kind in the end. A
 *            locked key must have its value, or be absent, whatever set it.
 * Threads:   one.
 * Ownership: nodes are copied: the layer's config may be closed at any time.
 * Errors:    logged, with the place of the layer and of the value that contradicts it.
 * Cost:      the keys of the layer times those of the file's map; once per file. */
#ifndef SL_BASE_CONFIG_LAYERS_H
#define SL_BASE_CONFIG_LAYERS_H

#include "base/config/config.h"

/* What the config does not say, `defaults` (a map) says. A section without a value ("ring:") says
 * nothing. -ENOMEM; -E2BIG, logged: too many values in all. */
int sl_config_defaults(struct sl_config *config, const struct sl_node *defaults);

/* The same for the items of a list that are add-ons ("- name", or "- name: {...}"): `options` is a
 * map from names to maps of options, used for each item of that name. */
int sl_config_item_defaults(struct sl_config *config, struct sl_node *list,
			    const struct sl_node *options);

/* Set each value in `locked` (a map). -EINVAL: the config has another one, which is logged and
 * replaced. Values of SL_ORIGIN_PROGRAM stay. */
int sl_config_lock(struct sl_config *config, const struct sl_node *locked);
int sl_config_item_lock(struct sl_config *config, struct sl_node *list,
			const struct sl_node *options);

/* Drop the defaults of kinds that are not used. Call this when every `kind` is final. */
void sl_config_settle(struct sl_config *config);

/* Whether a layer has put the node there. */
bool sl_config_is_site(const struct sl_node *node);

/* A key of a layer is used where the section's kind has it: drop what a layer has put there, what
 * was marked as read because another kind has it, and what neither table has. */
void sl_config_drop_unused(struct sl_node *section, const struct sl_option *common,
			   const struct sl_option *own);

/* Equal trees; scalars that are equal as numbers or as true and false are the same, too. */
bool sl_config_same(const struct sl_node *a, const struct sl_node *b);

/* Log that `node` contradicts `lock`. -EINVAL. */
int sl_config_refuse_locked(const struct sl_config *config, const struct sl_node *node,
			    const struct sl_node *lock);

#endif
