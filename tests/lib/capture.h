/* capture.h - what a call writes to stderr, as text.
 *
 * capture_begin(); call(); text = capture_end(); The text is valid until the next capture_end(). */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int capture_saved, capture_file;

static inline void capture_begin(void)
{
	capture_saved = dup(STDERR_FILENO);
	capture_file = memfd_create("capture", MFD_CLOEXEC);
	if (capture_saved < 0 || capture_file < 0 || dup2(capture_file, STDERR_FILENO) < 0)
		abort();
}

static inline const char *capture_end(void)
{
	static char text[65536];
	ssize_t n;

	dup2(capture_saved, STDERR_FILENO);
	close(capture_saved);
	n = pread(capture_file, text, sizeof(text) - 1, 0);
	close(capture_file);
	text[n > 0 ? n : 0] = 0;
	return text;
}

#endif
