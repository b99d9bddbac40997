/* causes.c - one sentence for each cause, and one on what to do. */
#include "board/causes.h"

#include <string.h>

const struct sl_cause_words sl_cause_words[SL_CAUSES] = {
	[SL_CAUSE_NONE] = {"no cause was noted", ""},
	[SL_CAUSE_DARK] = {"dark frames, used to measure pedestals", ""},
	[SL_CAUSE_STAGE] = {"a stage rejected the frame", ""},
	[SL_CAUSE_DAMAGED] =
		{"some packets of the module-frame are missing",
		 "packets are lost between front end and receiver: look at drops of the "
		 "NIC (ethtool -S), at the switch and at the receive buffers (sluice "
		 "doctor), or use link.service: rc"},
	[SL_CAUSE_PARTNER] =
		{"the module itself is whole, another module of the frame is not",
		 "mend the loss of the other module; with ring.incomplete: keep, frames "
		 "that lack a module are processed all the same"},
	[SL_CAUSE_RECORD] = {"all bytes arrived, but the record behind the pixels contradicts them",
			     "front end and receiver may not have the same experiment file"},
	[SL_CAUSE_CHECKSUM] =
		{"the checksum of the pixels does not match: bytes were changed on the way",
		 "look for faulty memory or a faulty cable of that module's front end"},
	[SL_CAUSE_NO_SLOT] = {"the front end was ahead of the receiver's open slots",
			      "the receiver does not keep pace: lower the frame rate, raise "
			      "ring.slots, or look which hop "
			      "has the longest latency"},
	[SL_CAUSE_NO_ARRIVAL] = {"nothing of the module-frame arrived",
				 "look whether the front end of that module sends, and at drops of "
				 "the switch, the NIC and the socket (sluice doctor); what the "
				 "front end itself left out is counted here, too"},
	[SL_CAUSE_SINK] = {"a sink refused the frame, or its file could not be written",
			   "look at the errors of the sinks, and at the free space of their disks"},
	[SL_CAUSE_UNIT] = {"the unit could not process the frame",
			   "the log of the run has the error of the unit"},
	[SL_CAUSE_LATE] = {"the module arrived whole, but after its frame was given out without it",
			   "modules are too far apart: raise ring.late_frames or ring.slots"},
	[SL_CAUSE_OLDEST] =
		{"the frame was whole and was given back unprocessed, to make room for newer ones",
		 "the receiver does not keep pace: raise ring.slots or unit.workers, or lower the "
		 "rate"},
	[SL_CAUSE_OVERWRITTEN] = {"the front end wrote there again before the frame was read",
				  "the receiver does not keep pace, and this source takes no "
				  "credits: raise ring.slots, or "
				  "lower the rate"},
	[SL_CAUSE_SLOW] =
		{"a sink was too slow and left the frame out, as its option on_slow allows",
		 "look at the sink's disk, or let it pack less"},
	[SL_CAUSE_NO_EVENT] =
		{"no event of the detector that defines events has its number or time",
		 "a detector that is faster than events has such frames; else look at its key: "
		 "offset, drift, divider, window"},
};

static json_t *said_of(enum sl_cause cause)
{
	return json_pack("{s:s, s:s, s:s}", "cause", sl_cause_name(cause), "words",
			 sl_cause_words[cause].words, "hint", sl_cause_words[cause].hint);
}

json_t *sl_causes_words(const json_t *ledger)
{
	const json_t *causes = json_object_get(json_object_get(ledger, "total"), "causes");
	json_t *list = json_array();

	for (unsigned i = SL_CAUSE_NONE + 1; i < SL_CAUSES; i++)
		if (json_integer_value(json_object_get(causes, sl_cause_name((enum sl_cause)i))) >
		    0)
			json_array_append_new(list, said_of((enum sl_cause)i));
	return list;
}

json_t *sl_causes_all(void)
{
	json_t *list = json_array();

	for (unsigned i = SL_CAUSE_NONE + 1; i < SL_CAUSES; i++)
		json_array_append_new(list, said_of((enum sl_cause)i));
	return list;
}
