#!/usr/bin/python3
"""trigger_curves.py - how well the triggers do against the emulator's truth: tables and plots of their pages, drawn again.

  tools/trigger_curves.py                  all of them, into docs/reference
  tools/trigger_curves.py rings            this one alone
  tools/trigger_curves.py --quick --output FOLDER   few events, to see that it works; --json FILE: the numbers, too

Runs build/sluice (or $SLUICE). A trigger has a module here, trigger_NAME.py, with a function run(output, quick).
"""

import argparse
import importlib
import json
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parent
NAMES = sorted(path.stem[8:] for path in TOOLS.glob("trigger_*.py") if path.stem != "trigger_curves")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trigger", nargs="*", choices=[[], *NAMES], help=f"of {', '.join(NAMES)}; all when not given")
    parser.add_argument("--quick", action="store_true", help="few events")
    parser.add_argument("--output", type=pathlib.Path, default=TOOLS.parent / "docs/reference", help="folder of pages and plots (docs/reference)")
    parser.add_argument("--json", type=pathlib.Path, help="write the numbers to this file")
    arguments = parser.parse_args()
    if arguments.quick and arguments.output == TOOLS.parent / "docs/reference":
        parser.error("--quick is not for docs/reference: say where to with --output")
    numbers = {name: importlib.import_module(f"trigger_{name}").run(arguments.output, arguments.quick)
               for name in arguments.trigger or NAMES}
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
