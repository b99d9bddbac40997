/* remote_wire.c - payloads between hosts, checked. */
#include "share/remote_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/registry.h"
#include "roce/psn.h"
#include "roce/roce.h"

enum { MOST_READS = 255 };

#define SHARES "share" /* in the terms of a proof, where plans have the name of a link */

static int because(char *why, size_t bytes, const char *what)
{
	snprintf(why, bytes, "%s", what);
	return -EPROTO;
}

int sl_share_remote_check_hello(const void *payload, uint64_t bytes,
				struct sl_share_remote_hello *hello, char *why, size_t why_bytes)
{
	if (bytes != sizeof(*hello))
		return because(why, why_bytes, "its greeting has another length");
	memcpy(hello, payload, sizeof(*hello));
	if (!memchr(hello->name, 0, sizeof(hello->name)) || !sl_registry_name_is_valid(hello->name))
		return because(why, why_bytes, "its greeting names no share");
	return 0;
}

static bool queues_are_right(const struct sl_share_remote_end *end)
{
	for (unsigned i = 0; i < SL_SHARE_QUEUES; i++) {
		if (end->qpn[i] < 2 || end->qpn[i] >= SL_ROCE_QPN_MASK ||
		    end->psn[i] > SL_ROCE_PSN_MASK)
			return false;
		for (unsigned j = 0; j < i; j++)
			if (end->qpn[i] == end->qpn[j])
				return false;
	}
	return true;
}

static bool end_is_right(const struct sl_share_remote_end *end, bool follower)
{
	return queues_are_right(end) && end->port && end->port <= UINT16_MAX &&
	       sl_roce_pmtu_valid(end->pmtu) && end->nic <= 1 && end->reads <= MOST_READS &&
	       (!follower || end->at <= UINT64_MAX - sizeof(struct sl_share_remote_line));
}

int sl_share_remote_check_end(const void *payload, uint64_t bytes, bool follower,
			      struct sl_share_remote_end *end, char *why, size_t why_bytes)
{
	if (bytes != sizeof(*end))
		return because(why, why_bytes, "its queue pairs have another length");
	memcpy(end, payload, sizeof(*end));
	return end_is_right(end, follower)
		       ? 0
		       : because(why, why_bytes, "numbers of its queue pairs are wrong");
}

int sl_share_remote_check_offer(const void *payload, uint64_t bytes,
				struct sl_share_remote_offer *offer, char *why, size_t why_bytes)
{
	if (bytes != sizeof(*offer))
		return because(why, why_bytes, "its offer has another length");
	memcpy(offer, payload, sizeof(*offer));
	if (!end_is_right(&offer->end, false))
		return because(why, why_bytes, "numbers of its queue pairs are wrong");
	return sl_share_check(&offer->header, offer->region_bytes, offer->second_bytes, why,
			      why_bytes);
}

void sl_share_remote_text(const void *payload, uint64_t bytes, char text[SL_SHARE_REMOTE_TEXT + 1])
{
	const uint8_t *from = payload;
	size_t n = bytes < SL_SHARE_REMOTE_TEXT ? (size_t)bytes : SL_SHARE_REMOTE_TEXT;

	for (size_t i = 0; i < n; i++)
		text[i] = from[i] >= ' ' && from[i] < 0x7f ? (char)from[i] : '?';
	text[n] = 0;
}

void sl_share_remote_terms(const struct sl_share_remote_hello *hello, struct sl_proof_terms *terms)
{
	*terms = (struct sl_proof_terms){.purpose = SL_PROOF_SHARES, .hello = {.link = SHARES}};
	memcpy(terms->hello.reserved, hello->name, sizeof(hello->name));
	memcpy(terms->hello.nonce, hello->nonce, sizeof(hello->nonce));
}

_Static_assert(sizeof(((struct sl_wire_hello *)0)->reserved) == SL_SHARE_NAME, "room for a name");

/* ---- where it is ---- */

/* An address of IPv6 has brackets, and colons; nothing else has. */
static bool is_host(const char *text, size_t length, bool brackets)
{
	const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%:";

	if (!length || length >= SL_SHARE_REMOTE_HOST)
		return false;
	return strspn(text, allowed) >= length && brackets == !!memchr(text, ':', length);
}

/* The host before the port, without brackets; where the port begins, or NULL. */
static const char *take_host(const char *text, char host[SL_SHARE_REMOTE_HOST])
{
	bool brackets = *text == '[';
	const char *end = brackets ? strchr(text, ']') : text + strcspn(text, ":/");
	size_t length;

	text += brackets;
	if (!end || end[brackets] != ':')
		return NULL;
	length = (size_t)(end - text);
	if (!is_host(text, length, brackets))
		return NULL;
	memcpy(host, text, length);
	host[length] = 0;
	return end + brackets + 1;
}

bool sl_share_remote_place(const char *text, char host[SL_SHARE_REMOTE_HOST], uint16_t *port,
			   char name[SL_SHARE_NAME])
{
	const char *digits = take_host(text, host), *rest = digits;
	unsigned value = 0;

	for (; rest && *rest >= '0' && *rest <= '9' && value <= UINT16_MAX; rest++)
		value = value * 10 + (unsigned)(*rest - '0');
	if (!rest || rest == digits || value > UINT16_MAX)
		return false;
	*port = (uint16_t)value;
	if (!name)
		return !*rest;
	if (*rest != '/' || !value || !sl_registry_name_is_valid(rest + 1))
		return false;
	snprintf(name, SL_SHARE_NAME, "%s", rest + 1);
	return true;
}
