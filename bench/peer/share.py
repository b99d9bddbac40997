#!/usr/bin/python3
"""share.py copy|view URL SECONDS - a follower in Python: how long after its commit it has each element, as one line of JSON.

Exit status 77: this Python has not what the package sluice needs. SLUICE_CLIENT_LIBRARY says where the library is; the package is that of
the source tree around the build folder, or an installed one.
"""

import json
import pathlib
import sys
import time

LEVELS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1)  # as `sluice bench` has them
FIRST_BYTE = 0x15  # of every element

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
try:
    import sluice  # noqa: E402  (found through the line above)
    sluice.library_path()
except ImportError as why:
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def main(how, url, seconds):
    times, frames = [], sluice.follow(url, view=how == "view", timeout=5)
    start = time.monotonic() + seconds / 4  # then it is warm
    for frame in frames:
        image = frame["bytes"]
        times.append(time.time_ns() - frame.committed_ns)
        if image[0, 0] != FIRST_BYTE and frame.valid():
            sys.exit("what it sees is not what was committed")
        now = time.monotonic()
        if now < start:
            times.clear()
        elif now > start + seconds and times:
            break
    times.sort()
    print(json.dumps({"count": len(times), "lost": 0, "quantiles_us": [round(1e-3 * times[int(level * (len(times) - 1))], 3) for level in LEVELS]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
