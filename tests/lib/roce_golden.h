/* roce_golden.h - for tests: packets exchanged with a live Linux Soft-RoCE, from their JSON file.
 *
 * Model:     cases hold frames; a frame is the whole Ethernet frame as captured, what an
 *            independent decoder read in it, and whether its ICRC was right. The guest is
 *            Soft-RoCE, the host a plain UDP socket. Ends the test program on a bad file.
 *            Include cmocka.h before. */
#ifndef TESTS_LIB_ROCE_GOLDEN_H
#define TESTS_LIB_ROCE_GOLDEN_H

#include "lib/roce_frame.h"

#include <jansson.h>
#include <stdio.h>

enum { GOLDEN_CASES = 64, GOLDEN_FRAMES = 8, GOLDEN_FRAME_BYTES = 2048 };

struct golden_frame {
	const char *case_name;
	unsigned index;
	bool from_guest, icrc_ok;
	uint8_t ethernet[GOLDEN_FRAME_BYTES];
	struct sl_roce_path path;
	const uint8_t *udp;
	size_t udp_bytes;
	uint8_t payload[GOLDEN_FRAME_BYTES]; /* as the other decoder saw it */
	size_t payload_bytes;
	const json_t *fields;
};

struct golden_qp { /* of the guest */
	bool uc;
	uint32_t qpn, rkey, length, rq_psn, sq_psn, mtu, peer_qpn, receives;
	uint64_t addr;
	uint8_t peer[16];
};

struct golden_case {
	const char *name, *result;
	struct golden_qp qp;
	const json_t *events;
	unsigned frames;
	struct golden_frame frame[GOLDEN_FRAMES];
};

struct golden {
	json_t *root;
	unsigned cases;
	struct golden_case one[GOLDEN_CASES];
	uint8_t guest[16];
};

static inline void golden_require(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "golden data: %s\n", what);
		exit(1);
	}
}

static inline const char *golden_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	golden_require(text != NULL, key);
	return text;
}

/* A field of a frame as a number; must be there. */
static inline uint64_t golden_number(const struct golden_frame *frame, const char *key)
{
	const json_t *value = json_object_get(frame->fields, key);

	golden_require(json_is_integer(value), key);
	return (uint64_t)json_integer_value(value);
}

static inline bool golden_has(const struct golden_frame *frame, const char *key)
{
	return json_object_get(frame->fields, key) != NULL;
}

static inline void golden_gid(const char *dotted, uint8_t gid[16])
{
	unsigned a, b, c, d;

	golden_require(sscanf(dotted, "%u.%u.%u.%u", &a, &b, &c, &d) == 4, dotted);
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	gid[12] = (uint8_t)a;
	gid[13] = (uint8_t)b;
	gid[14] = (uint8_t)c;
	gid[15] = (uint8_t)d;
}

/* The value of "key=0x..." or "key=123" in a line of such. */
static inline uint64_t golden_value(const char *line, const char *key)
{
	char pattern[32];
	const char *at;

	snprintf(pattern, sizeof(pattern), "%s=", key);
	at = strstr(line, pattern);
	golden_require(at != NULL, key);
	return strtoull(at + strlen(pattern), NULL, 0);
}

static inline void golden_load_qp(const char *line, struct golden_qp *qp)
{
	qp->uc = strstr(line, "type=uc") != NULL;
	qp->qpn = (uint32_t)golden_value(line, " qpn");
	qp->rkey = (uint32_t)golden_value(line, "rkey");
	qp->addr = golden_value(line, "addr");
	qp->length = (uint32_t)golden_value(line, " len");
	qp->rq_psn = (uint32_t)golden_value(line, "rq_psn");
	qp->sq_psn = (uint32_t)golden_value(line, "sq_psn");
	qp->mtu = (uint32_t)golden_value(line, "mtu");
	qp->peer_qpn = (uint32_t)golden_value(line, "peer_qpn");
	qp->receives = (uint32_t)golden_value(line, "nrecv");
	golden_gid(strstr(line, "peer=") + 5, qp->peer);
}

static inline void golden_load_frame(const json_t *json, struct golden_frame *frame)
{
	size_t n = hex_bytes(golden_text(json, "frame"), frame->ethernet, GOLDEN_FRAME_BYTES);

	frame->from_guest = strcmp(golden_text(json, "dir"), "guest->host") == 0;
	frame->icrc_ok = json_is_true(json_object_get(json, "icrc_ok"));
	golden_require(n > 14 && frame_get16(frame->ethernet + 12) == 0x0800, "not IPv4");
	frame->udp = frame_split_l3(frame->ethernet + 14, n - 14, &frame->path, &frame->udp_bytes);
	golden_require(frame->udp != NULL, "not UDP");
	frame->fields = json_object_get(json, "fields");
	frame->payload_bytes = hex_bytes(golden_text(frame->fields, "payload"), frame->payload,
					 GOLDEN_FRAME_BYTES);
}

static inline void golden_load_case(const json_t *json, struct golden_case *one)
{
	const json_t *frames = json_object_get(json, "frames"), *frame;
	size_t i;

	one->name = golden_text(json, "name");
	one->result = golden_text(json, "result");
	one->events = json_object_get(json, "guest_events");
	golden_load_qp(golden_text(json, "guest_qp"), &one->qp);
	json_array_foreach(frames, i, frame)
	{
		golden_require(one->frames < GOLDEN_FRAMES, "too many frames");
		one->frame[one->frames].case_name = one->name;
		one->frame[one->frames].index = (unsigned)i;
		golden_load_frame(frame, &one->frame[one->frames++]);
	}
}

static inline void golden_load(const char *path, struct golden *golden)
{
	const json_t *one;
	size_t i;

	golden->root = json_load_file(path, 0, NULL);
	golden_require(golden->root != NULL, path);
	golden_gid(golden_text(golden->root, "guest"), golden->guest);
	json_array_foreach(json_object_get(golden->root, "cases"), i, one)
	{
		golden_require(golden->cases < GOLDEN_CASES, "too many cases");
		golden_load_case(one, &golden->one[golden->cases++]);
	}
}

/* Test cases made at run time, one per golden case or frame. */
enum { GOLDEN_TESTS = 512 };

struct golden_tests {
	size_t count;
	struct CMUnitTest test[GOLDEN_TESTS];
	char name[GOLDEN_TESTS][96];
};

static inline void golden_add(struct golden_tests *tests, CMUnitTestFunction function,
			      const char *what, const struct golden_case *one)
{
	char *name = tests->name[tests->count];

	golden_require(tests->count < GOLDEN_TESTS, "too many tests");
	snprintf(name, sizeof(tests->name[0]), "%s %s", what, one->name);
	tests->test[tests->count++] =
		(struct CMUnitTest){name, function, NULL, NULL, (void *)(uintptr_t)one};
}

static inline void golden_add_frame(struct golden_tests *tests, CMUnitTestFunction function,
				    const char *what, const struct golden_frame *frame)
{
	char *name = tests->name[tests->count];

	golden_require(tests->count < GOLDEN_TESTS, "too many tests");
	snprintf(name, sizeof(tests->name[0]), "%s %s frame %u", what, frame->case_name,
		 frame->index);
	tests->test[tests->count++] =
		(struct CMUnitTest){name, function, NULL, NULL, (void *)(uintptr_t)frame};
}

static inline bool golden_starts(const struct golden_case *one, const char *with)
{
	return strncmp(one->name, with, strlen(with)) == 0;
}

#endif
