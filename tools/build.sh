#!/bin/sh
# build.sh FOLDER [-Doption=value ...] [-- TARGET ...] - configure FOLDER with meson when that has not been done, then
# build it. Says little when all goes well; V=1 shows everything.
set -eu
cd "$(dirname "$0")/.."

folder=$1
shift
options=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	options="$options $1"
	shift
done
[ $# -eq 0 ] || shift

# Debian's own meson first: another one on the path may belong to a Python without its modules.
meson=/usr/bin/meson
[ -x $meson ] || meson=meson

quietly() {
	if [ "${V:-0}" = 1 ]; then
		"$@"
		return
	fi
	log=$(mktemp)
	if ! "$@" >"$log" 2>&1; then
		# What failed, rather than all that came before.
		sed '/^\[[0-9]*\/[0-9]*\] /d; /^ninja: Entering/d' "$log" | sed -n '/^FAILED:/,$p' >&2
		grep -q '^FAILED:' "$log" || tail -n 40 "$log" >&2
		rm -f "$log"
		exit 1
	fi
	rm -f "$log"
}

echo "building $folder"
if [ ! -f "$folder/build.ninja" ]; then
	# The unit tests need cmocka, which those who only want the program need not have.
	case $options in
	*-Dtests=*) ;;
	*) pkg-config --exists cmocka || options="$options -Dtests=false" ;;
	esac
	# shellcheck disable=SC2086  # a list of words
	quietly $meson setup "$folder" $options
	echo "$options" >"$folder/configured-with"
elif [ -n "$options" ] && [ "$options" != "$(cat "$folder/configured-with" 2>/dev/null)" ]; then
	# An earlier build may have been without tests.
	# shellcheck disable=SC2086  # a list of words
	quietly $meson configure "$folder" $options
	echo "$options" >"$folder/configured-with"
fi
quietly ninja -C "$folder" "$@"
