/* unpack_lzf.c - LZF, as h5py packs. */
#include <errno.h>
#include <string.h>

#include "codec/unpack.h"

int sl_unpack_lzf(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
	const uint8_t *end = in + in_bytes;
	size_t done = 0;

	while (in < end) {
		size_t head = *in++, length = head + 1, back;

		if (head < 32) {
			if (length > (size_t)(end - in) || length > out_bytes - done)
				return -EBADMSG;
			memcpy(out + done, in, length);
			in += length;
			done += length;
			continue;
		}
		length = (head >> 5) + 2;
		if (length == 9 && in < end)
			length += *in++;
		if (in == end)
			return -EBADMSG;
		back = ((head & 31) << 8 | *in++) + 1;
		if (back > done || length > out_bytes - done)
			return -EBADMSG;
		for (; length--; done++) /* they may overlap: what was just written is repeated */
			out[done] = out[done - back];
	}
	return done == out_bytes ? 0 : -EBADMSG;
}
