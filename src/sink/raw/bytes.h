/* bytes.h - numbers and texts as bytes in memory, and back, for what the sink `raw` stores.
 *
 * Model:     little-endian; every number has its natural size, nothing is padded but where the
 *            caller aligns. A writer grows as needed; its first error sticks. A reader checks each
 *            number against the bytes that are left: past the end it gives zeros and its error
 *            sticks, so that a list of reads needs one check.
 *            Sections (a tag, a length, bytes) hold what may be added later: a reader skips tags
 *            that it does not know.
 * Threads:   one for each object.
 * Ownership: a writer's bytes are its own until sl_bytes_free(); a reader points into the
 *            caller's. */
#ifndef SL_SINK_RAW_BYTES_H
#define SL_SINK_RAW_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_bytes {
	uint8_t *data;
	size_t used, room;
	int error; /* 0 or -ENOMEM */
};

void sl_bytes_free(struct sl_bytes *bytes);
void sl_bytes_put(struct sl_bytes *bytes, const void *data, size_t count);
void sl_bytes_u32(struct sl_bytes *bytes, uint32_t value);
void sl_bytes_u64(struct sl_bytes *bytes, uint64_t value);
void sl_bytes_f64(struct sl_bytes *bytes, double value);
void sl_bytes_text(struct sl_bytes *bytes, const char *text); /* NULL is not "" */

/* Where the section's length goes; to be given to sl_bytes_end(). */
size_t sl_bytes_begin(struct sl_bytes *bytes, uint32_t tag);
void sl_bytes_end(struct sl_bytes *bytes, size_t begun);

struct sl_bytes_reader {
	const uint8_t *at;
	size_t left;
	int error; /* 0 or -EBADMSG */
};

/* `count` bytes, or NULL: there are less. */
const void *sl_bytes_get(struct sl_bytes_reader *reader, size_t count);
uint32_t sl_bytes_get_u32(struct sl_bytes_reader *reader);
uint64_t sl_bytes_get_u64(struct sl_bytes_reader *reader);
double sl_bytes_get_f64(struct sl_bytes_reader *reader);

/* malloc'ed; NULL where NULL was written. -ENOMEM and -EBADMSG stick. */
char *sl_bytes_get_text(struct sl_bytes_reader *reader);
/* Into memory of the caller; a text that does not fit is an error. */
void sl_bytes_get_name(struct sl_bytes_reader *reader, char *text, size_t bytes);

/* The next section; false: there is none, or an error. */
bool sl_bytes_section(struct sl_bytes_reader *reader, uint32_t *tag,
		      struct sl_bytes_reader *section);

void sl_bytes_bad(struct sl_bytes_reader *reader); /* what was read makes no sense */

#endif
