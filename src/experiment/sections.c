/* sections.c - the options of the sections that belong to no add-on. */
#include <stddef.h>

#include "experiment/parts.h"

const struct sl_option sl_link_options[] = {
	SL_CHOICE(struct sl_link_options, pmtu, 4096, "256|512|1024|2048|4096",
		  "bytes of payload per packet"),
	SL_CHOICE(struct sl_link_options, service, uc, "uc|rc",
		  "unreliable or reliable connection; rc sends again what was lost"),
	SL_CHOICE(struct sl_link_options, operation, write, "write|send",
		  "who places a block: the front end (write), or the receiver (send)"),
	SL_CHOICE(struct sl_link_options, message, auto, "auto|packet|module|line",
		  "one RDMA message per packet, per module and frame, or per line of pixels; auto: "
		  "as the link does it best"),
	SL_U32_AUTO(struct sl_link_options, pollers, auto, SL_POLLERS, "threads",
		    "receiver: threads that take data; modules are shared out among them; auto: as "
		    "many as the cpus, the modules and the link allow"),
	SL_F64(struct sl_link_options, rate_limit, 0, 0, 1e4, "Gbit/s",
	       "front end: most that the queue of a module sends; 0: as credits allow"),
	SL_BOOL(struct sl_link_options, crc, false,
		"front ends add a CRC32C of the pixels, checked here"),
	SL_OPTION_END,
};

const struct sl_option sl_unit_options[] = {
	SL_U32(struct sl_unit_options, batch, 8, 1, 256, "frames",
	       "most frames processed together"),
	SL_U32(struct sl_unit_options, deadline_us, 0, 0, 3600000000., "us",
	       "verdicts are due so long after a frame began to be sent: batches are closed in "
	       "time, "
	       "and late frames counted; 0: whenever"),
	SL_OPTION_END,
};

const struct sl_option sl_calibration_options[] = {
	SL_STRING(struct sl_calibration_options, file, "",
		  "calibration file (sluice calibrate makes them); empty: the detector's own"),
	SL_STRING(struct sl_calibration_options, gains, "",
		  "gains from such a file, or raw as PSI gives them out, one file per module: "
		  "gainMaps_M049.bin,gainMaps_M050.bin"),
	SL_OPTION_END,
};

const struct sl_option sl_threads_options[] = {
	SL_CHOICE(struct sl_threads_options, polling, adaptive, "adaptive|latency|cores",
		  "what data threads do without data: look again for a while and then sleep, never "
		  "sleep, or sleep at once"),
	SL_U32(struct sl_threads_options, spin_us, 100, 0, 1000000, "us",
	       "adaptive: how long they look again, at most"),
	SL_BOOL(struct sl_threads_options, together, false,
		"receiver: one thread takes data, assembles frames, runs stages and sends "
		"decisions back; for short latencies on few cpus"),
	SL_BOOL(struct sl_threads_options, pin, true,
		"a cpu for each data thread, near the network interface; where there are enough"),
	SL_STRING(struct sl_threads_options, cpus, "",
		  "receiver: these, in this order, as in 2-5 8; too few are shared by all"),
	SL_STRING(struct sl_threads_options, source_cpus, "", "front end: likewise"),
	SL_U32_AUTO(
		struct sl_threads_options, senders, auto, SL_LINK_SENDERS, "threads",
		"front end: threads that send; modules are shared out among them; auto: as many "
		"as the cpus, the modules and the link allow"),
	SL_BOOL(struct sl_threads_options, numa, true,
		"receiver: memory of the ring on the network interface's NUMA node"),
	SL_OPTION_END,
};

const struct sl_option sl_control_options[] = {
	SL_STRING(struct sl_control_options, address, "127.0.0.1",
		  "where the receiver answers front ends"),
	SL_U32(struct sl_control_options, port, 47910, 0, 65535, "",
	       "TCP port for it; 0: any free one (run prints it)"),
	SL_SECRET(struct sl_control_options, token,
		  "secret that front ends must prove to know; required off this host; in a file "
		  "of its own: token_file"),
	SL_STRING(struct sl_control_options, token_file, "",
		  "file whose first line is the token, readable by its owner alone; /dev/fd/3: an "
		  "open descriptor"),
	SL_F64(struct sl_control_options, wait_s, 60, 0, 1e9, "s",
	       "how long either side waits for the other"),
	SL_F64(struct sl_control_options, silence_s, 10, 1, 1e6, "s",
	       "a front end that reports nothing, and of which no data come, for this time counts "
	       "as gone"),
	SL_STRING(struct sl_control_options, keeper, "",
		  "name of a keeper (sluice keeper) that lets another receiver take this one's "
		  "place"),
	SL_OPTION_END,
};

