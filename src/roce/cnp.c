/* cnp.c - congestion notification packets: when one is due, and what it looks like. */
#include "roce/cnp.h"
#include "roce/message.h"

#include <string.h>

bool sl_roce_cnp_due(struct sl_roce_cnp *state, uint64_t now_ns)
{
	state->marked++;
	if (now_ns < state->quiet_until)
		return false;
	state->quiet_until = now_ns + (state->gap_ns ? state->gap_ns : SL_ROCE_CNP_GAP_NS);
	state->asked++;
	return true;
}

int sl_roce_cnp_encode(uint32_t qpn, void *headers)
{
	const uint8_t becn = 0x40;
	struct sl_roce_packet packet;

	if (qpn > SL_ROCE_QPN_MASK)
		return SL_ROCE_EINVAL;
	memset(&packet, 0, sizeof(packet));
	packet.opcode = SL_ROCE_OPCODE_CNP;
	packet.byte4 = becn;
	packet.pkey = SL_ROCE_PKEY_DEFAULT;
	packet.qpn = qpn;
	sl_roce_encode_headers(&packet, headers);
	return SL_ROCE_OK;
}

/* A CNP carries the default P_Key, whatever that of its queue is. */
enum sl_roce_drop sl_roce_cnp_receive(uint32_t qpn, const uint8_t *peer, const uint8_t *local,
				      const struct sl_roce_path *path,
				      const struct sl_roce_packet *packet)
{
	const struct sl_roce_owner owner = {SL_ROCE_CNP, SL_ROCE_PKEY_DEFAULT, qpn, peer, local};

	return sl_roce_check_owner(&owner, path, packet);
}
