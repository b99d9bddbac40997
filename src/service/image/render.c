/* render.c - pixels of an element with their header. */
#include "service/image/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/frame.h>

#include "service/image/deflate.h"
#include "service/image/json.h"
#include "share/image.h"

enum { PICTURE_BYTES = 4 }; /* of a pixel, at most, when it does not pack at all */

/* ---- which array, which part ---- */

static int array_of(const struct sl_image_request *r, const struct sl_image_element *e)
{
	return r->array[0] ? sl_image_element_find(e, r->array)
			   : sl_share_image_of(&e->description);
}

int sl_image_lacks(const struct sl_image_request *r, const struct sl_image_element *e)
{
	int array = r->kind == SL_IMAGE_RESULTS ? -1 : array_of(r, e);

	return array < 0 || e->held >> array & 1 ? -1 : array;
}

static struct sl_image_payload *no_array(const struct sl_image_request *r,
					 const struct sl_image_element *e)
{
	char names[SL_SHARE_ARRAYS * 34] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < e->description.arrays; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       e->description.array[i].name);
	return sl_image_payload_error(404, "not_found", NULL, "the share has no %s%s; it has: %s",
				      r->array[0] ? "array " : "image", r->array, names);
}

/* NULL: it is good. */
static struct sl_image_payload *choose_array(const struct sl_image_request *r,
					     const struct sl_image_element *e,
					     struct sl_image_part *part)
{
	const struct sl_share_array *array;
	uint64_t rows, columns;

	part->array = array_of(r, e);
	if (part->array < 0)
		return no_array(r, e);
	array = &e->description.array[part->array];
	part->kind = sl_pixels_kind(array->type);
	if (!part->kind || !sl_share_picture_size(array, &rows, &columns) || rows > INT32_MAX ||
	    columns > INT32_MAX)
		return sl_image_payload_error(400, "request",
					      "ask for results, or for another array",
					      "%s is no image: that has rows and columns of "
					      "numbers that are not complex",
					      array->name);
	part->rows = (uint32_t)rows;
	part->columns = (uint32_t)columns;
	part->pixels = sl_image_element_array(e, part->array);
	if (part->pixels)
		return NULL;
	return sl_image_payload_error(404, "not_found", NULL,
				      "this frame has no %s: it was not processed", array->name);
}

static uint32_t chosen_bin(const struct sl_image_request *r, const struct sl_pixels_view *view)
{
	uint32_t longer = view->width > view->height ? view->width : view->height, bin;

	if (r->bin || r->kind != SL_IMAGE_PICTURE)
		return r->bin ? r->bin : 1;
	bin = (longer + r->size - 1) / r->size;
	return bin < SL_PIXELS_BIN ? bin : SL_PIXELS_BIN;
}

static struct sl_image_payload *choose_view(const struct sl_image_request *r,
					    struct sl_image_part *part)
{
	struct sl_pixels_view *v = &part->view;
	uint64_t bytes;

	if (r->x >= part->columns || r->y >= part->rows || r->width > part->columns - r->x ||
	    r->height > part->rows - r->y)
		return sl_image_payload_error(400, "request", NULL,
					      "x, y, width, height: the array has %u rows and %u "
					      "columns",
					      part->rows, part->columns);
	*v = (struct sl_pixels_view){.x = r->x,
				     .y = r->y,
				     .width = r->width ? r->width : part->columns - r->x,
				     .height = r->height ? r->height : part->rows - r->y,
				     .mean = r->mean};
	v->bin = chosen_bin(r, v);
	bytes = r->kind == SL_IMAGE_PICTURE ? PICTURE_BYTES
					    : sl_pixels_bytes(sl_pixels_made(part->kind, v));
	if ((uint64_t)sl_pixels_rows(v) * sl_pixels_columns(v) * bytes <= SL_IMAGE_BODY_BYTES)
		return NULL;
	return sl_image_payload_error(413, "too_large", "ask for a larger bin, or for a region",
				      "%u x %u pixels are more than one answer may have",
				      sl_pixels_rows(v), sl_pixels_columns(v));
}

/* ---- what belongs to the image ---- */

/* Facts are about the image that is looked at by default, and others of its shape. */
static bool is_the_image(const struct sl_image_element *e, const struct sl_image_part *part)
{
	int image = sl_share_image_of(&e->description);
	uint64_t rows, columns;

	return image >= 0 && sl_share_picture_size(&e->description.array[image], &rows, &columns) &&
	       rows == part->rows && columns == part->columns;
}

static const float *list_of(const struct sl_image_element *e, const char *name, uint32_t *rows,
			    uint32_t *columns)
{
	int i = sl_image_element_find(e, name);
	const struct sl_share_array *array = i < 0 ? NULL : &e->description.array[i];

	if (!array || !array->ragged || array->rank != 2 || strcmp(array->type, "<f4") != 0)
		return NULL;
	*rows = e->element.note.rows[i];
	*columns = array->dim[1];
	return sl_image_element_array(e, i);
}

