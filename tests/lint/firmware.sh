#!/bin/sh
# The core of a front end and src/roce, compiled for bare processors as they sit in FPGAs and beside sensors: what it
# needs beyond memcpy and memset, and how large it is. Usage: firmware.sh SOURCE_ROOT. Prints TAP; sizes as notes.
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

compile() { # CC, FLAGS: all of it into $work
	for source in $roce $core; do
		"$1" $2 -std=gnu11 -ffreestanding -nostdinc -isystem "$("$1" -print-file-name=include)" \
			-isystem tests/lint/freestanding -Iinclude -Isrc -Os -Wall -Werror -ffunction-sections -fdata-sections \
			-c "$source" -o "$work/$(basename "$source" .c).o" || return 1
	done
	printf '#include "frontend/sender.h"\nchar sender[sizeof(struct sl_sender)], frontend[sizeof(struct sl_frontend)];' |
		"$1" $2 -std=gnu11 -ffreestanding -nostdinc -isystem "$("$1" -print-file-name=include)" \
			-isystem tests/lint/freestanding -Iinclude -Isrc -xc -c - -o "$work/sizes"
}

bytes_of() { # PREFIX, SYMBOL: its size in $work/sizes
	printf '%d' "0x$("$1nm" --format=posix "$work/sizes" | awk -v s="$2" '$1 == s { print $4 }')"
}

sections() { # PREFIX, FILE, PATTERN: bytes of the sections whose names match
	"$1size" -A "$2" | awk -v p="$3" '$1 ~ p { n += $2 } END { print n + 0 }'
}

# NAME, PREFIX of the tools, FLAGS
target() {
	name=$1
	number=$((number + 1))
	command -v "$2gcc" >/dev/null || {
		echo "ok $number - $name # SKIP no $2gcc; on Debian: apt-get install $4"
		return
	}
	rm -f "$work"/*
	log=$(compile "$2gcc" "$3" 2>&1) || {
		fail "$log"
		return
	}
	foreign=$(foreign_symbols "$2nm" "$work" memcpy memset $helpers)
	[ -z "$foreign" ] || {
		fail "undefined: $foreign"
		return
	}
	wanted=
	for root in $roots; do wanted="$wanted -Wl,-u,$root"; done
	log=$("$2gcc" $3 -nostdlib -Wl,--gc-sections -Wl,-e,sl_frontend_next $wanted \
		-Wl,--unresolved-symbols=ignore-all "$work"/*.o -lgcc -o "$work/core.elf" 2>&1) || {
		fail "$log"
		return
	}
	written=$(sections "$2" "$work/core.elf" '^[.](s?data|s?bss)')
	[ "$written" -eq 0 ] || {
		fail "$written bytes of variables of its own: everything belongs in the caller's memory"
		return
	}
	echo "# note: $name: $(sections "$2" "$work/core.elf" '^[.]text') bytes of code," \
		"$(sections "$2" "$work/core.elf" '^[.](s?rodata|srodata)') of constants, no variables;" \
		"$(bytes_of "$2" sender) bytes of the caller's per transfer, $(bytes_of "$2" frontend) for a front end of 4"
	echo "ok $number - $name"
}

echo 1..4
target "RISC-V, 32 bit (rv32imac)" riscv64-unknown-elf- "-march=rv32imac -mabi=ilp32" gcc-riscv64-unknown-elf
target "RISC-V, 64 bit (rv64imac)" riscv64-unknown-elf- "-march=rv64imac -mabi=lp64 -mcmodel=medany" gcc-riscv64-unknown-elf
target "ARM Cortex-M4" arm-none-eabi- "-mcpu=cortex-m4 -mthumb" gcc-arm-none-eabi
target "ARM Cortex-M7" arm-none-eabi- "-mcpu=cortex-m7 -mthumb" gcc-arm-none-eabi
exit $failed
