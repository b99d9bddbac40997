/* configuration.c - a detector's options and geometry as YAML. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "detector/configuration.h"

struct writer {
	char *text;
	size_t used;
	bool full;
};

static const char more[] = "# more did not fit\n";

__attribute__((format(printf, 2, 3))) static void line(struct writer *w, const char *format, ...)
{
	size_t room = SL_CONFIGURATION_BYTES - sizeof(more) - w->used;
	va_list arguments;
	int n;

	if (w->full)
		return;
	va_start(arguments, format);
	n = vsnprintf(w->text + w->used, room, format, arguments);
	va_end(arguments);
	if (n < 0 || (size_t)n >= room) {
		w->full = true;
		memset(w->text + w->used, 0, room);
		memcpy(w->text + w->used, more, sizeof(more) - 1);
		return;
	}
	w->used += (size_t)n;
}

static void options(struct writer *w, const struct sl_option *option, const void *base)
{
	char value[1024];

	for (; option && option->name; option++) {
		sl_option_print(option, base, value, sizeof(value));
		if (sl_option_is_text(option))
			line(w, "%s: \"%s\"\n", option->name, value);
		else
			line(w, "%s: %s\n", option->name, value);
	}
}

void sl_detector_configuration(const struct sl_detector *detector, const void *state,
			       const struct sl_detector_options *run,
			       const struct sl_geometry *geometry,
			       char text[SL_CONFIGURATION_BYTES])
{
	struct writer w = {.text = text};

	memset(text, 0, SL_CONFIGURATION_BYTES);
	line(&w, "kind: %s\n", detector->name);
	options(&w, sl_detector_options, run);
	options(&w, detector->options, state);
	line(&w, "# a module: %u rows of %u pixels, %s, %llu bytes\n", geometry->rows,
	     geometry->columns, sl_dtype_name(geometry->dtype),
	     (unsigned long long)geometry->module_bytes);
	if (geometry->pixel_size_m > 0)
		line(&w, "# pixel %g m, distance %g m\n", geometry->pixel_size_m,
		     geometry->distance_m);
}
