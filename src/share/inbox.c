/* inbox.c - messages that have arrived, and that the application has not taken yet. */
#include <errno.h>
#include <stdlib.h>

#include "share/private.h"

void sl_share_inbox_init(struct sl_share_inbox *inbox)
{
	inbox->first = NULL;
	inbox->end = &inbox->first;
}

int sl_share_inbox_put(struct sl_share_inbox *inbox, uint64_t peer, struct sl_share_in *in)
{
	struct sl_share_letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return -ENOMEM;
	letter->message = (struct sl_share_message){.peer = peer,
						    .bytes = in->head.bytes,
						    .kind = (uint32_t)in->head.value,
						    .data = sl_share_in_take(in)};
	*inbox->end = letter;
	inbox->end = &letter->next;
	return 0;
}

bool sl_share_inbox_take(struct sl_share_inbox *inbox, struct sl_share_message *message)
{
	struct sl_share_letter *letter = inbox->first;

	if (!letter)
		return false;
	inbox->first = letter->next;
	if (!inbox->first)
		inbox->end = &inbox->first;
	*message = letter->message;
	free(letter);
	return true;
}

void sl_share_inbox_fini(struct sl_share_inbox *inbox)
{
	struct sl_share_message message;

	while (sl_share_inbox_take(inbox, &message))
		free(message.data);
}