const struct sl_option sl_flight_options[] = {
	SL_BOOL(struct sl_flight_options, record, true,
		"keep the last minute of packet headers and of this host's counters, and write "
		"them beside the result when something is lost"),
	SL_F64(struct sl_flight_options, after_s, 2, 0, 30, "s",
	       "how long the record goes on after the first loss"),
	SL_OPTION_END,
};

const struct sl_option sl_feroce_options[] = {
	SL_BOOL(struct sl_feroce_section, enable, false,
		"all modules come from FEROCE devices, over service rc"),
	SL_STRING(struct sl_feroce_section, address, "",
		  "IPv4 address where devices ask to connect; empty: where the link listens"),
	SL_U32(struct sl_feroce_section, port, 0, 0, 65535, "",
	       "UDP port for it; 0: both that devices use, 17185 (0x4321) and 17186 (0x4322)"),
	SL_STRING(struct sl_feroce_section, allow, "",
		  "addresses and prefixes of devices that may connect; required off this host"),
	SL_STRING(struct sl_feroce_section, open, "",
		  "addresses of devices that wait to be asked, first module first"),
	SL_BOOL(struct sl_feroce_section, record, false,
		"devices send the record after the pixels; otherwise the receiver writes it"),
	SL_F64(struct sl_feroce_section, first_s, 0, 0, 1e6, "s",
	       "a device that sends nothing for so long after the start is given up; 0: never, "
	       "as its trigger may come at any time"),
	SL_F64(struct sl_feroce_section, silence_s, 60, 0, 1e6, "s",
	       "a device that has begun and sends nothing for so long is gone; 0: never"),
	SL_OPTION_END,
};

const struct sl_section sl_sections[] = {
	{"detector", "what every detector section takes", sl_detector_options},
	{"calibration", "pedestals, gains and bad pixels from files", sl_calibration_options},
	{"geometry", "where the detector's pixels lie, and which are not to be used",
	 sl_refine_options},
	{"geometry.modules", "a list: modules that are shifted or turned besides",
	 sl_refine_module_options},
	{"link", "what every link section takes", sl_link_options},
	{"ring", "where frames are put together", sl_ring_options},
	{"unit", "what every unit section takes", sl_unit_options},
	{"threads", "where threads run, and how they wait", sl_threads_options},
	{"control", "how front ends find the receiver", sl_control_options},
	{"transfers.NAME", "what one transfer carries, each to a receiver of its own",
	 sl_cut_options},
	{"detectors.NAME", "one of several detectors: besides the options of its kind",
	 sl_missing_options},
	{"detectors.NAME.key", "what a detector has in common with events", sl_key_options},
	{"flight", "the flight recorder, from which sluice explain says why frames were lost",
	 sl_flight_options},
	{"feroce", "FPGAs that connect by the FEROCE connection manager", sl_feroce_options},
	{"goniometer.NAME", "an axis that the sample turns about, or that holds it",
	 sl_axis_options},
	{"metadata", "what users say of the run; keys of their own in a map `keys`",
	 sl_metadata_options},
	{"frontend", "faults on demand, for tests and rehearsals", sl_fault_options},
	{"feedback", "front end: decisions that come back, checked", sl_feedback_options},
	{NULL, NULL, NULL},
};

#define PLAIN(part, name, was, options, field)                                  \
	{                                                                       \
		part, name, was, options, offsetof(struct sl_experiment, field) \
	}

const struct sl_plain_section sl_plain_sections[] = {
	PLAIN(SL_SECTION_RING, "ring", NULL, sl_ring_options, ring),
	PLAIN(SL_SECTION_FRONTEND, "frontend", NULL, sl_fault_options, faults),
	PLAIN(SL_SECTION_FEEDBACK, "feedback", "answers", sl_feedback_options, feedback),
	PLAIN(SL_SECTION_CALIBRATION, "calibration", NULL, sl_calibration_options, calibration),
	PLAIN(SL_SECTION_GEOMETRY, "geometry", NULL, sl_refine_options, geometry),
	PLAIN(SL_SECTION_THREADS, "threads", NULL, sl_threads_options, threads),
	PLAIN(SL_SECTION_CONTROL, "control", NULL, sl_control_options, control),
	PLAIN(SL_SECTION_FLIGHT, "flight", NULL, sl_flight_options, flight),
	PLAIN(SL_SECTION_FEROCE, "feroce", NULL, sl_feroce_options, feroce),
	PLAIN(SL_SECTION_METADATA, "metadata", NULL, sl_metadata_options, known),
	{0, NULL, NULL, NULL, 0},
};
