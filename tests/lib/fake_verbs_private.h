/* fake_verbs_private.h - what the two files of the fake library share. */
#ifndef TESTS_LIB_FAKE_VERBS_PRIVATE_H
#define TESTS_LIB_FAKE_VERBS_PRIVATE_H

#include <infiniband/verbs.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { FAKE_GIDS = 16, FAKE_QUEUES = 512, FAKE_REGIONS = 1024 };

struct fake_device {
	struct ibv_device base;
	union ibv_gid gid[FAKE_GIDS];
	unsigned gids;
	enum ibv_mtu mtu;
	bool active, broken;
	struct fake_device *next;
};

struct fake_context {
	struct ibv_context base;
	int events[2]; /* a pipe of struct ibv_async_event */
	unsigned children;
	struct fake_context *next;
};

struct fake_pd {
	struct ibv_pd base;
	unsigned children;
};

struct fake_mr {
	struct ibv_mr base;
	uint64_t iova;
	int access;
	bool mapped; /* of a dma-buf, which is a memfd here */
};

struct fake_channel {
	struct ibv_comp_channel base;
	struct ibv_cq *cq;
};

struct fake_cq {
	struct ibv_cq base;
	struct ibv_wc *entry;
	uint32_t head, tail, reported;
	bool armed;
};

struct fake_send {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint8_t inlined[64];
};

struct fake_receive {
	uint64_t id;
	struct ibv_sge sge;
};

struct fake_qp {
	struct ibv_qp base;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr; /* as modified so far */
	union ibv_gid local;
	uint32_t psn;
	/* Requests: carried out up to `done`, and room made up to `retired`, when a completion that
	 * covers them was polled. */
	struct fake_send *send;
	uint32_t posted, done, retired;
	unsigned tries; /* of the oldest */
	struct fake_receive *receive;
	uint32_t offered, taken;
};

extern struct fake_qp *fake_queue[FAKE_QUEUES];
extern struct fake_mr *fake_region[FAKE_REGIONS];

void fake_die(const char *why);

/* All objects, one at a time; held for as long as a request takes. A data thread may not use the
 * locks of libc. */
extern atomic_flag fake_busy;

static inline void fake_lock(void)
{
	while (atomic_flag_test_and_set_explicit(&fake_busy, memory_order_acquire))
		sched_yield();
}

static inline void fake_unlock(void)
{
	atomic_flag_clear_explicit(&fake_busy, memory_order_release);
}

/* fake_verbs_queue.c */
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void fake_fail_queue(struct fake_qp *qp);

/* fake_verbs.c */
void fake_tell(struct ibv_context *context, struct ibv_async_event *event);

#endif