bool sl_image_find_peaks(const struct sl_image_element *e, const struct sl_image_part *part,
			 struct sl_image_peaks *peaks)
{
	static const char *const names[][2] = {{"peaks", "peaks_in_image"},
					       {"spots", "spots_in_image"}};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]) && is_the_image(e, part); k++) {
		uint32_t positions, two;

		peaks->list = list_of(e, names[k][0], &peaks->n, &peaks->columns);
		peaks->position = list_of(e, names[k][1], &positions, &two);
		if (!peaks->list || !peaks->position || peaks->columns < 4 || two != 2)
			continue;
		peaks->n = peaks->n < positions ? peaks->n : positions;
		return true;
	}
	return false;
}

static const double *doubles_of(const struct sl_image_element *e, const char *name, uint64_t n)
{
	int i = sl_image_element_find(e, name);
	const struct sl_share_array *array = i < 0 ? NULL : &e->description.array[i];

	return array && !array->ragged && !strcmp(array->type, "<f8") &&
			       array->bytes == n * sizeof(double)
		       ? sl_image_element_array(e, i)
		       : NULL;
}

bool sl_image_find_rings(const struct sl_image_element *e, const struct sl_image_part *part,
			 struct sl_image_rings *rings)
{
	const double *plane = doubles_of(e, "image_plane", 11);
	const double *energy = doubles_of(e, "photon_energy", 1);

	return plane && plane[9] == part->rows && plane[10] == part->columns &&
	       sl_image_rings_find(plane, energy ? *energy : 0, rings);
}

/* ---- the header ---- */

static const char *verdict(const struct sl_share_note *note)
{
	if (!(note->flags & (SL_FRAME_COMPLETE | SL_FRAME_PARTIAL)))
		return "broken";
	if (note->flags & SL_FRAME_DARK)
		return "dark";
	return note->keep ? "kept" : "rejected";
}

void sl_image_put_note(FILE *out, const struct sl_image_element *e)
{
	const struct sl_share_note *note = &e->element.note;

	fprintf(out,
		"\"element\":%" PRIu64 ",\"n\":%" PRIu64 ",\"number\":%" PRIu64
		",\"timestamp\":%" PRIu64 ",\"commit_unix_ns\":%" PRIu64,
		e->id, e->element.n, note->number, note->timestamp, note->commit_unix_ns);
	if (e->description.run[0]) /* a run's elements are frames */
		fprintf(out, ",\"verdict\":\"%s\",\"reason\":\"%s\"", verdict(note),
			note->reason < SL_REASONS ? sl_reason_name((enum sl_reason)note->reason)
						  : "?");
	else
		fputs(",\"verdict\":null,\"reason\":null", out);
	fputs(",\"score\":", out);
	sl_image_json_number(out, (double)note->score, 9);
	fprintf(out, ",\"missing\":%" PRIu64 ",\"missed\":%" PRIu64, note->missing,
		e->element.missed);
}

static void put_view(FILE *out, const struct sl_image_element *e, const struct sl_image_part *part)
{
	const struct sl_share_array *array = &e->description.array[part->array];
	const struct sl_pixels_kind *made = sl_pixels_made(part->kind, &part->view);
	int64_t mark;

	fputs(",\"array\":", out);
	sl_image_json_text(out, array->name);
	fprintf(out,
		",\"type\":\"%s\",\"rows\":%u,\"columns\":%u,\"full_rows\":%u,\"full_columns\":%u"
		",\"x\":%u,\"y\":%u,\"bin\":%u,\"how\":\"%s\",\"invalid\":",
		sl_pixels_type(made), sl_pixels_rows(&part->view), sl_pixels_columns(&part->view),
		part->rows, part->columns, part->view.x, part->view.y, part->view.bin,
		part->view.mean ? "mean" : "max");
	if (sl_pixels_mark(made, &mark))
		fprintf(out, "%" PRId64, mark);
	else
		fputs("null", out);
	fputs(",\"unit\":", out);
	sl_image_json_text(out, array->unit);
}

static void put_peaks(FILE *out, const struct sl_image_element *e, const struct sl_image_part *part)
{
	struct sl_image_peaks peaks;
	const char *between = "";

	if (!sl_image_find_peaks(e, part, &peaks)) {
		fputs(",\"peaks\":null", out);
		return;
	}
	fputs(",\"peaks\":[", out);
	for (uint32_t i = 0; i < peaks.n && i < SL_IMAGE_PEAKS; i++) {
		const float *at = peaks.position + 2 * (size_t)i;

		if (!isfinite(at[0]) || !isfinite(at[1]))
			continue;
		fprintf(out, "%s[%.2f,%.2f,", between, (double)at[0], (double)at[1]);
		sl_image_json_number(out, (double)peaks.list[(size_t)i * peaks.columns + 3], 5);
		putc(']', out);
		between = ",";
	}
	putc(']', out);
}

