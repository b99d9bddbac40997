/* picture.c - the last kept frame of a run, drawn when it has ended. */
#include "session/folder/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sluice/share.h>

#include "picture/picture.h"
#include "picture/pixels.h"
#include "share/image.h"

enum { NICE = 10, SIZE = 1024, ATTACH_MS = 2000 };

/* ---- on its thread ---- */

/* What goes wrong here is no error of a run. */
static void log_line(void *arg, enum sl_log_level level, const char *line)
{
	const struct sl_session_picture *p = arg;
	const struct sl_log_target *run = p->log_of_run;

	level = level == SL_LOG_ERROR ? SL_LOG_WARN : level;
	if (run && run->line) {
		run->line(run->arg, level, line);
		return;
	}
	sl_log_set_target(NULL);
	sl_log_line(level, line);
	sl_log_set_target(&p->log);
}

/* The newest kept element that lies in the share, else the newest. */
static int find_kept(struct sl_follower *f, uint64_t *n)
{
	uint64_t count = sl_follow_describe(f)->count, newest;
	struct sl_follow_element element;
	int err = sl_follow_peek(f, SL_FOLLOW_NEWEST, 0, &element);
	uint8_t byte;

	if (err)
		return err;
	*n = newest = element.n;
	for (uint64_t back = 0; back < count && back <= newest; back++) {
		if (sl_follow_fetch(f, newest - back, 0, 1, &byte, &element))
			break; /* before the first of this generation */
		if (!element.note.keep)
			continue;
		*n = newest - back;
		break;
	}
	return 0;
}

static int draw(const struct sl_share_array *array, const void *data, const char *path)
{
	const struct sl_picture_look look = {SL_PICTURE_LOG, SL_PICTURE_FIRE, 1, 99.9};
	const struct sl_pixels_kind *kind = sl_pixels_kind(array->type);
	struct sl_pixels_view view = {.bin = 1};
	struct sl_picture picture = {.pixels = NULL};
	uint64_t rows, columns, longer;
	uint8_t palette[256][3], *index;
	double range[2];
	int err;

	if (!kind || !sl_share_picture_size(array, &rows, &columns) || rows > UINT32_MAX)
		return -EINVAL;
	longer = rows > columns ? rows : columns;
	view.width = (uint32_t)columns;
	view.height = (uint32_t)rows;
	view.bin = (uint32_t)((longer + SIZE - 1) / SIZE);
	if (view.bin > SL_PIXELS_BIN)
		return -EFBIG;
	err = sl_pixels_picture(kind, data, view.width, &view, &picture);
	if (err)
		return err;
	index = malloc((size_t)picture.rows * picture.columns);
	err = index ? sl_picture_colour(&picture, &look, index, range) : -ENOMEM;
	sl_picture_palette(look.colours, palette);
	if (!err)
		err = sl_png_write(path, picture.rows, picture.columns, index, palette);
	free(picture.pixels);
	free(index);
	return err;
}

static int make(struct sl_follower *f, const char *path)
{
	const struct sl_share_description *d = sl_follow_describe(f);
	int image = sl_share_image_of(d), err;
	struct sl_follow_element element;
	uint64_t n = 0;
	void *data;

	if (image < 0)
		return 0;
	err = find_kept(f, &n);
	if (err)
		return err == -EPIPE ? 0 : err; /* no frame was published */
	data = malloc(d->array[image].bytes);
	if (!data)
		return -ENOMEM;
	err = sl_follow_fetch(f, n, d->array[image].offset, d->array[image].bytes, data, &element);
	if (!err && !(element.note.absent >> image & 1))
		err = draw(&d->array[image], data, path);
	free(data);
	return err;
}

static void *run(void *arg)
{
	struct sl_session_picture *p = arg;
	const struct sl_follow_options options = {.bytes = sizeof(options),
						  .timeout_ms = ATTACH_MS};
	struct sl_follower *follower = NULL;
	int err;

	sl_log_set_target(&p->log);
	err = sl_follow_open(p->share, &options, &follower, NULL);
	/* Not before: a short run would be over. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	pthread_mutex_lock(&p->lock);
	while (!p->ended)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	if (!err)
		err = make(follower, p->path);
	if (err)
		sl_warn("'%s' was not made: %s", p->path, strerror(-err));
	sl_follow_close(follower);
	pthread_mutex_lock(&p->lock);
	p->done = true;
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- on the control thread ---- */

static bool is_done(struct sl_session_picture *p)
{
	bool done;

	pthread_mutex_lock(&p->lock);
	done = p->done;
	pthread_mutex_unlock(&p->lock);
	return done;
}

static void clean_up(struct sl_session_picture *p)
{
	sl_thread_join(&p->thread);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	p->busy = false;
}

static struct sl_session_picture *find_free(struct sl_session_pictures *pictures)
{
	for (unsigned i = 0; i < SL_SESSION_PICTURES; i++) {
		struct sl_session_picture *p = &pictures->one[i];

		if (p->busy && is_done(p))
			clean_up(p);
		if (!p->busy)
			return p;
	}
	return NULL;
}

void sl_session_picture_begin(struct sl_session_pictures *pictures, const char *share,
			      const char *path)
{
	struct sl_session_picture *p = find_free(pictures);
	int err;

	pictures->of_run = NULL;
	if (!p) {
		sl_debug("pictures of earlier runs are not done: there will be none of this one");
		return;
	}
	*p = (struct sl_session_picture){.log_of_run = sl_log_target(), .busy = true};
	p->log = (struct sl_log_target){log_line, p};
	snprintf(p->share, sizeof(p->share), "%s", share);
	snprintf(p->path, sizeof(p->path), "%s", path);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	err = sl_thread_start(&p->thread, "picture", NULL, run, p);
	if (err) {
		sl_warn("'%s' will not be made: no thread: %s", path, strerror(-err));
		clean_up(p);
		return;
	}
	pictures->of_run = p;
}

static void end(struct sl_session_picture *p)
{
	pthread_mutex_lock(&p->lock);
	p->ended = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

void sl_session_picture_end(struct sl_session_pictures *pictures)
{
	if (pictures->of_run)
		end(pictures->of_run);
	pictures->of_run = NULL;
}

void sl_session_picture_fini(struct sl_session_pictures *pictures)
{
	for (unsigned i = 0; i < SL_SESSION_PICTURES; i++) {
		if (!pictures->one[i].busy)
			continue;
		end(&pictures->one[i]);
		clean_up(&pictures->one[i]);
	}
}
