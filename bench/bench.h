/* bench.h - what the files of `sluice bench` share.
 *
 * Model:     a row is one thing that is measured: a link of ours between two processes, or a peer
 *            program. A measurement runs in a process of its own and gives one sample; rounds
 *            interleave the rows, so that what disturbs the machine disturbs all of them.
 * Files:     bench.c the command and its rounds; link/rows.c which rows of links there are;
 *            measure.c one measurement; link/link.c the receiver of a link; link/source.c its
 *            source; net.c the veth pair; callgrind.c instructions per byte; report.c the
 *            table; json.c the same for programs; detector.c detectors, which are
 *            measured in the same way; stage/ stages, likewise;
 *            trigger/ triggers; gpu/ accelerators; codec/ packed images; share/ shares. */
#ifndef SL_BENCH_BENCH_H
#define SL_BENCH_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <sluice/detector.h>

#include "core/link.h"

enum {
	SL_BENCH_NAME = 80,
	SL_BENCH_WHY = 200,
	SL_BENCH_QUEUES = 64,
	SL_BENCH_CORES = 64,
	SL_BENCH_OPTIONS = 3,
	SL_BENCH_QUANTILES = 13,
	SL_BENCH_SAMPLES = 100,
	SL_BENCH_CANNOT = 77, /* exit status: this host does not have or allow it */
};

struct sl_bench_options {
	char json[256], only[SL_BENCH_NAME], address[64];
	bool compared;
	uint32_t rounds;
	double seconds;
	uint64_t receive_buffer;
	bool sweep, callgrind, list;
	bool flight; /* links sample packets, as in runs with a flight recorder */
};

struct sl_bench_sample {
	double GB_per_s;
	double quantile_us[SL_BENCH_QUANTILES]; /* latencies, at sl_bench_levels[] */
	double instructions_per_B;		/* callgrind; 0: not counted */
	uint64_t bytes, lost;			/* lost: packets or messages */
	uint64_t frame_bytes;			/* of a detector, of stages */
	uint32_t frame_items;
	double item_parts;	     /* of triggers: hits of an event, stubs of a sector or event */
	double per_s, share;	     /* of triggers: items that came; time that was lost */
	uint64_t count, late;	     /* of latencies: how many, and how many beyond the deadline */
	double fill_us;		     /* of those at a rate: how long it takes to fill a block */
	double out_GB_per_s, took_s; /* of what goes through rings: back; seconds */
	uint64_t kept;		     /* frames */
	uint64_t published, good, wrongs, unanswered; /* what became of it */
	uint32_t check;		   /* of stages' peers: sl_bench_check() of what they made */
	uint32_t planted, found;   /* of stages that look for peaks */
	uint32_t picked;	   /* of those that keep some pixels */
	double packed;		   /* of codecs: packed bytes of an image's byte */
	bool wrong;		   /* it computed something else than others */
	bool cannot;		   /* for want of a device or a privilege */
	char why[SL_BENCH_WHY];	   /* there is no result, and this is why */
	char device[SL_BENCH_WHY]; /* accelerator and driver */
};

struct sl_bench_row {
	char name[SL_BENCH_NAME];
	bool latency, cut, nocsum;
	const char *why; /* cannot be measured here at all */
	/* a link of ours: */
	const struct sl_link *link;
	uint16_t service, message, pmtu;
	uint32_t queues;
	uint64_t block_bytes, ring_bytes; /* of a queue; of all */
	const char *option[SL_BENCH_OPTIONS][2];
	unsigned pollers, sources; /* threads that take, processes that send; 0: one */
	/* or a detector: */
	const struct sl_detector *detector;
	bool fresh; /* frames are made, not replayed */
	/* or stages, or a peer of theirs: */
	const struct sl_bench_work *work;
	const char *vectors; /* instructions to use; NULL: the best */
	uint32_t stack, cores, size;
	const struct sl_bench_trigger *trigger; /* stages of a trigger, or what is beside them */
	const struct sl_bench_gpu *gpu;		/* stages on an accelerator, or its memory */
	const struct sl_platform *platform;
	const struct sl_bench_codec *codec; /* or packing images, by us or by a library */
	const struct sl_bench_share *share; /* or a share that is followed */
	/* or a peer: */
	const char *program, *mode;
	uint64_t bytes;
	/* results */
	struct sl_bench_sample *sample;
	unsigned samples;
	bool cannot; /* why, failed: it is not our fault */
	bool broken; /* failed once, and is left out from then on */
	char failed[SL_BENCH_WHY];
};

enum sl_bench_kind {
	SL_BENCH_LINKS,
	SL_BENCH_DETECTORS,
	SL_BENCH_STAGES,
	SL_BENCH_TRIGGERS,
	SL_BENCH_GPUS,
	SL_BENCH_CODECS,
	SL_BENCH_SHARES
};

