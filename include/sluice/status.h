/* status.h - the state of a run as one plain structure.
 *
 * Model:     a snapshot: numbers and short texts, copied out of the run. Progress line, report,
 *            summary and everything else that shows a run are functions of it and read nothing
 *            else.
 * Promises:  each column of the ledger is consistent in itself: `settled` is the sum of `outcome`
 *            and `pending`. Columns of two modules may be one frame apart. The frame counts are
 *            consistent among themselves: kept + broken <= frames, prescaled <= kept. A latency's
 *            `count` is the sum of its buckets. A gauge's `now` is at most its `most`. An add-on's
 *            figures are of one moment, a sink's not later than the frame counts. Outcomes, causes,
 *            `settled`, `sent`, frame and packet counts and the counts of latencies never go back
 *            from one snapshot of a run to the next. `sent` is the source's own count: until the
 *            source has ended it may be below or above `settled`.
 * Threads:   plain memory of the caller. The functions that fill it say which thread may call them.
 * Ownership: the caller's. There are no pointers inside: it can be copied, stored and sent.
 * Growth:    members of struct sl_status are only added, at its end; arrays are longer than
 *            today's enums need, and structures inside have reserved words, so that nothing moves.
 *            What the library does not know is 0.
 * Cost:      about 76 KiB. */
#ifndef SLUICE_STATUS_H
#define SLUICE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/outcome.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	SL_STATUS_MODULES = 64,
	SL_STATUS_OUTCOMES = 16, /* at least SL_OUTCOMES; likewise below */
	SL_STATUS_CAUSES = 32,
	SL_STATUS_DROPS = 32,
	SL_STATUS_LATENCIES = 8,
	SL_STATUS_BUCKETS = 48, /* bucket i counts values below 2^i ns; the last one, all others */
	SL_STATUS_ADDONS = 16,
	SL_STATUS_FIGURES = 128,
	SL_STATUS_CPUS = 256,
	SL_STATUS_NAME = 64,
	SL_STATUS_PATH = 1024,
	SL_STATUS_PROGRESS = 96,
	SL_STATUS_TEXTS = 16,
	SL_STATUS_DISKS = 4,
	SL_STATUS_DETECTORS = 8,
	SL_STATUS_CHANGES = 256,
};

enum sl_state {
	SL_STATE_IDLE,
	SL_STATE_CONFIGURED, /* the experiment is read; sources are being planned */
	SL_STATE_ARMED,	     /* every source has a plan, memory and outputs are there */
	SL_STATE_RUNNING,
	SL_STATE_PAUSED,
	SL_STATE_STOPPING, /* sources were asked to end; what they sent is still processed */
	SL_STATE_ENDED,	   /* files are closed, the ledger is final */
	SL_STATE_FAULT,
	SL_STATES,
};
const char *sl_state_name(enum sl_state state); /* "idle", ... */

enum sl_result {
	SL_RESULT_INTACT = 0,	/* ledger closed, nothing lost, damaged or unwritten */
	SL_RESULT_ERROR = 1,	/* it could not run */
	SL_RESULT_DAMAGED = 2,	/* ledger closed, but not everything arrived and was written */
	SL_RESULT_UNCLOSED = 3, /* a source vanished, or the ledger does not close */
	SL_RESULT_EMPTY = 4,	/* nothing was sent, so nothing can be said of it; exits with 0 */
};

enum sl_source_state {
	SL_SOURCE_ABSENT, /* no source has offered this module yet */
	SL_SOURCE_PLANNED,
	SL_SOURCE_RUNNING,
	SL_SOURCE_DONE,	     /* and said how much it sent */
	SL_SOURCE_ENDED,     /* and did not say: what was seen of it counts */
	SL_SOURCE_GONE,	     /* vanished */
	SL_SOURCE_RETURNING, /* another source wants to go on in its place */
};

/* Between two hops of a frame. Wire, total and decision need a clock that source and receiver
 * share. */
