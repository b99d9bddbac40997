/* stored_tags.h - the sections of what the sink `raw` stores of a run. Numbers are never used
 * again. */
#ifndef SL_SINK_RAW_STORED_TAGS_H
#define SL_SINK_RAW_STORED_TAGS_H

enum sl_stored_tag {
	SL_TAG_GEOMETRY = 1,
	SL_TAG_CALIBRATION = 2,
	SL_TAG_RESULTS = 3,
	SL_TAG_CONSTANTS = 4,
	SL_TAG_RUN = 5,
	SL_TAG_GONIOMETER = 6,
	SL_TAG_METADATA = 7,
	SL_TAG_STATUS = 8,
	SL_TAG_CHANGES = 9,
	SL_TAG_WHERE = 10,
};

#endif
