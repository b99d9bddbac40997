/* text.c - numbers with units, and users, in texts of people. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/metadata/keys.h"

/* Digits with a sign, a point and an exponent; no blanks, "nan", "inf" or hexadecimal, which
 * strtod() would take. Its length; 0: it is none. */
static size_t number_length(const char *text)
{
	const char *p = text + (*text == '-' || *text == '+'), *digits = p;
	size_t whole = strspn(p, "0123456789"), fraction = 0;

	if (whole > 1 && *digits == '0')
		return 0;
	p += whole;
	if (*p == '.') {
		fraction = strspn(p + 1, "0123456789");
		p += 1 + fraction;
	}
	if (!whole && !fraction)
		return 0;
	if (*p == 'e' || *p == 'E') {
		const char *exponent = p + 1 + (p[1] == '-' || p[1] == '+');

		if (isdigit((unsigned char)*exponent))
			p = exponent + strspn(exponent, "0123456789");
	}
	return (size_t)(p - text);
}

bool sl_metadata_number(const char *text, double *value, char unit[SL_METADATA_UNIT])
{
	size_t length = number_length(text), blanks = strspn(text + length, " ");
	const char *word = text + length + blanks;
	double number;

	if (!length || (*word && !blanks) || strlen(word) >= SL_METADATA_UNIT ||
	    word[strcspn(word, " \t\r\n")])
		return false;
	number = strtod(text, NULL);
	if (!isfinite(number))
		return false;
	*value = number;
	strcpy(unit, word);
	return true;
}

/* ---- users ---- */

/* Without blanks at its ends. -EINVAL: it does not fit. */
static int take(const char *text, size_t length, char *out, size_t bytes)
{
	while (length && *text == ' ') {
		text++;
		length--;
	}
	while (length && text[length - 1] == ' ')
		length--;
	if (length >= bytes)
		return -EINVAL;
	memcpy(out, text, length);
	out[length] = 0;
	return 0;
}

/* The part between two brackets at *text, if it begins there; *text is behind it then. */
static int take_bracketed(const char **text, size_t *length, char open, char close, char *out,
			  size_t bytes)
{
	const char *end;
	int err;

	out[0] = 0;
	while (*length && **text == ' ') {
		(*text)++;
		(*length)--;
	}
	if (!*length || **text != open)
		return 0;
	end = memchr(*text, close, *length);
	err = end ? take(*text + 1, (size_t)(end - *text - 1), out, bytes) : -EINVAL;
	if (!err) {
		*length -= (size_t)(end + 1 - *text);
		*text = end + 1;
	}
	return err;
}

static size_t name_length(const char *text, size_t length)
{
	size_t n = 0;

	while (n < length && text[n] != '<' && text[n] != '(')
		n++;
	return n;
}

static int parse_user(const char *text, size_t length, struct sl_metadata_user *user)
{
	size_t n = name_length(text, length);
	int err = take(text, n, user->name, sizeof(user->name));

	text += n;
	length -= n;
	if (!err)
		err = take_bracketed(&text, &length, '<', '>', user->email, sizeof(user->email));
	if (!err)
		err = take_bracketed(&text, &length, '(', ')', user->affiliation,
				     sizeof(user->affiliation));
	if (err || !user->name[0])
		return -EINVAL;
	for (; length; text++, length--)
		if (*text != ' ')
			return -EINVAL;
	return 0;
}

/* Up to the next comma that is not within parentheses. */
static size_t user_length(const char *text)
{
	size_t n = 0;
	bool inside = false;

	for (; text[n] && (inside || text[n] != ','); n++)
		inside = text[n] == '(' || (inside && text[n] != ')');
	return n;
}

int sl_metadata_parse_users(const char *text, struct sl_metadata_user user[SL_METADATA_USERS],
			    char *why, size_t why_bytes)
{
	int users = 0;

	if (!text[strspn(text, " ")])
		return 0;
	for (;; text++) {
		size_t length = user_length(text);

		if (users == SL_METADATA_USERS) {
			snprintf(why, why_bytes, "at most %d users", SL_METADATA_USERS);
			return -EINVAL;
		}
		if (parse_user(text, length, &user[users])) {
			snprintf(why, why_bytes,
				 "'%.*s' is no user: takes  Name <email> (affiliation),  with at "
				 "most 127 bytes for name and email and 255 for affiliation",
				 (int)(length < 40 ? length : 40), text);
			return -EINVAL;
		}
		users++;
		text += length;
		if (!*text)
			return users;
	}
}