enum sl_latency {
	SL_LATENCY_WIRE,     /* source began to send -> last event */
	SL_LATENCY_ASSEMBLE, /* -> frame given out */
	SL_LATENCY_PROCESS,  /* -> unit gave it back */
	SL_LATENCY_SINK,     /* -> last sink returned */
	SL_LATENCY_TOTAL,    /* source began to send -> last sink returned */
	SL_LATENCY_DECISION, /* source began to send -> unit gave it back; with a deadline */
	SL_LATENCIES,
};
const char *sl_latency_name(enum sl_latency latency); /* "wire", ... */

/* What can be wrong with a packet that arrives; each is a counter. */
enum sl_drop {
	SL_DROP_MALFORMED, /* too short, bad opcode, bad lengths or padding */
	SL_DROP_ICRC,
	/* No such queue pair, or not of that service; the header names another part of the
	 * detector than the port takes. */
	SL_DROP_QUEUE,
	SL_DROP_PEER, /* from an address the queue is not connected to */
	SL_DROP_KEY,
	SL_DROP_RANGE,	   /* outside the transfer's blocks, or not where the PSN says */
	SL_DROP_BROKEN,	   /* middle of a message whose beginning or middle was lost */
	SL_DROP_GAP,	   /* RC: something before it is missing; both come again */
	SL_DROP_LATE,	   /* its slot was given up or is complete and closed */
	SL_DROP_AHEAD,	   /* its slot is not open yet */
	SL_DROP_DUPLICATE, /* bytes already received */
	/* The kernel had no room for it: the socket's buffer was full. The kernel counts packets
	 * that it keeps together (GSO, GRO) once: the counter is a lower bound. */
	SL_DROP_FULL,
	SL_DROPS,
};
const char *sl_drop_name(enum sl_drop drop); /* "malformed", ... */

struct sl_status_column {	   /* one module's column of the ledger */
	uint64_t settled;	   /* sequences with an outcome, or pending */
	uint64_t sent;		   /* as its source reported */
	uint64_t skipped;	   /* sequences that the source left out; they are among the lost */
	uint64_t pending, samples; /* in files that are not safe yet; samples of the rejected among
				      them */
	uint64_t outcome[SL_STATUS_OUTCOMES], cause[SL_STATUS_CAUSES];
	uint64_t reserved[4];
};

struct sl_status_source {
	uint32_t state;	      /* enum sl_source_state */
	uint32_t fell_short;  /* 1: so far less than it offered */
	uint64_t first;	      /* sequence with which this run begins */
	uint64_t offered;     /* the sequence after the last one that it offered; 0: not known */
	uint64_t reached;     /* 1 + the highest sequence of which anything arrived */
	uint64_t turned_away; /* module-frames that found no room */
	uint64_t returns;     /* how often another source took over */
	/* The frame that was under way when it vanished; 0 packets: there was none. */
	uint64_t unfinished_sequence, unfinished_packets;
	uint64_t
		opened; /* the sequence after the last one that had a slot: so far its credits go */
	uint64_t reserved[5];
};

struct sl_status_latency {
	uint64_t count, sum_ns, p50_ns, p99_ns, p999_ns, max_ns;
	uint64_t bucket[SL_STATUS_BUCKETS];
	uint64_t reserved[2];
};

struct sl_status_gauge {
	uint64_t now, most, of; /* of: the room that there is; 0: it has no limit */
};

struct sl_status_addon { /* the unit, or a sink */
	char name[SL_STATUS_NAME], where[SL_STATUS_PATH];
	uint32_t is_sink;
	uint32_t has_place; /* 0: it writes nothing, `where` is empty */
	int32_t error;	    /* the first one: 0 or -errno */
	uint32_t first_figure, figures;
	uint32_t optional; /* 1: a sink that is not required: its failures change no outcome */
	uint64_t taken_ns; /* when its own thread copied its figures; 0: not yet */
	uint64_t reserved[4];
};

struct sl_status_figure { /* what an add-on counts by itself */
	char name[SL_STATUS_NAME];
	uint64_t value;
	uint32_t failed; /* 1: makes the run fail unless value is 0 */
	uint32_t unused;
};

