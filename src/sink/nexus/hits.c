/* hits.c - hit rates of blocks of frames, and the scores of all. */
#include "sink/nexus/hits.h"

#include <stddef.h>
#include <stdio.h>

#include "sink/nexus/account.h"

#define HITS   SL_HITS
#define SCORES "/entry/scores"

static void open_scores(struct sl_h5 *file)
{
	static const char *const columns[] = {"score", "frame_number", "timestamp",
					      "keep",  "reason",       "image_index"};
	char path[64], target[64];

	sl_h5_group(file, SCORES, "NXdata");
	sl_h5_attribute_text(file, SCORES, "signal", "score");
	sl_h5_attribute_texts(file, SCORES, "axes", &columns[1], 1);
	sl_h5_attribute_text(file, SCORES, "title", "score of every frame");
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		snprintf(path, sizeof(path), SCORES "/%s", columns[i]);
		snprintf(target, sizeof(target), SL_ACCOUNT_FRAMES "/%s", columns[i]);
		sl_h5_link(file, path, target);
	}
}

void sl_hits_open(struct sl_hits *hits, struct sl_h5 *file)
{
	static const char *const axes[] = {"frame_number"};
	const struct {
		const char *path;
		enum sl_h5_type type;
		const char *doc;
		struct sl_h5_series **series;
	} columns[] = {
		{HITS "/frame_number", SL_H5_U64, "frame number", &hits->number},
		{HITS "/timestamp", SL_H5_U64, "the detector's clock in ns", &hits->timestamp},
		{HITS "/frames", SL_H5_U32, "frames of the block", &hits->frames},
		{HITS "/judged", SL_H5_U32, "frames, or their events", &hits->judged},
		{HITS "/hits", SL_H5_U32, "of these, kept for what is in them", &hits->hits},
		{HITS "/hit_rate", SL_H5_F32, "hit rate", &hits->rate},
		{HITS "/score_mean", SL_H5_F32, "mean of the scores", &hits->score},
	};
	char title[64];

	*hits = (struct sl_hits){.number = NULL};
	sl_h5_group(file, HITS, "NXdata");
	sl_h5_attribute_text(file, HITS, "signal", "hit_rate");
	sl_h5_attribute_texts(file, HITS, "axes", axes, 1);
	snprintf(title, sizeof(title), "hit rate of blocks of %d frames", SL_HITS_FRAMES);
	sl_h5_attribute_text(file, HITS, "title", title);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const struct sl_h5_shape row = {.type = columns[i].type};

		sl_h5_series_open(file, columns[i].path, &row, SL_ACCOUNT_ROWS, columns[i].series);
		sl_h5_attribute_text(file, columns[i].path, "long_name", columns[i].doc);
	}
	open_scores(file);
}

void sl_hits_end(struct sl_hits *hits)
{
	float rate, score;

	if (!hits->block.frames)
		return;
	rate = (float)hits->block.hits / (float)hits->block.judged;
	score = (float)(hits->block.score / hits->block.judged);
	sl_h5_series_append(hits->number, &hits->block.number);
	sl_h5_series_append(hits->timestamp, &hits->block.timestamp);
	sl_h5_series_append(hits->frames, &hits->block.frames);
	sl_h5_series_append(hits->judged, &hits->block.judged);
	sl_h5_series_append(hits->hits, &hits->block.hits);
	sl_h5_series_append(hits->rate, &rate);
	sl_h5_series_append(hits->score, &score);
	hits->block.frames = 0;
}

void sl_hits_add(struct sl_hits *hits, const struct sl_frame *frame)
{
	if (!sl_frame_goes_on(frame) || frame->flags & SL_FRAME_DARK || !frame->items)
		return;
	if (!hits->block.frames) {
		hits->block.number = frame->number;
		hits->block.timestamp = frame->timestamp;
		hits->block.judged = hits->block.hits = 0;
		hits->block.score = 0;
	}
	for (uint32_t i = 0; i < frame->items; i++) {
		const struct sl_verdict *verdict = &frame->verdict[i];

		hits->block.hits += verdict->keep && verdict->reason != SL_REASON_PRESCALED;
		hits->block.score += (double)verdict->score;
	}
	hits->block.judged += frame->items;
	if (++hits->block.frames == SL_HITS_FRAMES)
		sl_hits_end(hits);
}
