/* fake_verbs.c - the objects of the fake library: devices, domains, memory, queues. */
#include "lib/fake_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/fake_verbs_private.h"

#undef ibv_query_port
#undef ibv_reg_mr_iova

atomic_flag fake_busy = ATOMIC_FLAG_INIT;
struct fake_qp *fake_queue[FAKE_QUEUES];
struct fake_mr *fake_region[FAKE_REGIONS];

static struct fake_device *devices;
static struct fake_context *contexts;
static _Atomic unsigned objects;
static _Atomic uint32_t next_qpn = 16, next_key = 1;
static char fail_call[64];
static int fail_error;

void fake_die(const char *why)
{
	fprintf(stderr, "fake libibverbs: %s\n", why);
	abort();
}

/* True when this call is the one that was to fail. */
static bool fails(const char *call)
{
	if (strcmp(call, fail_call) != 0)
		return false;
	fail_call[0] = 0;
	errno = fail_error;
	return true;
}

static void *make(const char *call, size_t bytes)
{
	void *object = fails(call) ? NULL : calloc(1, bytes);

	objects += object != NULL;
	return object;
}

static void drop(void *object)
{
	objects--;
	free(object);
}

/* ---- for tests ---- */

static struct fake_device *device_of(const char *name)
{
	struct fake_device *d = devices;

	while (d && strcmp(d->base.name, name) != 0)
		d = d->next;
	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		fake_die("out of memory");
	snprintf(d->base.name, sizeof(d->base.name), "%s", name);
	d->mtu = IBV_MTU_4096;
	d->active = true;
	d->next = devices;
	devices = d;
	return d;
}

void fake_verbs_add(const char *device, const char *address)
{
	struct fake_device *d = device_of(device);
	union ibv_gid *gid = &d->gid[d->gids++];

	if (d->gids > FAKE_GIDS)
		fake_die("too many addresses");
	memset(gid->raw, 0, 10);
	memset(gid->raw + 10, 0xff, 2);
	if (inet_pton(AF_INET, address, gid->raw + 12) != 1 &&
	    inet_pton(AF_INET6, address, gid->raw) != 1)
		fake_die("not an address");
}

void fake_verbs_set_mtu(const char *device, uint16_t pmtu)
{
	struct fake_device *d = device_of(device);

	for (d->mtu = IBV_MTU_256; 128u << d->mtu < pmtu; d->mtu++)
		;
}

void fake_verbs_set_active(const char *device, bool active)
{
	struct fake_device *d = device_of(device);
	struct ibv_async_event event = {.event_type = active ? IBV_EVENT_PORT_ACTIVE
							     : IBV_EVENT_PORT_ERR,
					.element.port_num = 1};

	d->active = active;
	for (struct fake_context *c = contexts; c; c = c->next)
		if (c->base.device == &d->base)
			fake_tell(&c->base, &event);
}

void fake_verbs_break(const char *device)
{
	struct fake_device *d = device_of(device);
	struct ibv_async_event event = {.event_type = IBV_EVENT_DEVICE_FATAL};

	fake_lock();
	d->broken = true;
	fake_unlock();
	for (struct fake_context *c = contexts; c; c = c->next)
		if (c->base.device == &d->base)
			fake_tell(&c->base, &event);
}

void fake_verbs_forget(void)
{
	if (objects)
		fake_die("a device is still open");
	while (devices) {
		struct fake_device *next = devices->next;

		free(devices);
		devices = next;
	}
}

void fake_verbs_fail(const char *call, int error)
{
	snprintf(fail_call, sizeof(fail_call), "%s", call);
	fail_error = error;
}

unsigned fake_verbs_objects(void)
{
	return objects;
}

unsigned fake_verbs_receives(uint32_t qpn)
{
	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		if (fake_queue[i] && fake_queue[i]->base.qp_num == qpn)
			return fake_queue[i]->offered - fake_queue[i]->taken;
	return 0;
}

/* Programs that are not tests name their devices in the environment: "mlx5_0=192.0.2.1 ..." */
__attribute__((constructor)) static void from_environment(void)
{
	const char *text = getenv("FAKE_VERBS");
	char device[32], address[64];
	int used;

	for (; text && sscanf(text, " %31[^= ]=%63s%n", device, address, &used) == 2; text += used)
		fake_verbs_add(device, address);
}

