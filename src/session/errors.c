/* errors.c - the one table of errors; and an error out of a logged line. */
#include "session/errors.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *doc;
} table[SL_ERRORS] = {
	[SL_ERROR_NONE] = {"none", "nothing is wrong"},
	[SL_ERROR_EXPERIMENT] = {"experiment", "the experiment file or an override is wrong"},
	[SL_ERROR_OUTPUT] = {"output", "a file cannot be written, or two outputs are one file"},
	[SL_ERROR_ADDRESS] = {"address", "an address or port is in use, or not of this host"},
	[SL_ERROR_MEMORY] = {"memory", "there is not enough memory for the ring or the frames"},
	[SL_ERROR_SOURCES] = {"sources", "not every module was offered within control.wait_s"},
	[SL_ERROR_FRONT_END] = {"front_end", "the front end that the run started has failed"},
	[SL_ERROR_KEEPER] = {"keeper",
			     "what a keeper holds cannot be taken over, or it takes nothing"},
	[SL_ERROR_STOPPED] = {"stopped", "a stop came before the run had begun"},
	[SL_ERROR_SYSTEM] = {"system", "something else failed; the message says what"},
	[SL_ERROR_NAME] = {"name", "a session of this name is running, or it is no name"},
	[SL_ERROR_SOCKET] = {"socket", "the status socket cannot be made"},
	[SL_ERROR_STATE] = {"state", "the call is not possible in this state of the session"},
	[SL_ERROR_REQUEST] = {"request", "a request on the status socket is not understood"},
	[SL_ERROR_ACCESS] = {"access", "the client may not use this status socket, or it is full"},
	[SL_ERROR_TIMEOUT] = {"timeout", "what was waited for did not come in time"},
	[SL_ERROR_RECEIVER] = {"receiver",
			       "a detector side has no receiver, it refuses, or it is gone"},
};

const char *sl_error_name(enum sl_error_code code)
{
	return code < SL_ERRORS ? table[code].name : "unknown";
}

const char *sl_error_doc(enum sl_error_code code)
{
	return code < SL_ERRORS ? table[code].doc : "";
}

int sl_error_exit(enum sl_error_code code)
{
	return code == SL_ERROR_NONE ? 0 : SL_RESULT_ERROR;
}

enum sl_error_code sl_error_code_of(int err, enum sl_error_code otherwise)
{
	switch (-err) {
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return SL_ERROR_ADDRESS;
	case ENOMEM:
		return SL_ERROR_MEMORY;
	case ENOSPC:
	case EROFS:
	case EDQUOT:
		return SL_ERROR_OUTPUT;
	default:
		return otherwise;
	}
}

/* The length of "FILE:LINE" at the beginning of a line; 0: there is none. A blank ends the search:
 * the sentence has begun. */
static size_t where_length(const char *line)
{
	const char *end = line + strcspn(line, " "), *digits = end;

	if (end == line || *end != ' ' || *--digits != ':')
		return 0;
	end = digits;
	while (digits > line && isdigit((unsigned char)digits[-1]))
		digits--;
	return digits < end && digits > line + 1 && digits[-1] == ':' ? (size_t)(end - line) : 0;
}

void sl_error_from_line(const char *line, struct sl_error *error)
{
	size_t where = where_length(line);
	const char *text = where ? line + where + 2 : line, *hint = strstr(text, "; ");
	size_t length = hint ? (size_t)(hint - text) : strlen(text);

	snprintf(error->where, sizeof(error->where), "%.*s", (int)where, line);
	snprintf(error->message, sizeof(error->message), "%.*s", (int)length, text);
	snprintf(error->hint, sizeof(error->hint), "%s", hint ? hint + 2 : "");
}
