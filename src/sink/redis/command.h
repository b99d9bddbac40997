/* command.h - commands as Redis reads them (RESP): a count, then each argument with its length.
 *
 * Model:     a buffer that grows. Commands follow each other in it.
 * Errors:    -ENOMEM sticks in `error`; what is added after it is ignored.
 * Cost:      some copies; memory stays for the next command. */
#ifndef SL_SINK_REDIS_COMMAND_H
#define SL_SINK_REDIS_COMMAND_H

#include <stddef.h>
#include <stdint.h>

struct sl_command { /* zeroed: empty */
	char *bytes;
	size_t length, room;
	int error;
};

/* Forget what is in it; the memory stays. */
void sl_command_clear(struct sl_command *command);
void sl_command_free(struct sl_command *command);

/* A command of that many arguments, its name among them, begins. */
void sl_command_begin(struct sl_command *command, uint32_t arguments);
void sl_command_add(struct sl_command *command, const void *argument, size_t bytes);
void sl_command_text(struct sl_command *command, const char *argument);
void sl_command_u64(struct sl_command *command, uint64_t argument);

/* Whole commands, as they are. */
void sl_command_raw(struct sl_command *command, const void *bytes, size_t length);

/* Up to 20 digits at `text`, without a final zero: how many. */
size_t sl_digits(uint64_t value, char *text);

#endif
