#!/usr/bin/python3
"""include_direction.py - who may include whom.

src/meson.build lists the folders in data-path order: a folder includes only folders above it, siblings never include
each other, vendor headers stay in their one place, and only base/thread.c makes threads. A folder inside another may have
a place of its own in that order.
"""

import re
import sys

import lint

SIBLINGS = {"link", "detector", "frontend", "stage", "sink"}
# What compiles freestanding, plus memcpy and memset.
ROCE_MAY = {"stdint.h", "stddef.h", "stdbool.h", "stdalign.h", "limits.h", "string.h"}
# header (or its folder): where it may be included. Tests may use jansson to read what we wrote.
VENDOR = {
    "yaml.h": ("src/base/config/config.c",),
    "isa-l": ("src/base/crc.c",),
    "isa-l.h": ("src/base/crc.c",),
    "hdf5.h": ("src/hdf5/",),
    "hdf5_hl.h": ("src/hdf5/",),
    "lz4.h": ("src/codec/",),
    "zstd.h": ("src/codec/",),
    "zmq.h": ("src/sink/stream2/", "bench/"),
    "jansson.h": ("src/monitor/", "src/client/", "src/service/", "src/telegram/", "src/flight/", "src/explain/", "src/board/"),
    "expat.h": ("src/telegram/parse.c", "tests/fuzz/"),  # the client library has no other folder
    "microhttpd.h": ("src/service/http/",),
    "curl": ("src/service/remote/call.c",),
    "gnutls": ("src/service/http/server.c",),
    "png.h": ("src/picture/png.c",),
    "hiredis": ("src/sink/redis/connection.c",),
    "liburing.h": ("src/raw/uring.c",),
    "cmocka.h": (),
    "zlib.h": ("src/service/image/deflate",),
    "infiniband": ("src/net/verbs/", "tests/lib/fake_verbs", "tests/interop/", "bench/peer/verbs_end"),
    "xdp/xsk.h": ("src/net/xdp/",),
    "xdp/libxdp.h": (),
    "bpf": ("src/net/xdp/",),
    "rdma": ("bench/peer/fabric",),
    "cuda.h": ("src/gpu/cuda/",),
    "cuda_runtime.h": (),
    "CL": ("src/gpu/opencl/",),
}
TEST_MAY = {"cmocka.h", "jansson.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
THREAD = re.compile(r"\b(pthread_create|thrd_create)\s*\(")


def folder_order(root):
    """The folders in the order of src/meson.build; cmd, which sees them all, is last."""
    text = (root / "src/meson.build").read_text()
    block = re.search(r"^folders\s*=\s*\[(.*?)^\]", text, re.M | re.S)[1]
    return re.findall(r"^\s*'([^']+)'", block, re.M) + ["cmd"]


def folder_of(order, path):
    """The folder of the order that has this path below src/: the innermost; None: there is none."""
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) not in order:
        parts.pop()
    return "/".join(parts) or None


def is_test(name):
    return name.startswith(("tests/", "examples/")) or name.endswith(("_test.c", "_test.h", "/testing.h"))


def includes(root, *endings):
    """(file, line number, quote, header) of every include."""
    for path in lint.files(root, *(endings or (".c", ".h"))):
        for number, line in lint.lines(path):
            match = INCLUDE.match(line)
            if match:
                yield lint.relative(path, root), number, match[1], match[2]


def may_see(order, here, there):
    """Whether files of folder `here` may include headers of folder `there`."""
    if here == there:
        return True
    if here.split("/")[0] in SIBLINGS and there.split("/")[0] in SIBLINGS:
        return False
    return order.index(there) < order.index(here)


def direction(root):
    problems = []
    order = folder_order(root)
    for name, number, quote, header in includes(root):
        parts = name.split("/")
        if quote != '"' or parts[0] != "src" or len(parts) < 3:
            continue
        here, there = folder_of(order, name.removeprefix("src/")), folder_of(order, header)
        if not there:
            if not (is_test(name) and (root / "tests" / header).exists()):
                problems.append(f'{name}:{number}: "{header}": write internal headers from src/, as "base/log.h"')
        elif here and not may_see(order, here, there):
            problems.append(f'{name}:{number}: {here} must not include "{header}"')
    return problems


def own_private(root):
    """A header called private.h is its folder's and its tests'."""
    problems = []
    for name, number, quote, header in includes(root):
        folder = header.rpartition("/")[0]
        if quote != '"' or not header.endswith("/private.h") or name.startswith("tests/lib/"):
            continue
        if not name.startswith(f"src/{folder}/"):
            problems.append(f'{name}:{number}: "{header}" is for src/{folder} alone')
    return problems


def all_listed(root):
    """A folder that src/meson.build does not list has no place in the order."""
    order = folder_order(root)
    here = {lint.relative(path.parent, root / "src") for path in lint.files(root / "src", ".c", ".h")
            if len(path.relative_to(root).parts) > 2}
    return [f"src/{name}: not in the list of src/meson.build" for name in sorted(here) if not folder_of(order, f"{name}/")]


def public(root):
    """include/sluice stands alone: an add-on author has nothing else."""
    problems = []
    order = folder_order(root)
    for name, number, quote, header in includes(root):
        if not name.startswith("include/"):
            continue
        if quote == '"' or header.split("/")[0] in order:
            problems.append(f"{name}:{number}: a public header must not include {header}")
    return problems


