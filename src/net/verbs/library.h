/* library.h - libibverbs as a table of functions, loaded once. The files of src/net/verbs call it
 * through this table; what the vendor's header offers as inline functions over a context's own
 * operations (post, poll, arm) they call directly.
 *
 * Threads:   any; the first call loads.
 * Ownership: the library stays loaded until the process ends: vendors' libraries do not like to
 *            go. */
#ifndef SL_NET_VERBS_LIBRARY_H
#define SL_NET_VERBS_LIBRARY_H

#include <infiniband/verbs.h>

/* Each with the version of the symbol that the header's declaration describes. The header wraps
 * some of these names in macros; without parentheses behind them they are the functions. */
#define SL_VERBS_CALLS(X)                          \
	X(ibv_get_device_list, "IBVERBS_1.1")      \
	X(ibv_free_device_list, "IBVERBS_1.1")     \
	X(ibv_get_device_name, "IBVERBS_1.1")      \
	X(ibv_open_device, "IBVERBS_1.1")          \
	X(ibv_close_device, "IBVERBS_1.1")         \
	X(ibv_query_device, "IBVERBS_1.1")         \
	X(ibv_query_port, "IBVERBS_1.1")           \
	X(_ibv_query_gid_ex, "IBVERBS_1.11")       \
	X(ibv_get_async_event, "IBVERBS_1.1")      \
	X(ibv_ack_async_event, "IBVERBS_1.1")      \
	X(ibv_alloc_pd, "IBVERBS_1.1")             \
	X(ibv_dealloc_pd, "IBVERBS_1.1")           \
	X(ibv_reg_mr_iova, "IBVERBS_1.7")          \
	X(ibv_dereg_mr, "IBVERBS_1.1")             \
	X(ibv_create_comp_channel, "IBVERBS_1.0")  \
	X(ibv_destroy_comp_channel, "IBVERBS_1.0") \
	X(ibv_create_cq, "IBVERBS_1.1")            \
	X(ibv_destroy_cq, "IBVERBS_1.1")           \
	X(ibv_get_cq_event, "IBVERBS_1.1")         \
	X(ibv_ack_cq_events, "IBVERBS_1.1")        \
	X(ibv_create_qp, "IBVERBS_1.1")            \
	X(ibv_modify_qp, "IBVERBS_1.1")            \
	X(ibv_destroy_qp, "IBVERBS_1.1")

#define SL_VERBS_POINTER(name, version) __typeof__(&name) name;

struct sl_verbs_library {
	SL_VERBS_CALLS(SL_VERBS_POINTER)
	__typeof__(&ibv_reg_dmabuf_mr) ibv_reg_dmabuf_mr; /* rdma-core 34; NULL: older */
};

/* NULL: there is none; sl_verbs_unavailable() says why. */
const struct sl_verbs_library *sl_verbs_library(void);

#endif
