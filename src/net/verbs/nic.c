/* nic.c - a NIC by its address, with its completion queue. */
#include "net/verbs/nic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const uint8_t *gid)
{
	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static void format(const uint8_t *gid, char text[INET6_ADDRSTRLEN])
{
	if (is_v4(gid))
		inet_ntop(AF_INET, gid + sizeof(mapped), text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}

static bool has_address(const struct sl_verbs_info *info)
{
	static const uint8_t none[SL_VERBS_GID_BYTES];

	return memcmp(info->gid, none, sizeof(none)) != 0;
}

struct search {
	const uint8_t *gid; /* NULL: any */
	bool v4_only;
	struct sl_verbs_nic *nic;
	char seen[512]; /* for the message when it is not there */
};

static void note(struct search *s, const struct sl_verbs_info *info)
{
	size_t used = strlen(s->seen);
	const char *none = info->max_work ? "without a RoCE v2 address"
					  : "which cannot be opened (rights on /dev/infiniband?)";
	char text[INET6_ADDRSTRLEN];
	bool some = has_address(info);

	if (some)
		format(info->gid, text);
	snprintf(s->seen + used, sizeof(s->seen) - used, "%s%s %s%s", used ? ", " : "", info->name,
		 some ? text : none, some && !info->active ? " (port down)" : "");
}

static bool look(void *arg, struct ibv_context *context, const struct sl_verbs_info *info)
{
	struct search *s = arg;
	bool found = has_address(info) &&
		     (s->gid ? !memcmp(info->gid, s->gid, sizeof(info->gid))
			     : info->active && (!s->v4_only || is_v4(info->gid)));

	if (!found) {
		note(s, info);
		return false;
	}
	s->nic->context = context;
	s->nic->info = *info;
	return true;
}

static int find(struct sl_verbs_nic *nic, const char *names, const uint8_t *gid)
{
	struct search s = {.gid = gid, .v4_only = true, .nic = nic};
	char text[INET6_ADDRSTRLEN] = "an address";

	sl_verbs_visit(nic->lib, names, look, &s);
	if (!nic->context && !gid) {
		s.v4_only = false;
		s.seen[0] = 0;
		sl_verbs_visit(nic->lib, names, look, &s);
	}
	if (gid)
		format(gid, text);
	if (!nic->context) {
		sl_error("no RDMA NIC%s%s has %s as a RoCE v2 address; here: %s (rdma link; "
			 "ibv_devinfo -v)",
			 names[0] ? " called " : "", names, text,
			 s.seen[0] ? s.seen : "no RDMA NIC at all");
		return -ENODEV;
	}
	if (!nic->info.active) {
		sl_error("port %u of %s, which has %s, is down: is the cable in, and the "
			 "interface up?",
			 nic->info.port, nic->info.name, text);
		return -ENETDOWN;
	}
	return 0;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_queue(struct sl_verbs_nic *d, uint32_t completions)
{
	int err;

	if (d->info.max_completions && completions > d->info.max_completions) {
		sl_error("%s has room for %u completions, %u are needed: lower ring.slots of a "
			 "link, "
			 "max_peers of a share",
			 d->info.name, d->info.max_completions, completions);
		return -ENOSPC;
	}
	errno = 0;
	d->pd = d->lib->ibv_alloc_pd(d->context);
	d->channel = d->pd ? d->lib->ibv_create_comp_channel(d->context) : NULL;
	d->cq = d->channel
			? d->lib->ibv_create_cq(d->context, (int)completions, NULL, d->channel, 0)
			: NULL;
	if (!d->cq) {
		err = errno ? -errno : -EIO;
		sl_error("%s: no completion queue with room for %u: %s (ulimit -l?)", d->info.name,
			 completions, strerror(-err));
		return err;
	}
	err = set_nonblocking(d->channel->fd);
	return err ? err : set_nonblocking(d->context->async_fd);
}

int sl_verbs_open(const char *names, const uint8_t *gid, uint32_t completions,
		  struct sl_verbs_nic **nic)
{
	struct sl_verbs_nic *d;
	int err;

	if (!sl_verbs_library()) {
		sl_error("RDMA NICs cannot be used: %s", sl_verbs_unavailable());
		return -ENOSYS;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->lib = sl_verbs_library();
	err = find(d, names, gid);
	if (!err)
		err = make_queue(d, completions);
	if (err) {
		sl_verbs_close(d);
		return err;
	}
	*nic = d;
	return 0;
}

void sl_verbs_close(struct sl_verbs_nic *d)
{
	if (d->events)
		d->lib->ibv_ack_cq_events(d->cq, d->events);
	if (d->cq)
		d->lib->ibv_destroy_cq(d->cq);
	if (d->channel)
		d->lib->ibv_destroy_comp_channel(d->channel);
	if (d->pd)
		d->lib->ibv_dealloc_pd(d->pd);
	if (d->context)
		d->lib->ibv_close_device(d->context);
	free(d);
}

const struct sl_verbs_info *sl_verbs_info(const struct sl_verbs_nic *nic)
{
	return &nic->info;
}

unsigned sl_verbs_serve(struct sl_verbs_nic *d)
{
	struct ibv_async_event event;
	unsigned refused = 0;

	while (d->lib->ibv_get_async_event(d->context, &event) == 0) {
		switch (event.event_type) {
		case IBV_EVENT_QP_ACCESS_ERR:
		case IBV_EVENT_QP_REQ_ERR:
			refused++;
			break;
		case IBV_EVENT_PORT_ERR:
			sl_warn("%s: port %d went down", d->info.name, event.element.port_num);
			break;
		case IBV_EVENT_PORT_ACTIVE:
			sl_info("%s: port %d is up again", d->info.name, event.element.port_num);
			break;
		case IBV_EVENT_CQ_ERR:
		case IBV_EVENT_DEVICE_FATAL:
			d->failed = true;
			sl_error("%s: the NIC failed: its links and shares carry no more data",
				 d->info.name);
			break;
		default:
			break;
		}
		d->lib->ibv_ack_async_event(&event);
	}
	return refused;
}

bool sl_verbs_has_failed(const struct sl_verbs_nic *d)
{
	return d->failed;
}

/* ---- completions ---- */

static int error_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return -ENOBUFS;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return -EACCES;
	case IBV_WC_LOC_LEN_ERR:
		return -EMSGSIZE;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_BAD_RESP_ERR:
		return -EPROTO;
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return -EREMOTEIO;
	default:
		return -EIO;
	}
}

enum { BATCH = 32 };

int sl_verbs_poll(struct sl_verbs_nic *d, struct sl_verbs_completion *completion, unsigned room)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(d->cq, (int)(room < BATCH ? room : BATCH), wc);

	for (int i = 0; i < n; i++)
		completion[i] = (struct sl_verbs_completion){
			.id = wc[i].wr_id,
			.status = error_of(wc[i].status),
			.bytes = wc[i].byte_len,
			.immediate = ntohl(wc[i].imm_data),
			.received = wc[i].opcode & IBV_WC_RECV,
			.has_immediate = wc[i].wc_flags & IBV_WC_WITH_IMM,
		};
	return n < 0 ? -EIO : n;
}

int sl_verbs_arm(struct sl_verbs_nic *d)
{
	return -ibv_req_notify_cq(d->cq, 0);
}

int sl_verbs_fd(const struct sl_verbs_nic *d)
{
	return d->channel->fd;
}

void sl_verbs_drain(struct sl_verbs_nic *d)
{
	struct ibv_cq *cq;
	void *arg;

	while (d->lib->ibv_get_cq_event(d->channel, &cq, &arg) == 0)
		d->events++;
}
