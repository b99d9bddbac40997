/* npy.c - NumPy's header, written and read. */
#include "cmd/share/npy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FIXED = 10, ALIGN = 64 }; /* of version 1: magic, version, length */

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

size_t sl_npy_write(const struct sl_npy *npy, char header[SL_NPY_HEADER])
{
	size_t at = FIXED, end;

	memcpy(header, magic, sizeof(magic));
	header[6] = 1;
	header[7] = 0;
	at += (size_t)sprintf(header + at, "{'descr': '%.7s', 'fortran_order': False, 'shape': (",
			      npy->type);
	for (uint32_t i = 0; i < npy->rank && i < SL_NPY_RANK; i++)
		at += (size_t)sprintf(header + at, "%s%llu", i ? ", " : "",
				      (unsigned long long)npy->dim[i]);
	at += (size_t)sprintf(header + at, "%s), }", npy->rank == 1 ? "," : "");
	end = (at + 1 + ALIGN - 1) / ALIGN * ALIGN;
	memset(header + at, ' ', end - at);
	header[end - 1] = '\n';
	header[8] = (char)((end - FIXED) & 0xff);
	header[9] = (char)((end - FIXED) >> 8);
	return end;
}

/* ---- reading ---- */

struct cursor {
	const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n'))
		c->at++;
}

static bool take(struct cursor *c, const char *word)
{
	size_t length = strlen(word);

	skip_blanks(c);
	if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length))
		return false;
	c->at += length;
	return true;
}

/* 'text' or "text" */
static bool take_text(struct cursor *c, char *text, size_t bytes)
{
	const char *end;
	char quote;

	skip_blanks(c);
	if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
		return false;
	quote = *c->at++;
	end = memchr(c->at, quote, (size_t)(c->end - c->at));
	if (!end || (size_t)(end - c->at) >= bytes)
		return false;
	memcpy(text, c->at, (size_t)(end - c->at));
	text[end - c->at] = 0;
	c->at = end + 1;
	return true;
}

static bool take_number(struct cursor *c, uint64_t *number)
{
	const char *begin;

	skip_blanks(c);
	*number = 0;
	for (begin = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		if (*number > (UINT64_C(1) << 48))
			return false;
		*number = *number * 10 + (uint64_t)(*c->at - '0');
	}
	return c->at > begin;
}

static bool take_shape(struct cursor *c, struct sl_npy *npy)
{
	if (!take(c, "("))
		return false;
	for (npy->rank = 0; !take(c, ")"); npy->rank++) {
		if (npy->rank == SL_NPY_RANK || !take_number(c, &npy->dim[npy->rank]))
			return false;
		if (!take(c, ",")) {
			npy->rank++;
			return take(c, ")");
		}
	}
	return true;
}

/* One key with its value. */
static bool take_item(struct cursor *c, struct sl_npy *npy, bool *fortran, unsigned *seen)
{
	char key[16];

	if (!take_text(c, key, sizeof(key)) || !take(c, ":"))
		return false;
	if (!strcmp(key, "descr")) {
		*seen |= 1;
		return take_text(c, npy->type, sizeof(npy->type));
	}
	if (!strcmp(key, "fortran_order")) {
		*seen |= 2;
		*fortran = take(c, "True");
		return *fortran || take(c, "False");
	}
	*seen |= 4;
	return !strcmp(key, "shape") && take_shape(c, npy);
}

static bool take_dictionary(struct cursor *c, struct sl_npy *npy, bool *fortran)
{
	unsigned seen = 0;

	if (!take(c, "{"))
		return false;
	while (!take(c, "}")) {
		if (!take_item(c, npy, fortran, &seen))
			return false;
		if (take(c, ","))
			continue;
		if (!take(c, "}"))
			return false;
		break;
	}
	return seen == 7;
}

/* Where the dictionary is. */
static bool find_dictionary(const uint8_t *begin, size_t bytes, struct cursor *c)
{
	size_t fixed = FIXED, length;

	if (bytes < FIXED + 2 || memcmp(begin, magic, sizeof(magic)) || begin[6] < 1 ||
	    begin[6] > 3)
		return false;
	length = begin[8] | (size_t)begin[9] << 8;
	if (begin[6] > 1) {
		length |= (size_t)begin[10] << 16 | (size_t)begin[11] << 24;
		fixed += 2;
	}
	if (length > bytes - fixed)
		return false;
	*c = (struct cursor){(const char *)begin + fixed, (const char *)begin + fixed + length};
	return true;
}

int sl_npy_parse(const void *begin, size_t bytes, struct sl_npy *npy, char *why, size_t why_bytes)
{
	bool fortran = false;
	struct cursor c;

	memset(npy, 0, sizeof(*npy));
	if (!find_dictionary(begin, bytes, &c)) {
		snprintf(why, why_bytes, "it is no NumPy file (.npy)");
		return -EINVAL;
	}
	npy->data = (uint64_t)(c.end - (const char *)begin);
	if (!take_dictionary(&c, npy, &fortran)) {
		snprintf(why, why_bytes,
			 "its header does not say type, order and shape as NumPy writes them for a "
			 "plain array");
		return -EINVAL;
	}
	if (fortran) {
		snprintf(why, why_bytes,
			 "its array is in Fortran order; numpy.ascontiguousarray() makes one that "
			 "is not");
		return -EINVAL;
	}
	return 0;
}
