/* parts.h - what the files that read an experiment share.
 *
 * Files:     sections.c options of the sections that belong to no add-on, or to all of a kind;
 *            experiment.c from YAML to add-ons and options; check.c what is wrong only
 *            together; digest.c what follows for a transfer. */
#ifndef SL_EXPERIMENT_PARTS_H
#define SL_EXPERIMENT_PARTS_H

#include "base/config/node.h"
#include "experiment/experiment.h"

/* One table per section; experiment.h has the structs that they fill. */
extern const struct sl_option sl_link_options[], sl_unit_options[], sl_calibration_options[];
extern const struct sl_option sl_threads_options[], sl_control_options[], sl_feroce_options[];

/* 0, or -EINVAL when something was wrong and logged. `at`: where the link is named. */
int sl_experiment_check_link(const struct sl_experiment *experiment, const struct sl_node *at);
int sl_experiment_check(const struct sl_experiment *experiment);

#endif
