/* say.c - sluice doctor: its words, and what it knows of this process. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/sysfile.h"
#include "cmd/doctor/doctor.h"

void sl_doctor_say(struct sl_doctor *d, bool good, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs(good ? "  ok    " : "  mend  ", d->out);
	vfprintf(d->out, format, args);
	fputc('\n', d->out);
	va_end(args);
	d->wants += !good;
}

void sl_doctor_fix(struct sl_doctor *d, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("          ", d->out);
	vfprintf(d->out, format, args);
	fputc('\n', d->out);
	va_end(args);
	d->sysctl |= strstr(format, "sysctl") != NULL;
}

bool sl_doctor_may(const struct sl_doctor *d, unsigned capability)
{
	char text[64];

	return sl_sysfile_value(d->root, "/proc/self/status", "CapEff", text, sizeof(text)) &&
	       (strtoull(text, NULL, 16) >> capability & 1);
}

bool sl_doctor_has_link(const struct sl_doctor *d, const char *link)
{
	return d->experiment && !strcmp(d->experiment->link->name, link);
}
