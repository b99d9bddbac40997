# A front for meson and the scripts in tools/: make, make demo, make check. With V=1 you see everything they do.

.NOTPARALLEL:
.PHONY: all demo check check-ci check-long check-mutants check-reference check-interop check-interop-short bench curves screenshots fuzz fuzz-long format install-deps clean
export V

all:
	@tools/deps.sh build
	@tools/build.sh build -- product

demo:
	@tools/deps.sh demo
	@tools/build.sh build -- sluice
	@tools/demo.sh

check:
	@tools/deps.sh check
	@tools/check.py

# What CI runs: check, and behind it Soft-RoCE of the newest kernel, where this is root.
check-ci:
	@tools/deps.sh check
	@[ "$$(id -u)" -ne 0 ] || tools/deps.sh interop
	@tools/check.py --interop 6.12 --timings --again --fuzz-seconds 2

# All of check with its long campaigns, fault mixes drawn at random (each outcome compared with the fault log), Soft-RoCE of all
# kernels, also with sanitizers on our side, and mutants of every folder. Two to three hours on two cores. SEED=n begins with that mix.
SEEDS = 10000
check-long:
	@tools/deps.sh check-long
	@tools/check.py --long
	@tools/build.sh build -Dtests=true -- src/receiver_fault_mix_test
	@build/src/receiver_fault_mix_test $(SEED) $(SEEDS)
	@tools/check_interop.py
	@tools/check_interop.py --asan
	@$(MAKE) --no-print-directory check-mutants

# Small wrong changes of the code, MUTANTS of each folder of src drawn by MUTANT_SEED: the tests must find 95 % of them. Two cores do one of
# each folder in MUTANT_SECONDS, also when other programs keep them busy (docs/how-to/test.md).
MUTANTS = 1
MUTANT_SEED = 1
MUTANT_SECONDS = 7200
check-mutants:
	@tools/deps.sh check
	@tools/mutate.py -n $(MUTANTS) --seed $(MUTANT_SEED) --seconds $(MUTANT_SECONDS)

# Stages against pyFAI and numpy; a few minutes.
check-reference:
	@tools/deps.sh reference
	@tools/check_reference.py

# Against Linux Soft-RoCE in virtual machines; needs root. The short one boots the newest kernel alone.
check-interop:
	@tools/check_interop.py

check-interop-short:
	@tools/check_interop.py --kernel 6.12

bench:
	@tools/deps.sh bench
	@tools/build.sh build -- product
	@tools/bench.py

# Stages and triggers against the emulator's truth: tables and plots of docs/reference/curves.md, rings.md and tracks.md; about four minutes.
curves:
	@tools/deps.sh curves
	@tools/build.sh build -- sluice
	@tools/curves.py
	@tools/trigger_curves.py

# The live page with a run of examples/live, as pictures of the docs: docs/pictures/page-*.png; about two minutes.
screenshots:
	@tools/deps.sh screenshots
	@tools/build.sh build -- sluice
	@tools/screenshots.py

# Each target runs this long; two at a time.
SECONDS = 1200
fuzz:
	@tools/deps.sh check
	@tools/check.py --only fuzz --fuzz-seconds $(SECONDS)

# Mutated packets thrown at queues whose memory is fenced; says first how long it takes. SEED=n repeats a run.
PACKETS = 1000000000
SEED = $(shell date +%s)
fuzz-long:
	@tools/deps.sh check
	@tools/build.sh build -Dtests=true -- src/roce_fence_test
	@build/src/roce_fence_test $(PACKETS) $(SEED)

format:
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format-14 -i

install-deps:
	@tools/deps.sh check

clean:
	rm -rf build build-asan build-tsan build-fuzz build-mutants demo-out bench-out
