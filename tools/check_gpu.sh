#!/bin/sh
# check_gpu.sh - what only a host with an NVIDIA GPU can check: every kernel against the CPU, then under compute-sanitizer
# (memcheck, racecheck), those of rings, too, then the demo's experiment on unit `cuda` beside unit `cpu`. 6 minutes.
#
#   tools/check_gpu.sh [BUILD [RESULTS]]    BUILD: a folder with sluice, bench/sluice-bench, src/receiver_test and src/gpu_test;
#                                           RESULTS: where files go
#
# The two files of the demo are compared by tools/same_file.py, which needs h5py.
set -u
build=${1:-build}
out=${2:-gpu-out}
here=$(dirname "$0")
failed=0
mkdir -p "$out"
rm -f "$out"/*check-* # of a run before

say() {
	if [ "$2" -eq 0 ]; then echo "ok      $1"; else echo "FAILED  $1: see $3"; failed=1; fi
}

"$build/sluice" list cuda >"$out/cuda.txt" 2>&1
if grep 'not usable here' "$out/cuda.txt"; then
	exit 1
fi
test="$build/src/receiver_test gpu"
export SLUICE_UNIT=cuda # OpenCL's kernels on this GPU are not ours to check here
$test >"$out/chains.txt" 2>&1
status=$?
say "$(grep -c 'cuda: NVIDIA' "$out/chains.txt") chains of stages on CUDA, results as on the CPU" $status "$out/chains.txt"
for name in kernel ring; do
	"$build/src/gpu_test" ring/$name >"$out/$name.txt" 2>&1
	say "src/gpu/ring/${name}_test.c" $? "$out/$name.txt"
done
# Side by side, in shares, for each takes minutes. Kernels are in these two tests, the others are about what fails around them.
# With one trigger, for kernels are the same, but for those that poll, and those around a loop.
check() { # tool tests trigger share name
	SLUICE_TESTS="test_$2*" SLUICE_TRIGGER=$3 SLUICE_SHARE=$4 \
		compute-sanitizer --tool "$1" --error-exitcode 9 $test >"$out/$1-$5.txt" 2>&1
	echo $? >"$out/$1-$5.status"
}
for share in 0 1 2 3 4 5; do
	check racecheck results launch $share/6 $share-of-6 &
done
for share in 0 1; do
	check memcheck results launch $share/2 $share-of-2 &
done
for tool in memcheck racecheck; do
	check $tool results persistent 0/1 polling &
	check $tool results loop 0/8 looped &
	check $tool edges launch 0/1 edges &
done
# Kernels of rings that need no host beside them, cells and tracks; the bench compares what they find with the scalar program. Its
# rows are processes of their own, so there are as many as rows to be followed, and all rows have to be there.
rows=6
check_rings() { # tool
	compute-sanitizer --tool "$1" --target-processes all --error-exitcode 9 "$build/sluice" bench gpu --only 'cuda/ring-*/alone' \
		--rounds 1 --seconds 0.01 >"$out/$1-rings.txt" 2>&1
	status=$?
	[ "$(grep -c '^cuda/ring-.*alone' "$out/$1-rings.txt")" -eq $rows ] && grep -q 'SUMMARY: 0' "$out/$1-rings.txt" &&
		! grep -qE 'left out|SUMMARY: [1-9]' "$out/$1-rings.txt" || status=1
	echo $status >"$out/$1-rings.status"
}
for tool in memcheck racecheck; do
	check_rings $tool &
done
wait
for status in "$out"/*check-*.status; do
	text=${status%.status}.txt
	chains=$(grep -cE 'cuda: NVIDIA|^cuda/ring-' "$text")
	[ "$chains" -gt 0 ] || echo 1 >"$status" # nothing was checked
	say "$(basename "${status%.status}"), $chains chains: $(grep -E 'SUMMARY' "$text" | sed 's/=* //' | sort -u)" "$(cat "$status")" "$text"
done
for unit in cpu cuda; do
	"$build/sluice" run "$here/../examples/jungfrau-laptop.yaml" --set unit.kind=$unit --set link.kind=shm \
		--set detector.frames=100 --set "sinks[0].nexus.path=$out/$unit.nxs" --summary "$out/$unit.json" >"$out/$unit.txt" 2>&1
	say "the demo's experiment on unit $unit" $? "$out/$unit.txt"
done
if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
	/usr/bin/python3 "$here/same_file.py" "$out/cpu.nxs" "$out/cuda.nxs"
	say "its files are the same" $? "$out"
else
	echo "skipped its files are the same: h5py is not here"
fi
exit $failed
