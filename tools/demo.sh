#!/bin/sh
# demo.sh - photons to file: an emulated detector and a receiver, two processes on this machine.
set -u
cd "$(dirname "$0")/.."

mkdir -p demo-out
# Files of an earlier demo, also of a version whose data files do not say to which master they belong.
rm -f demo-out/run.nxs demo-out/run_data_*.h5
echo "running: build/sluice run examples/jungfrau-laptop.yaml --summary demo-out/summary.json"
build/sluice run examples/jungfrau-laptop.yaml --summary demo-out/summary.json
status=$?

if [ -f demo-out/run.nxs ]; then
	echo
	echo "The file:     demo-out/run.nxs      (HDF5, NeXus NXmx; images are in run_data_000001.h5 beside it)"
	echo "The outcome:  demo-out/summary.json"
	echo "Look at it:   examples/look.py demo-out/run.nxs      (or: silx view demo-out/run.nxs)"
	echo "See it live:  build/sluice serve --experiments examples/live --root demo-out/runs      then open http://127.0.0.1:8765 and click Start"
fi
exit $status
