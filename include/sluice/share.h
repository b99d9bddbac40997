/* share.h - memory that other programs follow and cannot slow down: libsluice-client.so.
 *
 * Model:     one writer publishes elements 0, 1, 2 ... in a ring of `count` places; element n lies
 *            in place n % count until element n + count takes it. An element is a note (numbers of
 *            its frame) and up to SL_SHARE_ARRAYS arrays, whose names, types and shapes the share's
 *            header describes: a follower needs to know nothing else. A plain region of memory is a
 *            ring of one place. Followers never hold an element. They look, copy and look again; a
 *            copy that the writer has overtaken meanwhile is thrown away and counted as missed.
 * Memory:    | header | a note for each place | data of each place |, in a memfd that is sealed:
 *            followers get it through the share's Unix socket and can only read it. The layout is
 *            docs/reference/share.md. Every number that a follower finds there is checked
 *            against the size of its mapping.
 * Names:     "share:NAME", or just NAME: 1 to 63 characters of A-Z a-z 0-9 . _ -. The socket lies
 *            in the 0700 folder of this user's sessions; this user and root can follow.
 * Messages:  both ways between the writer and each follower, in order, each at most as long as a
 *            queue. A queue that is full refuses further ones (-EAGAIN) until the other side
 *            takes some.
 * Threads:   one thread writes elements; any thread sends and receives messages of a share. A
 *            thread of the share's own, which starts with it, serves followers. A follower belongs
 *            to one thread at a time.
 * Ownership: what a share or follower returns a pointer to is the library's.
 * Cost:      a commit is a few stores; no system call where no follower sleeps, else one at most
 *            every 50 us. A follower that stalls or dies costs the writer nothing.
 *            A follower on another host costs the writer one system call at most every 50 us while
 *            it waits; the share's thread answers its READs.
 * Errors:    0 or -errno, and `error` (NULL is fine) in words. Nothing is logged. */
#ifndef SLUICE_SHARE_H
#define SLUICE_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/client.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_SHARE_ARRAYS = 24, SL_SHARE_RANK = 6, SL_SHARE_USER = 8 };

struct sl_share_array { /* one array of every element */
	char name[32];
	char unit[16];
	char type[8]; /* as NumPy writes it: "|u1", "<u2", "<i2", "<f4", "<f8" ... */
	uint32_t rank;
	uint32_t ragged; /* 1: dim[0] is the most rows that there can be; the note says how many */
	uint32_t dim[SL_SHARE_RANK]; /* slowest first, contiguous */
	uint64_t offset, bytes;	     /* in the data of a place; the library sets them */
	uint8_t reserved[24];
};

/* What is known of an element besides its arrays: of a frame, or whatever the writer likes. */
struct sl_share_note {
	uint64_t number, timestamp;
	uint64_t commit_unix_ns; /* set by commit */
	uint64_t missing;	 /* a bit for each module whose pixels are not there */
	float score;
	uint16_t keep, reason; /* the verdict; enum sl_reason */
	uint32_t flags;	       /* enum sl_frame_flags */
	uint32_t epoch;
	uint32_t rows[SL_SHARE_ARRAYS]; /* of ragged arrays */
	uint64_t user[SL_SHARE_USER];	/* the application's own */
	uint64_t absent;		/* a bit for each array that this element does not have */
	uint64_t reserved[3];
};

struct sl_share_description {
	uint64_t generation; /* 1; one more with each resize */
	uint64_t count;	     /* places */
	uint64_t data_bytes; /* of one place */
	uint32_t arrays, reserved;
	char name[64], run[64];
	struct sl_share_array array[SL_SHARE_ARRAYS];
};

/* ---- the writer ---- */

struct sl_share;

struct sl_share_options {
	uint32_t bytes; /* sizeof(struct sl_share_options) of the caller */
	uint32_t arrays;
	const struct sl_share_array *array; /* name, type, rank, dim; unit and ragged if wanted */
	uint64_t count;			    /* places; at least 1 */
	const char *run;		    /* what this is about, for people; NULL: nothing */
	/* Memory that the application has. `memory_fd` is a memfd with MFD_ALLOW_SEALING: the share
	 * seals it against shrinking. Other files, also those of shm_open(), could shrink under the
	 * followers, and are refused. The data of place i begin at memory_offset + i * data_bytes,
	 * where data_bytes is rounded up to whole pages, or to 64 bytes if it is less than a page.
	 * Followers get a descriptor that cannot write. 0: the share makes its own memory. */
	int memory_fd;
	uint32_t max_peers;	/* connected at a time; 0: 64 */
	uint64_t memory_offset; /* whole pages */
	uint64_t queue_bytes;	/* messages that wait, for each peer and direction; 0: 64 MiB */
	/* "HOST:PORT": programs on other hosts can follow, too, by RDMA READ, as
	 * rdma://HOST:PORT/NAME (docs/reference/share-rdma.md). The address of one interface; port
	 * 0: any free one, see sl_share_url(). NULL: only programs on this host. */
	const char *listen;
	/* A file with the secret that followers on other hosts prove to know; required where
	 * `listen` is not a loopback address. NULL: none. */
	const char *secret_file;
	const char *device; /* of `listen`: an RDMA NIC, as "mlx5_0"; NULL: a UDP socket */
	uint64_t reserved[8];
};

