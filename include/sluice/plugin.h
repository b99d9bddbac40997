/* plugin.h - detectors, stages and sinks in a shared object that is built elsewhere.
 *
 * Model:     the object defines one symbol, `sl_plugin`. The library opens it (experiment file:
 *            `plugins: [path]`; a folder: --plugins, SLUICE_PLUGINS), checks it and adds its tables
 *            to the registry. From then on its add-ons are found by name like built-in ones.
 *
 *              #include <sluice/plugin.h>
 *              static const struct sl_stage *const stages[] = {&blank, NULL};
 *              SL_PUBLIC const struct sl_plugin sl_plugin = {
 *                      SL_PLUGIN_HEAD,
 *                      .name = "blank",
 *                      .doc = "rejects frames without light",
 *                      .stages = stages,
 *              };
 *
 *            cc -shared -fPIC -fvisibility=hidden blank.c $(pkg-config --cflags --libs sluice)
 *            The link to libsluice is needed: a host that loads libsluice privately, as Python
 *            does, exports no symbol of it to other objects.
 * Checks:    in this order, each with its own message: a regular file, owned by root or by this
 *            user, writable by no other, and so is each folder on the way to it; `sl_plugin` is
 *            there; abi and sizes are the library's; every descriptor has what its kind requires;
 *            every name is valid (lower-case letters, digits, _) and new. The file is opened once
 *            and loaded through that descriptor, so that it cannot be exchanged between check and
 *            load. Nothing of it is in the registry if one check fails.
 * Threads:   loading on any thread; the registry is read without a lock.
 * Ownership: const data of the object. A plug-in stays loaded until the process ends.
 * ABI:       SL_PLUGIN_ABI counts changes of any structure that add-ons see (stage.h, sink.h,
 *            detector.h, env.h, frame.h, record.h, option.h). Equal or refused: there is no range.
 *            The sizes find objects that were built with headers of another commit. */
#ifndef SLUICE_PLUGIN_H
#define SLUICE_PLUGIN_H

#include <stdint.h>

#include <sluice/detector.h>
#include <sluice/env.h>
#include <sluice/frame.h>
#include <sluice/option.h>
#include <sluice/sink.h>
#include <sluice/stage.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SL_PUBLIC
#define SL_PUBLIC __attribute__((visibility("default")))
#endif

enum { SL_PLUGIN_ABI = 1 };

struct sl_plugin {
	uint32_t abi;	/* always the first word, in every version */
	uint32_t bytes; /* of this structure */
	/* Of the structures that add-ons and library share. */
	uint32_t option_bytes, env_bytes, geometry_bytes, frame_bytes, view_bytes, batch_bytes;
	uint32_t detector_bytes, detector_options_bytes;
	uint32_t stage_bytes, stage_terms_bytes, tile_bytes, sink_bytes;
	const char *name, *version, *doc; /* version: NULL or "1.2" */
	/* Each ends with NULL, or is NULL. Links, units and control drivers are not open to
	 * plug-ins: their interfaces stay private. So is that of stages on accelerators: `gpu` of a
	 * plug-in's stage is NULL. */
	const struct sl_detector *const *detectors;
	const struct sl_stage *const *stages;
	const struct sl_sink *const *sinks;
	const void *reserved[8]; /* NULL */
};

/* What the loader compares: the first members of every plug-in. */
#define SL_PLUGIN_HEAD                                                                            \
	.abi = SL_PLUGIN_ABI, .bytes = sizeof(struct sl_plugin),                                  \
	.option_bytes = sizeof(struct sl_option), .env_bytes = sizeof(struct sl_env),             \
	.geometry_bytes = sizeof(struct sl_geometry), .frame_bytes = sizeof(struct sl_frame),     \
	.view_bytes = sizeof(struct sl_view), .batch_bytes = sizeof(struct sl_batch),             \
	.detector_bytes = sizeof(struct sl_detector),                                             \
	.detector_options_bytes = sizeof(struct sl_detector_options),                             \
	.stage_bytes = sizeof(struct sl_stage),                                                   \
	.stage_terms_bytes = sizeof(struct sl_stage_terms), .tile_bytes = sizeof(struct sl_tile), \
	.sink_bytes = sizeof(struct sl_sink)

/* Defined by the plug-in. */
extern SL_PUBLIC const struct sl_plugin sl_plugin;

/* For programs that use the library. 0: it is loaded, now or before. -EACCES: others can write it;
 * -ENOEXEC: no shared object, or no `sl_plugin`; -EPROTONOSUPPORT: another ABI; -EINVAL: a
 * descriptor is not complete; -EEXIST: a name is taken; logged with path and reason. */
SL_PUBLIC int sl_plugin_load(const char *path);
/* All *.so in it, in the order of their names, up to the first that is refused. */
SL_PUBLIC int sl_plugin_load_folder(const char *path);

#ifdef __cplusplus
}
#endif

#endif
