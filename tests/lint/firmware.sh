#!/bin/sh
# The core of a front end and src/roce, compiled for bare processors as they sit in FPGAs and beside sensors: what it
# needs beyond memcpy and memset, and how large it is; and, where qemu-user is here, a run of it: its packets must be
# those that this host makes. Usage: firmware.sh SOURCE_ROOT. Prints TAP; sizes as notes.
cd "${1:?usage: firmware.sh SOURCE_ROOT}" || exit 1
. tests/lint/core.sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# What compilers call by themselves: 64-bit arithmetic on 32-bit processors, and registers saved by a common routine.
helpers="__udivdi3 __umoddi3 __divdi3 __moddi3 __muldi3 __ashldi3 __lshrdi3 __clzsi2 __clzdi2 __ctzsi2
	__aeabi_uldivmod __aeabi_ldivmod __aeabi_uidiv __aeabi_uidivmod __aeabi_llsl __aeabi_llsr __aeabi_lmul
	__riscv_save_0 __riscv_restore_0"
# Where a program enters: from here on the linker drops what nobody calls.
roots="sl_sender_init sl_frontend_frame sl_frontend_next sl_frontend_answer"

fail() {
	echo "not ok $number - $name"
	printf '%s\n' "$1" | sed 's/^/# /'
	failed=1
}

# The target itself failed, and so there is nothing to run.
fail_both() {
	fail "$1"
	number=$((number + 1))
	echo "ok $number - $name: its packets are those of this host # SKIP it did not build"
}

bare() { # CC, ARGUMENTS...: compile without a C library
	cc=$1
	shift
	"$cc" -std=gnu11 -ffreestanding -nostdinc -isystem "$("$cc" -print-file-name=include)" \
		-isystem tests/lint/freestanding -Iinclude -Isrc -Os "$@"
}

compile() { # CC, FLAGS: all of it into $work
	for source in $roce $core; do
		bare "$1" $2 -Wall -Werror -ffunction-sections -fdata-sections -c "$source" \
			-o "$work/$(basename "$source" .c).o" || return 1
	done
	printf '#include "frontend/sender.h"\nchar sender[sizeof(struct sl_sender)], frontend[sizeof(struct sl_frontend)];' |
		bare "$1" $2 -xc -c - -o "$work/sizes"
}

# PREFIX, FLAGS, QEMU: what is in $work, run. The loops of memcpy must not become calls of memcpy; nobody sets gp.
run_it() {
	name="$name: its packets are those of this host"
	number=$((number + 1))
	command -v "${3%% *}" >/dev/null || {
		echo "ok $number - $name # SKIP no ${3%% *}; on Debian: apt-get install qemu-user"
		return
	}
	log=$(bare "$1gcc" $2 -fno-tree-loop-distribute-patterns -nostdlib -Wl,--gc-sections -Wl,-z,noseparate-code \
		$4 -DDIGEST="$digest" tests/lint/freestanding/selftest.c "$work"/*.o -lgcc -o "$work/selftest" 2>&1) || {
		fail "$log"
		return
	}
	if log=$($3 "$work/selftest" 2>&1); then
		echo "ok $number - $name"
	else
		fail "other packets, or it crashed: $log"
	fi
}

bytes_of() { # PREFIX, SYMBOL: its size in $work/sizes
	printf '%d' "0x$("$1nm" --format=posix "$work/sizes" | awk -v s="$2" '$1 == s { print $4 }')"
}

sections() { # PREFIX, FILE, PATTERN: bytes of the sections whose names match
	"$1size" -A "$2" | awk -v p="$3" '$1 ~ p { n += $2 } END { print n + 0 }'
}

# NAME, PREFIX of the tools, FLAGS, PACKAGE, QEMU, FLAGS for the linker to run it
target() {
	name=$1
	number=$((number + 1))
	command -v "$2gcc" >/dev/null || {
		echo "ok $number - $name # SKIP no $2gcc; on Debian: apt-get install $4"
		number=$((number + 1))
		echo "ok $number - $name: its packets are those of this host # SKIP no $2gcc"
		return
	}
	rm -f "$work"/*
	log=$(compile "$2gcc" "$3" 2>&1) || {
		fail_both "$log"
		return
	}
	foreign=$(foreign_symbols "$2nm" "$work" memcpy memset $helpers)
	[ -z "$foreign" ] || {
		fail_both "undefined: $foreign"
		return
	}
	wanted=
	for root in $roots; do wanted="$wanted -Wl,-u,$root"; done
	log=$("$2gcc" $3 -nostdlib -Wl,--gc-sections -Wl,-e,sl_frontend_next $wanted \
		-Wl,--unresolved-symbols=ignore-all "$work"/*.o -lgcc -o "$work/core.elf" 2>&1) || {
		fail_both "$log"
		return
	}
	written=$(sections "$2" "$work/core.elf" '^[.](s?data|s?bss)')
	[ "$written" -eq 0 ] || {
		fail_both "$written bytes of variables of its own: everything belongs in the caller's memory"
		return
	}
	echo "# note: $name: $(sections "$2" "$work/core.elf" '^[.]text') bytes of code," \
		"$(sections "$2" "$work/core.elf" '^[.](s?rodata|srodata)') of constants, no variables;" \
		"$(bytes_of "$2" sender) bytes of the caller's per transfer, $(bytes_of "$2" frontend) for a front end of 4"
	echo "ok $number - $name"
	run_it "$2" "$3" "$5" "$6"
}

# The digest of all packets, as this host computes them.
${CC:-cc} -std=gnu11 -Iinclude -Isrc $roce $core tests/lint/freestanding/selftest.c -o "$work/host" || exit 1
digest=$("$work/host")
echo 1..8
target "RISC-V, 32 bit (rv32imac)" riscv64-unknown-elf- "-march=rv32imac -mabi=ilp32" gcc-riscv64-unknown-elf \
	qemu-riscv32 -Wl,--no-relax
target "RISC-V, 64 bit (rv64imac)" riscv64-unknown-elf- "-march=rv64imac -mabi=lp64 -mcmodel=medany" \
	gcc-riscv64-unknown-elf qemu-riscv64 -Wl,--no-relax
target "ARM Cortex-M4" arm-none-eabi- "-mcpu=cortex-m4 -mthumb" gcc-arm-none-eabi "qemu-arm -cpu max"
target "ARM Cortex-M7" arm-none-eabi- "-mcpu=cortex-m7 -mthumb" gcc-arm-none-eabi "qemu-arm -cpu max"
exit $failed
