/* inbox.c - messages that have arrived, and that the application has not taken yet. */
#include <errno.h>
#include <stdlib.h>

#include "share/private.h"

void sl_share_inbox_init(struct sl_share_inbox *inbox)
{
	*inbox = (struct sl_share_inbox){.end = &inbox->first};
}

static uint64_t bytes_of(const struct sl_share_letter *letter)
{
	return letter->skipped ? 0 : letter->message.bytes;
}

int sl_share_inbox_put(struct sl_share_inbox *inbox, uint64_t peer, struct sl_share_in *in)
{
	struct sl_share_letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return -ENOMEM;
	letter->skipped = in->skips;
	letter->message = (struct sl_share_message){.peer = peer,
						    .bytes = in->head.bytes,
						    .kind = (uint32_t)in->head.value,
						    .data = sl_share_in_take(in)};
	*inbox->end = letter;
	inbox->end = &letter->next;
	inbox->bytes += bytes_of(letter);
	inbox->messages++;
	return 0;
}

int sl_share_inbox_take(struct sl_share_inbox *inbox, struct sl_share_message *message)
{
	struct sl_share_letter *letter = inbox->first;
	bool skipped;

	if (!letter)
		return 0;
	inbox->first = letter->next;
	if (!inbox->first)
		inbox->end = &inbox->first;
	inbox->bytes -= bytes_of(letter);
	inbox->messages--;
	*message = letter->message;
	skipped = letter->skipped;
	free(letter);
	return skipped ? -EMSGSIZE : 1;
}

void sl_share_inbox_fini(struct sl_share_inbox *inbox)
{
	struct sl_share_message message;

	while (sl_share_inbox_take(inbox, &message))
		free(message.data);
}
