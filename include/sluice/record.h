/* record.h - the 64 bytes that follow a module's pixels on the wire and in the slot.
 *
 * Model:     the front end's own word about the module-frame it just sent: which one, when, how
 *            many packets, checksums. Little-endian, version in `version`, `self_crc` (CRC32C of
 *            the first 60 bytes) over everything before it.
 * Ownership: plain data. The receiver trusts a record only when its self_crc and its sequence are
 *            right. */
#ifndef SLUICE_RECORD_H
#define SLUICE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_RECORD_BYTES = 64, SL_RECORD_VERSION = 1 };

enum sl_record_flags {
	SL_RECORD_DARK = 1 << 0, /* no beam: a pedestal sample */
	SL_RECORD_CRC = 1 << 1,	 /* crc32c covers the pixels */
	/* Written by the receiver, since the source sends none. Where packets have headers that say
	 * it (native UDP), frame, timestamp and cell are the detector's, and emit_ns is when the
	 * first packet came; else frame counts what arrived, and the times are the receiver's
	 * CLOCK_MONOTONIC when the block was whole. */
	SL_RECORD_BARE = 1 << 2,
};

struct sl_record {
	uint64_t sequence;  /* k: slot = k % slots, immediate = low 32 bits of k */
	uint64_t frame;	    /* the detector's own frame number */
	uint64_t timestamp; /* the detector's clock, ns; deterministic in emulators */
	uint64_t emit_ns; /* CLOCK_MONOTONIC of the source when it began to send; only comparable on
			     its own host */
	uint32_t bytes;	  /* pixels before this record */
	uint32_t crc32c;  /* of the pixels, when flags has SL_RECORD_CRC */
	uint32_t items;	  /* events, or frames of a stack; 1 for an image */
	uint32_t packets; /* that carried pixels and record */
	uint16_t module;
	uint16_t flags;
	uint32_t first_psn;
	uint16_t version;
	uint16_t cell; /* storage cell of the detector; 0 where it has none */
	uint32_t self_crc;
};

#ifndef __cplusplus
_Static_assert(sizeof(struct sl_record) == SL_RECORD_BYTES, "a record is 64 bytes on the wire");
#endif

/* Fill version and self_crc; call last. */
void sl_record_seal(struct sl_record *record);

/* True when version and self_crc are right. */
bool sl_record_valid(const struct sl_record *record);

#ifdef __cplusplus
}
#endif

#endif
