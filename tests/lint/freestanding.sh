#!/bin/sh
# src/roce and the core of the front end must build for a target without an operating system: they may need memcpy and
# memset, and nothing else. Usage: freestanding.sh SOURCE_ROOT. Prints TAP.
cd "${1:?usage: freestanding.sh SOURCE_ROOT}" || exit 1
. tests/lint/core.sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
number=0
failed=0

fail() {
	echo "not ok $number - $name"
	printf '%s\n' "$1" | sed 's/^/# /'
	failed=1
}

# NAME, SOURCES, HEADERS, what they may include: each is compiled, and its symbols and includes are looked at.
look_at() {
	name=$1
	number=$((number + 1))
	rm -f "$work"/*
	[ -n "$2" ] || {
		fail "nothing to compile"
		return
	}
	for source in $2; do
		log=$(${CC:-cc} -std=gnu11 -ffreestanding -fno-stack-protector -fno-pic -U_FORTIFY_SOURCE -O2 -Wall -Werror \
			-Iinclude -Isrc -c "$source" -o "$work/$(basename "$source" .c).o" 2>&1) || {
			fail "$log"
			return
		}
	done
	foreign=$(foreign_symbols nm "$work" memcpy memset)
	[ -z "$foreign" ] || {
		fail "undefined: $foreign"
		return
	}
	foreign=$(grep -H '^#include' $2 $3 | grep -v -e '<stdint\.h>' -e '<stdbool\.h>' -e '<stddef\.h>' -e '<string\.h>' \
		-e "$4")
	if [ -n "$foreign" ]; then
		fail "$foreign"
	else
		echo "ok $number - $name"
	fi
}

echo 1..2
look_at "src/roce is freestanding" "$roce" "$(echo src/roce/*.h)" '"roce/'
look_at "so is the core of a front end" "$roce $core" "$core_headers" \
	'"roce/\|"frontend/\|"core/plan\.h"\|"core/write\.h"\|<sluice/darks\.h>\|<sluice/record\.h>'
exit $failed
