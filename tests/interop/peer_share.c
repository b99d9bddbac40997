/* peer_share.c - a share, or a follower that checks every word: one end of
 * tests/interop/shares.py.
 *
 *   peer-share serve ADDRESS:PORT DEVICE SECRET_FILE INTERVAL_US PLACES
 *     DEVICE -: a UDP socket. Prints the URL; from its first follower on it publishes an
 *     element every INTERVAL_US, with another layout after every 400, until stdin ends. Then it
 *     ends the share.
 *   peer-share follow URL DEVICE SECRET_FILE ELEMENTS every|newest
 *     Says "enough" when it has ELEMENTS, follows to the end of the share, and says how many it got
 *     and missed. Exit status 1: a word was not its element's. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice/share.h>

enum { WORDS = 6000, GENERATION = 400, WAIT_MS = 60000 };

static uint64_t data[2 * WORDS];

static const char *or_null(const char *word)
{
	return strcmp(word, "-") ? word : NULL;
}

static int failed(const char *what, int err, const struct sl_remote_error *error)
{
	fprintf(stderr, "%s: %s\n", what, error ? error->message : strerror(-err));
	return 2;
}

/* ---- the share ---- */

/* Every other generation is half as large. */
static void describe(struct sl_share_options *o, struct sl_share_array *a, uint64_t generation,
		     uint64_t places)
{
	*a = (struct sl_share_array){.name = "words", .type = "<u8", .rank = 1};
	a->dim[0] = generation % 2 ? WORDS : WORDS / 2;
	o->bytes = sizeof(*o);
	o->arrays = 1;
	o->array = a;
	o->count = places;
}

static void push(struct sl_share *share, uint64_t n)
{
	struct sl_share_note *note = sl_share_reserve(share);
	uint64_t *at = sl_share_at(share, 0);
	uint64_t words = sl_share_describe(share)->array[0].dim[0];

	note->number = n;
	for (uint64_t i = 0; i < words; i++)
		at[i] = n << 16 | i;
	sl_share_commit(share);
}

static bool is_over(int timeout_ms)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char byte;

	return poll(&p, 1, timeout_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static int publish(struct sl_share *share, uint32_t interval_us, uint64_t places)
{
	const struct timespec pause = {.tv_nsec = (long)interval_us * 1000};
	struct sl_share_options options = {0};
	struct sl_share_counts counts = {0};
	struct sl_share_array array;
	uint64_t n = 0;

	while (!counts.peers && !is_over(10))
		sl_share_count(share, &counts);
	while (!is_over(0)) {
		if (n && n % GENERATION == 0) {
			describe(&options, &array, n / GENERATION + 1, places);
			if (sl_share_resize(share, &options, NULL))
				return 2;
		}
		push(share, n++);
		nanosleep(&pause, NULL);
	}
	fprintf(stderr, "%llu published\n", (unsigned long long)n);
	return 0;
}

static int serve(char **word)
{
	struct sl_share_options options = {0};
	struct sl_remote_error error;
	struct sl_share_array array;
	struct sl_share *share;
	int err;

	describe(&options, &array, 1, strtoull(word[4], NULL, 10));
	options.listen = word[0];
	options.device = or_null(word[1]);
	options.secret_file = word[2];
	err = sl_share_open("interop", &options, &share, &error);
	if (err)
		return failed("serve", err, &error);
	printf("%s\n", sl_share_url(share));
	fflush(stdout);
	err = publish(share, (uint32_t)strtoul(word[3], NULL, 10), options.count);
	sl_share_close(share);
	return err;
}

/* ---- the follower ---- */

static int check(const struct sl_share_description *d, const struct sl_follow_element *element)
{
	uint64_t words = d->array[0].dim[0];

	for (uint64_t i = 0; i < words; i++)
		if (data[i] != (element->n << 16 | i) || element->note.number != element->n) {
			fprintf(stderr, "torn: word %llu of element %llu is %llx\n",
				(unsigned long long)i, (unsigned long long)element->n,
				(unsigned long long)data[i]);
			return 1;
		}
	return 0;
}

static int take(struct sl_follower *f, uint64_t wanted, enum sl_follow_mode mode)
{
	uint64_t got = 0, missed = 0, layouts = 0;
	struct sl_follow_element element;
	int err;

	for (;;) {
		err = sl_follow_next(f, mode, WAIT_MS, data, sizeof(data), &element);
		layouts += err == -ESTALE;
		if (err == -ESTALE || err == -EAGAIN)
			continue;
		if (err)
			break;
		if (check(sl_follow_describe(f), &element))
			return 1;
		missed += element.missed;
		if (++got == wanted) {
			printf("enough\n");
			fflush(stdout);
		}
	}
	printf("got %llu missed %llu layouts %llu\n", (unsigned long long)got,
	       (unsigned long long)missed, (unsigned long long)layouts);
	return err == -EPIPE && got >= wanted ? 0 : failed("follow", err, NULL);
}

static int follow(char **word)
{
	struct sl_follow_options options = {.bytes = sizeof(options),
					    .timeout_ms = WAIT_MS,
					    .device = or_null(word[1]),
					    .secret_file = word[2]};
	struct sl_remote_error error;
	struct sl_follower *f;
	int err = sl_follow_open(word[0], &options, &f, &error);

	if (err)
		return failed("follow", err, &error);
	err = take(f, strtoull(word[3], NULL, 10),
		   strcmp(word[4], "every") ? SL_FOLLOW_NEWEST : SL_FOLLOW_EVERY);
	sl_follow_close(f);
	return err;
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "serve"))
		return serve(argv + 2);
	if (argc == 7 && !strcmp(argv[1], "follow"))
		return follow(argv + 2);
	fprintf(stderr, "usage: peer-share serve ADDRESS:PORT DEVICE SECRET INTERVAL_US PLACES | "
			"follow URL DEVICE SECRET ELEMENTS every|newest\n");
	return 2;
}
