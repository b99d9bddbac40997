/* ring_options.c - the options of the ring and of what becomes of frames there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config/node.h"
#include "base/log.h"
#include "experiment/ring_options.h"
#include "receiver/assemble/align.h"

const struct sl_option sl_ring_options[] = {
	SL_U32(struct sl_ring_options, slots, 32, 4, 1024, "slots", "frames the ring holds"),
	SL_U32(struct sl_ring_options, late_frames, 8, 1, 1000, "frames",
	       "give up on a module when its own data is this many frames further on"),
	SL_U32(struct sl_ring_options, late_timeout_ms, 5000, 1, 3600000, "ms",
	       "give up on a module after this long at the latest"),
	SL_U32(struct sl_ring_options, late_timeout_us, 0, 0, 3600000000., "us",
	       "the same where milliseconds are too long, for triggers that must answer; 0: "
	       "late_timeout_ms counts"),
	SL_CHOICE(struct sl_ring_options, align, sequence, "sequence|frame|timestamp",
		  "what makes module data one frame: its place in each module's stream, the "
		  "detector's frame number, or its timestamp"),
	SL_U64(struct sl_ring_options, window_ns, 1000, 0, 1e15, "ns",
	       "align timestamp: how far apart the timestamps of one frame may be"),
	SL_U32(struct sl_ring_options, wrap_bits, 64, 8, 64, "bits",
	       "align frame and timestamp: the counter begins again after so many bits"),
	SL_STRING(
		struct sl_ring_options, offsets, "",
		"align frame and timestamp: how far modules are ahead, as in 3: 120, 5: -40; also "
		"a map of modules, or a list, first module first"),
	SL_CHOICE(
		struct sl_ring_options, incomplete, drop, "drop|keep",
		"frames with missing modules: drop them, or go on with a mask of what is missing"),
	SL_CHOICE(struct sl_ring_options, overrun, stop, "stop|drop_newest|drop_oldest|pause",
		  "when there is no room for new data: end the run, lose the new data, give back "
		  "the oldest frames unprocessed, or let sources wait (and take none that cannot)"),
	SL_U32(struct sl_ring_options, line_pitch, 0, 0, 1073741824, "bytes",
	       "from one line of pixels to the next, a multiple of 64; 0: lines follow each "
	       "other"),
	SL_U32(struct sl_ring_options, x, 0, 0, 65535, "pixels",
	       "with a line_pitch: where in its block the rectangle that a source sends begins"),
	SL_U32(struct sl_ring_options, y, 0, 0, 65535, "lines", "likewise: its first line"),
	SL_BOOL(struct sl_ring_options, poison, false,
		"fill the ring with a marker first (for tests)"),
	SL_OPTION_END,
};

/* A map or list in the file becomes the text that the command line would have. */
int sl_ring_options_flatten(struct sl_config *config, struct sl_node *ring)
{
	struct sl_node *node = ring ? sl_node_child(ring, "offsets") : NULL;
	char text[sizeof(((struct sl_ring_options *)0)->offsets)];
	size_t used = 0, index = 0;

	if (!node || node->kind == SL_NODE_SCALAR)
		return 0;
	for (struct sl_node *item = node->child; item; item = item->next, index++) {
		char number[24];

		snprintf(number, sizeof(number), "%zu", index);
		if (item->kind != SL_NODE_SCALAR || used >= sizeof(text)) {
			sl_config_error(config, item, "takes a number for each module");
			return -EINVAL;
		}
		item->read = true;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s: %s",
					 index ? ", " : "", item->key ? item->key : number,
					 item->text);
	}
	if (used >= sizeof(text)) {
		sl_config_error(config, node, "is too long");
		return -EINVAL;
	}
	node->text = sl_tree_text(sl_tree_of(config), text, used);
	node->kind = SL_NODE_SCALAR;
	node->child = NULL;
	return node->text ? 0 : -ENOMEM;
}

/* "3: 120, 5: -40"; what is wrong with it, or NULL. */
static const char *read_offsets(const char *text, uint32_t modules, int64_t *offset)
{
	char *end;

	while (*text) {
		unsigned long module;
		long long value;

		errno = 0;
		module = strtoul(text, &end, 10);
		end += strspn(end, " ");
		if (end == text || *end != ':' || strchr("-+", text[strspn(text, " ")]))
			return "takes module: offset, ...  as in  3: 120, 5: -40";
		if (module >= modules)
			return "names a module that the detector does not have";
		text = end + 1;
		value = strtoll(text, &end, 10);
		end += strspn(end, " ");
		if (errno || end == text || (*end && *end != ','))
			return "takes module: offset, ...  as in  3: 120, 5: -40";
		offset[module] = value;
		text = *end ? end + 1 : end;
	}
	return NULL;
}

int sl_ring_options_lines(const struct sl_ring_options *run, const struct sl_geometry *geometry,
			  struct sl_lines *lines)
{
	uint64_t pixel = geometry->module_bytes / sl_geometry_pixels(geometry);

	*lines = (struct sl_lines){
		.count = geometry->rows,
		.bytes = (uint32_t)(geometry->module_bytes / geometry->rows),
		.pitch = run->line_pitch,
		.first = run->y * (uint64_t)run->line_pitch + run->x * pixel,
	};
	if (!run->line_pitch || run->x * pixel + lines->bytes <= run->line_pitch)
		return 0;
	sl_error("ring.line_pitch is %u bytes, a line of this detector has %u%s", run->line_pitch,
		 lines->bytes, run->x ? ", and ring.x moves it to the right" : "");
	return -EINVAL;
}

int sl_ring_options_align(const struct sl_ring_options *run, uint32_t modules,
			  struct sl_align *align)
{
	*align = (struct sl_align){
		.by = (enum sl_align_by)run->align,
		.window = run->align == SL_ALIGN_TIMESTAMP ? run->window_ns : 0,
		.wrap_bits = run->wrap_bits,
	};
	return read_offsets(run->offsets, modules, align->offset) ? -EINVAL : 0;
}

const char *sl_ring_rule_broken(const struct sl_ring_options *run, uint32_t modules, unsigned rule)
{
	bool by_sequence = run->align == SL_ALIGN_SEQUENCE;
	int64_t offset[SL_ALIGN_MODULES];

	switch (rule) {
	case 0:
		return by_sequence && (run->offsets[0] || run->wrap_bits != 64)
			       ? "offsets and wrap_bits mean nothing with align: sequence; set "
				 "align to frame or timestamp"
			       : NULL;
	case 1:
		return (run->x || run->y) && !run->line_pitch
			       ? "x and y place a rectangle in a larger one: line_pitch must say "
				 "how wide that is"
			       : NULL;
	case 2:
		return run->wrap_bits < 64 && run->align == SL_ALIGN_TIMESTAMP &&
				       run->window_ns >= UINT64_C(1) << (run->wrap_bits - 1)
			       ? "window_ns is longer than half of what wrap_bits can count"
			       : NULL;
	default:
		return by_sequence ? NULL : read_offsets(run->offsets, modules, offset);
	}
}
