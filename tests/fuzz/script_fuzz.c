/* script_fuzz.c - any bytes as an answer of a script's process: an answer that is accepted has what
 * its kind needs, no more numbers than the stage has room for, and a text that ends. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stage/python/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* The first byte is the number of numbers that the stage takes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t most = size ? data[0] % (SL_PYTHON_NUMBERS + 1) : 0;
	size_t n = size ? size - 1 : 0;
	struct sl_python_answer *answer = malloc(sizeof(*answer));
	uint8_t *bytes = malloc(n ? n : 1);
	double sum = 0;

	if (!answer || !bytes)
		abort();
	memcpy(bytes, data + (size ? 1 : 0), n);
	if (sl_python_answer_check(bytes, n, most, answer) == 0) {
		check(answer->type >= SL_PYTHON_READY && answer->type <= SL_PYTHON_FAILED);
		check(answer->keep <= 1);
		if (answer->type == SL_PYTHON_REFUSED)
			check(strlen(answer->text) < SL_PYTHON_TEXT);
		if (answer->type == SL_PYTHON_VERDICT) {
			check(answer->numbers <= most);
			for (uint32_t i = 0; i < answer->numbers; i++)
				sum += answer->number[i];
		}
	}
	check(sum == sum || sum != sum);
	free(bytes);
	free(answer);
	return 0;
}
