#!/bin/sh
# deps.sh build|demo|check|check-long|reference|curves|screenshots|bench|guest|interop - make sure that the packages for it are here.
#
# Debian: installs what is missing when root, else prints the one command that does and stops. Elsewhere: says what is
# missing by the name of the command or of the pkg-config module.
set -eu

build="meson ninja-build pkg-config gcc libc6-dev libyaml-dev libhdf5-dev liblz4-dev libzstd-dev libisal-dev libjansson-dev nettle-dev
	libibverbs-dev libxdp-dev libbpf-dev libpng-dev zlib1g-dev libzmq3-dev libhiredis-dev libcurl4-openssl-dev libmicrohttpd-dev libexpat1-dev liburing-dev opencl-c-headers"
demo="$build python3-h5py bitshuffle"
curves="$build python3-h5py python3-numpy bitshuffle"
screenshots="$build chromium chromium-driver fonts-inter python3-pil"
check="$build libcmocka-dev clang lld clang-format-14 libclang-rt-14-dev python3-h5py python3-numpy python3-jsonschema libxml2-utils
	bitshuffle hdf5-filter-plugin python3-hdf5plugin python3-cffi mypy python3-typeshed python3-silx python3-zmq python3-cbor2 redis-server redis-tools python3-redis prometheus python3-tango tshark python3-scapy iproute2 ethtool
	util-linux gcc-riscv64-unknown-elf gcc-arm-none-eabi spin ocl-icd-libopencl1 pocl-opencl-icd chromium chromium-driver"
# DIALS is 72 packages and 670 MB more: about a minute to install, and half a minute for its tests.
check_long="$check dials"
reference="$build python3-pyfai python3-pyopencl pocl-opencl-icd python3-h5py python3-numpy bitshuffle"
# bitshuffle: its HDF5 plugin is what the rows of codecs are compared with.
bench="$build python3-numpy libucx-dev libfabric-dev iproute2 ethtool valgrind fio python3-pyfai python3-pyopencl
	pocl-opencl-icd bitshuffle hdf5-filter-plugin"
guest="$build qemu-system-x86 busybox-static kmod binutils xz-utils zstd iproute2 ethtool util-linux dash ibverbs-providers
	ibverbs-utils perftest e2fsprogs"
interop="$check $guest"

purpose=${1:-build}
case $purpose in
build) packages=$build ;;
demo) packages=$demo ;;
check) packages=$check ;;
check-long) packages=$check_long ;;
reference) packages=$reference ;;
curves) packages=$curves ;;
screenshots) packages=$screenshots ;;
bench) packages=$bench ;;
guest) packages=$guest ;;
interop) packages=$interop ;;
*)
	echo "usage: tools/deps.sh build|demo|check|check-long|reference|curves|screenshots|bench|guest|interop" >&2
	exit 2
	;;
esac

debian() {
	missing=
	for package in $packages; do
		status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) || status=
		[ "$status" = "install ok installed" ] || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "These packages are missing. Please run, then try again:" >&2
		echo "  sudo apt-get install -y --no-install-recommends$missing" >&2
		exit 1
	fi
	echo "installing$missing"
	export DEBIAN_FRONTEND=noninteractive
	# In a subshell, as it may fail without harm: the lists that are here often do.
	(quietly apt-get update) || echo "going on with the package lists that are here" >&2
	# shellcheck disable=SC2086  # a list of words
	quietly apt-get install -y --no-install-recommends $missing
}

# Run a command; show what it says only when it fails, or when asked (V=1).
quietly() {
	if [ "${V:-0}" = 1 ]; then
		"$@" </dev/null
		return
	fi
	log=$(mktemp)
	if ! "$@" >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -f "$log"
		echo "'$*' failed; with V=1 you see it at work" >&2
		exit 1
	fi
	rm -f "$log"
}

elsewhere() {
	modules="yaml-0.1 hdf5 liblz4 libzstd libisal jansson nettle expat"
	commands="meson ninja pkg-config cc"
	if [ "$purpose" = check ] || [ "$purpose" = check-long ]; then
		modules="$modules cmocka"
		commands="$commands clang clang-format-14"
	fi
	missing=
	for command in $commands; do
		command -v "$command" >/dev/null || missing="$missing $command"
	done
	for module in $modules; do
		pkg-config --exists "$module" 2>/dev/null || missing="$missing $module.pc"
	done
	if [ "$purpose" != build ]; then
		/usr/bin/python3 -c 'import h5py, numpy' 2>/dev/null || missing="$missing python3-h5py"
	fi
	if [ "$purpose" = reference ]; then
		/usr/bin/python3 -c 'import pyFAI, pyopencl' 2>/dev/null || missing="$missing pyFAI pyopencl"
	fi
	[ -n "$missing" ] || return 0
	echo "This is not Debian, so nothing is installed for you. Missing (commands and pkg-config modules):" >&2
	echo " $missing" >&2
	exit 1
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
	debian
else
	elsewhere
fi
