#!/usr/bin/python3
"""embed_kernels.py - a source of kernels becomes a C file with all forms that drivers take.

  tools/embed_kernels.py SOURCE kernel_NAME.c DEPFILE [NVCC]

The OpenCL form is one text, with all its headers in it; DEPFILE lists them for ninja. With NVCC there is a fatbin, too: machine
code for Ampere and Hopper, and PTX, which drivers make code for younger GPUs of. A source NAME.cu is for CUDA alone, and may
call what a device has of the CUDA runtime: that is linked in, so there is machine code of each family, and no PTX.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# One PTX for all: that of compute_90 differs in its name alone, and making it takes longer than what is made of it. But
# where a kernel says a word that Hopper has an instruction for, each has its own.
TARGETS = ("arch=compute_80,code=[sm_80,sm_90,compute_80]",)
APART = ("arch=compute_80,code=sm_80", "arch=compute_90,code=[sm_90,compute_90]")
WORDS_OF_HOPPER = ("sl_max_i16x2",)
# Those of them that nvcc knows, where there can be no PTX.
FAMILIES = ("80", "90", "100", "120")
# Floats are to be those of the CPU (src/gpu/dialect/language.h).
EXACT = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")


def flat(path, seen):
    """The text of a file with its own headers in it, each once."""
    def insert(match):
        header = ROOT / ("" if match[1].startswith("bench/") else "src") / match[1]
        if header in seen:
            return ""
        seen.add(header)
        return flat(header, seen)
    return INCLUDE.sub(insert, path.read_text())


def quoted(text):
    """As C string literals, a line each."""
    lines = (line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines())
    return "\n".join(f'\t"{line}\\n"' for line in lines)


def fatbin(source, nvcc):
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "kernels.fatbin"
        apart = any(word in source.read_text() for word in WORDS_OF_HOPPER)
        codes = [word for target in (APART if apart else TARGETS) for word in ("-gencode", target)]
        subprocess.run([nvcc, "-x", "cu", "-fatbin", "-O3", *EXACT, *codes, "-I", ROOT / "src", "-I", ROOT, "-o", output, source],
                       check=True)
        return output.read_bytes()


def linked(source, nvcc):
    """The fatbin of kernels that call the device's part of the CUDA runtime."""
    known = subprocess.run([nvcc, "--list-gpu-code"], check=True, capture_output=True, text=True).stdout.split()
    codes = [word for n in FAMILIES if f"sm_{n}" in known for word in ("-gencode", f"arch=compute_{n},code=sm_{n}")]
    with tempfile.TemporaryDirectory() as folder:
        compiled, output = (pathlib.Path(folder) / name for name in ("kernels.o", "kernels.fatbin"))
        for step in (["-dc", "-O3", "-o", compiled, source], ["-dlink", "-fatbin", "-o", output, compiled, "-lcudadevrt"]):
            if subprocess.run([nvcc, *codes, *step]).returncode:  # before CUDA 12, or without libcudadevrt: all else works
                print(f"{source.name} cannot be built: GPUs will not launch graphs themselves", file=sys.stderr)
                return None
        return output.read_bytes()


def main():
    source, output = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    name = output.stem.removeprefix("kernel_")
    is_cuda = source.suffix == ".cu"
    code = (linked if is_cuda else fatbin)(source, sys.argv[4]) if len(sys.argv) > 4 else None
    header = source.with_suffix(".h").relative_to(ROOT / "src") if is_cuda else "gpu/dialect/kernels.h"
    headers = set()
    opencl = flat(source, headers)
    # C wants the text of a literal to be limited; compilers do not mind.
    text = f'/* Made of {source.name} by tools/embed_kernels.py. */\n#include "{header}"\n\n'
    fields = f'\t.name = "{name}",\n'
    if not is_cuda:
        text += f"static const char opencl[] =\n{quoted(opencl)};\n\n"
        fields += "\t.opencl = opencl,\n"
    # Some are functions of the program, too (NAME_functions.c beside them): for platform `threads`.
    if source.with_name(f"{name}_functions.c").exists():
        text += f"extern const struct sl_kernel_function sl_functions_{name}[];\n\n"
        fields += f"\t.function = sl_functions_{name},\n"
    if code:
        rows = (code[i:i + 32] for i in range(0, len(code), 32))
        numbers = "\n".join("\t" + ",".join(map(str, row)) + "," for row in rows)
        text += f"static const _Alignas(16) unsigned char fatbin[] = {{\n{numbers}\n}};\n\n"
        fields += "\t.fatbin = fatbin,\n\t.fatbin_bytes = sizeof(fatbin),\n"
    output.write_text(text + f"const struct sl_kernels sl_kernels_{name} = {{\n{fields}}};\n")
    pathlib.Path(sys.argv[3]).write_text(f"{sys.argv[2]}: {' '.join(sorted(map(str, {source, *headers})))}\n")


if __name__ == "__main__":
    sys.exit(main())
