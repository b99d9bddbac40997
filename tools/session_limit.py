"""session_limit.py - how long one session of check_interop.py may take, by how fast this machine is while it runs.

A session boots a guest first, always the same one, so its boot time measures the machine: its processor, and what else runs on it.
The limit grows with the boot time. It never falls below LEAST_S, and never rises above MOST_S, so that a session that hangs ends.
"""

import re

REFERENCE_BOOT_S = 6  # on a machine that does nothing else
LEAST_S, MOST_S = 600, 2400
BOOTED = re.compile(r"# \S+ is up after ([0-9]+(?:\.[0-9]+)?) s$")
SHOWN = 3  # slowest cases


def boot_seconds(line):
    """The boot time that this line of a session tells; None: it tells none."""
    match = BOOTED.match(line.rstrip())
    return float(match[1]) if match else None


def limit_s(boot_s):
    """Seconds that a session may take whose guest booted in this time; None: it has not booted yet."""
    if boot_s is None:
        return LEAST_S
    return min(MOST_S, max(LEAST_S, LEAST_S * boot_s / REFERENCE_BOOT_S))


def explain(boot_s, cases, running_s):
    """What was slow, when the limit is reached: `cases` are (name, seconds) of those that ended, `running_s` is for how long the
    one after them has been running."""
    lines = [f"the limit is {limit_s(boot_s):.0f} s"]
    if boot_s is None:
        lines[0] += ": the guest has not booted"
    else:
        times = boot_s / REFERENCE_BOOT_S
        lines[0] += f": the guest booted in {boot_s:.1f} s, {times:.1f} times the {REFERENCE_BOOT_S} s of an idle machine"
        lines.append(f"the case after the last one had been running for {running_s:.0f} s")
    slowest = sorted(cases, key=lambda case: -case[1])[:SHOWN]
    if slowest:
        lines.append("slowest: " + ", ".join(f"{name} ({seconds:.0f} s)" for name, seconds in slowest))
    return "".join(f"{line}\n" for line in lines)
