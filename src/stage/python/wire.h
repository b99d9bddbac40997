/* wire.h - what the stage and a process of the script say to each other on their socket.
 *
 * Model:     datagrams of a socket pair (SOCK_SEQPACKET), in the byte order of this host. The stage
 *            gives orders, the process answers each of them once, in their order.
 *
 *              order   SETUP    begin a run          -> READY, or REFUSED and why
 *                      JUDGE    the frame in `place`  -> VERDICT and numbers, or FAILED
 *
 *            Before its first order the process says READY or REFUSED by itself.
 * Trust:     a script can write to its socket whatever it likes: sl_python_answer_check() looks at
 *            every answer. */
#ifndef SL_STAGE_PYTHON_WIRE_H
#define SL_STAGE_PYTHON_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define SL_PYTHON_MAGIC UINT32_C(0x59505653)

enum { SL_PYTHON_NUMBERS = 64, SL_PYTHON_TEXT = 512 };

enum sl_python_order_type { SL_PYTHON_SETUP = 1, SL_PYTHON_JUDGE };

struct sl_python_order {
	uint32_t magic, type;
	uint64_t ticket; /* of an order to judge; each is one higher than the one before */
	uint32_t place, unused;
};

enum sl_python_answer_type {
	SL_PYTHON_READY = 1,
	SL_PYTHON_REFUSED, /* a text follows: why the script cannot be used */
	SL_PYTHON_VERDICT, /* numbers follow */
	SL_PYTHON_FAILED,  /* the function raised an exception, or returned no verdict */
};

struct sl_python_answer {
	uint32_t magic, type;
	uint64_t ticket;
	uint32_t keep, numbers; /* of a text: its bytes */
	double score;
	union {
		double number[SL_PYTHON_NUMBERS];
		char text[SL_PYTHON_TEXT];
	};
};

enum { SL_PYTHON_ANSWER_HEAD = 32 };

_Static_assert(sizeof(struct sl_python_order) == 24, "as python/sluice/stage.py packs it");
_Static_assert(offsetof(struct sl_python_answer, number) == SL_PYTHON_ANSWER_HEAD, "likewise");

/* Whether these bytes are an answer, with at most so many numbers. It is copied to `answer`; a text
 * ends with a zero there and has no line breaks. 0 or -EPROTO. */
int sl_python_answer_check(const void *bytes, size_t n, uint32_t numbers,
			   struct sl_python_answer *answer);

#endif
