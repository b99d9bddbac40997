/* nanet.h - the header of packets with many events, as NA62's read-out boards send them to NaNet.
 *
 * Model:     little-endian, before the events of every packet:
 *
 *              u24 first event @0   u8 source @3   u16 bytes of all @4   u8 events @6
 *              u8 sub-source @7     u32 timestamp of the first event @8, in 25 ns
 *
 *            The first eight bytes are the multi-event packet (MEP) header of NA62-11-02, table 2
 *            (as in l0/MEP.h of NA62's farm library). There each event has a header of its own,
 *            whose timestamp this is; here events are of one length, and follow each other.
 * Ownership: plain data, pure functions. */
#ifndef SL_LINK_NATIVE_NANET_H
#define SL_LINK_NATIVE_NANET_H

#include <stdint.h>

enum { SL_NANET_HEADER = 12, SL_NANET_RICH = 0x1c /* NA62's number of the RICH */ };

struct sl_nanet_header {
	uint32_t event, timestamp; /* event: 24 bits */
	uint16_t bytes;
	uint8_t source, events, subsource;
};

void sl_nanet_read(const uint8_t bytes[SL_NANET_HEADER], struct sl_nanet_header *header);
void sl_nanet_write(const struct sl_nanet_header *header, uint8_t bytes[SL_NANET_HEADER]);

#endif
