/* fault_mix_file.h - a mix as an experiment file. */
#ifndef TESTS_LIB_FAULT_MIX_FILE_H
#define TESTS_LIB_FAULT_MIX_FILE_H

#include "lib/fault_mix.h"

static inline void mix_write_link(const struct mix *mix, FILE *file, const char *listen,
				  const char *source)
{
	static const char *const links[] = {"udp", "shm", "verbs"};

	fprintf(file, "link: {kind: %s, service: %s, message: %s, operation: %s, pmtu: %u, crc: %s",
		links[mix->link], mix->rc ? "rc" : "uc", mix->message, mix->send ? "send" : "write",
		mix->pmtu, mix->crc ? "true" : "false");
	if (mix->open_loop && mix->link == MIX_UDP)
		fprintf(file, ", credits: false");
	fprintf(file, ", pollers: %u, listen: %s, source: %s}\n", mix->pollers, listen, source);
}

static inline void mix_write_ring(const struct mix *mix, FILE *file)
{
	static const char *const overruns[] = {"stop", "drop_newest", "drop_oldest", "pause"};
	static const char *const aligns[] = {"sequence", "frame", "timestamp"};

	fprintf(file,
		"ring: {slots: %u, late_frames: %u, late_timeout_ms: 100000, poison: true, "
		"line_pitch: %u, x: %u, y: %u, overrun: %s, incomplete: %s, align: %s",
		mix->slots, mix->late, mix->pitch, mix->ring_x, mix->ring_y, overruns[mix->overrun],
		mix->keep ? "keep" : "drop", aligns[mix->align]);
	if (mix->align == MIX_TIMESTAMP)
		fprintf(file, ", window_ns: %llu", (unsigned long long)mix->window);
	if (mix->align != MIX_SEQUENCE) {
		fprintf(file, ", wrap_bits: %u, offsets: {", mix->wrap_bits);
		for (uint32_t m = 0; m < mix->modules; m++)
			fprintf(file, "%s%u: %lld", m ? ", " : "", m, (long long)mix->offset[m]);
		fprintf(file, "}");
	}
	fprintf(file, "}\n");
}

static inline void mix_write(const struct mix *mix, FILE *file, const char *listen,
			     const char *source)
{
	uint64_t all = (mix->frames + mix->first) * mix_step(mix), darks = mix_darks(mix);

	fprintf(file,
		"detector: {kind: pattern, modules: %u, rows: %u, columns: %u, frames: %llu, "
		"dark_frames: %llu, dark_every: %u}\n",
		mix->modules, mix->above + mix->rows + mix->below,
		mix->left + mix->columns + mix->right, (unsigned long long)(all - darks),
		(unsigned long long)darks, mix->chop);
	mix_write_link(mix, file, listen, source);
	mix_write_ring(mix, file);
	fprintf(file, "unit: {kind: cpu, workers: %u, batch: %u}\n", mix->workers, mix->batch);
	fprintf(file, "threads: {senders: %u%s}\n", mix->senders,
		mix->together ? ", together: true" : "");
	if (mix->stacked)
		fprintf(file,
			"transfers: {part: {every: %u, phase: %u, stack: %u, x: %u, y: %u, "
			"width: %u, height: %u}}\n",
			mix->every, mix->phase, mix->stack, mix->left, mix->above, mix->columns,
			mix->rows);
	fprintf(file, "sinks: ['null', verify]\nfrontend: {%s}\n", mix->faults);
}

#endif
