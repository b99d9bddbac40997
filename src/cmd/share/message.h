/* message.h - messages and files, for both ends of a share. */
#ifndef SL_CMD_SHARE_MESSAGE_H
#define SL_CMD_SHARE_MESSAGE_H

#include <stdint.h>

#include <sluice/share.h>

/* A line: kind, size, and what it says where that is text. */
void sl_print_message(const struct sl_share_message *message);

/* A plain file, malloc'ed. 0 or -errno, logged. */
int sl_read_whole(const char *path, void **data, uint64_t *bytes);

#endif
