#!/usr/bin/python3
"""check_reference.py - what stages compute, against programs that others wrote for it.

  tools/check_reference.py                              everything
  tools/check_reference.py --match integrate            what has "integrate" in its name
  tools/check_reference.py --match integrate --case cake    of that, the cases with "cake" in theirs

Runs tests/reference/*_reference.py: each gives images to the real program and holds the results in its file against
pyFAI or numpy in double precision. Every script speaks TAP on stdout; the last line here is "N passed, N failed" and
counts cases. A case that cannot run here is listed, and is none of them.
"""

import argparse
import sys

import check

TIMEOUT_S = 600


def jobs(build, case):
    env = {"SLUICE": str(build.folder / "sluice")}
    scripts = sorted((check.ROOT / "tests/reference").glob("*_reference.py"))
    return [check.Job(build, f"reference/{path.stem.removesuffix('_reference')}",
                      [check.PYTHON, path, *([case] if case else [])], env, TIMEOUT_S) for path in scripts]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--match", default="", help="run only scripts with this in their name")
    parser.add_argument("--case", default="", help="run only cases with this in their name")
    parser.add_argument("--jobs", type=int, default=1, help="scripts at a time: pyFAI takes all cores for one")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every case")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    tally = check.Tally(arguments.verbose)
    build = check.builds()[0]
    error = check.build_all(build, ["sluice"])
    if error:
        tally.add_failure(build, "(build)", error)
    else:
        tally.run(check.matching(jobs(build, arguments.case), arguments.match), check.run_tap, arguments.jobs)
    return tally.finish(("passed", "failed"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
