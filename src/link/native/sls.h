/* sls.h - the 48-byte header of PSI's detectors (slsDetectorPackage, sls_detector_header 2.0).
 *
 * Model:     little-endian, before the pixels of every packet:
 *
 *              u64 frameNumber @0   u32 expLength @8     u32 packetNumber @12  u64 detSpec1 @16
 *              u64 timestamp @24    u16 modId @32        u16 row @34           u16 column @36
 *              u16 detSpec2 @38     u32 detSpec3 @40     u16 detSpec4 @44      u8 detType @46
 *              u8 version @47
 *
 *            expLength and timestamp count 100 ns; detSpec3 of a Jungfrau has its storage cell in
 *            bits 11 to 8. Source: docs/src/udpheader.rst and udpdetspec.rst of slsDetectorPackage.
 * Ownership: plain data, pure functions. */
#ifndef SL_LINK_NATIVE_SLS_H
#define SL_LINK_NATIVE_SLS_H

#include <stdint.h>

enum { SL_SLS_HEADER = 48, SL_SLS_VERSION = 2 };
enum sl_sls_type { SL_SLS_EIGER = 1, SL_SLS_JUNGFRAU = 3 };

struct sl_sls_header {
	uint64_t frame, spec1, timestamp;
	uint32_t exposure, packet, spec3;
	uint16_t module, row, column, spec2, spec4;
	uint8_t type, version;
};

void sl_sls_read(const uint8_t bytes[SL_SLS_HEADER], struct sl_sls_header *header);
void sl_sls_write(const struct sl_sls_header *header, uint8_t bytes[SL_SLS_HEADER]);

#endif
