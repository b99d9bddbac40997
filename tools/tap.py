"""tap.py - read what a test program says in TAP, and say it.

Cases are counted, not programs. A program that crashes, exits with a status that its cases do not explain, or prints
fewer cases than its plan has a failed case more. cmocka 1.1.5 has its own dialect:

    not ok 2 # SKIP name                          a skip, in spite of "not ok"; the text is the name, not the reason
    not ok 7 - name Could not run test: ...       its set-up or tear-down failed
    not ok 0 - group [  FAILED  ] GROUP SETUP     none of the planned cases follow
    1..3 ... 1..2                                 one plan per group; they add up

A C test that skips gives its reason in a line before: "# skip: no pseudo-terminals here".
"""

import re
import sys

PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*SKIP\S*\s*(.*))?$", re.I)
CASE = re.compile(r"^(not )?ok\b(?: +(\d+))?(?:\s+-)?\s*(.*)$")
SKIP = re.compile(r"^(.*?)\s*(?<!\\)#\s*SKIP\S*\s*(.*)$", re.I)
BAIL = re.compile(r"^Bail out!\s*(.*)$", re.I)
REASON = re.compile(r"^#\s*skip:\s*(.*)$")


class Case:
    """One case: `state` is "passed", "failed" or "skipped"; `text` is the reason or the output."""

    def __init__(self, state, name, text=""):
        self.state, self.name, self.text = state, name, text

    def __repr__(self):
        return f"Case({self.state!r}, {self.name!r}, {self.text!r})"


class Reader:
    """The state of reading one program's output."""

    def __init__(self):
        self.cases = []
        self.planned = None
        self.reason = ""
        self.skipped_all = None
        self.bailed = None

    def plan(self, match):
        self.planned = (self.planned or 0) + int(match[1])
        if match[1] == "0" and match[2] is not None:
            self.skipped_all = match[2]

    def case(self, match):
        bad, number, rest = match[1], match[2], match[3]
        skip = SKIP.match(rest)
        if skip and (skip[1] or not bad):
            self.cases.append(Case("skipped", skip[1] or f"case {number}", skip[2] or self.reason))
        elif skip:  # cmocka
            self.cases.append(Case("skipped", skip[2], self.reason))
        else:
            self.cases.append(Case("failed" if bad else "passed", rest or f"case {number}"))
        self.reason = ""

    def line(self, line):
        plan, case, bail = PLAN.match(line), CASE.match(line), BAIL.match(line)
        reason = REASON.match(line)
        if plan:
            self.plan(plan)
        elif case:
            self.case(case)
        elif bail:
            self.bailed = bail[1]
        elif reason:
            self.reason = reason[1]
        elif line.startswith("#") and self.cases and self.cases[-1].state == "failed":
            self.cases[-1].text += line[1:].removeprefix(" ") + "\n"


def read(output, status=0):
    """The cases in a program's output. `status`: its exit status, negative for a signal, None for a time-out."""
    reader = Reader()
    for line in output.splitlines():
        reader.line(line)
    cases = reader.cases
    failed = any(case.state == "failed" for case in cases)
    if reader.bailed is not None:
        cases.append(Case("failed", "(bailed out)", reader.bailed + "\n"))
    elif status is None:
        cases.append(Case("failed", "(timed out)", f"after {len(cases)} cases\n"))
    elif status < 0:
        cases.append(Case("failed", "(crashed)", f"signal {-status} after {len(cases)} cases\n"))
    elif reader.planned is None:
        cases.append(Case("failed", "(no plan)", f"{len(cases)} cases, exit status {status}\n"))
    elif len([case for case in cases if "GROUP" not in case.name]) != reader.planned:
        cases.append(Case("failed", "(cases missing)", f"{len(cases)} of {reader.planned} planned\n"))
    elif status and not failed:
        cases.append(Case("failed", "(exit status)", f"{status}, though no case failed\n"))
    if reader.skipped_all is not None and not cases:
        cases.append(Case("skipped", "(all)", reader.skipped_all))
    return cases


class Writer:
    """Say cases in TAP; the plan comes last."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, problems=()):
        """`problems`: lines that say what is wrong; none means it passed."""
        self.count += 1
        self.failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}")
        for problem in problems:
            for line in str(problem).splitlines():
                print(f"# {line}")
        sys.stdout.flush()

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    def done(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0
