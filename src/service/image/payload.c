/* payload.c - payloads, and answers made of them. */
#include "service/image/payload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/image/deflate.h"
#include "service/image/json.h"

enum { ALIGN = 8, SLIM_BYTES = 8 };

struct sl_image_payload *sl_image_payload_make(unsigned status, enum sl_image_type type)
{
	struct sl_image_payload *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->refs = 1;
	p->status = status;
	p->type = type;
	return p;
}

struct sl_image_payload *sl_image_payload_hold(struct sl_image_payload *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

void sl_image_payload_release(struct sl_image_payload *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	free(p->members);
	free(p->data);
	free(p);
}

struct sl_image_payload *sl_image_payload_error(unsigned status, const char *code, const char *hint,
						const char *format, ...)
{
	struct sl_image_payload *p = sl_image_payload_make(status, SL_IMAGE_JSON);
	FILE *out = p ? open_memstream((char **)&p->data, &p->bytes) : NULL;
	char message[400];
	va_list list;

	if (!out) {
		sl_image_payload_release(p);
		return NULL;
	}
	va_start(list, format);
	vsnprintf(message, sizeof(message), format, list);
	va_end(list);
	fprintf(out, "{\"error\":{\"code\":\"%s\",\"message\":", code);
	sl_image_json_text(out, message);
	fputs(",\"where\":null,\"hint\":", out);
	if (hint)
		sl_image_json_text(out, hint);
	else
		fputs("null", out);
	fputs("}}", out);
	if (fclose(out)) {
		sl_image_payload_release(p);
		return NULL;
	}
	return p;
}

/* ---- answers ---- */

/* {"age_ns":1,...,MEMBERS} */
static int write_object(const struct sl_image_payload *p, const struct sl_image_now *now,
			char **text, size_t *bytes)
{
	FILE *out = open_memstream(text, bytes);
	uint64_t age_ns = now->unix_ns > p->commit_unix_ns ? now->unix_ns - p->commit_unix_ns : 0;

	if (!out)
		return -ENOMEM;
	fprintf(out, "{\"age_ns\":%" PRIu64 ",\"over\":%s,\"state\":", age_ns,
		now->over ? "true" : "false");
	if (now->state && now->state[0])
		sl_image_json_text(out, now->state);
	else
		fputs("null", out);
	fprintf(out, ",\"run\":");
	if (now->run)
		fprintf(out, "%" PRIu64, now->run);
	else
		fputs("null", out);
	fprintf(out, ",\"published\":%" PRIu64 ",\"rate_Hz\":", now->published);
	sl_image_json_number(out, now->rate_Hz < 0 ? NAN : now->rate_Hz, 6);
	if (now->hit_frames)
		fprintf(out, ",\"hits\":{\"frames\":%" PRIu64 ",\"kept\":%" PRIu64 "}",
			now->hit_frames, now->hits);
	else
		fputs(",\"hits\":null", out);
	fprintf(out, ",%s}", p->members);
	return fclose(out) ? -ENOMEM : 0;
}

/* "SLIM", the length of the header, the header, blanks. */
static int make_slim(const char *text, size_t bytes, uint8_t **slim, size_t *slim_bytes)
{
	size_t padded = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	uint32_t length = (uint32_t)padded;

	*slim_bytes = SLIM_BYTES + padded;
	*slim = malloc(*slim_bytes);
	if (!*slim)
		return -ENOMEM;
	memcpy(*slim, "SLIM", 4);
	memcpy(*slim + 4, &length, sizeof(length));
	memset(*slim + SLIM_BYTES, ' ', padded);
	memcpy(*slim + SLIM_BYTES, text, bytes);
	return 0;
}

static int store(const struct sl_image_payload *p, struct sl_image_parts *parts)
{
	uint8_t *plain = parts->prefix;
	size_t bytes = parts->prefix_bytes;
	uint32_t adler;

	parts->prefix_bytes = SL_DEFLATE_BEGIN + sl_deflate_stored(bytes);
	parts->prefix = malloc(parts->prefix_bytes);
	if (!parts->prefix) {
		parts->prefix = plain;
		return -ENOMEM;
	}
	memcpy(parts->prefix, sl_deflate_begin, SL_DEFLATE_BEGIN);
	adler = sl_deflate_store(plain, bytes, parts->prefix + SL_DEFLATE_BEGIN);
	free(plain);
	parts->suffix_bytes = SL_DEFLATE_END;
	sl_deflate_end(adler, p->adler, p->plain_bytes, parts->suffix);
	return 0;
}

static int make_prefix(const struct sl_image_payload *p, const struct sl_image_now *now,
		       struct sl_image_parts *parts)
{
	char *text = NULL;
	size_t bytes;
	int err = write_object(p, now, &text, &bytes);

	if (!err && p->type == SL_IMAGE_SLIM) {
		err = make_slim(text, bytes, &parts->prefix, &parts->prefix_bytes);
		free(text);
	} else {
		parts->prefix = (uint8_t *)text;
		parts->prefix_bytes = bytes;
	}
	if (!err && p->deflated)
		err = store(p, parts);
	return err;
}

int sl_image_parts_make(const struct sl_image_payload *p, const struct sl_image_now *now,
			struct sl_image_parts *parts)
{
	int err;

	memset(parts, 0, sizeof(*parts));
	err = p->members ? make_prefix(p, now, parts) : 0;
	if (err) {
		sl_image_parts_fini(parts);
		return err;
	}
	parts->head = (struct sl_image_head){
		.magic = SL_IMAGE_MAGIC,
		.status = (uint16_t)p->status,
		.type = (uint16_t)p->type,
		.deflated = p->deflated,
		.bytes = parts->prefix_bytes + p->bytes + parts->suffix_bytes,
	};
	return 0;
}

void sl_image_parts_fini(struct sl_image_parts *parts)
{
	free(parts->prefix);
	memset(parts, 0, sizeof(*parts));
}
