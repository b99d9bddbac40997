/* probe.h - whether the plug-ins of an experiment survive open(): tried in a process of its own.
 *
 * Model:     a crash cannot be survived inside the session. So before the first run with a
 *            configuration that uses plug-ins, the session starts the program sluice with
 *            SL_PROBE_ARGUMENT: it opens detector, stages, sinks, link and memory as a run does,
 *            and closes them. If a signal kills that process the run fails, and the session
 *            lives. A probe that fails otherwise proves nothing: the run finds out why.
 * Limits:    a later crash, in put() or in a stage's work, ends the session; its run folder has no
 *            result then. An experiment without plug-ins is not probed.
 * Cost:      once for each configuration with plug-ins: the start of a process and one open(). */
#ifndef SL_SESSION_PROBE_H
#define SL_SESSION_PROBE_H

struct sl_experiment;
struct sl_session;

/* The first argument of `sluice run`, followed by the folder in which relative outputs begin. */
#define SL_PROBE_ARGUMENT "--probe"

/* In the session. 0, or -EFAULT, logged. */
int sl_session_probe(struct sl_session *session);

/* In the other process. A crash writes "NAME PATH" of the plug-in to stderr. 0: there was no
 * crash. */
int sl_probe_run(struct sl_experiment *experiment, const char *folder);

#endif
