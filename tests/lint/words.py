#!/usr/bin/python3
"""words.py - words that were given up, since one noun has one meaning (docs/glossary.md), do not come back.

Looked at are code, comments and strings of src, include, bench and tests/lib; a word counts as a whole, or between underscores.
"""

import re
import sys

import lint

# word: what to say instead
GIVEN_UP = {
    "twin": "GPU side (of a stage)", "twins": "GPU sides", "gpuring": "device ring", "estate": "handover state", "parcel": "message",
    "heir": "successor", "bequeath": "hand over", "fate": "fault", "fates": "faults", "furnish": "init_view", "reel": "image cache",
    "stock": "frame cache", "waive": "cancel", "withdraw": "cancel", "adopt": "take over", "adopts": "takes over", "adopted": "taken over", "manieth": "the n-th", "sl_receive": "sl_receiver", "sl_emulate": "sl_emulator",
}
WORD = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(sorted(GIVEN_UP, key=len, reverse=True)) + r")(?![A-Za-z0-9])", re.I)
# In these it belongs to somebody else: sl_receive_queue is a queue of receives, of the endpoint.
OTHERS = re.compile(r"sl_receive_queue|SL_RECEIVE_\w+")


def given_up(root):
    problems = []
    for path in lint.files(root, ".c", ".h", ".cl", ".clh", ".cu", ".in"):
        name = lint.relative(path, root)
        if not name.startswith(("src/", "include/", "bench/", "tests/lib/")):
            continue
        for number, line in lint.lines(path):
            for match in WORD.finditer(OTHERS.sub("", line)):
                problems.append(f"{name}:{number}: '{match[0]}' was given up; say {GIVEN_UP[match[0].lower()]}")
    return problems


def main():
    out = lint.tap.Writer()
    out.case("words that were given up", given_up(lint.ROOT))
    out.case("finds one in a name and in a comment", lint.finds(
        given_up, {"src/a/b.c": "int sl_twin_open(void);\n/* its heir */\n"}, "b.c:1: 'twin'", "b.c:2: 'heir'"))
    out.case("passes others", lint.finds(given_up, {"src/a/b.c": "int between, sl_receive_queue_init(void); /* their */\n"}))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
