/* experiment.h - an experiment file, checked and taken apart into add-ons with their options.
 *
 * Model:     everything that can be wrong with the file is found here, before anything is
 *            opened: unknown keys, wrong types, values out of range, add-ons that do not exist.
 *            Built-in defaults < site defaults < file < --set; keys that the site file locks
 *            stand over all.
 * Threads:   one.
 * Ownership: the experiment owns the configuration and the state of every add-on. The state is
 *            zeroed memory with the options filled in; open() and close() of the add-on are the
 *            user's. */
#ifndef SL_EXPERIMENT_EXPERIMENT_H
#define SL_EXPERIMENT_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/detector.h>
#include <sluice/goniometer.h>
#include <sluice/sink.h>
#include <sluice/stage.h>

#include "base/config/config.h"
#include "core/link.h"
#include "core/metadata/keys.h"
#include "core/unit.h"
#include "detector/cut.h"
#include "experiment/detectors.h"
#include "experiment/ring_options.h"
#include "experiment/transfers.h"
#include "feedback/listener.h"
#include "frontend/fault.h"
#include "geometry/refine.h"
#include "receiver/assemble/join.h"

enum { SL_EXPERIMENT_STAGES = SL_CHAIN_STAGES - 1, SL_EXPERIMENT_SINKS = 8 };

struct sl_link_options { /* what every link section has besides the kind's own options */
	uint32_t pmtu;	 /* index into the choices */
	uint32_t service, operation, message; /* likewise */
	uint32_t pollers;		      /* 0: auto */
	double rate_limit;
	bool crc;
};

struct sl_unit_options {
	uint32_t batch, deadline_us;
};

struct sl_threads_options { /* where threads run, and how they wait */
	bool pin, numa;
	bool together;			  /* one thread does what link, dispatcher and worker do */
	char cpus[256], source_cpus[256]; /* lists; empty: chosen by the program */
	uint32_t polling;		  /* enum sl_polling */
	uint32_t spin_us;
	uint32_t senders; /* 0: auto */
};

struct sl_control_options {
	char address[64];
	uint32_t port;
	char token[128], token_file[384]; /* token: also what the file has */
	double wait_s, silence_s;
	char keeper[64];
};

struct sl_feroce_section { /* devices that connect as FEROCE's do */
	bool enable;
	char address[64];
	uint32_t port;
	char allow[512], open[512];
	bool record;
	double first_s, silence_s;
};

struct sl_flight_options { /* the flight recorder */
	bool record;
	double after_s;
};

struct sl_calibration_options { /* files in the place of the detector's own calibration */
	char file[384], gains[384];
};

/* What a run form shows, and what clients of the role operate may set: the section `parameters`. */
enum { SL_PARAMETERS = 64, SL_PARAMETER_VALUES = 32, SL_PARAMETER_TEXT = 256 };

enum sl_parameter_type {
	SL_PARAMETER_AUTO, /* only while it is read: that of the option */
	SL_PARAMETER_INTEGER,
	SL_PARAMETER_NUMBER,
	SL_PARAMETER_BOOLEAN,
	SL_PARAMETER_TEXT_TYPE,
	SL_PARAMETER_CHOICE,
};
const char *sl_parameter_type_name(enum sl_parameter_type type); /* "integer", ... */

struct sl_parameter {
	char name[64];
	char path[SL_PARAMETER_TEXT], label[SL_PARAMETER_TEXT], unit[64], doc[512];
	uint32_t type;	 /* enum sl_parameter_type */
	double min, max; /* of numbers */
	unsigned values; /* of a choice */
	char value[SL_PARAMETER_VALUES][64];
	char now[SL_PARAMETER_TEXT]; /* as the experiment has it */
	const struct sl_node *node;  /* where it was read */
};

struct sl_parameters {
	unsigned n;
	struct sl_parameter parameter[SL_PARAMETERS];
};

/* A detector whose parts attach to the events of another one. Of its experiment only what
 * describes a source is used: detector, link, ring, calibration, geometry, control, faults. */
enum { SL_EXPERIMENT_OTHERS = SL_DETECTORS_MOST - 1 };
struct sl_experiment_other {
	char name[SL_DETECTOR_NAME];
	struct sl_experiment *experiment;
	struct sl_join_options join;
};

struct sl_experiment {
	struct sl_config *config;
	char *text; /* with overrides */

	char transfer[SL_TRANSFER_NAME]; /* its name; empty: the file has no transfers */
	unsigned transfers;		 /* that the file has, this one too; 0: none has a name */
	unsigned port_offset;		 /* of this transfer or detector, in control.port */