static void put_ring(FILE *out, const struct sl_image_ring *ring)
{
	const char *between = "";

	fprintf(out, "{\"d_A\":%.3g,\"radius_pixels\":%.2f,\"points\":", ring->d_A, ring->radius);
	if (ring->circle) {
		fputs("null}", out);
		return;
	}
	putc('[', out);
	for (int i = 0; i < SL_IMAGE_RING_POINTS; i++) {
		fprintf(out, isnan(ring->point[i][0]) ? "%snull" : "%s[%.1f,%.1f]", between,
			ring->point[i][0], ring->point[i][1]);
		between = ",";
	}
	fputs("]}", out);
}

static void put_known(FILE *out, const char *name, double number)
{
	fprintf(out, ",\"%s\":", name);
	sl_image_json_number(out, number > 0 ? number : NAN, 7);
}

static void put_rings(FILE *out, const struct sl_image_element *e, const struct sl_image_part *part)
{
	struct sl_image_rings rings;

	if (!sl_image_find_rings(e, part, &rings)) {
		fputs(",\"beam\":null,\"rings\":null,\"distance_m\":null,\"pixel_size_m\":null,"
		      "\"wavelength_A\":null",
		      out);
		return;
	}
	if (rings.has_beam)
		fprintf(out, ",\"beam\":{\"row\":%.3f,\"column\":%.3f}", rings.beam[0],
			rings.beam[1]);
	else
		fputs(",\"beam\":null", out);
	fputs(",\"rings\":[", out);
	for (uint32_t i = 0; i < rings.rings; i++) {
		if (i)
			putc(',', out);
		put_ring(out, &rings.ring[i]);
	}
	putc(']', out);
	put_known(out, "distance_m", rings.distance_m);
	put_known(out, "pixel_size_m", rings.pixel_size_m);
	put_known(out, "wavelength_A", rings.wavelength_A);
}

/* ---- pixels ---- */

static int deflate(struct sl_image_payload *p)
{
	uint8_t *packed;
	size_t bytes;
	int err = sl_deflate_pack(p->data, p->bytes, &packed, &bytes, &p->adler);

	if (err)
		return err;
	p->deflated = true;
	p->plain_bytes = p->bytes;
	free(p->data);
	p->data = packed;
	p->bytes = bytes;
	return 0;
}

static int fill(struct sl_image_payload *p, const struct sl_image_request *r,
		const struct sl_image_element *e, const struct sl_image_part *part)
{
	const struct sl_pixels_kind *made = sl_pixels_made(part->kind, &part->view);
	size_t unused;
	FILE *out = open_memstream(&p->members, &unused);
	int err;

	if (!out)
		return -ENOMEM;
	sl_image_put_note(out, e);
	put_view(out, e, part);
	put_peaks(out, e, part);
	put_rings(out, e, part);
	if (fclose(out))
		return -ENOMEM;
	p->commit_unix_ns = e->element.note.commit_unix_ns;
	p->share = e->share;
	p->bytes = (size_t)sl_pixels_rows(&part->view) * sl_pixels_columns(&part->view) *
		   sl_pixels_bytes(made);
	p->data = malloc(p->bytes);
	err = p->data ? sl_pixels_view(part->kind, part->pixels, part->columns, &part->view,
				       p->data)
		      : -ENOMEM;
	if (!err && r->deflate && sl_deflate_is_there())
		err = deflate(p);
	return err;
}

static struct sl_image_payload *render_pixels(const struct sl_image_request *r,
					      const struct sl_image_element *e,
					      const struct sl_image_part *part)
{
	struct sl_image_payload *p = sl_image_payload_make(200, SL_IMAGE_SLIM);

	if (p && !fill(p, r, e, part))
		return p;
	sl_image_payload_release(p);
	return NULL;
}

struct sl_image_payload *sl_image_render(const struct sl_image_request *r,
					 const struct sl_image_element *e)
{
	struct sl_image_part part = {.array = -1};
	struct sl_image_payload *wrong;

	if (r->kind == SL_IMAGE_RESULTS)
		return sl_image_render_results(e);
	wrong = choose_array(r, e, &part);
	if (!wrong)
		wrong = choose_view(r, &part);
	if (wrong)
		return wrong;
	return r->kind == SL_IMAGE_PICTURE ? sl_image_render_picture(r, e, &part)
					   : render_pixels(r, e, &part);
}
