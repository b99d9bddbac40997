/* greeting.c - the text of ibv_*_pingpong. */
#include "endpoint/greeting.h"

#include <errno.h>
#include <stddef.h>

static char *put(char *text, uint32_t value, int digits)
{
	for (int i = digits - 1; i >= 0; i--)
		*text++ = "0123456789abcdef"[value >> 4 * i & 15];
	return text;
}

void sl_greeting_format(const struct sl_greeting *greeting, char text[SL_GREETING_BYTES])
{
	text = put(text, greeting->lid, 4);
	*text++ = ':';
	text = put(text, greeting->qpn, 6);
	*text++ = ':';
	text = put(text, greeting->psn, 6);
	*text++ = ':';
	for (int i = 0; i < SL_ROCE_GID_BYTES; i++)
		text = put(text, greeting->gid[i], 2);
	*text = 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* So many digits and what follows them; NULL: it is something else. */
static const char *get(const char *text, int digits, char then, uint32_t *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++) {
		int d = text ? digit(*text++) : -1;

		if (d < 0)
			return NULL;
		*value = *value << 4 | (uint32_t)d;
	}
	if (then == 'x')
		return text;
	return *text == then ? text + 1 : NULL;
}

int sl_greeting_parse(const char text[SL_GREETING_BYTES], struct sl_greeting *greeting)
{
	struct sl_greeting parsed;
	uint32_t value = 0;

	text = get(text, 4, ':', &value);
	parsed.lid = (uint16_t)value;
	text = get(text, 6, ':', &parsed.qpn);
	text = get(text, 6, ':', &parsed.psn);
	for (int i = 0; i < SL_ROCE_GID_BYTES; i++) {
		text = get(text, 2, i < SL_ROCE_GID_BYTES - 1 ? 'x' : 0, &value);
		parsed.gid[i] = (uint8_t)value;
	}
	if (!text)
		return -EINVAL;
	*greeting = parsed;
	return 0;
}
