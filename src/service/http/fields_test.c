/* fields_test.c - heads of requests that a proxy and this service could understand differently are
 * refused; others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/http/fields.h"

static struct sl_http_field field[8];

/* "Name", "value", ..., NULL */
static const char *problem(bool old, ...)
{
	va_list list;
	size_t n = 0;

	va_start(list, old);
	for (const char *name; (name = va_arg(list, const char *)); n++) {
		const char *value = va_arg(list, const char *);

		field[n] = (struct sl_http_field){name, value, strlen(name), strlen(value)};
	}
	va_end(list);
	return sl_http_fields_problem(field, n, old);
}

static void says(const char *found, const char *words)
{
	assert_non_null(found);
	if (!strstr(found, words))
		fail_msg("'%s' is not in: %s", words, found);
}

static void usual_requests_pass(void **state)
{
	assert_null(problem(false, NULL));
	assert_null(problem(false, "Host", "a", "Accept", "x/y;q=0.5, */*", "Empty", "", NULL));
	assert_null(problem(false, "Host", "a", "Content-Length", "5", NULL));
	assert_null(problem(false, "Host", "a", "Transfer-Encoding", "Chunked", NULL));
	assert_null(problem(false, "X", "1", "X", "2", "Text", "\xc3\xa9\ttab", NULL));
	assert_null(problem(true, "Content-Length", "5", NULL));
}

static void the_length_is_said_once_and_in_one_way(void **state)
{
	says(problem(false, "Content-Length", "5", "transfer-encoding", "chunked", NULL), "both");
	says(problem(false, "Content-Length", "5", "content-length", "5", NULL), "more than one");
	says(problem(false, "Transfer-Encoding", "chunked", "Transfer-Encoding", "x", NULL),
	     "more than one");
	for (const char *const *one = (const char *const[]){"", "+5", "-1", "5, 5", "0x5", " 5",
							    "9999999999999999999", NULL};
	     *one; one++)
		says(problem(false, "Content-Length", *one, NULL), "whole number");
	for (const char *const *one =
		     (const char *const[]){"", "gzip, chunked", "chunked ", "xchunked", NULL};
	     *one; one++)
		says(problem(false, "Transfer-Encoding", *one, NULL), "chunked alone");
	says(problem(true, "Transfer-Encoding", "chunked", NULL), "HTTP/1.0");
}

static void a_client_is_named_once(void **state)
{
	says(problem(false, "Host", "a", "host", "a", NULL), "Host");
	says(problem(false, "Origin", "a", "X", "", "ORIGIN", "b", NULL), "Origin");
	says(problem(false, "Authorization", "a", "authorization", "b", NULL), "Authorization");
}

static void names_and_values_are_texts(void **state)
{
	says(problem(false, "Host ", "a", NULL), "name of a header");
	says(problem(false, "", "a", NULL), "name of a header");
	says(problem(false, "a:b", "a", NULL), "name of a header");
	says(problem(false, "X", "a\rb", NULL), "control characters");
	says(problem(false, "X", "\x7f", NULL), "control characters");
	field[0] = (struct sl_http_field){"X", "a\0b", 1, 3};
	says(sl_http_fields_problem(field, 1, false), "control characters");
	field[0] = (struct sl_http_field){"X", NULL, 1, 0};
	assert_null(sl_http_fields_problem(field, 1, false));
}

/* As libmicrohttpd leaves a head: with zeros where a text ends. */
static const char *of_head(const char *head, size_t bytes, size_t value_bytes)
{
	field[0] = (struct sl_http_field){head + 17, head + 23, 4, value_bytes};
	return sl_http_head_problem(field, 1, head, bytes);
}
#define HEAD(fields, value_bytes)                                                         \
	of_head("GET\0/\0HTTP/1.1\0\0" fields, sizeof("GET\0/\0HTTP/1.1\0\0" fields) - 1, \
		value_bytes)

static void every_byte_of_a_head_belongs_to_a_field(void **state)
{
	assert_null(sl_http_head_problem(field, 0, "GET\0/\0HTTP/1.1\0\0\0\0", 19));
	assert_null(HEAD("\0Host\0 good\0\0\0\0", 4));
	assert_null(HEAD("\0Host\0     \0\0\0\0", 0));
	says(HEAD("\0Host\0 good\0evil\0\0\0\0", 4), "zero byte");
	says(HEAD("\0Host\0 good\0\0\0\0evil\0\0\0\0", 4), "zero byte");
}

static void fields_lie_in_their_order_within_the_head(void **state)
{
	static const char head[] = "GET\0/\0HTTP/1.1\0\0Host\0 a\0\0X\0 b\0\0\0\0";
	const char *host = head + 16, *x = head + 25;

	field[0] = (struct sl_http_field){host, host + 6, 4, 1};
	field[1] = (struct sl_http_field){x, x + 3, 1, 1};
	assert_null(sl_http_head_problem(field, 2, head, sizeof(head) - 1));
	says(sl_http_head_problem(field + 1, 1, head, 20), "zero byte");
	says(sl_http_head_problem(field, 1, head, sizeof(head) - 1), "zero byte");
	field[1].name = "elsewhere"; /* a line that goes on in the next one is copied */
	says(sl_http_head_problem(field, 2, head, sizeof(head) - 1), "zero byte");
	field[1] = field[0];
	says(sl_http_head_problem(field, 2, head, sizeof(head) - 1), "zero byte");
	field[0].value_bytes = sizeof(head);
	says(sl_http_head_problem(field, 1, head, sizeof(head) - 1), "zero byte");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_requests_pass),
		cmocka_unit_test(the_length_is_said_once_and_in_one_way),
		cmocka_unit_test(a_client_is_named_once),
		cmocka_unit_test(names_and_values_are_texts),
		cmocka_unit_test(every_byte_of_a_head_belongs_to_a_field),
		cmocka_unit_test(fields_lie_in_their_order_within_the_head),
	};

	return cmocka_run_group_tests_name("fields", tests, NULL, NULL);
}