/* ---- devices ---- */

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list;
	int n = 0;

	for (struct fake_device *d = devices; d; d = d->next)
		n++;
	list = make(__func__, (size_t)(n + 1) * sizeof(*list));
	if (!list)
		return NULL;
	*count = n;
	for (struct fake_device *d = devices; d; d = d->next)
		list[--n] = &d->base; /* in the order of their making */
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	drop(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fake_context *c = make(__func__, sizeof(*c));

	if (!c)
		return NULL;
	if (pipe2(c->events, O_CLOEXEC) != 0)
		fake_die("no pipe");
	c->base.device = device;
	c->base.async_fd = c->events[0];
	c->base.ops.post_send = fake_post_send;
	c->base.ops.post_recv = fake_post_recv;
	c->base.ops.poll_cq = fake_poll_cq;
	c->base.ops.req_notify_cq = fake_req_notify_cq;
	c->next = contexts;
	contexts = c;
	return &c->base;
}

int ibv_close_device(struct ibv_context *context)
{
	struct fake_context *c = (struct fake_context *)context, **at = &contexts;

	if (c->children)
		fake_die("a device is closed before what was made of it");
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	close(c->events[0]);
	close(c->events[1]);
	drop(c);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){.max_qp_wr = 4096,
					 .max_cqe = 65536,
					 .phys_port_cnt = 1,
					 .max_sge = 1,
					 .max_qp_rd_atom = 16,
					 .max_qp_init_rd_atom = 8};
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	const struct fake_device *d = (struct fake_device *)context->device;
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

	if (port != 1)
		return EINVAL;
	*attr = (struct ibv_port_attr){
		.state = d->active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.active_mtu = d->mtu,
		.max_mtu = IBV_MTU_4096,
		.gid_tbl_len = 2 * FAKE_GIDS,
		.max_msg_sz = 1 << 30,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	return 0;
}

/* Every address is there twice, first for RoCE v1, as on real NICs. */
int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t bytes)
{
	const struct fake_device *d = (struct fake_device *)context->device;

	if (port != 1 || index / 2 >= d->gids)
		return ENODATA;
	*entry = (struct ibv_gid_entry){
		.gid = d->gid[index / 2],
		.gid_index = index,
		.port_num = port,
		.gid_type = index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1,
	};
	return 0;
}

