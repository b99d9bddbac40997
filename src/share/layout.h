/* layout.h - a share's memory: where everything lies, and whether numbers in it can be trusted.
 *
 * Model:     docs/reference/share.md, byte by byte:
 *
 *              header (4096 bytes) | a note of 256 bytes for each place, up to a whole page | data
 *
 *            or the data in a second descriptor, where the application brought its own memory.
 *            Element n lies in place n % count, from before its `claim` is n + 1 until that is
 *            n + 1 + count:
 *
 *              writer:   claim = n + 1; data; done = n + 1; published = n + 1
 *              follower: done is n + 1; copy; claim is n + 1
 *
 * Order:     the copy is whole (invariant WHOLE, tests/model/share.pml) because no byte of element
 *            n + count is written before `claim` says so, and none of n is read before `done` does.
 *            A fence of the writer behind `claim` pairs with one of the follower before its second
 *            look. ThreadSanitizer knows no fences: its builds store each word with release and
 *            load it with acquire, which needs none.
 * Trust:     a follower maps what a writer made. sl_share_check() looks at every number of the
 *            header; followers then use its copy, never the header itself, but for the one line
 *            of words that change. */
#ifndef SL_SHARE_LAYOUT_H
#define SL_SHARE_LAYOUT_H

#include <stdbool.h>

#include <sluice/share.h>

#define SL_SHARE_MAGIC UINT64_C(0x0a31455241485387) /* in the wrong byte order: another number */

enum {
	SL_SHARE_VERSION = 1,
	SL_SHARE_HEADER_BYTES = 4096,
	SL_SHARE_NOTE_BYTES = 256,
	SL_SHARE_PAGE = 4096,
	SL_SHARE_ALIGN = 64,
};

enum sl_share_state { SL_SHARE_LIVE = 1, SL_SHARE_MOVED, SL_SHARE_ENDED };

struct sl_share_words { /* a cache line: what changes while elements come */
	uint64_t state;
	uint64_t claimed;   /* n + 1 of the element that is being written or was written last */
	uint64_t published; /* how many elements are there: n + 1 of the newest */
	uint32_t wake;	    /* futex: changes when followers that sleep are woken */
	uint32_t peers;	    /* followers that are connected */
	uint32_t unused[8];
};

struct sl_share_header {
	uint64_t magic;
	uint32_t version, header_bytes, note_bytes, arrays;
	uint64_t generation, count, data_bytes, stride;
	uint64_t region_bytes; /* of the first descriptor */
	uint64_t data_offset;  /* in the descriptor that has the data */
	uint64_t in_second;    /* 1: that is the second one */
	uint64_t first;	       /* n of the first element of this generation */
	uint64_t longest;      /* message that the writer takes; 0: it does not say */
	uint8_t unused[32];
	struct sl_share_words words; /* at 128 */
	char name[64], run[64];
	uint8_t more[192];
	struct sl_share_array array[SL_SHARE_ARRAYS]; /* at 512 */
};

struct sl_share_place { /* beside the data of a place */
	uint64_t done, claim;
	struct sl_share_note note;
};

_Static_assert(sizeof(struct sl_share_array) == 128, "the same in every language");
_Static_assert(sizeof(struct sl_share_note) == 240, "the same in every language");
_Static_assert(sizeof(struct sl_share_place) == SL_SHARE_NOTE_BYTES, "a place's note");
_Static_assert(offsetof(struct sl_share_header, words) == 128, "a cache line of its own");
_Static_assert(offsetof(struct sl_share_header, array) == 512, "the same in every language");
_Static_assert(sizeof(struct sl_share_header) <= SL_SHARE_HEADER_BYTES, "one page");

/* Describe what the options ask for: the header's numbers, arrays with offsets. -EINVAL: `why` says
 * which array or number is wrong. */
int sl_share_plan(const char *name, const struct sl_share_options *options,
		  struct sl_share_header *header, char *why, size_t why_bytes);

/* Whether a header of `region_bytes` bytes of memory, with `second_bytes` in a second descriptor
 * (0: there is none), is one of this version whose numbers agree with each other and with these
 * sizes. -EPROTO: `why` says what is wrong. */
int sl_share_check(const struct sl_share_header *header, uint64_t region_bytes,
		   uint64_t second_bytes, char *why, size_t why_bytes);

void sl_share_fill_description(const struct sl_share_header *header,
			       struct sl_share_description *description);

uint64_t sl_share_pages(uint64_t bytes); /* rounded up to whole pages */

/* Copies into memory that followers read, and out of it. `bytes` of any number. */
void sl_share_store(void *to, const void *from, size_t bytes);
void sl_share_load(void *to, const void *from, size_t bytes);

/* The writer, before it changes the place of element n. */
void sl_share_claim(struct sl_share_words *words, struct sl_share_place *place, uint64_t n);
/* The writer, before it gives the memory of `count` places another use: no follower gets an element
 * of these places any longer. */
void sl_share_cancel(struct sl_share_place *place, uint64_t count);
/* The writer, when note and data are there. */
void sl_share_done(struct sl_share_words *words, struct sl_share_place *place, uint64_t n);

enum sl_share_look { SL_SHARE_NOT_YET = -1, SL_SHARE_THERE, SL_SHARE_OVERTAKEN };
/* A follower, before its copy. */
enum sl_share_look sl_share_look(const struct sl_share_place *place, uint64_t n);
/* A follower, after its copy: whether what it copied is element n. */
bool sl_share_whole(const struct sl_share_place *place, uint64_t n);

#endif
