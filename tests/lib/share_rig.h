/* share_rig.h - what tests of shares have in common: a folder of sockets, a share, elements that
 * are known word by word. */
#ifndef TESTS_LIB_SHARE_RIG_H
#define TESTS_LIB_SHARE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/share.h>

#include "open_files.h"

static char share_base[200];
static unsigned share_files;

static inline int share_setup(void **state)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(share_base, sizeof(share_base), "%s/share-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(share_base))
		return -1;
	setenv("SLUICE_RUN_DIR", share_base, 1);
	share_files = open_files();
	return 0;
}

static inline int share_teardown(void **state)
{
	char command[300];

	assert_int_equal(open_files(), share_files);
	snprintf(command, sizeof(command), "rm -rf '%s'", share_base);
	return system(command) ? -1 : 0;
}

/* An image of 32-bit words, and a list of at most 10 rows of 2 floats. */
static const struct sl_share_array share_arrays[] = {
	{.name = "image", .unit = "photons", .type = "<u4", .rank = 2, .dim = {4, 100}},
	{.name = "spots", .type = "<f4", .rank = 2, .ragged = 1, .dim = {10, 2}},
};
enum { SHARE_IMAGE = 400 }; /* words */

static inline struct sl_share_options share_options(uint64_t count)
{
	return (struct sl_share_options){
		.bytes = sizeof(struct sl_share_options),
		.arrays = sizeof(share_arrays) / sizeof(share_arrays[0]),
		.array = share_arrays,
		.count = count,
	};
}

static inline struct sl_share *share_open(const char *name, uint64_t count)
{
	const struct sl_share_options options = share_options(count);
	struct sl_remote_error error;
	struct sl_share *share = NULL;

	if (sl_share_open(name, &options, &share, &error))
		fail_msg("%s", error.message);
	return share;
}

static inline struct sl_follower *follower_open(const char *url)
{
	struct sl_remote_error error;
	struct sl_follower *follower = NULL;

	if (sl_follow_open(url, NULL, &follower, &error))
		fail_msg("%s", error.message);
	return follower;
}

/* Element n: every word of the image is n, and n % 10 spots. */
static inline void share_push(struct sl_share *share, uint64_t n)
{
	struct sl_share_note note = {.number = 1000 + n, .score = (float)n, .keep = 1};
	uint32_t image[SHARE_IMAGE];
	float spots[20];
	const void *from[] = {image, spots};

	for (unsigned i = 0; i < SHARE_IMAGE; i++)
		image[i] = (uint32_t)n;
	for (unsigned i = 0; i < 20; i++)
		spots[i] = (float)n;
	note.rows[1] = (uint32_t)(n % 10);
	assert_int_equal(sl_share_push(share, &note, from), n);
}

/* Whether data and note are of element n; they are of another when a copy is torn. */
static inline int share_is(const struct sl_follow_element *element, uint64_t n)
{
	const uint32_t *image = element->data;

	for (unsigned i = 0; i < SHARE_IMAGE; i++)
		if (image[i] != (uint32_t)n)
			return 0;
	return element->n == n && element->note.number == 1000 + n &&
	       element->note.rows[1] == n % 10;
}

#endif
