/* parts.h - what the files that read an experiment share.
 *
 * Files:     sections.c options of the sections that belong to no add-on, or to all of a kind;
 *            site.c what a site file adds; read.c from YAML to add-ons and options; check.c what
 *            is wrong only together; resolved.c the result as text; digest.c what follows for a
 *            transfer; detectors.c one of several detectors, and what of them has to fit;
 *            geometry.c the section of that name; goniometer.c the list of axes;
 *            metadata.c what users say of a run;
 *            parameters.c what a run form may set; distrust.c paths and code of other hosts;
 *            plugins.c the plug-ins that it names; outputs.c where a run's files go; token.c the
 *            secret that front ends prove to know; live.c the sink for viewers. */
#ifndef SL_EXPERIMENT_PARTS_H
#define SL_EXPERIMENT_PARTS_H

#include "base/config/node.h"
#include "experiment/experiment.h"

/* live.c: a sink `share` for viewers, unless there is one. -ENOMEM, -E2BIG. */
int sl_experiment_add_live(struct sl_config *config);

/* One table per section; experiment.h has the structs that they fill. */
extern const struct sl_option sl_link_options[], sl_unit_options[], sl_calibration_options[];
extern const struct sl_option sl_threads_options[], sl_control_options[], sl_feroce_options[];
extern const struct sl_option sl_axis_options[], sl_flight_options[];

/* Load what `plugins` names: before add-ons are looked for. Logged with file and line. */
int sl_experiment_plugins(struct sl_config *config);

/* A section with mistakes keeps the checks that need it from being made. */
enum sl_section_bit {
	SL_SECTION_DETECTOR = 1 << 0, /* with what the transfer takes of it */
	SL_SECTION_LINK = 1 << 1,
	SL_SECTION_UNIT = 1 << 2,
	SL_SECTION_STAGES = 1 << 3,
	SL_SECTION_SINKS = 1 << 4,
	SL_SECTION_EMULATE = 1 << 5,
	SL_SECTION_RING = 1 << 6,
	SL_SECTION_FRONTEND = 1 << 7,
	SL_SECTION_FEEDBACK = 1 << 8,
	SL_SECTION_CALIBRATION = 1 << 9,
	SL_SECTION_THREADS = 1 << 10,
	SL_SECTION_CONTROL = 1 << 11,
	SL_SECTION_FEROCE = 1 << 12,
	SL_SECTION_GEOMETRY = 1 << 13,
	SL_SECTION_GONIOMETER = 1 << 14,
	SL_SECTION_METADATA = 1 << 15,
	SL_SECTION_PARAMETERS = 1 << 16,
	SL_SECTION_FLIGHT = 1 << 17,
	SL_SECTION_DETECTORS = 1 << 18,
};
/* Of the plain sections: those that each of several detectors has for itself. */
enum {
	SL_SECTIONS_OF_DETECTORS = SL_SECTION_RING | SL_SECTION_CONTROL | SL_SECTION_CALIBRATION |
				   SL_SECTION_GEOMETRY | SL_SECTION_FRONTEND | SL_SECTION_FEROCE
};

/* Sections that fill one struct of the experiment, in the order in which they are read. */
struct sl_plain_section {
	enum sl_section_bit part;
	const char *name, *was; /* its former name; NULL: it has none */
	const struct sl_option *options;
	size_t offset; /* in struct sl_experiment */
};
extern const struct sl_plain_section sl_plain_sections[]; /* ends with a NULL name */

/* Collects errors, so that all mistakes of a file are reported at once. */
struct sl_reader {
	struct sl_experiment *e;
	struct sl_node *transfer; /* the options of the transfer; NULL: the file has none */
	struct sl_node *detector; /* likewise, of what attaches the detector */
	bool site; /* a part of a site file: a section without a kind is meant for every kind */
	int err;
	unsigned bad; /* enum sl_section_bit: sections with mistakes */
};

/* The words in the paths of outputs of an add-on are known. Logged at the option's node. */
void sl_experiment_check_words(struct sl_reader *reader, struct sl_node *section,
			       const struct sl_option *options, const void *base);

/* Every section of reader->e->config. */
void sl_experiment_read(struct sl_reader *reader);

/* The section `geometry`; node NULL: there is none. */
void sl_experiment_read_geometry(struct sl_reader *reader, struct sl_node *node);
/* The section `metadata`, likewise; and what it says together with others. */
void sl_experiment_read_metadata(struct sl_reader *reader, struct sl_node *node);
int sl_experiment_check_metadata(const struct sl_experiment *experiment);
/* The list of axes. */
void sl_experiment_read_goniometer(struct sl_reader *reader);

/* The section `parameters`; its paths are looked up once the rest is right. */
void sl_experiment_read_parameters(struct sl_reader *reader);
int sl_experiment_check_parameters(struct sl_experiment *experiment);

/* distrust.c: 0, or -EACCES, logged with file and line; nothing is wrong unless
 * sl_experiment_distrust() was called. Before a plug-in of the list is loaded; before anything is
 * done with an experiment that was read; whole: without mistakes, so that its add-ons can say which
 * files they have. */
int sl_experiment_distrust_plugin(const struct sl_config *config, const struct sl_node *node);
int sl_experiment_distrust_paths(const struct sl_experiment *experiment, bool whole);

/* A map of names to options, as a site file may have in the place of a list: `list` is "stages" or
 * "sinks". */
void sl_experiment_read_items(struct sl_reader *reader, const char *list, struct sl_node *map);

/* token.c: no text of the configuration has the token of any transfer. */
void sl_experiment_hide_tokens(struct sl_config *config);
/* From its file, if there is one. Logged with file and line. */
int sl_experiment_token(struct sl_experiment *experiment);

void sl_experiment_forget_outputs(struct sl_experiment *experiment);

/* 0, or -EINVAL when something was wrong and logged. `at`: where the link is named. */
int sl_experiment_check_link(const struct sl_experiment *experiment, const struct sl_node *at);
/* How the detector attaches to events: key, missing. */
void sl_experiment_read_attachment(struct sl_reader *reader);

/* Open the other detectors of the file and attach them. Logged. */
typedef int sl_experiment_open_other(void *arg, const char *name, struct sl_experiment **other);
int sl_experiment_attach_all(struct sl_experiment *experiment, sl_experiment_open_other *open,
			     void *arg);

/* All checks that need none of the parts in `bad`. */
int sl_experiment_check(const struct sl_experiment *experiment, unsigned bad);

#endif
