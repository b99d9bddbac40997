"""benchmark.py - the benchmark that runs in a guest: every row is there, and what is ours loses nothing. How fast anything
is, no test asks."""

import json

import rates
from peers import check, equal

SECONDS = 0.2
TESTED = ("sluice/udp/uc/4096/guest", "sluice/udp/rc/4096/cut/guest", "sluice/udp/latency/4096/guest",
          "sluice/verbs/rc/4096/guest", "rxe/uc-write/4096/guest", "rxe/rc-write/4096/cut/guest",
          "rxe/latency/4096/guest")


def whole(guest, row):
    sample = rates.patiently(guest, row, SECONDS)
    figures = {name: value for name, value in sample.items() if name != "loss"}
    equal(sorted(figures), sorted(rates.QUANTILES) if row.latency else ["GB_per_s"], f"{row.name}: figures")
    check(all(value > 0 for value in figures.values()), f"{row.name}: {figures}")
    check(not row.ours or sample["loss"] == 0, f"{row.name}: lost {sample['loss']}")


def all_whole(guest):
    rows = [row for row in rates.ROWS if row.name in TESTED]
    equal(len(rows), len(TESTED), "rows of these names")
    rates.prepare(guest)
    try:
        for row in rows:
            whole(guest, row)
    finally:
        rates.remove(guest)


SHARES = ("sluice/verbs/fetch/4096", "sluice/verbs/follow/262144", "sluice/verbs/view")


def shares(guest):
    rates.prepare(guest)
    try:
        for name in SHARES:
            guest.must(f"SLUICE_RUN_DIR=/tmp/shares sluice bench share --rounds 1 --seconds {SECONDS} --only {name} --address {rates.RECEIVER} "
                       "--json /tmp/share.json", rates.TIMEOUT_S)
            said = json.loads(guest.pull("/tmp/share.json"))
            check(said["rows"] and not said["left_out"], f"{name}: {said['left_out']}")
            check(all(row["value"] > 0 for row in said["rows"]), f"{name}: {said['rows']}")
    finally:
        rates.remove(guest)


def cases(ends):
    yield "benchmark: shares on Soft-RoCE are followed", lambda: shares(ends.lab.guest)
    yield "benchmark: Soft-RoCE and our links are measured in turn, ours lose nothing", lambda: all_whole(ends.lab.guest)
