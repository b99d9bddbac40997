#!/bin/sh
# build.sh FOLDER [-Doption=value ...] [-- TARGET ...] - configure FOLDER with meson where that is needed, then build the targets (all
# that is built by default, if none is named; nothing for `-- configure`). Shows progress, and what failed; V=1 shows everything.
#
# A folder is configured again when it came here with a copied tree, and when packages that the build looks for have come or gone.
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

# What failed, rather than all that came before.
show_failure() {
	sed '/^\[[0-9]*\/[0-9]*\] /d; /^ninja: Entering/d' "$1" | sed -n '/^FAILED:/,$p' >&2
	grep -q '^FAILED:' "$1" || tail -n 40 "$1" >&2
	rm -f "$1"
	exit 1
}

quietly() {
	if [ "${V:-0}" = 1 ]; then
		"$@"
		return
	fi
	log=$(mktemp)
	"$@" >"$log" 2>&1 || show_failure "$log"
	rm -f "$log"
}

# Each tenth of "[done/all] step" as a line of its own, or the one line that ninja keeps on a terminal.
with_progress() {
	if [ "${V:-0}" = 1 ] || [ -t 1 ]; then
		"$@"
		return
	fi
	log=$(mktemp)
	{ "$@" 2>&1 || echo "FAILED: see above" >>"$log.failed"; } | tee "$log" | awk -v folder="$folder" '
		match($0, /^\[[0-9]+\/[0-9]+\]/) {
			split(substr($0, 2, RLENGTH - 2), n, "/")
			tenth = int(10 * n[1] / n[2])
			if (n[2] >= 50 && tenth > shown) {
				shown = tenth
				printf "  %s: %d of %d steps\n", folder, n[1], n[2]
				fflush()
			}
		}'
	if [ -e "$log.failed" ]; then
		rm -f "$log.failed"
		show_failure "$log"
	fi
	rm -f "$log"
}

# What the build looks for and can do without, or with: a line for each package, header and program, with its version.
packages() {
	for module in cmocka hdf5 hiredis jansson libbpf libcurl libfabric libibverbs libisal liblz4 libmicrohttpd libpng libxdp libzmq libzstd nettle ucx yaml-0.1 zlib; do
		echo "$module $(pkg-config --modversion "$module" 2>/dev/null || echo none)"
	done
	for header in /usr/include/CL/cl.h /usr/include/cuda.h /usr/local/cuda/include/cuda.h /usr/include/infiniband/verbs.h; do
		[ ! -e "$header" ] || echo "$header"
	done
	command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || echo "no nvcc"
	${CC:-cc} --version | head -n 1
}

# What must be the same for the folder to be used as it is. No options mean those that it has.
before=$(cat "$folder/configured-for" 2>/dev/null || true)
[ -n "$options" ] || options=$(printf '%s\n' "$before" | sed -n 's/^options//p')
state=$(printf 'tree %s\n%s\noptions%s\n' "$PWD" "$(packages)" "$options")
part() { # STATE WORD...: lines of a state that begin with one of these words; -v: all others
	printf '%s\n' "$1" | grep $3 -E "^($2)" || true
}

# The tree that a folder was configured for, as meson has it.
tree_of() {
	sed -n 's/.*"source": "\([^"]*\)".*/\1/p' "$folder/meson-info/meson-info.json" 2>/dev/null
}

echo "building $folder"
if [ -f "$folder/build.ninja" ] && [ "$(tree_of)" != "$PWD" ]; then
	echo "  this tree was copied or moved: $folder begins anew"
	rm -rf "$folder"
fi
# shellcheck disable=SC2086  # options are a list of words
if [ ! -f "$folder/build.ninja" ]; then
	# The unit tests need cmocka, which those who only want the program need not have.
	case $options in
	*-Dtests=*) defaults= ;;
	*) defaults=$(if ! pkg-config --exists cmocka; then echo -Dtests=false; fi) ;;
	esac
	quietly $meson setup "$folder" $defaults $options
elif [ -n "$before" ] && [ "$before" != "$state" ]; then
	if [ "$(part "$before" 'tree|options' -v)" != "$(part "$state" 'tree|options' -v)" ]; then
		echo "  packages have changed: configuring again"
		quietly $meson configure --clearcache "$folder"
		case $options in
		*-Dtests=*) defaults= ;;
		*) defaults=$(if pkg-config --exists cmocka; then echo -Dtests=true; fi) ;;
		esac
		quietly $meson setup --reconfigure "$folder" $defaults $options
	else
		quietly $meson configure "$folder" $options
	fi
fi
printf '%s\n' "$state" >"$folder/configured-for"
[ "${1:-}" = configure ] || with_progress ninja -C "$folder" "$@"