struct sl_status_text { /* what an add-on says by itself and is no number */
	char name[SL_STATUS_NAME], value[128];
	uint32_t addon; /* index into sl_status.addon */
	uint32_t unused;
};

struct sl_status_threads {
	char polling[16];
	uint32_t crowded;  /* fewer cpus than threads */
	int32_t ring_node; /* where the ring's memory lies; -1: one node, or not known */
	uint32_t cpus;	   /* in use below; 0: threads are not pinned */
	uint32_t workers;  /* of the unit */
	uint64_t busy_ns;  /* of all workers together */
	int32_t cpu[SL_STATUS_CPUS];
	uint32_t pollers; /* threads of the link */
	uint32_t unused;
	uint64_t reserved[7];
};

/* When a thread of the run last came round its loop, to the next ten milliseconds. A thread that
 * waits comes round every 10 ms, too: an older time means that it is at work on one thing since, as
 * a settler is whose sink writes to a slow disk. */
struct sl_status_progress {
	char name[16];
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: not yet */
};

/* A file system that sinks write to, as it was when the run was armed. What they need is an upper
 * bound: every frame kept, no image packed. */
struct sl_status_disk {
	char path[SL_STATUS_PATH];	   /* the folder of the first file there */
	uint64_t free_bytes;		   /* for this user; quotas are not known */
	uint64_t frame_bytes, fixed_bytes; /* of all sinks: for each frame, and besides */
	uint64_t needed_bytes;		   /* of the whole run; 0: it has no known end */
	uint64_t frames_fit;		   /* about */
	uint32_t is_short;		   /* needed_bytes is more than free_bytes */
	uint32_t unused;
	uint64_t reserved[4];
};

/* How a sink with a thread of its own keeps pace with the data. */
struct sl_status_pace {
	uint32_t threaded; /* 0: it has no thread, and nothing below is known */
	uint32_t on_slow;  /* enum sl_on_slow */
	uint32_t factor;   /* of so many kept frames one is given to it now; 1: all */
	uint32_t changes;  /* of the factor so far */
	/* Frames of the pool that it has, and the number at which it counts as slow. */
	struct sl_status_gauge waiting;
	uint64_t mark;
	uint64_t waited_ns; /* data waited for a frame of the pool, and it had most of them */
	uint64_t left_out;  /* kept frames that it was not given */
	uint64_t reserved[6];
};

struct sl_status_change {  /* of a factor; sequences never go back */
	uint64_t sequence; /* of the first frame that it holds for */
	uint32_t addon, factor;
};

struct sl_status_detector { /* of several in one experiment; the first one defines events */
	char name[SL_STATUS_NAME];
	char link[16], guard[SL_STATUS_NAME];
	uint32_t first_module, modules; /* its columns and sources */
	uint32_t one_way, unused;
	struct sl_status_gauge slots; /* of its ring */
	uint64_t reserved[6];
};

struct sl_status {
	uint32_t bytes; /* of this structure, as the program that filled it knows it */
	uint32_t state; /* enum sl_state */
	int32_t result; /* enum sl_result; -1: not known before SL_STATE_ENDED */
	uint32_t modules, latencies, addons, figures; /* in use below */
	/* Figures that had no room; of these, such as make the run fail. */
	uint32_t figures_left_out, failures_left_out;
	uint64_t taken_ns, first_ns, last_ns; /* CLOCK_MONOTONIC: now; of the first, last frame */
	uint64_t started_unix_ns, ended_unix_ns; /* wall clock; 0: not yet */
	uint64_t expected_frames;		 /* 0: endless or not known */

	/* Frames settled; of these: kept; broken; gone on although modules are missing; kept as a
	 * sample of the rejected; verdict after the deadline; bytes of their pixels. */
	uint64_t frames, kept, broken, partial, prescaled, late, pixel_bytes;
	uint32_t items;	      /* events in a frame; 1: an image */
	uint32_t deadline_us; /* 0: none */
	uint32_t same_clock;  /* source and receiver share a clock */
	uint32_t one_way;     /* nothing goes back to the sources: that they are gone shows by
				 silence alone */
	uint32_t drained;     /* paused, and everything that was sent is settled */
	uint32_t overrun;     /* the run ends because a source found no room */
	uint32_t sources_alive, sources_gone, unsaved; /* unsaved: the outcome log is not whole */
	uint64_t misuse; /* outcomes written twice or out of order: a bug, keeps the ledger open */