/* -EEXIST: the name is taken by a share that lives. */
int sl_share_open(const char *name, const struct sl_share_options *options, struct sl_share **share,
		  struct sl_remote_error *error);
/* Followers are told that it has ended, after what they have not read yet; for those on other hosts
 * it waits up to 1 s. NULL is fine. */
void sl_share_close(struct sl_share *share);

/* It changes with sl_share_resize(): for the thread that writes. */
const struct sl_share_description *sl_share_describe(const struct sl_share *share);

/* "rdma://HOST:PORT/NAME", with the port that was chosen; "share:NAME" of a share that does not
 * listen. */
const char *sl_share_url(const struct sl_share *share);

/* The next element, to be filled in place: its note is zeroed, and each array is at
 * sl_share_at(). From here on followers can no longer get the element that lay there before. A
 * second reserve without a commit returns the same place again. */
struct sl_share_note *sl_share_reserve(struct sl_share *share);
void *sl_share_at(struct sl_share *share, uint32_t array);
/* Publish what was reserved; returns its n. */
uint64_t sl_share_commit(struct sl_share *share);
/* The same by copy. note: NULL: zeros. from[i]: the bytes of array i, or NULL: left as they are;
 * of a ragged array only note->rows[i] rows are copied. */
uint64_t sl_share_push(struct sl_share *share, const struct sl_share_note *note,
		       const void *const *from);

/* Another layout: new memory under the same name. Followers read what is published in the old one,
 * then attach again by themselves; those on other hosts miss what they have not read. Elements go
 * on being counted. */
int sl_share_resize(struct sl_share *share, const struct sl_share_options *options,
		    struct sl_remote_error *error);

struct sl_share_message {
	uint64_t peer; /* of the follower that sent it; numbers are not used twice */
	uint64_t bytes;
	uint8_t *data; /* freed with sl_remote_free(); NULL where bytes is 0 */
	uint32_t kind; /* the application's own */
	uint32_t reserved;
};

/* peer 0: every follower that is connected and has room. -ENOENT: that peer has gone; -EAGAIN: its
 * queue is full; -EMSGSIZE: longer than a queue. */
int sl_share_send(struct sl_share *share, uint64_t peer, uint32_t kind, const void *data,
		  uint64_t bytes);
/* The next message of any follower. -ETIMEDOUT: none within timeout_ms (-1: no limit). */
int sl_share_receive(struct sl_share *share, int timeout_ms, struct sl_share_message *message);

struct sl_share_counts {
	uint64_t published, peers, peers_ever, refused;
	uint64_t messages_in, messages_out;
	uint64_t reserved[8];
};
void sl_share_count(const struct sl_share *share, struct sl_share_counts *counts);

/* ---- followers ---- */

struct sl_follower;

struct sl_follow_options {
	uint32_t bytes; /* sizeof(struct sl_follow_options) of the caller */
	/* To connect and attach; and of sl_follow_fetch(), which has no limit of its own. 0: 5000;
	 * -1: no limit. */
	int32_t timeout_ms;
	const char *secret_file; /* of rdma://: the secret of the share; NULL: none */
	const char *device;	 /* of rdma://: an RDMA NIC of this host; NULL: a UDP socket */
	uint64_t queue_bytes;	 /* messages that wait to be received; 0: 1 GiB */
	uint64_t reserved[7];
};

/* url: "share:NAME" or NAME: a share of this user on this host; "rdma://HOST:PORT/NAME": a share
 * anywhere. options: NULL: defaults. -ENOENT: there is no such share; -EPROTO: its header is not
 * one that this library understands; -EACCES: the secret is wrong, missing, or not wanted; -EIO:
 * TCP reaches the share, and RDMA over UDP does not. */
int sl_follow_open(const char *url, const struct sl_follow_options *options,
		   struct sl_follower **follower, struct sl_remote_error *error);
void sl_follow_close(struct sl_follower *follower); /* NULL is fine */

/* Of the generation that this follower is attached to; changes only when a call has returned
 * -ESTALE. */
const struct sl_share_description *sl_follow_describe(const struct sl_follower *follower);

enum sl_follow_mode {
	SL_FOLLOW_NEWEST, /* the newest element that this follower has not had yet */
	SL_FOLLOW_EVERY,  /* the element after the last one; what was overtaken is missed */
};

struct sl_follow_element {
	uint64_t n;
	uint64_t missed;  /* elements since the last one that this follower did not get */
	const void *data; /* of peek: in the share's memory */
	struct sl_share_note note;
};

