"""Declarations of libsluice-client.so for CFFI, out of its headers.

Written by tools/python_cdef.py --write: do not edit.
"""

CDEF = """
struct sl_remote_error {
	char code[32];
	char message[512];
	char where[256];
	char hint[256];
};
struct sl_remote_info {
	char name[64];
	int32_t alive;
	int32_t pid;
	uint64_t started_unix_ns;
	uint64_t run;
	char experiment[1024];
	char root[1024], folder[1024];
	int32_t detector;
	int32_t unused;
	uint64_t reserved[7];
};
struct sl_remote_status {
	uint32_t bytes;
	int32_t drained;
	char session[64], state[16], transfer[64];
	char result[16];
	uint64_t run;
	uint64_t frames, expected_frames;
	uint64_t pixel_bytes;
	double frames_per_s, bytes_per_s;
	uint64_t lost;
	uint64_t damaged;
	uint64_t progress_age_ns;
	char folder[1024], experiment[1024];
	char error[32];
	char error_message[512];
	uint64_t reserved[16];
};
struct sl_remote;
int sl_remote_list(struct sl_remote_info **list, size_t *n);
int sl_remote_list_json(int timeout_ms, char **json);
int sl_remote_forget_crashed(void);
int sl_remote_open(const char *name, int timeout_ms, struct sl_remote **remote,
		   struct sl_remote_error *error);
void sl_remote_close(struct sl_remote *remote);
int sl_remote_request(struct sl_remote *remote, const char *json, int timeout_ms, char **reply,
		      struct sl_remote_error *error);
int sl_remote_next(struct sl_remote *remote, int timeout_ms, char **line,
		   struct sl_remote_error *error);
void sl_remote_free(void *memory);
int sl_remote_call(struct sl_remote *remote, const char *call, const char *reason, int timeout_ms,
		   char *state, struct sl_remote_error *error);
int sl_remote_configure(struct sl_remote *remote, const char *const *set, size_t sets,
			int timeout_ms, struct sl_remote_error *error);
int sl_remote_wait(struct sl_remote *remote, const char *const *states, size_t n, int timeout_ms,
		   char *state, struct sl_remote_error *error);
int sl_remote_status(struct sl_remote *remote, int timeout_ms, struct sl_remote_status *status,
		     size_t bytes, struct sl_remote_error *error);
int sl_remote_status_of(const char *line, struct sl_remote_status *status, size_t bytes);
int sl_remote_set_metadata(struct sl_remote *remote, const char *key, const char *value,
			   int timeout_ms, struct sl_remote_error *error);
int sl_remote_keep_metadata(struct sl_remote *remote, const char *key, const char *value,
			    int timeout_ms, struct sl_remote_error *error);
int sl_remote_metadata(struct sl_remote *remote, int timeout_ms,
		       void (*each)(void *arg, const char *key, const char *value), void *arg,
		       struct sl_remote_error *error);
int sl_remote_sinks(struct sl_remote *remote, int timeout_ms,
		    void (*each)(void *arg, const char *sink, const char *where), void *arg,
		    struct sl_remote_error *error);

enum { SL_SHARE_ARRAYS = 24, SL_SHARE_RANK = 6, SL_SHARE_USER = 8 };
struct sl_share_array {
	char name[32];
	char unit[16];
	char type[8];
	uint32_t rank;
	uint32_t ragged;
	uint32_t dim[SL_SHARE_RANK];
	uint64_t offset, bytes;
	uint8_t reserved[24];
};
struct sl_share_note {
	uint64_t number, timestamp;
	uint64_t commit_unix_ns;
	uint64_t missing;
	float score;
	uint16_t keep, reason;
	uint32_t flags;
	uint32_t epoch;
	uint32_t rows[SL_SHARE_ARRAYS];
	uint64_t user[SL_SHARE_USER];
	uint64_t absent;
	uint64_t reserved[3];
};
struct sl_share_description {
	uint64_t generation;
	uint64_t count;
	uint64_t data_bytes;
	uint32_t arrays, reserved;
	char name[64], run[64];
	struct sl_share_array array[SL_SHARE_ARRAYS];
};
struct sl_share;
struct sl_share_options {
	uint32_t bytes;
	uint32_t arrays;
	const struct sl_share_array *array;
	uint64_t count;
	const char *run;
	int memory_fd;
	uint32_t max_peers;
	uint64_t memory_offset;
	uint64_t queue_bytes;
	const char *listen;
	const char *secret_file;
	const char *device;
	uint64_t reserved[8];
};
int sl_share_open(const char *name, const struct sl_share_options *options, struct sl_share **share,
		  struct sl_remote_error *error);
void sl_share_close(struct sl_share *share);
const struct sl_share_description *sl_share_describe(const struct sl_share *share);
const char *sl_share_url(const struct sl_share *share);
struct sl_share_note *sl_share_reserve(struct sl_share *share);
void *sl_share_at(struct sl_share *share, uint32_t array);
uint64_t sl_share_commit(struct sl_share *share);
uint64_t sl_share_push(struct sl_share *share, const struct sl_share_note *note,
		       const void *const *from);
int sl_share_resize(struct sl_share *share, const struct sl_share_options *options,
		    struct sl_remote_error *error);
struct sl_share_message {
	uint64_t peer;
	uint64_t bytes;
	uint8_t *data;
	uint32_t kind;
	uint32_t reserved;
};
int sl_share_send(struct sl_share *share, uint64_t peer, uint32_t kind, const void *data,
		  uint64_t bytes);
int sl_share_receive(struct sl_share *share, int timeout_ms, struct sl_share_message *message);
struct sl_share_counts {
	uint64_t published, peers, peers_ever, refused;
	uint64_t messages_in, messages_out;
	uint64_t reserved[8];
};
void sl_share_count(const struct sl_share *share, struct sl_share_counts *counts);
struct sl_follower;
struct sl_follow_options {
	uint32_t bytes;
	int32_t timeout_ms;
	const char *secret_file;
	const char *device;
	uint64_t queue_bytes;
	uint64_t reserved[7];
};
int sl_follow_open(const char *url, const struct sl_follow_options *options,
		   struct sl_follower **follower, struct sl_remote_error *error);
void sl_follow_close(struct sl_follower *follower);
const struct sl_share_description *sl_follow_describe(const struct sl_follower *follower);
enum sl_follow_mode {
	SL_FOLLOW_NEWEST,
	SL_FOLLOW_EVERY,
};
struct sl_follow_element {
	uint64_t n;
	uint64_t missed;
	const void *data;
	struct sl_share_note note;
};
int sl_follow_next(struct sl_follower *follower, enum sl_follow_mode mode, int timeout_ms,
		   void *data, uint64_t data_bytes, struct sl_follow_element *element);
int sl_follow_peek(struct sl_follower *follower, enum sl_follow_mode mode, int timeout_ms,
		   struct sl_follow_element *element);
int sl_follow_is_valid(const struct sl_follower *follower, uint64_t n);
int sl_follow_fetch(struct sl_follower *follower, uint64_t n, uint64_t offset, uint64_t bytes,
		    void *into, struct sl_follow_element *element);
int sl_follow_each(struct sl_follower *follower, enum sl_follow_mode mode, int timeout_ms,
		   int (*each)(void *arg, const struct sl_share_description *description,
			       const struct sl_follow_element *element),
		   void *arg);
int sl_follow_published(struct sl_follower *follower, uint64_t *n);
const uint64_t *sl_follow_flag(const struct sl_follower *follower);
uint64_t sl_follow_peers(const struct sl_follower *follower);
int sl_follow_ping(struct sl_follower *follower, int timeout_ms, uint64_t *round_trip_ns);
int sl_follow_send(struct sl_follower *follower, uint32_t kind, const void *data, uint64_t bytes,
		   int timeout_ms);
int sl_follow_receive(struct sl_follower *follower, int timeout_ms,
		      struct sl_share_message *message);
struct sl_share_mapping;
struct sl_share_mapping *sl_follow_hold_mapping(struct sl_follower *follower);
struct sl_share_mapping *sl_share_hold_mapping(struct sl_share *share);
int sl_share_mapping_is_valid(const struct sl_share_mapping *mapping, uint64_t n);
void sl_share_mapping_release(struct sl_share_mapping *mapping);
int sl_share_list(char (**names)[64], size_t *n);
"""
