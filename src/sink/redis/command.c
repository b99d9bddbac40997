/* command.c - arguments one after another. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/redis/command.h"

enum { DIGITS = 20, FRAMING = DIGITS + 8 };

void sl_command_clear(struct sl_command *command)
{
	command->length = 0;
	command->error = 0;
}

void sl_command_free(struct sl_command *command)
{
	free(command->bytes);
	*command = (struct sl_command){0};
}

static char *make_room(struct sl_command *command, size_t bytes)
{
	size_t room = command->room ? command->room : 1024;
	char *more;

	if (command->error)
		return NULL;
	while (room < command->length + bytes)
		room *= 2;
	if (room > command->room) {
		more = realloc(command->bytes, room);
		if (!more) {
			command->error = -ENOMEM;
			return NULL;
		}
		command->bytes = more;
		command->room = room;
	}
	return command->bytes + command->length;
}

size_t sl_digits(uint64_t value, char *text)
{
	char reversed[DIGITS];
	size_t n = 0;

	do
		reversed[n++] = (char)('0' + value % 10);
	while (value /= 10);
	for (size_t i = 0; i < n; i++)
		text[i] = reversed[n - 1 - i];
	return n;
}

/* "*3\r\n" or "$5\r\n" at `at`: where it ends. */
static char *count(char *at, char what, uint64_t value)
{
	*at++ = what;
	at += sl_digits(value, at);
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

void sl_command_begin(struct sl_command *command, uint32_t arguments)
{
	char *at = make_room(command, FRAMING);

	if (at)
		command->length = (size_t)(count(at, '*', arguments) - command->bytes);
}

void sl_command_add(struct sl_command *command, const void *argument, size_t bytes)
{
	char *at = make_room(command, FRAMING + bytes);

	if (!at)
		return;
	at = count(at, '$', bytes);
	if (bytes)
		memcpy(at, argument, bytes);
	at += bytes;
	*at++ = '\r';
	*at++ = '\n';
	command->length = (size_t)(at - command->bytes);
}

void sl_command_text(struct sl_command *command, const char *argument)
{
	sl_command_add(command, argument, strlen(argument));
}

void sl_command_u64(struct sl_command *command, uint64_t argument)
{
	char text[DIGITS];

	sl_command_add(command, text, sl_digits(argument, text));
}

void sl_command_raw(struct sl_command *command, const void *bytes, size_t length)
{
	char *at = make_room(command, length);

	if (!at)
		return;
	memcpy(at, bytes, length);
	command->length += length;
}
