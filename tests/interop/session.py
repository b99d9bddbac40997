#!/usr/bin/python3
"""session.py - boot one kernel and run every scenario against it; TAP on stdout.

tools/check_interop.py runs it, once per kernel; --help names what it wants.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

import benchmark
import failures
import faults
import image
import lab
import links
import nvmeof
import peers
import programs
import rates
import shares
import transfer
from harness import Failed, Skipped

sys.path.insert(0, str(image.HERE.parents[1] / "tools"))
import tap  # noqa: E402  (found through the line above)


BOOTS = 3  # QEMU's emulation of two processors stumbles now and then, before anything of ours runs
MOST_AGAIN = 3  # second tries are for cases that the host stood still in
BRIEFLY = ("RC, IPv4", "RC, IPv4, SEND", "a message per module", "every element")


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", choices=list(image.KERNELS), default="6.1")
    parser.add_argument("--guest-programs", type=pathlib.Path, required=True, help="where agent, peer-verbs and peer-share are")
    parser.add_argument("--user-programs", type=pathlib.Path, required=True, help="where peer-user and peer-share are")
    parser.add_argument("--guest-sluice", type=pathlib.Path, required=True, help="the program, for the guest")
    parser.add_argument("--sluice", type=pathlib.Path, required=True, help="the program, for this side")
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where unpacked kernels are kept")
    parser.add_argument("--match", default="", help="run only cases with this in their name")
    parser.add_argument("--seed", type=int, default=11, help="of the faults on the wire")
    parser.add_argument("--against-itself", action="store_true", help="rxe at both ends, to see what is its own doing")
    parser.add_argument("--again", action="store_true", help=f"run a case that failed a second time; at most {MOST_AGAIN} cases")
    parser.add_argument("--capture", type=pathlib.Path, help="write all frames to this file (pcap)")
    return parser.parse_args()


def run_case(ends, function):
    """What is wrong: lines for the report."""
    try:
        ends.reset()
        function()
        return []
    except Skipped:
        raise
    except Exception as problem:  # a case that breaks is a case that fails; the others still run
        text = str(problem) if isinstance(problem, Failed) else traceback.format_exc()
        counts = [f"wire toward the {side}: {ends.lab.wire.count(side)}" for side in ("guest", "host")]
        problems = [text, *counts, ends.lab.guest.log(8)]
        ends.restart()
        return problems


class Tries:
    """Second tries of failed cases: how many may still be made."""

    def __init__(self, left):
        self.left = left

    def run(self, writer, ends, name, function):
        try:
            problems = run_case(ends, function)
            if problems and self.left:
                self.left -= 1
                print("\n".join(f"# first try of {name}: {line}" for text in problems for line in str(text).splitlines()), flush=True)
                problems = run_case(ends, function)
            writer.case(name, problems)
        except Skipped as why:
            writer.skip(name, why)


def all_cases(ends, ways, arguments):
    yield from transfer.cases(ends, ways)
    yield from failures.cases(ways)
    if not arguments.against_itself:  # what stays in the guest does not pass the wire
        yield from faults.cases(ends, ways, arguments.seed)
        yield from programs.cases(ends, arguments.sluice)
        for name, function in links.cases(ends, arguments.sluice):
            # Experiments take long under emulation: other kernels than the first run some.
            if arguments.kernel == next(iter(image.KERNELS)) or name.endswith(BRIEFLY):
                yield name, function
        for name, function in shares.cases(ends, arguments.user_programs / "peer-share"):
            if arguments.kernel == next(iter(image.KERNELS)) or name.endswith(BRIEFLY):
                yield name, function
        if arguments.kernel == next(iter(image.KERNELS)):
            yield from benchmark.cases(ends)
            yield from nvmeof.cases(ends)


def run_cases(writer, lab_, arguments):
    ends = peers.Ends(lab_, arguments.user_programs / "peer-user")
    ways = transfer.pairs(ends, arguments.against_itself)
    tries = Tries(MOST_AGAIN if arguments.again else 0)
    for name, function in all_cases(ends, ways, arguments):
        if arguments.match not in name:
            continue
        tries.run(writer, ends, f"{arguments.kernel} {name}", function)
    problems = ends.close()
    writer.case(f"{arguments.kernel} user-space peers end well", problems)


def boot(kernel, programs, folder, capture):
    """A lab whose guest is up."""
    for attempt in range(1, BOOTS + 1):
        try:
            return lab.Lab(kernel, programs, folder / str(attempt), capture, memory_mib=rates.MEMORY_MIB)
        except lab.NotUp as why:
            print("\n".join(f"# boot {attempt}: {line}" for line in str(why).splitlines()), flush=True)
    raise lab.NotUp(f"{kernel.release} did not boot {BOOTS} times in a row")


def main():
    arguments = parse_arguments()
    writer = tap.Writer()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="interop-"))
    programs = {name: arguments.guest_programs / name for name in ("wire", "agent", "peer-verbs", "peer-share")}
    try:
        programs |= rates.programs(arguments.guest_sluice.parent, image.find)
        programs |= nvmeof.programs(arguments.guest_sluice.parent, image.find)
        kernel = image.kernel(arguments.kernel, arguments.cache)
        with boot(kernel, programs, folder, arguments.capture) as lab_:
            start = time.monotonic()
            print(f"# {kernel.release} is up after {lab_.boot_s:.1f} s", flush=True)
            run_cases(writer, lab_, arguments)
            print(f"# ran for {time.monotonic() - start:.1f} s", flush=True)
    except image.Unavailable as why:
        writer.skip(f"{arguments.kernel} boots", why)
    except lab.NotUp as why:
        writer.case(f"{arguments.kernel} boots", [str(why)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return writer.done()


if __name__ == "__main__":
    sys.exit(main())
