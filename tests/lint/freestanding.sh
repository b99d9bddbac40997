#!/bin/sh
# src/roce must build for a target without an operating system: it may need memcpy and memset, and
# nothing else. Usage: freestanding.sh SOURCE_ROOT. Prints TAP.
cd "${1:?usage: freestanding.sh SOURCE_ROOT}" || exit 1
name="src/roce is freestanding"
sources=$(ls src/roce/*.c | grep -v '_test\.c$')
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

echo 1..1
fail() {
	echo "not ok 1 - $name"
	printf '%s\n' "$1" | sed 's/^/# /'
	exit 1
}

[ -n "$sources" ] || fail "nothing to compile"
for source in $sources; do
	log=$(${CC:-cc} -std=gnu11 -ffreestanding -fno-stack-protector -fno-pic -U_FORTIFY_SOURCE \
		-O2 -Isrc -c "$source" -o "$work/$(basename "$source" .c).o" 2>&1) || fail "$log"
done
symbols() {
	nm --format=posix "$@" "$work"/*.o | awk 'NF >= 2 { print $1 }' | LC_ALL=C sort -u
}
symbols --undefined-only >"$work/needed"
{
	symbols --defined-only --extern-only
	echo memcpy
	echo memset
} | LC_ALL=C sort -u >"$work/allowed"
foreign=$(LC_ALL=C comm -23 "$work/needed" "$work/allowed")
[ -z "$foreign" ] || fail "undefined: $foreign"

foreign=$(grep -H '^#include' $sources src/roce/*.h |
	grep -v -e '<stdint\.h>' -e '<stdbool\.h>' -e '<stddef\.h>' -e '<string\.h>' -e '"roce/')
[ -z "$foreign" ] || fail "$foreign"
echo "ok 1 - $name"