	/* Of a file with several detectors: the name of this one, and how it attaches to events. */
	char detector_name[SL_DETECTOR_NAME]; /* empty: the file has one, without a name */
	struct sl_detector_names names;	      /* of all in the file; n 0: likewise */
	struct sl_key_options key;
	struct sl_missing_options attach;

	/* As its transfer shows it. */
	const struct sl_detector *detector;
	void *detector_state;
	struct sl_detector_options run;
	/* As the file describes it. */
	const struct sl_detector *generator;
	void *generator_state;
	struct sl_cut cut; /* between the two; all of it where there are no transfers */
	struct sl_detector cut_detector;

	const struct sl_link *link;
	void *link_state;
	struct sl_link_options link_options;

	struct sl_ring_options ring;

	const struct sl_unit *unit;
	void *unit_state;
	struct sl_unit_options unit_options;

	struct sl_threads_options threads;

	unsigned stages, sinks;
	bool no_sinks; /* it may have none: its opener runs nothing of it */
	bool one;      /* it is opened for one of several detectors: it has no stages and sinks */
	bool live;     /* a share is added where it has none */
	const struct sl_stage *stage[SL_EXPERIMENT_STAGES];
	void *stage_state[SL_EXPERIMENT_STAGES];
	const struct sl_sink *sink[SL_EXPERIMENT_SINKS];
	void *sink_state[SL_EXPERIMENT_SINKS];

	struct sl_calibration_options calibration;
	struct sl_refine_options geometry;
	struct sl_refined refined; /* of the detector as it was opened last */
	struct sl_fault_options faults;
	struct sl_feedback_options feedback;
	struct sl_control_options control;
	struct sl_flight_options flight;
	struct sl_feroce_section feroce;
	struct sl_goniometer goniometer; /* axes 0: none */
	bool emulate_local;		 /* run starts the front end itself */

	struct sl_output_path *output; /* [outputs]: before the first sl_experiment_place(): none */
	unsigned outputs;
	/* The states of add-ons as their options left them (states.c). */
	struct sl_experiment_states *states;
	/* What users say of the run, for sinks that need it when they open. Set by the session. */
	const struct sl_env_metadata *metadata;

	/* The section `metadata`: known keys; and all of it as texts, with what is locked. */
	struct sl_metadata_known known;
	struct sl_metadata_section said;

	struct sl_parameters *parameters; /* NULL: it declares none */

	/* Its own detector defines events; these attach to them. */
	struct sl_experiment_other other[SL_EXPERIMENT_OTHERS];
	unsigned others;
};

/* Sections without an add-on of their own, for help and `sluice list`. */
struct sl_section {
	const char *name, *doc;
	const struct sl_option *options;
};
extern const struct sl_section sl_sections[]; /* ends with a NULL name */

/* Reads the site files (site.h), the file and the overrides, which are "path=value" strings. Every
 * mistake is logged with file and line. `transfer` may be NULL when there is no choice. */
int sl_experiment_open(const char *path, const char *transfer, const char *const *overrides,
		       size_t n, struct sl_experiment **experiment);

/* The same for a caller that runs nothing of it: the file may have no sinks. */
int sl_experiment_open_no_sinks(const char *path, const char *transfer,
				const char *const *overrides, size_t n,
				struct sl_experiment **experiment);

/* The same with a sink `share` for viewers, which the run can go on without, unless the file has a
 * share or as many sinks as there can be. */
int sl_experiment_open_live(const char *path, const char *transfer, const char *const *overrides,
			    size_t n, struct sl_experiment **experiment);

/* What the program that started this one as a child sets, lines of "KEY=VALUE": ports, and that
 * nothing is to be emulated. Locked keys give way to it, so it is not for users: any other key is
 * -EINVAL. Before an experiment is opened. */
enum { SL_EXPERIMENT_OWN = 8192 }; /* bytes at most */
int sl_experiment_set_own(const char *lines);

/* What there is to choose from; after an error, as far as it is known. */
int sl_experiment_transfers(const char *path, const char *const *overrides, size_t n,
			    struct sl_transfer_names *names);
/* Likewise, of the file's detectors. */
int sl_experiment_detectors(const char *path, const char *const *overrides, size_t n,
			    struct sl_detector_names *names);
/* One of the file's detectors alone, as its front end needs it: without stages and sinks. */
int sl_experiment_open_one(const char *path, const char *detector, const char *const *overrides,
			   size_t n, struct sl_experiment **experiment);
void sl_experiment_close(struct sl_experiment *experiment);