struct sl_bench_trigger;
struct sl_bench_codec;
struct sl_bench_share;
struct sl_bench_gpu;
struct sl_bench_figure;
struct sl_platform;
struct sl_bench_work;
struct sl_bench_stages;

struct sl_bench {
	struct sl_bench_options o;
	struct sl_bench_row *row;
	unsigned rows, capacity;
	enum sl_bench_kind kind;
	struct sl_bench_stages *stages; /* what is measured, where it is stages */
	pid_t holder[2]; /* of the network namespaces of /cut: receiver, sender; 0: none */
	char no_cut[SL_BENCH_WHY];
	/* Cpus of this process: the receiver's, the sender's, more for workers; -1: wherever. */
	int core[SL_BENCH_CORES];
	unsigned cores; /* how many of them there are, up to SL_BENCH_CORES */
};

extern const double sl_bench_levels[SL_BENCH_QUANTILES];
/* Indices into it. */
enum { SL_BENCH_P50 = 5, SL_BENCH_P99 = 9, SL_BENCH_P999 = 10, SL_BENCH_P9999, SL_BENCH_MOST };

/* The wanted rows; 0 or -ENOMEM. */
int sl_bench_rows(struct sl_bench *bench);

int sl_bench_detector_rows(struct sl_bench *bench);

int sl_bench_stage_rows(struct sl_bench *bench);
int sl_bench_stage_prepare(struct sl_bench *bench); /* frames, before all rounds; 0 or -errno */
void sl_bench_stage_end(struct sl_bench *bench);

int sl_bench_trigger_rows(struct sl_bench *bench);

int sl_bench_codec_rows(struct sl_bench *bench);

int sl_bench_share_rows(struct sl_bench *bench);

int sl_bench_gpu_rows(struct sl_bench *bench);
int sl_bench_gpu_prepare(struct sl_bench *bench);
int sl_bench_gpu(const struct sl_bench *bench, const struct sl_bench_row *row,
		 struct sl_bench_sample *sample);
void sl_bench_print_gpu(const struct sl_bench *bench, FILE *out);
void sl_bench_put_gpu(const struct sl_bench *bench, const struct sl_bench_row *row,
		      const struct sl_bench_figure *f, FILE *out);

/* What is known of a latency row of accelerators besides its figures. */
void sl_bench_put_paced(const struct sl_bench_row *row, FILE *out);

int sl_bench_trigger_prepare(struct sl_bench *bench); /* events, before all rounds; 0 or -errno */

/* Two namespaces with a veth pair between them that cuts and merges nothing, or bench->no_cut. */
void sl_bench_net_open(struct sl_bench *bench);
void sl_bench_net_close(struct sl_bench *bench);

/* Enter the namespace of one side and its core: 0 receiver, 1 sender. 0 or -errno. */
int sl_bench_take_side(const struct sl_bench *bench, const struct sl_bench_row *row, unsigned side);
const char *sl_bench_address(const struct sl_bench *bench, const struct sl_bench_row *row,
			     unsigned side, char text[64]);

/* A row of Sluice itself; else it is a peer. */
static inline bool sl_bench_is_ours(const struct sl_bench_row *row)
{
	return row->link || row->detector || row->codec || row->share || (row->work && !row->mode);
}

/* A program beside this one, if it was built. */
enum { SL_BENCH_PATH = 512 };
bool sl_bench_find_program(const char *name, char path[SL_BENCH_PATH]);
/* `sluice` itself: $SLUICE, which `sluice bench` sets, or the one of this build. */
bool sl_bench_find_sluice(char path[SL_BENCH_PATH]);
/* The last line that is in a file, which is why something failed; "": there is none. */
void sl_bench_last_line(int fd, char *text, size_t bytes);
/* What a program of ours printed: one line of JSON. */
void sl_bench_parse(const char *said, bool latency, struct sl_bench_sample *sample);

/* One measurement, in a process of its own. */
void sl_bench_measure(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample);

/* The same under valgrind: sample->instructions_per_B, of both ends together. */
void sl_bench_count(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample);

/* In that process: a link of ours. 0 or -errno, and what is known in sample->why. */
int sl_bench_link(const struct sl_bench *bench, const struct sl_bench_row *row,
		  struct sl_bench_sample *sample);
/* The same of a detector. */
int sl_bench_detector(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample);
/* The same of stages. */
int sl_bench_stage(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample);
/* The same of triggers. */
int sl_bench_trigger(const struct sl_bench *bench, const struct sl_bench_row *row,
		     struct sl_bench_sample *sample);
/* The same of codecs. */
int sl_bench_codec(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample);
/* The same of shares. */
int sl_bench_share(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample);
void sl_bench_quantiles(uint32_t *ns, size_t n, double quantile_us[SL_BENCH_QUANTILES]);