/* Wait for an element, and copy its arrays to `data` (data_bytes of the description, arrays at
 * their offsets). -ETIMEDOUT: none within timeout_ms (-1: no limit). -ESTALE: attached again, to
 * memory of another layout: look at the description, and go on. -EPIPE: the share has ended, and
 * all is read. -ECONNRESET: its writer has crashed, or its host cannot be reached. -EAGAIN: the
 * writer overtook every one of many copies: the ring has too few places for this follower. rdma://:
 * `data` may be written to for longer than timeout_ms, until the last READ has its answer, or has
 * failed. */
int sl_follow_next(struct sl_follower *follower, enum sl_follow_mode mode, int timeout_ms,
		   void *data, uint64_t data_bytes, struct sl_follow_element *element);
/* The same without a copy: element->data points into the share, and its bytes may change at any
 * moment. What was made of them counts only if sl_follow_is_valid() says so afterwards.
 * -EOPNOTSUPP: the share is on another host. */
int sl_follow_peek(struct sl_follower *follower, enum sl_follow_mode mode, int timeout_ms,
		   struct sl_follow_element *element);
/* 1: element n of this generation is in its place, whole, and was since it was peeked at. */
int sl_follow_is_valid(const struct sl_follower *follower, uint64_t n);

/* A part of an element's data. n UINT64_MAX: the newest. bytes 0: up to the end. -ENODATA:
 * nothing is published yet; -ESTALE: element n was overtaken; -ERANGE: the part is not inside its
 * data. Of the newest, and of one that is not there yet: -ESTALE: attached again, to memory of
 * another layout; -EPIPE: the share has ended; -ECONNRESET: its writer has crashed; -EAGAIN: as
 * of sl_follow_next(), or the writer has been filling the only place of the share for the
 * timeout_ms of sl_follow_open(); -ETIMEDOUT: a share on another host did not answer for that
 * time. */
int sl_follow_fetch(struct sl_follower *follower, uint64_t n, uint64_t offset, uint64_t bytes,
		    void *into, struct sl_follow_element *element);

/* Call each() for elements as they come until it returns other than 0, which is returned then, or
 * for an error of sl_follow_next(); data are in memory of the follower's until the next one. After
 * a resize it goes on. */
int sl_follow_each(struct sl_follower *follower, enum sl_follow_mode mode, int timeout_ms,
		   int (*each)(void *arg, const struct sl_share_description *description,
			       const struct sl_follow_element *element),
		   void *arg);

/* How many elements are published, in the generation that this follower is attached to. rdma://: a
 * READ asks the share. 0, or -errno as of sl_follow_fetch(). */
int sl_follow_published(struct sl_follower *follower, uint64_t *n);

/* How many elements are published: a word in the share's memory that changes with each commit, for
 * a thread or a kernel of a GPU that waits for it by itself (docs/reference/share.md).
 * After a resize it is another word. rdma://: a word of this program that changes only inside of
 * calls with this follower, as sl_follow_next() while it waits. */
const uint64_t *sl_follow_flag(const struct sl_follower *follower);

/* How many programs follow the share, this one among them; 0: not known. */
uint64_t sl_follow_peers(const struct sl_follower *follower);

/* From here to the share's thread and back; between hosts by TCP. -EPIPE: the share has ended;
 * -ECONNRESET: its writer has crashed; -ENOBUFS: the queue of received messages is full, and the
 * answer waits behind further ones: call sl_follow_receive() first. */
int sl_follow_ping(struct sl_follower *follower, int timeout_ms, uint64_t *round_trip_ns);

/* -EAGAIN: the writer's queue is full, and has been for timeout_ms; -EMSGSIZE: longer than that
 * queue; -EPIPE, -ECONNRESET: as of sl_follow_ping(). */
int sl_follow_send(struct sl_follower *follower, uint32_t kind, const void *data, uint64_t bytes,
		   int timeout_ms);
/* The next message of the writer. -ETIMEDOUT: none within timeout_ms (-1: no limit); -EMSGSIZE:
 * it was longer than queue_bytes of sl_follow_open() and was dropped: `message` has its length
 * and kind; -EPIPE, -ECONNRESET: as of sl_follow_ping(), after the last message. */
int sl_follow_receive(struct sl_follower *follower, int timeout_ms,
		      struct sl_share_message *message);

/* ---- views that outlive a share or a follower ---- */

/* Memory of one generation, mapped. A language with garbage collection holds it for its views: they
 * stay readable after a resize, and after the share or the follower was closed. */
struct sl_share_mapping;

/* NULL: no memory, or the follower has no mapping, as of rdma://. Each is released once; one serves
 * any number of views. */
struct sl_share_mapping *sl_follow_hold_mapping(struct sl_follower *follower);
struct sl_share_mapping *sl_share_hold_mapping(struct sl_share *share);
/* As sl_follow_is_valid(), of element n of this generation; from any thread. */
int sl_share_mapping_is_valid(const struct sl_share_mapping *mapping, uint64_t n);
/* From any thread. NULL is fine. */
void sl_share_mapping_release(struct sl_share_mapping *mapping);

/* Names of the shares of this user that live, as a list; freed with sl_remote_free(). */
int sl_share_list(char (**names)[64], size_t *n);

#ifdef __cplusplus
}
#endif

#endif