	struct sl_status_gauge slots, at_unit, at_sinks;
	/* Placed; those that a switch had marked for congestion; notifications of that to sources;
	 * the smallest of the socket buffers. */
	uint64_t packets, packet_bytes, marked, notified, receive_buffer_bytes;
	uint64_t dropped[SL_STATUS_DROPS];
	struct sl_status_threads threads;
	struct sl_status_column column[SL_STATUS_MODULES];
	struct sl_status_source source[SL_STATUS_MODULES];
	struct sl_status_latency latency[SL_STATUS_LATENCIES];
	struct sl_status_addon addon[SL_STATUS_ADDONS];
	struct sl_status_figure figure[SL_STATUS_FIGURES];
	char experiment[SL_STATUS_PATH]; /* its file */
	char transfer[SL_STATUS_NAME];
	char link[16], guard[SL_STATUS_NAME], proof[SL_STATUS_NAME];
	char stopped_by[16]; /* a signal's name; empty: it ended by itself */
	char early[128];     /* why it ended before its time; empty: it did not */

	char session[SL_STATUS_NAME]; /* its name; empty: it has none */
	char folder[SL_STATUS_PATH];  /* of this run; empty: it has none */
	uint64_t run;		      /* its number, from 1: in its root, else in its session */
	uint32_t progress_threads;    /* in use below */
	uint32_t unused;
	struct sl_status_progress progress[SL_STATUS_PROGRESS];

	/* Frames that their records call dark; that are dark by the options of the detector; that
	 * have the number of the frame before them. */
	uint64_t dark, dark_expected, repeated;

	uint32_t texts, texts_left_out; /* in use below; that had no room */
	struct sl_status_text text[SL_STATUS_TEXTS];

	uint32_t disks, unused_disks; /* in use below */
	struct sl_status_disk disk[SL_STATUS_DISKS];

	/* Every frame with a lower sequence has its outcome, and where that is pending, it is on
	 * disk in every required sink: a killed receiver has stored it. It goes back only if a
	 * required sink cannot be closed. */
	uint64_t watermark;
	struct sl_status_pace pace[SL_STATUS_ADDONS]; /* at the index of the add-on */
	uint32_t changes;			      /* in use below: the first ones of the run */
	uint32_t too_slow; /* 1 + the add-on that ended the run (on_slow: stop); 0: none has */
	struct sl_status_change change[SL_STATUS_CHANGES];

	/* As the experiment asks for it: of the next run, where none is under way. */
	char detector[SL_STATUS_NAME];			/* its kind; empty: not known */
	uint64_t detector_frames, detector_dark_frames; /* 0 frames: endless */
	double detector_rate_Hz;			/* 0: as fast as credits allow */
	/* Of the fullest receive buffer of the link's sockets, as the kernel counts: what waits in
	 * it, now and at most so far. */
	uint64_t waiting_bytes, waiting_most_bytes;
	/* flight.json, where the flight recorder has written it; empty: it has not. */
	char flight[SL_STATUS_PATH];

	/* `slots`, `link` and `guard` above are those of the first of them. */
	uint32_t detectors, unused_detectors; /* in use below; 0: there is one, without a name */
	struct sl_status_detector each[SL_STATUS_DETECTORS];
};

/* Module-frames over all modules. */
uint64_t sl_status_total(const struct sl_status *status, enum sl_outcome outcome);
uint64_t sl_status_sent(const struct sl_status *status);

/* More module-frames have arrived than the source says it sent: its figures contradict the data. */
bool sl_status_contradicts(const struct sl_status_column *column);

/* The ledger is closed: for every module the outcomes add up to what its source sent or left out,
 * nothing is pending, no source is still running, and there was no misuse. */
bool sl_status_closed(const struct sl_status *status);

#ifdef __cplusplus
}
#endif

#endif
