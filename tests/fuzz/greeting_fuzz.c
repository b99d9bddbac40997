/* greeting_fuzz.c - any bytes as the text of a pingpong program: what is understood is written
 * again as the same text, but for capitals. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint/greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, SL_GREETING_BYTES), again[SL_GREETING_BYTES];
	struct sl_greeting greeting;

	if (!text)
		abort();
	memcpy(text, data, size < SL_GREETING_BYTES ? size : SL_GREETING_BYTES);
	if (sl_greeting_parse(text, &greeting) == 0) {
		if ((greeting.qpn | greeting.psn) >> 24)
			abort();
		sl_greeting_format(&greeting, again);
		for (int i = 0; i < SL_GREETING_BYTES; i++)
			if (again[i] != tolower((unsigned char)text[i]))
				abort();
	}
	free(text);
	return 0;
}
