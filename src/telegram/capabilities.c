/* capabilities.c - what a telegram is told of this program and this host. */
#include <jansson.h>
#include <unistd.h>

#include <sluice/detector.h>
#include <sluice/sink.h>
#include <sluice/stage.h>

#include "client/text.h"
#include "core/link.h"
#include "core/registry.h"
#include "core/unit.h"
#include "telegram/telegram.h"

static void add(json_t *list, const char *kind, const char *name, const char *doc)
{
	json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "kind", kind, "name",
					      sl_json_text(name), "doc", sl_json_text(doc)));
}

static json_t *addons(void)
{
	json_t *list = json_array();

	for (size_t i = 0; sl_links[i]; i++)
		add(list, "link", sl_links[i]->name, sl_links[i]->doc);
	for (size_t i = 0; sl_detectors[i]; i++)
		add(list, "detector", sl_detectors[i]->name, sl_detectors[i]->doc);
	for (size_t i = 0; sl_stages[i]; i++)
		add(list, "stage", sl_stages[i]->name, sl_stages[i]->doc);
	for (size_t i = 0; sl_units[i]; i++)
		add(list, "unit", sl_units[i]->name, sl_units[i]->doc);
	for (size_t i = 0; sl_sinks[i]; i++)
		add(list, "sink", sl_sinks[i]->name, sl_sinks[i]->doc);
	return list;
}

static json_t *calls(void)
{
	json_t *list = json_array();

	for (int i = 0; i < SL_TELEGRAM_CALLS; i++)
		json_array_append_new(list,
				      json_string(sl_telegram_call_name((enum sl_telegram_call)i)));
	return list;
}

static json_t *sessions(void)
{
	json_t *list = json_array();
	struct sl_remote_info *info;
	size_t n;

	if (sl_remote_list(&info, &n))
		return list;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:o, s:s, s:b, s:o}", "name",
						      sl_json_text(info[i].name), "kind",
						      info[i].detector ? "detector" : "session",
						      "alive", info[i].alive, "experiment",
						      sl_json_text(info[i].experiment)));
	sl_remote_free(info);
	return list;
}

json_t *sl_telegram_capabilities(void)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", SL_VERSION, "host",
			 sl_json_text(host), "calls", calls(), "addons", addons(), "sessions",
			 sessions());
}
