/* commands.c - words and commands that several rules give. */
#include <stdio.h>
#include <string.h>

#include "explain/private.h"

/* ---- words of the shell ---- */

static bool is_plain(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=./:,@%";

	return text[0] && text[strspn(text, plain)] == '\0';
}

void sl_shell_word(const char *path, char *text, size_t bytes)
{
	size_t at = 0;

	if (is_plain(path)) {
		if ((size_t)snprintf(text, bytes, "%s", path) >= bytes)
			text[0] = '\0';
		return;
	}
	text[at++] = '\'';
	for (; *path && at + 6 < bytes; path++) {
		if (*path == '\'')
			at += (size_t)snprintf(text + at, bytes - at, "'\\''");
		else
			text[at++] = *path;
	}
	text[at++] = '\'';
	text[*path ? 0 : at] = '\0';
}

/* A file beside another one. */
static void name_beside(const char *path, const char *name, char *text, size_t bytes)
{
	const char *slash = strrchr(path, '/');
	char beside[SL_EXPLAIN_PATH];
	int n = snprintf(beside, sizeof(beside), "%.*s%s", slash ? (int)(slash - path + 1) : 0,
			 path, name);

	if (n < (int)sizeof(beside))
		sl_shell_word(beside, text, bytes);
}

/* Beside the flight record, under the name that it gives. */
static void find_pcapng(struct sl_case *c, const char *flight_path)
{
	char name[256];

	sl_member_text(json_object_get(c->flight, "packets"), "file", name, sizeof(name));
	if (flight_path && name[0] && !strchr(name, '/'))
		name_beside(flight_path, name, c->pcapng_word, sizeof(c->pcapng_word));
}

/* "run.log" beside "result.json", "run.NAME.log" beside "result.NAME.json". */
static void find_log(struct sl_case *c, const char *result_path)
{
	const char *slash = strrchr(result_path, '/'), *name = slash ? slash + 1 : result_path;
	size_t length = strlen(name);
	char log[256];

	if (strncmp(name, "result.", 7) != 0 || length < 11 || length > 200)
		return;
	if (!strcmp(name, "result.json"))
		snprintf(log, sizeof(log), "run.log");
	else
		snprintf(log, sizeof(log), "run.%.*s.log", (int)(length - 12), name + 7);
	name_beside(result_path, log, c->log_word, sizeof(c->log_word));
}

/* A session calls an experiment that came as a text "text". */
void sl_case_words(struct sl_case *c, const struct sl_explain_texts *texts)
{
	if (c->experiment[0] && strcmp(c->experiment, "text") != 0)
		sl_shell_word(c->experiment, c->file_word, sizeof(c->file_word));
	if (texts->result && texts->result_path)
		sl_shell_word(texts->result_path, c->result_word, sizeof(c->result_word));
	if (texts->result && texts->result_path)
		find_log(c, texts->result_path);
	if (texts->session)
		sl_shell_word(texts->session, c->session, sizeof(c->session));
	find_pcapng(c, texts->flight_path);
}

const char *sl_case_file(const struct sl_case *c)
{
	return c->file_word[0] ? c->file_word : "EXPERIMENT.yaml";
}

/* ---- interfaces ---- */

const char *sl_case_interface(const struct sl_case *c)
{
	return c->interface[0] ? c->interface : "any";
}

bool sl_case_is_loopback(const struct sl_case *c)
{
	return !strcmp(c->interface, "lo");
}

/* ---- modules ---- */

uint64_t sl_case_missing_of(const struct sl_case_module *m)
{
	uint64_t lost = m->cause[SL_CAUSE_NO_ARRIVAL];

	lost = lost > m->skipped ? lost - m->skipped : 0;
	return lost + m->cause[SL_CAUSE_DAMAGED];
}

bool sl_case_misses(const struct sl_case_module *m)
{
	return sl_case_missing_of(m) > 0;
}

void sl_case_modules(const struct sl_case *c, sl_hurt_fn *is_hurt, char *text, size_t bytes)
{
	unsigned hurt = 0, named = 0;
	size_t at;

	for (unsigned m = 0; m < c->modules; m++)
		hurt += is_hurt(&c->module[m]);
	if (!hurt || hurt == c->modules) {
		snprintf(text, bytes, c->modules == 1 ? "module 0" : "all modules");
		return;
	}
	at = (size_t)snprintf(text, bytes, hurt == 1 ? "module" : "modules");
	for (unsigned m = 0; m < c->modules && named < 6 && at + 8 < bytes; m++)
		if (is_hurt(&c->module[m]))
			at += (size_t)snprintf(text + at, bytes - at, named++ ? ", %u" : " %u", m);
	if (hurt > named && at + 8 < bytes)
		snprintf(text + at, bytes - at, ", ...");
}

/* ---- commands ---- */

void sl_command_by_module(const struct sl_case *c, struct sl_finding *f, const char *count)
{
	if (c->session[0])
		sl_finding_command(f, "sluice ctl %s --json | grep -oE '\"(module|%s)\": *[0-9]+'",
				   c->session, count);
	else
		sl_finding_command(f, "grep -E '\"(module|%s)\":' %s", count,
				   c->result_word[0] ? c->result_word : "result.json");
}

void sl_command_log(const struct sl_case *c, struct sl_finding *f)
{
	sl_finding_command(f, "grep -E ' (warning|error) ' %s",
			   c->log_word[0] ? c->log_word : "run.log");
}

void sl_command_packets(const struct sl_case *c, struct sl_finding *f)
{
	if (c->pcapng_word[0])
		sl_finding_command(f, "tshark -r %s -c 20 -V", c->pcapng_word);
	else
		sl_finding_command(f, "sudo tcpdump -ni %s -c 20 -X udp", sl_case_interface(c));
}