def roce(root):
    """src/roce compiles freestanding: no public headers, no libc beyond memcpy and memset."""
    problems = []
    for name, number, quote, header in includes(root):
        if not name.startswith("src/roce/") or is_test(name):
            continue
        inside = quote == '"' and header.startswith("roce/")
        if not inside and header not in ROCE_MAY:
            problems.append(f"{name}:{number}: src/roce must not include {header}")
    return problems


def vendor(root):
    problems = []
    for name, number, _, header in includes(root):
        key = header if header in VENDOR else header.split("/")[0]
        if key not in VENDOR or (is_test(name) and key in TEST_MAY):
            continue
        if not name.startswith(VENDOR[key] or ("-",)):
            where = " or ".join(VENDOR[key]) or "the tests"
            problems.append(f"{name}:{number}: {header} belongs in {where} only")
    return problems


def threads(root):
    problems = []
    for path in lint.files(root, ".c", ".h"):
        name = lint.relative(path, root)
        # Those of src/gpu/threads.c are a device, not the data path's.
        if is_test(name) or name in ("src/base/thread.c", "src/gpu/threads.c"):
            continue
        problems += [f"{name}:{number}: only src/base/thread.c makes threads"
                     for number, line in lint.lines(path) if THREAD.search(line)]
    return problems


# Split, so that this file does not name what it looks for.
PRIVATE = re.compile("(^|[^A-Za-z0-9_.])(/ho" + "me/|/ro" + "ot/|/wo" + "rk/|/Us" + "ers/)")


def private_paths(root):
    """Paths of one developer's machine help nobody else."""
    return [f"{lint.relative(path, root)}:{number}: {line.strip()[:80]}"
            for path in lint.files(root, ".c", ".h", ".py", ".sh", ".md", ".build", ".yaml", ".txt", "Makefile", "run")
            for number, line in lint.lines(path) if PRIVATE.search(line)]


BUILD = "folders = [\n  'base', # x\n  'net/fast',\n  'roce',\n  'net',\n  'link',\n  'sink',\n  'receiver',\n]\n"
CHECKS = [
    # name, lint, a bad tree, what it must find there
    ("folders include only folders above them", direction,
     {"src/base/a.c": '#include "link/x.h"\n'}, ["base must not include"]),
    ("internal headers are written from src", direction,
     {"src/base/a.c": '#include "b.h"\n'}, ["write internal headers from src/"]),
    ("a folder inside another has its own place", direction,
     {"src/net/fast/a.c": '#include "link/x.h"\n', "src/roce/a.c": '#include "net/a.h"\n'},
     ["net/fast must not include", "roce must not include"]),
    ("siblings do not include each other", direction,
     {"src/sink/a.c": '#include "link/x.h"\n'}, ["sink must not include"]),
    ("what is private stays in its folder", own_private,
     {"src/sink/a.c": '#include "receiver/private.h"\n'}, ["is for src/receiver alone"]),
    ("every folder has its place in the order", all_listed,
     {"src/attic/a.c": "\n"}, ["src/attic: not in the list"]),
    ("public headers include nothing of src", public,
     {"include/sluice/a.h": '#include "base/log.h"\n', "include/sluice/b.h": "#include <base/log.h>\n"},
     ["a.h:1", "b.h:1"]),
    ("src/roce stands alone", roce,
     {"src/roce/a.c": '#include "core/plan.h"\n#include <stdlib.h>\n#include "base/log.h"\n'},
     ["a.c:1", "a.c:2", "a.c:3"]),
    ("vendor headers stay in their place", vendor,
     {"src/base/a.c": "#include <yaml.h>\n#include <isa-l/crc.h>\n", "src/link/b.c": "#include <hdf5.h>\n",
      "src/link/c.h": "#include <cmocka.h>\n#  include <infiniband/verbs.h>\n"},
     ["a.c:1", "a.c:2", "b.c:1", "c.h:1", "c.h:2"]),
    ("only src/base/thread.c makes threads", threads,
     {"src/link/a.c": "\tpthread_create(&t, NULL, f, NULL);\n"}, ["a.c:1"]),
    ("no paths of one machine", private_paths,
     {"docs/a.md": "see /ho" + "me/me/x\n", "tools/b.sh": "cd /wo" + "rk/x\n"}, ["a.md:1", "b.sh:1"]),
]
GOOD = {
    "src/meson.build": BUILD,
    "src/base/config/config.c": '#include <yaml.h>\n#include "base/log.h"\n',
    "src/base/a_test.c": "#include <cmocka.h>\n\tpthread_create(&t, NULL, f, NULL);\n",
    "src/roce/a.c": '#include <stdint.h>\n#include "roce/b.h"\n',
    "src/link/a.c": '#include "base/log.h"\n#include "roce/b.h"\n#include "link/c.h"\n',
    "src/base/thread.c": "\tpthread_create(&t, NULL, f, NULL);\n",
    "src/roce/b_test.c": '#include "net/fast/a.h"\n',
    "src/receiver/a.c": '#include "sink/a.h"\n',
    "src/cmd/a.c": '#include "receiver/a.h"\n',
    "include/sluice/a.h": "#include <sluice/b.h>\n",
    "docs/a.md": "/usr/bin/python3, net" + "work/x, /tmp/home/x\n",
}


def main():
    out = lint.tap.Writer()
    for name, check, bad, expected in CHECKS:
        out.case(name, check(lint.ROOT))
        out.case(f"{name}: finds a breach", lint.finds(check, {"src/meson.build": BUILD, **bad}, *expected))
        out.case(f"{name}: passes a good tree", lint.finds(check, GOOD))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
