/* images.c - slots of images that are being packed. */
#include "sink/nexus/images.h"

#include <errno.h>
#include <stdlib.h>

#include "base/crc.h"
#include "base/log.h"
#include "codec/pack.h"

struct sl_images_slot {
	struct sl_packer packer;
	uint8_t *assembled, *packed;
	size_t room; /* for packed ones */
	const void *data;
	int64_t bytes; /* or -errno */
	uint32_t crc;
	bool packs; /* there is a packer */
};

static int open_slot(const struct sl_images_options *o, struct sl_images_slot *s)
{
	size_t element = sl_dtype_bytes(o->dtype);

	if (o->mosaic) {
		s->assembled = malloc(o->bytes);
		if (!s->assembled)
			return -ENOMEM;
	}
	if (o->codec == SL_CODEC_NONE)
		return 0;
	s->room = sl_pack_bound(o->codec, o->bytes, (uint32_t)element);
	s->packed = malloc(s->room);
	if (!s->packed || sl_packer_init(&s->packer, SL_VECTORS_AUTO))
		return -ENOMEM;
	s->packer.sum = o->sum;
	s->packs = true;
	return 0;
}

int sl_images_open(struct sl_images *images, const struct sl_images_options *o)
{
	int r = 0;

	*images =
		(struct sl_images){.options = *o, .slot = calloc(o->slots, sizeof(*images->slot))};
	if (!images->slot)
		r = -ENOMEM;
	for (unsigned i = 0; i < o->slots && !r; i++)
		r = open_slot(o, &images->slot[i]);
	if (r)
		sl_error("nexus: no memory for %u images that are being packed", o->slots);
	return r;
}

void sl_images_close(struct sl_images *images)
{
	for (unsigned i = 0; images->slot && i < images->options.slots; i++) {
		struct sl_images_slot *s = &images->slot[i];

		if (s->packs)
			sl_packer_fini(&s->packer);
		free(s->assembled);
		free(s->packed);
	}
	free(images->slot);
	*images = (struct sl_images){.slot = NULL};
}

void sl_images_make(const struct sl_images *images, unsigned slot, const void *image,
		    uint64_t missing)
{
	const struct sl_images_options *o = &images->options;
	struct sl_images_slot *s = &images->slot[slot];

	s->data = image;
	s->bytes = (int64_t)o->bytes;
	if (o->mosaic) {
		sl_mosaic_assemble(o->mosaic, image, missing, s->assembled);
		s->data = s->assembled;
	}
	if (o->codec == SL_CODEC_NONE) {
		s->crc = o->sum ? sl_crc32c(0, s->data, o->bytes) : 0;
		return;
	}
	s->bytes = sl_pack(&s->packer, o->codec, s->data, o->bytes,
			   (uint32_t)sl_dtype_bytes(o->dtype), s->packed, s->room);
	s->data = s->packed;
	s->crc = s->packer.crc;
}

int64_t sl_images_get(const struct sl_images *images, unsigned slot, const void **data)
{
	*data = images->slot[slot].data;
	return images->slot[slot].bytes;
}

uint32_t sl_images_crc(const struct sl_images *images, unsigned slot)
{
	return images->slot[slot].crc;
}
