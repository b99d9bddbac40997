/* digest.c - what an experiment asks of each transfer, and the digest by which two sides compare.
 * */
#include <string.h>

#include "base/crc.h"
#include "experiment/experiment.h"

uint16_t sl_experiment_pmtu(const struct sl_experiment *experiment)
{
	return (uint16_t)(256u << experiment->link_options.pmtu); /* the choices in their order */
}

uint16_t sl_experiment_service(const struct sl_experiment *experiment)
{
	return experiment->link_options.service ? SL_SERVICE_RC : SL_SERVICE_UC;
}

uint16_t sl_experiment_operation(const struct sl_experiment *experiment)
{
	return experiment->link_options.operation ? SL_OPERATION_SEND : SL_OPERATION_WRITE;
}

uint16_t sl_experiment_message(const struct sl_experiment *experiment)
{
	static const uint16_t choice[] = {0, SL_MESSAGE_PACKET, SL_MESSAGE_MODULE, SL_MESSAGE_LINE};

	if (sl_experiment_operation(experiment) == SL_OPERATION_SEND)
		return SL_MESSAGE_MODULE; /* a posted receive is one block */
	/* A message is one piece of memory: with a pitch a module is many. */
	if (experiment->link_options.message == 0)
		return experiment->ring.line_pitch && !experiment->link->oneway &&
				       experiment->link->message == SL_MESSAGE_MODULE
			       ? SL_MESSAGE_LINE
			       : experiment->link->message;
	return choice[experiment->link_options.message];
}

bool sl_experiment_crc(const struct sl_experiment *experiment)
{
	return experiment->link_options.crc ||
	       experiment->link->proof(sl_experiment_service(experiment),
				       sl_experiment_message(experiment)) == SL_PROOF_CHECKSUM;
}

static uint32_t digest_options(uint32_t crc, const struct sl_option *options, const void *base)
{
	char text[512];

	for (; options->name; options++) {
		sl_option_print(options, base, text, sizeof(text));
		crc = sl_crc32c(crc, options->name, strlen(options->name));
		crc = sl_crc32c(crc, text, strlen(text) + 1);
	}
	return crc;
}

uint64_t sl_experiment_digest(const struct sl_experiment *e)
{
	uint32_t low = digest_options(0, sl_detector_options, &e->cut.generator_options);
	uint32_t high = digest_options(low, e->generator->options, e->generator_state);

	high = digest_options(high, sl_cut_options, &e->cut.options);

	return (uint64_t)high << 32 | low;
}
