#!/usr/bin/python3
"""trigger_curves.py - how well triggers do against the emulator's truth: tables and plots of their pages, drawn again.

  tools/trigger_curves.py                  all of them, into docs/; a few minutes
  tools/trigger_curves.py --quick          few events: to see that it works; needs --output
  tools/trigger_curves.py --output FOLDER  pages and plots into this folder instead; --json FILE: the numbers, too

Runs build/sluice (or $SLUICE) on events of the emulator. The same program gives the same pages, byte by byte.
"""

import argparse
import importlib
import importlib.util
import json
import pathlib
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
TRIGGERS = [name for name in ("rings", "tracks") if importlib.util.find_spec(f"trigger_{name}")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few events")
    parser.add_argument("--output", type=pathlib.Path, default=DOCS, help="folder of pages and plots (docs)")
    parser.add_argument("--json", type=pathlib.Path, help="write the numbers to this file")
    parser.add_argument("--only", choices=TRIGGERS, action="append", help="this trigger alone; may be repeated")
    arguments = parser.parse_args()
    if arguments.quick and arguments.output == DOCS:
        parser.error("--quick is not for docs/: say where to with --output")
    numbers = {name: importlib.import_module(f"trigger_{name}").run(arguments.output, arguments.quick)
               for name in arguments.only or TRIGGERS}
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
