/* wire.c - answers of a script's process, checked. */
#include "stage/python/wire.h"

#include <errno.h>
#include <string.h>

static void end_text(struct sl_python_answer *answer)
{
	uint32_t n = answer->numbers < SL_PYTHON_TEXT ? answer->numbers : SL_PYTHON_TEXT - 1;

	answer->text[n] = 0;
	for (uint32_t i = 0; i < n; i++)
		if ((unsigned char)answer->text[i] < 0x20)
			answer->text[i] = ' ';
}

int sl_python_answer_check(const void *bytes, size_t n, uint32_t numbers,
			   struct sl_python_answer *answer)
{
	size_t more;

	if (n < SL_PYTHON_ANSWER_HEAD || n > sizeof(*answer))
		return -EPROTO;
	memset(answer, 0, SL_PYTHON_ANSWER_HEAD);
	memcpy(answer, bytes, n);
	more = n - SL_PYTHON_ANSWER_HEAD;
	if (answer->magic != SL_PYTHON_MAGIC || answer->keep > 1)
		return -EPROTO;
	switch (answer->type) {
	case SL_PYTHON_READY:
	case SL_PYTHON_FAILED:
		return more || answer->numbers ? -EPROTO : 0;
	case SL_PYTHON_REFUSED:
		if (more != answer->numbers)
			return -EPROTO;
		end_text(answer);
		return 0;
	case SL_PYTHON_VERDICT:
		return answer->numbers > numbers || more != answer->numbers * sizeof(double)
			       ? -EPROTO
			       : 0;
	default:
		return -EPROTO;
	}
}
