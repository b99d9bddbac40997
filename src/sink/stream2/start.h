/* start.h - the start message of a run: detector, beam, mask, and what users said of the run. */
#ifndef SL_SINK_STREAM2_START_H
#define SL_SINK_STREAM2_START_H

#include "codec/pack.h"
#include "sink/stream2/image.h"
#include "sink/stream2/message.h"

/* The message is malloc'ed, the caller's to free. codec: of the mask, with `packer`. -ENOMEM, or
 * -EINVAL: the mask is too large. */
int sl_start_make(const struct sl_image *image, const struct sl_env *env,
		  const struct sl_stream2_series *series, enum sl_codec codec,
		  struct sl_packer *packer, uint64_t period_ns, void **message, size_t *bytes);

/* How long a frame is exposed, as users say when the run begins; else as long as it lasts. */
uint64_t sl_start_exposure_ns(const struct sl_env *env, uint64_t period_ns);

#endif
