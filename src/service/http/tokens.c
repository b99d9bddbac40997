/* tokens.c - the file of tokens, read once and compared in constant time. */
#include "service/http/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file/secret_file.h"
#include "base/log.h"

enum { LEAST = 16, MOST = 200 };

const char *sl_role_name(enum sl_role role)
{
	static const char *const names[] = {"none", "view", "operate", "configure"};

	return names[role];
}

static void make_key(struct sl_tokens *tokens)
{
	uint8_t bytes[SL_SECRET_PROOF_BYTES];

	sl_secret_fill(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(tokens->key + 2 * i, 3, "%02x", bytes[i]);
	explicit_bzero(bytes, sizeof(bytes));
}

static bool is_token(const char *text)
{
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return length >= LEAST && length <= MOST;
}

static bool is_name(const char *text)
{
	return *text && strlen(text) < SL_TOKENS_NAME &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@") ==
		       strlen(text);
}

static enum sl_role role_of(const char *word)
{
	for (int role = SL_ROLE_VIEW; role <= SL_ROLE_CONFIGURE; role++)
		if (!strcmp(word, sl_role_name((enum sl_role)role)))
			return (enum sl_role)role;
	return SL_ROLE_NONE;
}

/* What is wrong with a line, or NULL. */
static const char *take_line(struct sl_tokens *tokens, char *line)
{
	char *rest = line, *role = strtok_r(rest, " \t\r", &rest);
	char *name = role ? strtok_r(NULL, " \t\r", &rest) : NULL;
	char *token = name ? strtok_r(NULL, " \t\r", &rest) : NULL;

	if (!role || role[0] == '#')
		return NULL;
	if (!token || strtok_r(NULL, " \t\r", &rest))
		return "takes three words: ROLE NAME TOKEN";
	if (role_of(role) == SL_ROLE_NONE)
		return "its role is not one of view, operate, configure";
	if (!is_name(name))
		return "a name has 1 to 63 of A-Z a-z 0-9 . _ - @";
	if (!is_token(token))
		return "a token has 16 to 200 printable characters";
	if (tokens->n == SL_TOKENS)
		return "there are more than 64 tokens";
	tokens->token[tokens->n].role = role_of(role);
	snprintf(tokens->token[tokens->n].name, SL_TOKENS_NAME, "%s", name);
	sl_secret_proof(tokens->key, token, strlen(token), tokens->token[tokens->n].proof);
	tokens->n++;
	return NULL;
}

int sl_tokens_parse(char *text, struct sl_tokens *tokens, char *why, size_t why_bytes)
{
	unsigned number = 0;

	memset(tokens, 0, sizeof(*tokens));
	make_key(tokens);
	while (text) {
		char *end = strchr(text, '\n');
		const char *wrong;

		if (end)
			*end++ = 0;
		number++;
		wrong = take_line(tokens, text);
		if (wrong) {
			snprintf(why, why_bytes, "line %u: %s", number, wrong);
			return -EINVAL;
		}
		text = end;
	}
	if (tokens->n)
		return 0;
	snprintf(why, why_bytes, "has no token; write lines of ROLE NAME TOKEN");
	return -EINVAL;
}

int sl_tokens_read(const char *path, struct sl_tokens *tokens)
{
	char text[SL_TOKENS_BYTES], why[400];
	int err = sl_secret_file_text(path, text, sizeof(text), why, sizeof(why));

	if (!err)
		err = sl_tokens_parse(text, tokens, why, sizeof(why));
	explicit_bzero(text, sizeof(text));
	if (err)
		sl_error("the file of tokens '%s' %s", path, why);
	return err;
}

enum sl_role sl_tokens_find(const struct sl_tokens *tokens, const char *token, const char **name)
{
	uint8_t proof[SL_SECRET_PROOF_BYTES];
	enum sl_role role = SL_ROLE_NONE;

	sl_secret_proof(tokens->key, token, strlen(token), proof);
	for (unsigned i = 0; i < tokens->n; i++)
		if (sl_secret_same(proof, tokens->token[i].proof, sizeof(proof))) {
			role = tokens->token[i].role;
			*name = tokens->token[i].name;
		}
	return role;
}
