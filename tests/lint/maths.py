#!/usr/bin/python3
"""maths.py - headers that kernels share with the CPU compile as C11, CUDA C and OpenCL C, alone and with all warnings; kernels
as the latter two.

clang is the compiler for all three: it needs neither a CUDA toolkit nor an OpenCL driver for that.
"""

import pathlib
import re
import shutil
import subprocess
import sys


# What CUDA's own headers would declare.
CUDA = """
#define __device__ __attribute__((device))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
extern "C" __device__ float __fsqrt_rn(float);
extern "C" __device__ float fabsf(float);
extern "C" __device__ double fabs(double);
extern "C" __device__ double floor(double);
extern "C" __device__ double sqrt(double);
extern "C" __device__ int __float_as_int(float);
extern "C" __device__ float __int_as_float(int);
#define __CUDACC__
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct dim3 { unsigned x, y, z; };
extern __device__ const dim3 threadIdx, blockIdx, blockDim, gridDim;
extern "C" __device__ uint4 make_uint4(unsigned, unsigned, unsigned, unsigned);
extern "C" __device__ void __syncthreads(void);
extern "C" __device__ unsigned __reduce_add_sync(unsigned, unsigned);
extern "C" __device__ int __popc(unsigned);
extern "C" __device__ unsigned __vmaxs2(unsigned, unsigned);
extern "C" __device__ int __clz(int);
extern "C" __device__ unsigned atomicAdd(unsigned *, unsigned);
extern "C" __device__ unsigned atomicOr(unsigned *, unsigned);
extern "C" __device__ unsigned atomicMin(unsigned *, unsigned);
extern "C" __device__ int __clzll(long long);
extern "C" __device__ unsigned long long __umul64hi(unsigned long long, unsigned long long);
extern "C" __device__ long long __double2ll_rn(double);
extern "C" __device__ double sqrt(double);
extern "C" __device__ unsigned __shfl_down_sync(unsigned, unsigned, unsigned);
extern "C" __device__ void __syncwarp(void);
extern "C" __device__ void __threadfence_system(void);
extern "C" __device__ void __threadfence(void);
extern "C" __device__ void __nanosleep(unsigned);
extern "C" __device__ unsigned __ballot_sync(unsigned, int);
extern "C" __device__ unsigned __shfl_up_sync(unsigned, unsigned, unsigned);
extern "C" __device__ unsigned __reduce_max_sync(unsigned, unsigned);
extern "C" __device__ unsigned __reduce_or_sync(unsigned, unsigned);
extern "C" __device__ int __any_sync(unsigned, int);
extern "C" __device__ int __syncthreads_or(int);
extern "C" __device__ unsigned __funnelshift_r(unsigned, unsigned, unsigned);
"""
LANGUAGES = {
    "C11": ("c", ["-std=c11", "-ffreestanding"], ""),
    "CUDA C": ("cuda", ["--cuda-device-only", "--cuda-gpu-arch=sm_70", "-nocudainc", "-nocudalib", "-std=c++14"], CUDA),
    "OpenCL C": ("cl", ["-cl-std=CL1.2", "-Xclang", "-fdeclare-opencl-builtins", "-Xclang", "-finclude-default-header"],
                 ""),
}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wdouble-promotion", "-Wno-unused-function", "-Wno-unknown-cuda-version"]


def compile_as(root, header, language):
    kind, options, before = LANGUAGES[language]
    text = f'{before}#include "{header}"\n'
    done = subprocess.run(["clang", "-x", kind, *options, *WARNINGS, "-fsyntax-only", "-I", str(root / "src"), "-I", str(root), "-"],
                          input=text, capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stderr.strip().splitlines()[:8]


INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def shared_headers(root, kernels):
    """Every .h that a kernel includes, itself or by another header."""
    seen, todo = set(), list(kernels)
    while todo:
        name = todo.pop()
        path = root / name if name.startswith("bench/") else root / "src" / name
        found = set(INCLUDE.findall(path.read_text())) - seen
        seen |= found
        todo += found
    return sorted(name for name in seen if name.endswith(".h"))


def main():
    root = pathlib.Path(sys.argv[1])
    if not shutil.which("clang"):
        print("1..0 # skipped: no clang")
        return 0
    kernels = sorted(path.relative_to(root / "src").as_posix() for path in (root / "src").rglob("*.cl"))
    kernels += sorted(path.relative_to(root).as_posix() for path in (root / "bench").rglob("*.cl"))
    headers = shared_headers(root, kernels)
    cases = [(header, language) for header in headers for language in LANGUAGES]
    cases += [(kernel, language) for kernel in kernels for language in LANGUAGES if language != "C11"]
    print(f"1..{len(cases)}")
    failed = 0
    for number, (header, language) in enumerate(cases, 1):
        good, said = compile_as(root, header, language)
        print(f"{'ok' if good else 'not ok'} {number} - {header} is {language}")
        for line in said if not good else ():
            print("#", line)
        failed += not good
    return 1 if failed or not headers or not kernels else 0


sys.exit(main())
