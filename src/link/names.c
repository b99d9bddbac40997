/* names.c - proofs and guards in words, as they appear in tables, files and JSON. */
#include <stdio.h>

#include "core/link.h"

static const char *const proof_name[] = {
	[SL_PROOF_PACKET_COUNT] = "packet count",
	[SL_PROOF_MESSAGE] = "message completion",
	[SL_PROOF_RELIABLE] = "reliable connection",
	[SL_PROOF_CHECKSUM] = "record checksum",
};

const char *sl_proof_name(enum sl_proof proof)
{
	return proof <= SL_PROOF_CHECKSUM ? proof_name[proof] : "?";
}

void sl_guard_name(uint32_t guards, char *text, size_t bytes)
{
	static const char *const word[] = {"enforced", "credited", "bounded"};
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < 3; i++)
		if ((guards & 1u << i) && used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s",
						 used ? ", " : "", word[i]);
}
