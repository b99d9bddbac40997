/* again.cu - the last kernel of a graph that CUDA devices launch themselves: it launches the graph once more, from its beginning.
 * Of CUDA alone: OpenCL has no such thing.
 *
 * When it first sees that the word is not 0, there is one more round: what was there before the word was written may be in a
 * buffer that this round has passed. Graphs launched with cudaStreamGraphTailLaunch begin when the one that launched them has
 * ended. */
#include <cuda_runtime_api.h>

/* 1: this round is the last. A module for each graph, so a word for each. */
static __device__ unsigned is_last;

extern "C" __global__ void again(const unsigned *stop)
{
	unsigned word;

	if (is_last) {
		is_last = 0; /* whoever plays it later begins anew */
		return;
	}
	asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(stop) : "memory");
	is_last = word != 0;
	cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
