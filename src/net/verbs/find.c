/* find.c - which NICs there are and which RoCE v2 addresses they have. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/verbs/nic.h"

static uint16_t bytes_of(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? (uint16_t)(128u << mtu) : 0;
}

/* Is the name one of a list separated by commas? All are of an empty list. */
static bool listed(const char *names, const char *name)
{
	size_t n = strlen(name);

	if (!names[0])
		return true;
	for (const char *at = names; *at; at += strcspn(at, ",")) {
		at += strspn(at, ", ");
		if (strncmp(at, name, n) == 0 && (!at[n] || at[n] == ',' || at[n] == ' '))
			return true;
	}
	return false;
}

/* Link-local addresses exist on every interface and have no scope in a GID. */
static bool usable(const struct ibv_gid_entry *entry)
{
	const uint8_t *raw = entry->gid.raw;
	bool zero = !entry->gid.global.subnet_prefix && !entry->gid.global.interface_id;

	return entry->gid_type == IBV_GID_TYPE_ROCE_V2 && !zero &&
	       !(raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80);
}

struct walk {
	const struct sl_verbs_library *lib;
	sl_verbs_visit_fn *visit;
	void *arg;
	struct sl_verbs_info info; /* of the NIC being looked at */
	unsigned found;
	bool stop;
};

static void walk_port(struct walk *w, struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr = {0};

	/* The library fills the part of the structure that it knows. In parentheses, since the
	 * header has a macro of that name. */
	if ((w->lib->ibv_query_port)(context, port, (struct _compat_ibv_port_attr *)&attr) ||
	    attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return;
	w->info.port = port;
	w->info.active = attr.state == IBV_PORT_ACTIVE;
	w->info.pmtu = bytes_of(attr.active_mtu);
	w->info.max_message_bytes = attr.max_msg_sz;
	for (int i = 0; i < attr.gid_tbl_len && !w->stop; i++) {
		struct ibv_gid_entry entry = {0};

		if (w->lib->_ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0,
					      sizeof(entry)) ||
		    !usable(&entry))
			continue;
		memcpy(w->info.gid, entry.gid.raw, sizeof(w->info.gid));
		w->info.gid_index = (uint32_t)i;
		w->found++;
		w->stop = w->visit(w->arg, context, &w->info);
	}
}

/* 1 at least: RC has room for that. */
static uint32_t max_reads(const struct ibv_device_attr *attr)
{
	int least = attr->max_qp_rd_atom < attr->max_qp_init_rd_atom ? attr->max_qp_rd_atom
								     : attr->max_qp_init_rd_atom;

	return least > 0 ? (uint32_t)least : 1;
}

static void walk_device(struct walk *w, struct ibv_device *nic)
{
	struct ibv_context *context = w->lib->ibv_open_device(nic);
	struct ibv_device_attr attr = {0};
	unsigned before = w->found;

	w->info = (struct sl_verbs_info){0};
	snprintf(w->info.name, sizeof(w->info.name), "%s", w->lib->ibv_get_device_name(nic));
	if (context && w->lib->ibv_query_device(context, &attr) == 0) {
		w->info.max_work = (uint32_t)attr.max_qp_wr;
		w->info.max_completions = (uint32_t)attr.max_cqe;
		w->info.max_reads = max_reads(&attr);
		for (unsigned p = 1; p <= attr.phys_port_cnt && !w->stop; p++)
			walk_port(w, context, (uint8_t)p);
	}
	if (w->found == before && !w->stop) {
		memset(w->info.gid, 0, sizeof(w->info.gid));
		w->found++;
		w->stop = w->visit(w->arg, context, &w->info);
	}
	/* Who stopped the walk keeps the context. */
	if (context && !w->stop)
		w->lib->ibv_close_device(context);
}

int sl_verbs_visit(const struct sl_verbs_library *lib, const char *names, sl_verbs_visit_fn *visit,
		   void *arg)
{
	struct walk w = {.lib = lib, .visit = visit, .arg = arg};
	struct ibv_device **list;
	int n = 0;

	list = lib->ibv_get_device_list(&n);
	for (int i = 0; list && i < n && !w.stop; i++)
		if (listed(names, lib->ibv_get_device_name(list[i])))
			walk_device(&w, list[i]);
	if (list)
		lib->ibv_free_device_list(list);
	return (int)w.found;
}

struct survey {
	void (*found)(void *arg, const struct sl_verbs_info *info);
	void *arg;
};

static bool tell(void *arg, struct ibv_context *context, const struct sl_verbs_info *info)
{
	const struct survey *s = arg;

	s->found(s->arg, info);
	return false;
}

int sl_verbs_survey(void (*found)(void *arg, const struct sl_verbs_info *info), void *arg)
{
	const struct sl_verbs_library *lib = sl_verbs_library();
	struct survey s = {found, arg};

	return lib ? sl_verbs_visit(lib, "", tell, &s) : 0;
}
