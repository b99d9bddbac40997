/* crc32.c - IEEE 802.3 CRC-32, portable: sixteen bytes per step by sixteen tables.
 *
 * Table k says what a byte does to the register when k more bytes follow it. A table is linear, so
 * the compiler makes all its 256 entries from the eight for single bits. */
#include "roce/icrc.h"

#define BIT(i, bit, c) ((i) >> (bit)&1 ? UINT32_C(c) : 0)
#define ENTRY(i, c0, c1, c2, c3, c4, c5, c6, c7)                                         \
	(BIT(i, 0, c0) ^ BIT(i, 1, c1) ^ BIT(i, 2, c2) ^ BIT(i, 3, c3) ^ BIT(i, 4, c4) ^ \
	 BIT(i, 5, c5) ^ BIT(i, 6, c6) ^ BIT(i, 7, c7))
#define FOUR(i, ...)                                                                     \
	ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), \
		ENTRY((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                               \
	FOUR(i, __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__), \
		FOUR((i) + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)                                                                       \
	SIXTEEN(i, __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__), \
		SIXTEEN((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                 \
	{                                                                          \
		SIXTY_FOUR(0, __VA_ARGS__), SIXTY_FOUR(64, __VA_ARGS__),           \
			SIXTY_FOUR(128, __VA_ARGS__), SIXTY_FOUR(192, __VA_ARGS__) \
	}

static const uint32_t table[16][256] = {
	TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
	      0xedb88320),
	TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
	      0x3b83984b),
	TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
	      0xe1351b80),
	TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
	      0xed59b63b),
	TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849,
	      0xb1e6b092),
	TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c,
	      0x1eb014d8),
	TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579,
	      0x8816eaf2),
	TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed,
	      0x533b85da),
	TABLE(0x177b1443, 0x2ef62886, 0x5dec510c, 0xbbd8a218, 0xacc04271, 0x82f182a3, 0xde920307,
	      0x6655004f),
	TABLE(0xefc26b3e, 0x04f5d03d, 0x09eba07a, 0x13d740f4, 0x27ae81e8, 0x4f5d03d0, 0x9eba07a0,
	      0xe6050901),
	TABLE(0xc18edfc0, 0x586cb9c1, 0xb0d97382, 0xbac3e145, 0xaef6c4cb, 0x869c8fd7, 0xd64819ef,
	      0x77e1359f),
	TABLE(0x9ba54c6f, 0xec3b9e9f, 0x03063b7f, 0x060c76fe, 0x0c18edfc, 0x1831dbf8, 0x3063b7f0,
	      0x60c76fe0),
	TABLE(0xdd96d985, 0x605cb54b, 0xc0b96a96, 0x5a03d36d, 0xb407a6da, 0xb37e4bf5, 0xbd8d91ab,
	      0xa06a2517),
	TABLE(0x9d0fe176, 0xe16ec4ad, 0x19ac8f1b, 0x33591e36, 0x66b23c6c, 0xcd6478d8, 0x41b9f7f1,
	      0x8373efe2),
	TABLE(0xb9fbdbe8, 0xa886b191, 0x8a7c6563, 0xcf89cc87, 0x44629f4f, 0x88c53e9e, 0xcafb7b7d,
	      0x4e87f0bb),
	TABLE(0xae689191, 0x87a02563, 0xd4314c87, 0x73139f4f, 0xe6273e9e, 0x173f7b7d, 0x2e7ef6fa,
	      0x5cfdedf4),
};

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* Four bytes of which `after` more follow in the step. */
static uint32_t four(uint32_t word, unsigned after)
{
	return table[after + 3][word & 0xff] ^ table[after + 2][word >> 8 & 0xff] ^
	       table[after + 1][word >> 16 & 0xff] ^ table[after][word >> 24];
}

uint32_t sl_roce_crc32_portable(uint32_t crc, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	uint32_t reg = ~crc;

	for (; bytes >= 16; bytes -= 16, p += 16)
		reg = four(load32(p) ^ reg, 12) ^ four(load32(p + 4), 8) ^ four(load32(p + 8), 4) ^
		      four(load32(p + 12), 0);
	for (; bytes; bytes--)
		reg = reg >> 8 ^ table[0][(reg ^ *p++) & 0xff];
	return ~reg;
}
