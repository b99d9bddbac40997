/* capabilities.c - GET /api/v1: what this host and this program can do; GET /api/v1/events. */
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sysfile.h"
#include "board/causes.h"
#include "service/parts.h"
#include "service/schema.h"

/* ---- the host ---- */

static json_t *memory_json(void)
{
	long long total = 0, available = 0;
	char text[64];

	if (sl_sysfile_value("", "/proc/meminfo", "MemTotal", text, sizeof(text)))
		total = atoll(text);
	if (sl_sysfile_value("", "/proc/meminfo", "MemAvailable", text, sizeof(text)))
		available = atoll(text);
	return json_pack("{s:I, s:I}", "total_bytes", (json_int_t)total * 1024, "available_bytes",
			 (json_int_t)available * 1024);
}

static void add_names(json_t *list, const char *kind, const char *folder, const char *describe,
		      const char *key)
{
	DIR *names = opendir(folder);
	const struct dirent *entry;

	while (names && (entry = readdir(names))) {
		char path[600], text[256] = "";

		if (entry->d_name[0] == '.')
			continue;
		if (describe) {
			snprintf(path, sizeof(path), "%s/%s/%s", folder, entry->d_name, describe);
			sl_sysfile_value("", path, key, text, sizeof(text));
		}
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s?}", "kind", kind, "name",
						entry->d_name, "model", text[0] ? text : NULL));
	}
	if (names)
		closedir(names);
}

/* By the files of their drivers: loading the drivers is for runs. */
static json_t *devices_json(void)
{
	json_t *list = json_array();

	add_names(list, "gpu", "/proc/driver/nvidia/gpus", "information", "Model");
	add_names(list, "rdma", "/sys/class/infiniband", NULL, NULL);
	return list;
}

static json_t *interface_json(json_t *list, const char *name)
{
	json_t *one;
	long long mtu = 0;
	size_t i;

	json_array_foreach(
		list, i,
		one) if (!strcmp(json_string_value(json_object_get(one, "name")), name)) return one;
	sl_sysfile_number("", &mtu, "/sys/class/net/%s/mtu", name);
	one = json_pack("{s:s, s:[], s:I}", "name", name, "addresses", "mtu", (json_int_t)mtu);
	json_array_append_new(list, one);
	return one;
}

static json_t *interfaces_json(void)
{
	json_t *list = json_array();
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all))
		return list;
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		json_t *one = interface_json(list, a->ifa_name);
		char text[NI_MAXHOST];
		size_t bytes;

		if (!a->ifa_addr ||
		    (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
			continue;
		bytes = a->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							  : sizeof(struct sockaddr_in6);
		if (!getnameinfo(a->ifa_addr, (socklen_t)bytes, text, sizeof(text), NULL, 0,
				 NI_NUMERICHOST))
			json_array_append_new(json_object_get(one, "addresses"), json_string(text));
	}
	freeifaddrs(all);
	return list;
}

static void get_capabilities(void *arg, struct sl_http_request *r)
{
	const struct sl_service *service = arg;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	sl_http_answer_json(
		r, 200,
		json_pack("{s:s, s:i, s:I, s:I, s:s, s:s, s:s, s:i, s:o, s:O, s:O, s:o, s:o, "
			  "s:{s:s, s:s, s:s}, s:o}",
			  "version", SL_VERSION, "schema", SL_SERVICE_SCHEMA, "time_unix_ns",
			  (json_int_t)sl_clock_unix_ns(), "started_unix_ns",
			  (json_int_t)service->started_unix_ns, "host", host, "role",
			  sl_role_name(sl_http_role(r)), "user", sl_http_user(r), "cpus",
			  (int)sysconf(_SC_NPROCESSORS_ONLN), "memory", memory_json(), "addons",
			  service->addons, "absent", service->absent, "devices", devices_json(),
			  "interfaces", interfaces_json(), "folders", "root", service->root,
			  "experiments", service->folder, "data_roots", service->data_roots,
			  "causes", sl_causes_all()));
}

/* ---- events ---- */

static char *text_of(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

	json_decref(json);
	return text;
}

/* A viewer begins with the list: what changes later comes as events. */
static void get_events(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	char *hello =
		text_of(json_pack("{s:s, s:i, s:I, s:s}", "version", SL_VERSION, "schema",
				  SL_SERVICE_SCHEMA, "time_unix_ns", (json_int_t)sl_clock_unix_ns(),
				  "role", sl_role_name(sl_http_role(r))));
	char *sessions = text_of(sl_sessions_list(service->sessions));
	const struct sl_event first[] = {{"hello", NULL, hello, false},
					 {"sessions", NULL, sessions, true}};

	if (hello && sessions)
		sl_http_answer_events(r, service->events, sl_http_text(r, "session"),
				      sl_http_whole(r, "interval_ms"), first, 2);
	free(hello);
	free(sessions);
}

static const struct sl_http_parameter of_events[] = {
	{"session", SL_HTTP_TEXT, 0, 63, NULL, NULL, "only the status of this session"},
	{"interval_ms", SL_HTTP_WHOLE, 100, 3600000, "500", NULL,
	 "from one status of a session to the next, at least"},
	{NULL},
};

const struct sl_http_route sl_capabilities_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_capabilities,
	 .doc = "What this host and this program can do: add-ons with their options as JSON "
		"schema, devices, "
		"interfaces, memory; and the client's role.",
	 .said = {{200, "application/json", "capabilities", "capabilities"}}},
	{.method = "GET",
	 .pattern = "/api/v1/events",
	 .role = SL_ROLE_VIEW,
	 .handle = get_events,
	 .doc = "What happens, as Server-Sent Events: hello, sessions, status, run, missed.",
	 .query = of_events,
	 .said = {{200, "text/event-stream", NULL, "a stream without end"}}},
	{NULL},
};
