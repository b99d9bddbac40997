/* write.c - the same bytes as plain as can be: write and fsync, as `dd conv=fsync` does. What
 * the disk and the file system give, whatever the format. */
#include <fcntl.h>
#include <unistd.h>

#include "bench/peer/peer.h"

#define USAGE "peer_write PATH BYTES-PER-WRITE WRITES"

enum { SOURCES = 32 }; /* different places, as the sink's images have */

/* Nothing that a file system could pack. */
static void scramble(uint8_t *data, size_t bytes)
{
	uint64_t state = 1;

	for (size_t i = 0; i + sizeof(state) <= bytes; i += sizeof(state)) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		memcpy(data + i, &state, sizeof(state));
	}
}

static void write_whole(int fd, const uint8_t *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, data, bytes);

		if (n < 0)
			bench_fail("write");
		data += n;
		bytes -= (size_t)n;
	}
}

int main(int argc, char **argv)
{
	uint64_t bytes, writes;
	uint8_t *source;
	double start, seconds;
	int fd;

	if (argc != 4)
		bench_usage(USAGE);
	bytes = bench_number(argv[2], USAGE);
	writes = bench_number(argv[3], USAGE);
	source = bench_memory(bytes * SOURCES, MAP_PRIVATE);
	scramble(source, bytes * SOURCES);

	start = bench_now_s();
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		bench_fail(argv[1]);
	for (uint64_t i = 0; i < writes; i++)
		write_whole(fd, source + i % SOURCES * bytes, bytes);
	if (fsync(fd) || close(fd))
		bench_fail("fsync");
	seconds = bench_now_s() - start;
	printf("{\"GB_per_s\": %.6f, \"seconds\": %.6f}\n",
	       1e-9 * (double)(bytes * writes) / seconds, seconds);
	return 0;
}
