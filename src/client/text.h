/* text.h - texts of any bytes as JSON, which is UTF-8. */
#ifndef SL_CLIENT_TEXT_H
#define SL_CLIENT_TEXT_H

#include <jansson.h>
#include <string.h>

/* The text; where it is not UTF-8, '?' for each byte above 127. At most 1023 bytes of such. */
static inline json_t *sl_json_text(const char *bytes)
{
	json_t *json = json_string(bytes);
	char plain[1024];
	size_t i;

	if (json)
		return json;
	for (i = 0; bytes[i] && i < sizeof(plain) - 1; i++)
		plain[i] = bytes[i] & 0x80 ? '?' : bytes[i];
	plain[i] = 0;
	return json_string(plain);
}

#endif