/* An add-on's open() finds zeroed memory with its options, in every run. Keep copies of all states,
 * once, before the first is opened; then bring back those of add-ons that are closed: of sinks; of
 * stages and the unit; of the detector and the link. */
int sl_experiment_keep_states(struct sl_experiment *experiment);
void sl_experiment_forget_states(struct sl_experiment *experiment);
void sl_experiment_renew_sinks(struct sl_experiment *experiment);
void sl_experiment_renew_stages(struct sl_experiment *experiment);
void sl_experiment_renew_sources(struct sl_experiment *experiment);

/* Open the detector, with what the section `geometry` says put into its geometry, which stays valid
 * until the next call and until the experiment is closed. close() of the detector is due even when
 * this fails. A front end, which only sends pixels, calls open() of the detector itself. */
int sl_experiment_open_detector(struct sl_experiment *experiment, struct sl_geometry *geometry);

/* The whole experiment as YAML (malloc'ed): every option of every section and add-on that is used,
 * set or not, as it was understood; with origins, each with a comment that says where its value
 * comes from ("# site.yaml:7", "# --set", "# default"). As a file it is the same experiment, but
 * for the token, which is left out. */
char *sl_experiment_resolved(const struct sl_experiment *experiment, bool origins);
/* The same as a tree, whose nodes know their options; the caller's, sl_config_close(). */
int sl_experiment_resolved_tree(const struct sl_experiment *experiment, struct sl_config **config);

/* For experiments whose text comes from other hosts: from now on, in this process,
 * - paths that they name lie under one of these folders (absolute or with "..", after symbolic
 *   links), and
 * - plug-ins and scripts lie where this process can neither write nor replace them.
 * file: of the experiment file and of overrides; else of overrides alone. Before an experiment is
 * opened; the list is used until the end. */
void sl_experiment_distrust(const char *const *roots, size_t n, bool file);

/* Another detector, with what it has in common with the events of this one; closed together with
 * this experiment. -EINVAL, logged: they do not fit together; it stays the caller's. */
int sl_experiment_attach(struct sl_experiment *experiment, const char *name,
			 struct sl_experiment *other, const struct sl_join_options *join);

/* Of all detectors. */
uint32_t sl_experiment_modules(const struct sl_experiment *experiment);

uint16_t sl_experiment_pmtu(const struct sl_experiment *experiment);
uint16_t sl_experiment_service(const struct sl_experiment *experiment);	  /* enum sl_service */
uint16_t sl_experiment_operation(const struct sl_experiment *experiment); /* enum sl_operation */
uint16_t sl_experiment_message(const struct sl_experiment *experiment);	  /* enum sl_message */

/* The record must carry a CRC: asked for, or the only proof that this link has. */
bool sl_experiment_crc(const struct sl_experiment *experiment);

/* The files that the detector, the stages and the sinks read and write, by their options. */
void sl_experiment_files(const struct sl_experiment *experiment, sl_file_each *each, void *arg);

/* What the words in the paths of outputs mean in one run ("{sample}_{run}.nxs"); the transfer is
 * the experiment's. */
struct sl_run_words {
	uint64_t run;	  /* its number; 0: it has none that lasts */
	uint64_t unix_ns; /* of {date} and {time}: one moment for all outputs of the run */
	const char *sample;
};

/* Set the paths of outputs (SL_OUTPUT) of stages and sinks for a run: words replaced, relative
 * paths in `folder` (NULL: they begin at the working directory). words NULL: as the file has them.
 * -errno, logged: -ENAMETOOLONG: an option has no room for its path; -ENODATA: a word has no
 * value. */
int sl_experiment_place(struct sl_experiment *experiment, const char *folder,
			const struct sl_run_words *words);
/* Log a warning for each output that is in no run folder: every run replaces it. */
void sl_experiment_warn_of_shared_outputs(const struct sl_experiment *experiment);

/* The name of the sample as the next run has it: of the session's metadata, else of the section
 * `metadata`, else of a sink's own option; "": not known. Any text: as a part of a path it needs
 * other characters. bytes: SL_METADATA_VALUE holds any. */
void sl_experiment_sample(const struct sl_experiment *experiment, char *text, size_t bytes);

/* A digest of the detector section as understood: front end and receiver compare it, so that two
 * different files do not quietly disagree about what a pixel is. */
uint64_t sl_experiment_digest(const struct sl_experiment *experiment);

/* The file's name without its folder and ending, and its transfer's ("": none); with '-' for
 * characters that a name of a session cannot have. bytes: SL_EXPERIMENT_NAME. */
enum { SL_EXPERIMENT_NAME = 64 };
void sl_experiment_name(const char *path, const char *transfer, char *name, size_t bytes);

#endif