void fake_tell(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_context *c = (struct fake_context *)context;

	if (write(c->events[1], event, sizeof(*event)) != sizeof(*event))
		fake_die("nobody takes asynchronous events");
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return read(context->async_fd, event, sizeof(*event)) == sizeof(*event) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* ---- memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct fake_pd *pd = make(__func__, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->base.context = context;
	((struct fake_context *)context)->children++;
	return &pd->base;
}

int ibv_dealloc_pd(struct ibv_pd *base)
{
	struct fake_pd *pd = (struct fake_pd *)base;

	if (pd->children)
		fake_die("a protection domain goes before what is in it");
	((struct fake_context *)pd->base.context)->children--;
	drop(pd);
	return 0;
}

static struct ibv_mr *make_mr(const char *call, struct ibv_pd *pd, void *addr, size_t length,
			      uint64_t iova, int access)
{
	uint64_t page = (uint64_t)getpagesize();
	struct fake_mr *mr;
	unsigned i = 0;

	if (((uintptr_t)addr ^ iova) % page) {
		errno = EINVAL;
		return NULL;
	}
	mr = make(call, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->base =
		(struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
	mr->base.lkey = mr->base.rkey = next_key++ << 8 | (uint32_t)(rand() & 0xff);
	mr->iova = iova;
	mr->access = access;
	((struct fake_pd *)pd)->children++;
	fake_lock();
	while (i < FAKE_REGIONS && fake_region[i])
		i++;
	if (i == FAKE_REGIONS)
		fake_die("too many registrations");
	fake_region[i] = mr;
	fake_unlock();
	return &mr->base;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return make_mr(__func__, pd, addr, length, iova, access);
}

/* A memfd stands for the dma-buf. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	struct ibv_mr *mr;

	if (at == MAP_FAILED)
		return NULL;
	mr = make_mr(__func__, pd, at, length, iova, access);
	if (mr)
		((struct fake_mr *)mr)->mapped = true;
	else
		munmap(at, length);
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	struct fake_mr *mr = (struct fake_mr *)base;

	fake_lock();
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		if (fake_region[i] == mr)
			fake_region[i] = NULL;
	fake_unlock();
	((struct fake_pd *)mr->base.pd)->children--;
	if (mr->mapped)
		munmap(mr->base.addr, mr->base.length);
	drop(mr);
	return 0;
}

/* ---- completion queues ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct fake_channel *channel = make(__func__, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->base.context = context;
	channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	((struct fake_context *)context)->children++;
	return &channel->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct fake_channel *channel = (struct fake_channel *)base;

	if (channel->cq)
		fake_die("a channel goes before its completion queue");
	close(base->fd);
	((struct fake_context *)base->context)->children--;
	drop(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *arg,
			     struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq = make(__func__, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->base = (struct ibv_cq){
		.context = context, .channel = channel, .cq_context = arg, .cqe = entries};
	cq->entry = calloc((size_t)entries, sizeof(*cq->entry));
	if (!cq->entry)
		fake_die("out of memory");
	((struct fake_channel *)channel)->cq = &cq->base;
	((struct fake_context *)context)->children++;
	return &cq->base;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	struct ibv_cq *event_of;
	void *arg;

	/* Events that nobody took are forgotten with the queue. */
	while (cq->reported > cq->base.comp_events_completed &&
	       ibv_get_cq_event(base->channel, &event_of, &arg) == 0)
		cq->reported--;
	if (cq->reported != cq->base.comp_events_completed)
		fake_die("closing waits for ever: events were taken and not acknowledged");
	((struct fake_channel *)base->channel)->cq = NULL;
	((struct fake_context *)base->context)->children--;
	free(cq->entry);
	drop(cq);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **arg)
{
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	*cq = ((struct fake_channel *)channel)->cq;
	*arg = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	cq->comp_events_completed += count;
}

/* ---- queue pairs ---- */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct fake_device *d = (struct fake_device *)pd->context->device;
	struct fake_qp *qp = make(__func__, sizeof(*qp));
	bool kept = false;

	if (qp && d->broken) {
		drop(qp);
		errno = EIO;
		return NULL;
	}

	if (!qp || attr->cap.max_recv_wr > 4096) {
		if (qp)
			drop(qp);
		errno = errno ? errno : ENOMEM;
		return NULL;
	}
	qp->base = (struct ibv_qp){.context = pd->context,
				   .pd = pd,
				   .send_cq = attr->send_cq,
				   .recv_cq = attr->recv_cq,
				   .qp_num = next_qpn++,
				   .qp_type = attr->qp_type};
	qp->cap = attr->cap;
	qp->send = calloc(qp->cap.max_send_wr, sizeof(*qp->send));
	qp->receive = calloc(qp->cap.max_recv_wr, sizeof(*qp->receive));
	if (!qp->send || !qp->receive)
		fake_die("out of memory");
	((struct fake_pd *)pd)->children++;
	fake_lock();
	for (unsigned i = 0; i < FAKE_QUEUES && !kept; i++)
		if (!fake_queue[i]) {
			fake_queue[i] = qp;
			kept = true;
		}
	fake_unlock();
	if (!kept)
		fake_die("too many queue pairs");
	return &qp->base;
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;

	fake_lock();
	for (unsigned i = 0; i < FAKE_QUEUES; i++)
		if (fake_queue[i] == qp)
			fake_queue[i] = NULL;
	fake_unlock();
	((struct fake_pd *)qp->base.pd)->children--;
	free(qp->send);
	free(qp->receive);
	drop(qp);
	return 0;
}

/* What each step must name, and nothing else, as in the kernel's table. */
static int mask_of(enum ibv_qp_state from, enum ibv_qp_state to, bool reliable)
{
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN |
		       (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC
				 : 0);
	return to == IBV_QPS_RESET || to == IBV_QPS_ERR ? IBV_QP_STATE : -1;
}

static int to_receive(struct fake_qp *qp, const struct ibv_qp_attr *attr)
{
	const struct fake_device *d = (struct fake_device *)qp->base.context->device;
	const struct ibv_ah_attr *to = &attr->ah_attr;

	if (!to->is_global || to->port_num != 1 || to->grh.sgid_index / 2 >= d->gids ||
	    !(to->grh.sgid_index % 2) || attr->path_mtu > d->mtu || !to->grh.hop_limit)
		return EINVAL;
	qp->local = d->gid[to->grh.sgid_index / 2];
	qp->attr.ah_attr = *to;
	qp->attr.path_mtu = attr->path_mtu;
	qp->attr.dest_qp_num = attr->dest_qp_num;
	qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	return 0;
}

static int modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	int err = 0;

	if (mask != mask_of(base->state, attr->qp_state, base->qp_type == IBV_QPT_RC))
		return EINVAL;
	if (attr->qp_state == IBV_QPS_RTR)
		err = to_receive(qp, attr);
	if (err)
		return err;
	if (attr->qp_state == IBV_QPS_INIT)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (attr->qp_state == IBV_QPS_RTS) {
		qp->psn = attr->sq_psn;
		qp->attr.rnr_retry = attr->rnr_retry;
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	}
	if (attr->qp_state == IBV_QPS_RESET)
		qp->posted = qp->done = qp->retired = qp->offered = qp->taken = 0;
	base->state = attr->qp_state;
	if (base->state == IBV_QPS_ERR)
		fake_fail_queue(qp);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	int err;

	if (fails(__func__))
		return errno;
	fake_lock();
	err = modify_qp(base, attr, mask);
	fake_unlock();
	return err;
}
