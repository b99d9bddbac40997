/* camera_centroid.c - follow a camera, here or over RDMA, and answer to each frame where its light
 * is.
 *
 *   cc -O2 camera_centroid.c $(pkg-config --cflags --libs sluice-client) -o camera_centroid
 *   ./camera_centroid share:camera | rdma://HOST:PORT/camera [FRAMES [SECRET_FILE]]
 *
 * It takes the newest frame, so that it is never behind, computes the centroid of the pixels above
 * THRESHOLD, and sends it to the run: a message of kind 1 that begins with the number of the
 * element, as the sink `share` counts and times with `answers: true`. At the end it prints how old
 * the frames were when they were here, and when the answer was sent. Both are differences of
 * clocks: between two hosts they say as much as the clocks agree. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sluice/share.h>

enum { ANSWER = 1, THRESHOLD = 180, FRAMES = 1000, CONNECT_MS = 100, CONNECTS = 300 };

struct answer {
	uint64_t n, number;
	double x, y, sum;
};

struct client {
	struct sl_follower *follower;
	uint64_t frames, most, missed;
	uint32_t *view_us, *answer_us; /* of each frame */
	struct answer last;
};

static uint32_t age_us(const struct sl_share_note *note)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return ns > note->commit_unix_ns ? (uint32_t)((ns - note->commit_unix_ns) / 1000) : 0;
}

static void find_centroid(const uint8_t *pixel, uint32_t rows, uint32_t columns, struct answer *a)
{
	uint64_t sum = 0, x = 0, y = 0;

	for (uint32_t row = 0; row < rows; row++) {
		uint64_t in_row = 0;

		for (uint32_t column = 0; column < columns; column++) {
			uint32_t value = pixel[row * columns + column];

			value = value > THRESHOLD ? value - THRESHOLD : 0;
			in_row += value;
			x += value * column;
		}
		y += in_row * row;
		sum += in_row;
	}
	a->sum = (double)sum;
	a->x = sum ? (double)x / (double)sum : 0;
	a->y = sum ? (double)y / (double)sum : 0;
}

/* The first image of 8-bit pixels; NULL: there is none. */
static const struct sl_share_array *image_of(const struct sl_share_description *d)
{
	for (uint32_t i = 0; i < d->arrays; i++)
		if (!strcmp(d->array[i].type, "|u1") && d->array[i].rank >= 2)
			return &d->array[i];
	return NULL;
}

static int on_frame(void *arg, const struct sl_share_description *d,
		    const struct sl_follow_element *element)
{
	struct client *c = arg;
	const struct sl_share_array *image = image_of(d);
	struct answer answer = {.n = element->n, .number = element->note.number};
	uint32_t columns, view_us = age_us(&element->note);
	int err;

	if (!image)
		return -ENOTSUP;
	columns = image->dim[image->rank - 1];
	find_centroid((const uint8_t *)element->data + image->offset,
		      (uint32_t)(image->bytes / columns), columns, &answer);
	err = sl_follow_send(c->follower, ANSWER, &answer, sizeof(answer), 1000);
	if (err && err != -EAGAIN) /* the run takes answers more slowly than they come */
		return err;
	c->view_us[c->frames] = view_us;
	c->answer_us[c->frames] = age_us(&element->note);
	c->missed += element->missed;
	c->last = answer;
	return ++c->frames == c->most;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void print_times(const char *what, uint32_t *us, uint64_t n)
{
	qsort(us, n, sizeof(*us), by_value);
	printf("%-17s p50 %5u us   p90 %5u us   p99 %5u us   max %5u us\n", what, us[(n - 1) / 2],
	       us[(n - 1) * 9 / 10], us[(n - 1) * 99 / 100], us[n - 1]);
}

/* The run may be starting still. */
static int connect_to(struct client *c, const char *url, const char *secret_file)
{
	const struct sl_follow_options options = {.bytes = sizeof(options),
						  .secret_file = secret_file};
	const struct timespec pause = {.tv_nsec = CONNECT_MS * 1000000};
	struct sl_remote_error error;
	int err = 0;

	for (unsigned i = 0; i < CONNECTS; i++) {
		err = sl_follow_open(url, &options, &c->follower, &error);
		if (err != -ENOENT && err != -ECONNREFUSED)
			break;
		nanosleep(&pause, NULL);
	}
	if (err)
		fprintf(stderr, "%s\n", error.message);
	return err;
}

int main(int argc, char **argv)
{
	struct client c = {.most = argc > 2 ? strtoull(argv[2], NULL, 10) : FRAMES};
	int err;

	if (argc < 2 || argc > 4 || !c.most || c.most > 100000000) {
		fprintf(stderr, "usage: camera_centroid URL [FRAMES [SECRET_FILE]]\n");
		return 2;
	}
	c.view_us = calloc(c.most, sizeof(*c.view_us));
	c.answer_us = calloc(c.most, sizeof(*c.answer_us));
	if (!c.view_us || !c.answer_us || connect_to(&c, argv[1], argc > 3 ? argv[3] : NULL))
		return 1;
	err = sl_follow_each(c.follower, SL_FOLLOW_NEWEST, -1, on_frame, &c);
	if (c.frames) {
		printf("%llu frames answered, %llu passed over\n", (unsigned long long)c.frames,
		       (unsigned long long)c.missed);
		printf("the last one, frame %llu: light at x %.2f, y %.2f\n",
		       (unsigned long long)c.last.number, c.last.x, c.last.y);
		print_times("commit to view", c.view_us, c.frames);
		print_times("commit to answer", c.answer_us, c.frames);
	}
	sl_follow_close(c.follower); /* answers that are under way are sent */
	free(c.view_us);
	free(c.answer_us);
	if (err >= 0 || (err == -EPIPE && c.frames)) /* enough, or the run has ended */
		return 0;
	fprintf(stderr, "%s: %s\n", argv[1],
		err == -ENOTSUP ? "it has no image of 8-bit pixels" : strerror(-err));
	return 1;
}