void sl_bench_print(const struct sl_bench *bench, FILE *out);
void sl_bench_print_detectors(const struct sl_bench *bench, FILE *out);
void sl_bench_print_stages(const struct sl_bench *bench, FILE *out);
void sl_bench_print_triggers(const struct sl_bench *bench, FILE *out);
void sl_bench_print_codecs(const struct sl_bench *bench, FILE *out);
void sl_bench_print_shares(const struct sl_bench *bench, FILE *out);
/* What is known of a row of shares besides its figure, as members of a JSON object. */
void sl_bench_put_share_rate(const struct sl_bench_row *row, FILE *out);
void sl_bench_put_share_latency(const struct sl_bench_row *row, FILE *out);
/* What is known of a row of triggers besides its figures, as members of a JSON object. */
void sl_bench_put_trigger(const struct sl_bench_row *row, FILE *out);
int sl_bench_write_json(const struct sl_bench *bench, const char *path);

struct sl_bench_figure { /* of a row over the rounds */
	double median, min, max;
};
typedef double sl_bench_pick(const struct sl_bench_sample *sample, unsigned which);
bool sl_bench_summarise(const struct sl_bench_row *row, sl_bench_pick *pick, unsigned which,
			struct sl_bench_figure *figure);
double sl_bench_pick_rate(const struct sl_bench_sample *sample, unsigned which);
double sl_bench_pick_quantile(const struct sl_bench_sample *sample, unsigned which);
double sl_bench_pick_cost(const struct sl_bench_sample *sample, unsigned which);
uint64_t sl_bench_lost(const struct sl_bench_row *row);

/* Of a detector's row at that rate. */
double sl_bench_events_per_s(const struct sl_bench_row *row, const struct sl_bench_figure *figure);

/* Of a row of stages at that rate. */
double sl_bench_ms_per_frame(const struct sl_bench_row *row, double GB_per_s);
double sl_bench_ms_limit(const struct sl_bench_row *row); /* hoped for at most; 0: nothing is */

/* What is compared, and what is hoped for on two quiet cores. peer may be several, as in "a|b": the
 * best of them in each round. */
struct sl_bench_ratio {
	const char *row, *peer;
	double expected;
	struct sl_bench_figure figure; /* of the quotients within each round */
};

/* The i-th comparison; false after the last. figure.median is 0 where a side is missing. */
bool sl_bench_compare(const struct sl_bench *bench, unsigned i, struct sl_bench_ratio *ratio);

/* Those of stages; NULL after the last. */
const struct sl_bench_ratio *sl_bench_stage_comparison(unsigned i);
/* Those of triggers. */
const struct sl_bench_ratio *sl_bench_trigger_comparison(unsigned i);

/* Those of codecs. */
const struct sl_bench_ratio *sl_bench_codec_comparison(unsigned i);
/* Those of shares. */
const struct sl_bench_ratio *sl_bench_share_comparison(unsigned i);

/* Whether a row of this name is in any of them. */
bool sl_bench_compared(const char *name);

/* ---- between receiver and source of a link of ours ---- */

struct sl_bench_shared {		 /* anonymous shared memory */
	_Atomic uint32_t stop;		 /* no new blocks */
	_Atomic uint32_t done;		 /* everything has arrived, or will not: go */
	_Atomic uint64_t end;		 /* 1 + the sequences that were sent; 0: still sending */
	_Atomic uint64_t most;		 /* sequences that some source has begun */
	_Atomic uint32_t said, finished; /* sources that said theirs, and that sent so many */
	_Atomic uint64_t position[SL_BENCH_QUEUES];
	_Alignas(64) _Atomic uint64_t stamp_ns; /* latency: when the message was posted */
	_Alignas(64) _Atomic uint64_t seen;	/* latency: blocks; one way: packets */
};

struct sl_bench_source {
	const struct sl_bench *bench;
	const struct sl_bench_row *row;
	struct sl_bench_shared *shared;
	const uint8_t *memory; /* the pixels of all blocks, around and around */
	uint64_t memory_bytes;
	unsigned index;	      /* which of row->sources */
	uint32_t first, last; /* its queues; last: the one behind them */
	int fd;		      /* to the receiver: offers out, plans in, a byte when connected */
};

/* Where the bytes of a block come from. */
const uint8_t *sl_bench_block(const struct sl_bench_source *source, uint64_t sequence,
			      uint32_t queue);
/* The state of a link with the row's options; NULL: it said why. */
void *sl_bench_state(const struct sl_bench *bench, const struct sl_bench_row *row);
/* To its cpu, where a row has several: threads of the receiver first, then the sources. */
void sl_bench_take_cpu(const struct sl_bench *bench, const struct sl_bench_row *row, unsigned at);
static inline unsigned sl_bench_at_least_1(unsigned n)
{
	return n ? n : 1;
}
/* The source's process, until the receiver is done. 0 or -errno. */
int sl_bench_send(struct sl_bench_source *source);

#endif
