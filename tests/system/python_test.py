#!/usr/bin/python3
"""python_test.py - the Python package: followers and views, shares and their memory, messages, sessions, files of runs, and how it is installed."""
# normal build only

import base64
import gc
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile

from harness import LONG, RECEIVER, ROOT, RUN_DIR, SLUICE, case, check, compiler, die_with_parent, equal, experiment, main, skip, wait_for

try:
    import cffi  # noqa: F401  (the package needs it)
    import numpy as np
except ImportError:
    print("1..0 # SKIP python3-cffi or python3-numpy is not installed")
    sys.exit(0)

PACKAGE = ROOT / "python"
LIBRARY = pathlib.Path(SLUICE).with_name("libsluice-client.so.0")
os.environ["SLUICE"], os.environ["SLUICE_CLIENT_LIBRARY"] = SLUICE, str(LIBRARY)
os.environ["PYTHONPATH"] = str(PACKAGE)
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PACKAGE))
RUN_DIR.mkdir(0o700, exist_ok=True)

import sluice  # noqa: E402  (found through the lines above)
from sluice import _library  # noqa: E402

ARRAYS = {"image": sluice.Array("<u2", (64, 100), "photons"), "spots": sluice.Array("<f4", (10, 2), ragged=True)}
PYTHONS = ("/usr/bin/python3", shutil.which("python3"))


def fails(kind, code, call, *says):
    """The call must raise this, with these words; returns the exception."""
    try:
        call()
    except kind as why:
        if code:
            equal(why.code, code, f"code of '{why}'")
        for text in says:
            check(text in str(why), f"'{why}' does not say '{text}'")
        return why
    return check(False, f"no {kind.__name__} was raised")


def push(share, n):
    """Element n: every pixel is n, and n % 10 spots."""
    return share.push({"image": np.full((64, 100), n, "u2"), "spots": np.full((n % 10, 2), n, "f4")}, number=1000 + n, timestamp=n * n,
                      score=n / 2, keep=n % 2, reason=n % 10, missing=1 << 63, flags=2, epoch=7, user=[n, n + 1])


def is_element(frame, n):
    check((frame["image"] == n).all() and frame["image"].shape == (64, 100), f"the image is not that of {n}")
    equal(frame["spots"].tolist(), [[n, n]] * (n % 10), f"spots of {n}")
    equal((frame.n, frame.number, frame.timestamp, frame.score, frame.keep, frame.reason, frame.missing, frame.flags, frame.epoch, frame.user[:3]),
          (n, 1000 + n, n * n, n / 2, bool(n % 2), n % 10, 1 << 63, 2, 7, (n, n + 1, 0)), f"numbers of {n}")


def mappings():
    """Address ranges of shares' memory in this process."""
    found = re.findall(r"^(\w+)-(\w+) .*memfd:sluice-share", pathlib.Path("/proc/self/maps").read_text(), re.M)
    return [(int(low, 16), int(high, 16)) for low, high in found]


def memfds():
    """How many descriptors of arrays this process has."""
    found = []
    for path in pathlib.Path("/proc/self/fd").iterdir():
        try:
            found.append("memfd:sluice-array" in os.readlink(path))
        except FileNotFoundError:  # that of the folder itself
            pass
    return sum(found)


def script(code, *arguments, python=sys.executable, **options):
    """A Python program in the background."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([python, "-c", code, *map(str, arguments)], text=True, preexec_fn=die_with_parent, **options)


def ends(process, status=0):
    out, err = process.communicate(timeout=60)
    equal(process.returncode, status, f"exit status of the script: {err}")
    return out


# ---- the library ----

@case("the declarations that CFFI has agree with the compiler: sizes and offsets of every member")
def _(folder):
    ffi = _library.ffi
    structs = re.findall(r"^(struct \w+) \{", (PACKAGE / "sluice/_cdef.py").read_text(), re.M)
    members = [(name, field) for name in structs for field, _ in ffi.typeof(name).fields]
    check(len(structs) >= 10 and len(members) > 80, f"only {len(structs)} structs")
    lines = [f'printf("{name} %zu\\n", sizeof({name}));' for name in structs]
    lines += [f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for name, field in members]
    (folder / "layout.c").write_text("#include <stdio.h>\n#include <sluice/client.h>\n#include <sluice/share.h>\nint main(void)\n{\n" +
                                     "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run([*compiler().split(), f"-I{ROOT}/include", folder / "layout.c", "-o", folder / "layout"], check=True)
    out = subprocess.run([folder / "layout"], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [f"{name} {ffi.sizeof(name)}" for name in structs] + [f"{name}.{field} {ffi.offsetof(name, field)}" for name, field in members]
    equal([line for line in out if line not in ours], [], "what the compiler says and CFFI does not")
    equal(len(out), len(ours), "lines")


@case("the library and the program are found or named: by the environment, beside the package, by the loader")
def _(folder):
    equal(sluice.library_path(), str(LIBRARY), "path")
    code = "import sluice\ntry:\n    sluice.shares()\nexcept sluice.Error as why:\n    print(why.code, why)"
    env = {**os.environ, "SLUICE_CLIENT_LIBRARY": str(folder / "none.so")}
    out = ends(script(code, env=env))
    check(out.startswith("library ") and "none.so" in out and "SLUICE_CLIENT_LIBRARY" in out, f"it says: {out}")
    prefix = folder / "prefix"
    shutil.copytree(PACKAGE / "sluice", prefix / "lib/python3/dist-packages/sluice")
    (prefix / "lib/x").mkdir()
    shutil.copy(LIBRARY, prefix / "lib/libsluice-client.so.0")
    env = {key: value for key, value in os.environ.items() if key not in ("SLUICE_CLIENT_LIBRARY", "SLUICE")}
    env.update(PYTHONPATH=str(prefix / "lib/python3/dist-packages"), PATH="/usr/bin:/bin")
    code = "import sluice\nprint(sluice.library_path())\ntry:\n    sluice.Session('x.yaml')\nexcept sluice.Error as why:\n    print(why.code, why)"
    lines = ends(script(code, env=env)).splitlines()
    equal(lines[0], str(prefix / "lib/libsluice-client.so.0"), "the library beside the package")
    check(lines[1].startswith("program ") and "set SLUICE" in lines[1], f"without a program: {lines[1]}")
    older = folder / "older.c"
    older.write_text("int sl_share_open(void) { return 0; }\n")
    subprocess.run([*compiler().split(), "-shared", "-fPIC", older, "-o", folder / "older.so"], check=True)
    out = ends(script("import sluice\ntry:\n    sluice.shares()\nexcept sluice.Error as why:\n    print(why)", env={**os.environ, "SLUICE_CLIENT_LIBRARY": str(folder / "older.so")}))
    check("older than this package" in out, f"an older library: {out}")


@case("importing the package imports nothing else, and every name that it offers is there")
def _(folder):
    equal(ends(script("import sys, sluice\nprint([m for m in ('cffi', 'numpy', 'h5py') if m in sys.modules])")).strip(), "[]", "imported")
    for name in sluice.__all__:
        check(hasattr(sluice, name) and (name == "__version__" or name == "REASONS" or getattr(sluice, name).__doc__), f"{name} has no docstring")
    check(set(sluice.__all__) | {"open"} <= set(dir(sluice)) and "open" not in sluice.__all__, "dir() leaves names out")
    fails(AttributeError, None, lambda: sluice.nothing, "no attribute 'nothing'")


# ---- followers ----

@case("frames of a writer in another process arrive whole and in order, with their numbers and rows")
def _(folder):
    writer = script("import sys; sys.path.insert(0, sys.argv[1]); import python_test as t, sluice, os; os.environ['SLUICE_RUN_DIR'] = sys.argv[2]\n"
                    "with sluice.Share('every', t.ARRAYS, 32, run='a run') as share:\n"
                    "    sys.stdin.readline()\n"
                    "    [t.push(share, n) for n in range(25)]\n"
                    "    sys.stdin.readline()\n", ROOT / "tests/system", RUN_DIR, stdin=subprocess.PIPE)
    with sluice.follow("share:every", every=True, timeout=30, wait=30) as follower:
        description = follower.describe()
        equal((description.name, description.run, description.generation, description.count), ("every", "a run", 1, 32), "description")
        equal(description.arrays, ARRAYS, "arrays")
        check("every" in sluice.shares(), "it is not listed")
        before = time.time_ns()
        writer.stdin.write("go\n")
        writer.stdin.flush()
        for n in range(25):
            frame = follower.next()
            is_element(frame, n)
            equal(frame.missed, 0, "missed")
            check(frame.valid() and not frame.is_view and frame["image"].flags.writeable, "it is no copy")
            check(before <= frame.committed_ns <= time.time_ns() and abs(frame.committed - frame.committed_ns * 1e-9) < 1e-3, "time of the commit")
            equal(frame.reason_name, sluice.REASONS[n % 10], "name of the reason")
        equal(follower.published, 25, "published")
        fails(KeyError, None, lambda: frame["dark"], "there are: image, spots")
        equal(follower.peers, 1, "followers")
        check("image" in frame and "dark" not in frame and "n=24" in repr(frame), f"{frame!r}")
        writer.stdin.write("end\n")
        writer.stdin.flush()
        equal(list(follower), [], "frames behind the end")
        fails(sluice.Ended, "ended", follower.next)
    ends(writer)


@case("a slow follower gets the newest, or every one that is left; what it missed is counted")
def _(folder):
    with sluice.Share("slow", ARRAYS, 8) as share, sluice.follow("slow", timeout=5) as newest, sluice.follow("slow", every=True, timeout=5) as every:
        push(share, 0)
        is_element(next(newest), 0)
        is_element(next(every), 0)
        for n in range(1, 100):
            push(share, n)
        frame = next(newest)
        is_element(frame, 99)
        equal(frame.missed, 98, "missed by one that wants the newest")
        got, missed, last = 1, 0, 0
        while last < 99:
            frame = next(every)
            is_element(frame, frame.n)
            got, missed, last = got + 1, missed + frame.missed, frame.n
        equal(got + missed, 100, "frames of one that wants every one, and missed ones")
        check(5 <= got <= 9, f"it got {got}")
        fails(sluice.Timeout, "timeout", lambda: every.next(timeout=0.05), "within 0.05 s")
        fails(TimeoutError, "timeout", lambda: newest.next(timeout=0), "no element came")


def address_of(array):
    return array.__array_interface__["data"][0]


@case("a view has no copy: its address is that of the share's memory, it cannot be written, and valid() tells when it was overtaken")
def _(folder):
    with sluice.Share("views", ARRAYS, 4) as share, sluice.follow("views", every=True, view=True, timeout=5) as follower:
        push(share, 0)
        frame = next(follower)
        is_element(frame, 0)
        check(frame.is_view and frame.valid(), "it is no view")
        at = int(_library.ffi.cast("uintptr_t", frame._element.data))
        equal(address_of(frame["image"]), at, "address, beside that of sl_follow_peek()")
        equal(address_of(frame["spots"]), at + follower.describe().places[1].offset, "address of the second array")
        check(any(low <= at and at + 12800 <= high for low, high in mappings()), "it is not in the memory of a share")
        for array in (frame["image"], frame["image"][3:]):
            check(not array.flags.writeable, "it can be written")
            fails(ValueError, None, lambda array=array: array.__setitem__(0, 1), "read-only")
            fails(ValueError, None, lambda array=array: array.setflags(write=True), "WRITEABLE")
        copy = frame.copy()
        for n in range(1, 4):
            push(share, n)
            check(frame.valid(), "no longer valid, too early")
        share.reserve()["image"][:] = 99  # the writer is in its place now
        check(not frame.valid() and (frame["image"] == 99).all(), "the view does not show what the writer does")
        fails(sluice.Overtaken, "overtaken", frame.copy)
        is_element(copy, 0)
        check(copy.valid(), "a copy is always valid")
        is_element(follower.next(view=False), 1)
        frame = next(follower)
        is_element(frame, 2)
        check(frame.valid() and address_of(frame["image"]) != at, "another place")


@case("views outlive resize, close and their follower, and the memory goes with the last of them")
def _(folder):
    gc.collect()
    equal(mappings(), [], "mappings before")
    share = sluice.Share("outlive", ARRAYS, 4)
    follower = sluice.Follower("outlive", every=True, view=True, timeout=5)
    push(share, 0)
    old = next(follower)
    first = old["image"][5:6]
    share.resize({"wide": sluice.Array("f8", (700,), "keV")}, 2)
    equal(share.push(np.full(700, 2.5)), 1, "n goes on")
    new = next(follower)
    equal((follower.describe().generation, list(new.arrays), new.missed), (2, ["wide"], 0), "behind the resize")
    equal(old.description.generation, 1, "an old frame has its own description")
    is_element(old, 0)
    check(old.valid() and new.valid(), "still valid: nobody writes there")
    flag = follower.flag
    equal(int(flag[0]), 2, "flag")
    share.push(np.zeros(700))
    equal((int(flag[0]), follower.published), (3, 3), "flag behind a commit")
    check(not flag.flags.writeable, "the flag can be written")
    follower.close()
    share.close()
    check(follower.closed and share.closed, "closed")
    fails(sluice.Error, "closed", follower.next)
    fails(sluice.Error, "closed", lambda: share.push(np.zeros(700)))
    is_element(old, 0)
    equal(float(new["wide"].sum()), 1750.0, "the new one")
    del old, new, follower, share, flag
    gc.collect()
    equal(len(mappings()), 1, "mappings: one view is left")
    equal(first.tolist(), [[0] * 100], "what it shows")
    del first
    gc.collect()
    equal(mappings(), [], "mappings at the end")


@case("the end of a share, a crash of its writer, no share, and one that comes later are told apart")
def _(folder):
    fails(sluice.Error, "absent", lambda: sluice.follow("nobody"), "no share is called 'nobody'")
    fails(sluice.Error, "absent", lambda: sluice.follow("nobody", wait=0.05))
    fails(sluice.Error, "request", lambda: sluice.follow("share:../x"))
    fails(ValueError, None, lambda: sluice.follow("a\0b"), "null byte")
    writer = script("import sluice, time; s = sluice.Share('crash', {'x': sluice.Array('u1', (3,))}, 2); s.push([1, 2, 3]); time.sleep(100)")
    follower = sluice.follow("crash", wait=30, every=True)
    equal(next(follower)["x"].tolist(), [1, 2, 3], "element")
    writer.kill()
    writer.wait()
    fails(sluice.Error, "crashed", follower.next, "has crashed")
    fails(sluice.Error, "absent", lambda: sluice.follow("crash"))


@case("with again=True a follower goes on with the next share of that name, after an end and after a crash")
def _(folder):
    for how in ("close", "kill"):
        code = "import sluice, sys; s = sluice.Share('again', {'x': sluice.Array('u1', (3,))}, 4); s.push([1, 2, 3]); sys.stdin.readline()"
        first = script(code, stdin=subprocess.PIPE)
        follower = sluice.follow("again", again=True, every=True, wait=30, timeout=30)
        held = follower.next(view=True)
        if how == "kill":
            first.kill()
            first.communicate()
        else:
            first.communicate("end\n", timeout=60)
        fails(sluice.Timeout, "timeout", lambda: follower.next(timeout=0.05))
        with sluice.Share("again", {"y": sluice.Array("<f4", (2,))}, 4) as share:
            share.push(np.array([4, 5], "f4"))
            frame = next(follower)
            equal((list(frame.arrays), frame["y"].tolist(), frame.n, frame.missed), (["y"], [4, 5], 0, 0), f"behind a {how}")
        equal(held["x"].tolist(), [1, 2, 3], "a view of the first one")
        follower.close()


INTERRUPTED = r'''
import signal, sys, threading, os
sys.path.insert(0, sys.argv[1])
import python_test as t, sluice
share = sluice.Share("interrupt", t.ARRAYS, 4)
follower = sluice.follow("interrupt")
def later():
    os.kill(os.getpid(), signal.SIGINT)
for call in (follower.next, follower.receive, share.receive, lambda: sluice.follow("nobody", wait=1000), lambda: follower.next(view=True), sluice.follow('interrupt', again=True).next):
    threading.Timer(0.1, later).start()
    try:
        call()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
t.push(share, 0)
t.is_element(follower.next(), 0)
print("goes on")
'''


@case("Ctrl-C ends every call that waits, and the follower can go on")
def _(folder):
    equal(ends(script(INTERRUPTED, ROOT / "tests/system")).splitlines(), ["interrupted"] * 6 + ["goes on"], "what it says")


STORM = r'''
import os, random, signal, threading, time
import numpy as np, sluice
share = sluice.Share("storm", {"x": sluice.Array("<u4", (100,))}, 8)
follower, ended, got, interrupts = sluice.follow("storm", every=True), [], 0, 0
def write():
    n = 0
    while not ended:
        n = share.push(np.full(100, n, "u4")) + 1
        time.sleep(0.0002)
    share.close()
def interrupt():
    for _ in range(300):
        time.sleep(random.random() * 0.003)
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)  # the main thread takes the last one while elements still come
    ended.append(True)
threads = [threading.Thread(target=target) for target in (write, interrupt)]
for thread in threads:
    thread.start()
frame = share
while frame is not None:
    try:
        while True:
            frame = next(follower, None)
            if frame is None:
                break
            assert (frame["x"] == frame.n).all(), frame
            got += 1
    except KeyboardInterrupt:
        interrupts += 1
for thread in threads:
    thread.join()
follower.close()
print(got > 0, interrupts > 10)
'''


@case("Ctrl-C at any moment, hundreds of times: no element is torn, nothing is stuck, and all can be closed")
def _(folder):
    equal(ends(script(STORM)).split(), ["True", "True"], "what it says")


@case("other threads run while one waits; close() ends a wait of another thread; threads may share a follower")
def _(folder):
    share, follower, counted, ended = sluice.Share("threads", ARRAYS, 64), sluice.follow("threads", every=True), [], []
    entered = threading.Event()

    def wait():
        entered.set()
        try:
            follower.next()
        except sluice.Error as why:
            ended.append(why.code)
    waiter = threading.Thread(target=wait)
    waiter.start()
    entered.wait()
    while len(counted) < 1000:  # this thread has the GIL although the other one waits in the library
        counted.append(1)
    follower.close()
    waiter.join(60)
    equal(ended, ["closed"], "what the waiting thread gets")
    follower, got, lock = sluice.follow("threads", every=True), [], threading.Lock()

    def take():
        for frame in follower:
            is_element(frame, frame.n)
            with lock:
                got.append(frame.n)
    takers = [threading.Thread(target=take) for _ in range(3)]
    for taker in takers:
        taker.start()
    for n in range(60):
        push(share, n)
    share.close()
    for taker in takers:
        taker.join(60)
    equal(sorted(got), list(range(60)), "elements that three threads got")


@case("parts: one array, a range of bytes, into memory of the caller; by number or the newest")
def _(folder):
    with sluice.Share("parts", ARRAYS, 4) as share, sluice.follow("parts") as follower:
        fails(sluice.Error, "empty", follower.fetch, "nothing is published yet")
        for n in range(3):
            push(share, n)
        is_element(follower.fetch(), 2)
        is_element(follower.fetch(1), 1)
        check((follower.fetch_array("image", 1) == 1).all(), "an array by number")
        equal(follower.fetch_array("spots").tolist(), [[2, 2]] * 2, "a ragged array of the newest")
        fails(KeyError, None, lambda: follower.fetch_array("x"), "there are: image, spots")
        row = np.zeros((1, 100), "u2")
        check(follower.fetch_bytes(200, 200, into=row) is row and (row == 2).all(), "into memory of mine")
        equal(follower.fetch_bytes(0, 4, 1).tolist(), [1, 0, 1, 0], "bytes")
        equal(len(follower.fetch_bytes(12000)), follower.describe().data_bytes - 12000, "up to the end")
        equal(len(follower.fetch_bytes(0, 0)), 0, "no bytes")
        fails(sluice.Error, "range", lambda: follower.fetch_bytes(0, 1 << 40))
        fails(sluice.Error, "range", lambda: follower.fetch_bytes(1 << 40))
        fails(ValueError, None, lambda: follower.fetch_bytes(-1))
        fails(ValueError, None, lambda: follower.fetch_bytes(0, 10, into=row), "of 10 bytes")
        fails(ValueError, None, lambda: follower.fetch_bytes(0, 20, into=np.zeros((10, 4), "u1")[:, :2]), "contiguous")
        fails(sluice.Error, "empty", lambda: follower.fetch(77), "77 is not published")
        for n in range(3, 9):
            push(share, n)
        fails(sluice.Overtaken, "overtaken", lambda: follower.fetch(1), "element 1 was overtaken")
        share.resize({"x": sluice.Array("u1", (3,))}, 2)
        share.push([7, 8, 9])
        fails(sluice.Overtaken, "overtaken", follower.fetch, "has another layout now")
        equal((follower.fetch()["x"].tolist(), follower.describe().generation), ([7, 8, 9], 2), "behind a resize")
        share.close()
        fails(sluice.Ended, "ended", follower.fetch, "it has ended")


@case("messages go both ways, of any size, with the number of the peer; a full queue is a timeout; pings come back")
def _(folder):
    with sluice.Share("talk", ARRAYS, 2, queue_bytes=1 << 20, max_peers=2) as share, sluice.follow("talk") as one, sluice.follow("talk") as two:
        check(0 < one.ping() < 60, "a ping")
        one.send("hello", kind=3)
        message = share.receive(timeout=30)
        equal((message.data, message.kind, message.text()), (b"hello", 3, "hello"), "a text")
        share.send(b"only you", message.peer, kind=4)
        answer = one.receive(timeout=30)
        equal((answer.data, answer.kind, answer.peer), (b"only you", 4, 0), "an answer")
        fails(sluice.Timeout, "timeout", lambda: two.receive(timeout=0.05), "no message came")
        two.send(np.arange(1000, dtype="u4")[::2])
        large = share.receive(timeout=30)
        check(large.peer != message.peer and np.frombuffer(large.data, "u4").tolist() == list(range(0, 1000, 2)), "an array")
        share.send(b"")
        equal([follower.receive(timeout=30).data for follower in (one, two)], [b"", b""], "to all of them, and empty")
        fails(sluice.Error, "size", lambda: share.send(bytes(2 << 20)), "2097152 bytes")
        fails(sluice.Error, "size", lambda: one.send(bytes(2 << 20)), "2097152 bytes is longer than the writer's queue")
        one.send(bytes(1 << 20))
        equal(len(share.receive(timeout=30).data), 1 << 20, "the longest message")
        fails(sluice.Error, "absent", lambda: share.send(b"x", 77), "follower 77 has gone")
        fails(sluice.Timeout, "timeout", lambda: [share.send(bytes(1 << 19), message.peer, timeout=0.05) for _ in range(100)], "is full")
        fails(sluice.Timeout, "timeout", lambda: share.receive(timeout=0), "no message came")
        counts = share.counts()
        equal((counts.peers, counts.peers_ever, counts.messages_in, counts.published), (2, 2, 3, 0), "counts")
        fails(sluice.Error, "connection", lambda: sluice.follow("talk"), "as many followers as it takes")


@case("a message that is too long for a follower is dropped, and it is told; messages that nobody receives are not kept without a limit")
def _(folder):
    with sluice.Share("long", ARRAYS, 2) as share, sluice.follow("long", queue_bytes=1000) as follower:
        for size in (1000, 1001, 7):
            share.send(bytes(size))
        equal(len(follower.receive(timeout=30).data), 1000, "one that fits")
        fails(sluice.Error, "size", lambda: follower.receive(timeout=30), "a message of 1001 bytes was dropped")
        equal(len(follower.receive(timeout=30).data), 7, "one behind it")
        for _ in range(3):
            share.send(bytes(500))
        fails(sluice.Error, "full", follower.ping, "receive() them")
        equal([len(follower.receive(timeout=30).data) for _ in range(3)], [500] * 3, "all of them")
        check(follower.ping() > 0, "a ping")
        share.close()
        fails(sluice.Ended, "ended", lambda: follower.receive(timeout=30), "it has ended")
        fails(sluice.Ended, "ended", lambda: follower.send("x", timeout=30), "it has ended")


@case("over RDMA a follower gets the same, messages go both ways, Ctrl-C works, and a view is refused")
def _(folder):
    try:
        share = sluice.Share("far", ARRAYS, 8, listen=f"{RECEIVER}:0")
    except sluice.Error as why:
        check("not built" in str(why), f"{why}")
        skip("this library has no shares of other hosts")
    with share, sluice.follow(share.url, every=True, timeout=30) as follower:
        check(share.url.startswith(f"rdma://{RECEIVER}:") and share.url.endswith("/far"), f"its URL is {share.url}")
        equal(follower.published, 0, "published")
        for n in range(20):
            push(share, n)
            equal(follower.published, n + 1, "published")
            frame = next(follower)
            is_element(frame, n)
            equal(frame.missed, 0, "missed")
        equal((follower.published, follower.describe().arrays), (20, ARRAYS), "what it knows")
        is_element(follower.fetch(15), 15)
        equal(follower.fetch_array("spots").tolist(), [[19, 19]] * 9, "an array of the newest")
        check(follower.ping() > 0, "a ping")
        follower.send("hello")
        share.send("you", share.receive(timeout=30).peer)
        equal(follower.receive(timeout=30).text(), "you", "an answer")
        fails(sluice.Error, "unsupported", lambda: follower.next(view=True), "without view=True")
        fails(sluice.Error, "unsupported", lambda: follower.flag, "without view=True")
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        fails(KeyboardInterrupt, None, follower.next)
        share.resize({"x": sluice.Array("f8", (3,))}, 2)
        share.push([1.0, 2.0, 3.0])
        equal(next(follower)["x"].tolist(), [1, 2, 3], "behind a resize")
        share.close()
        equal(list(follower), [], "behind the end")
    fails(sluice.Error, None, lambda: sluice.follow(share.url), "far")
    fails(sluice.Error, None, lambda: sluice.Share("far", ARRAYS, listen="192.0.2.1:0"), "far")


# ---- shares ----

@case("an array of shared_array() is the memory of a region and of a ring: nothing is copied, and the caller goes on using it")
def _(folder):
    region = sluice.shared_array((100, 200), "<f4")
    with sluice.Share("region", "temperature", memory=region, run="hall") as share, sluice.follow("region", timeout=5) as follower:
        equal((share.describe().count, share.describe().arrays), (1, {"temperature": sluice.Array("<f4", (100, 200))}), "description")
        share.reserve()
        region[:] = 21.5
        equal(share.commit(), 0, "n")
        frame = next(follower)
        check((frame["temperature"] == 21.5).all(), "what it has")
        view = follower.fetch_array("temperature")
        share.reserve()
        region[3, 4] = 30
        share.commit()
        equal((float(follower.fetch_array("temperature")[3, 4]), float(view[3, 4])), (30.0, 21.5), "the second, and a copy of the first")
    region[:] = 0  # it is still the caller's
    for shape, kind in (((64, 100), "<u2"), ((7,), "<f8"), ((3, 5), "|u1"), ((), "<i4")):
        ring = sluice.shared_array(shape, kind, count=5)
        equal(ring.shape, (5, *shape), "shape of a ring")
        with sluice.Share("ring", "image", 5, memory=ring) as share, sluice.follow("ring", every=True, timeout=5) as follower:
            for n in range(12):
                element = share.reserve()
                ring[n % 5] = n
                check((element["image"] == n).all(), f"place {n % 5} of {shape} is not row {n % 5} of the array")
                equal(element.commit(), n, "n")
                check((next(follower)["image"] == n).all(), "what followers get")
    fd = os.memfd_create("mine", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 20)
    with sluice.Share("fd", {"x": sluice.Array("<u4", (100,))}, 4, memory=(fd, 8192)) as share, sluice.follow("fd", timeout=5) as follower:
        share.reserve()
        os.pwrite(fd, np.arange(100, dtype="<u4").tobytes(), 8192)
        share.commit()
        equal(next(follower)["x"].tolist(), list(range(100)), "memory of a descriptor")
    os.close(fd)


@case("memory that others cannot map is refused, and the message says what to do")
def _(folder):
    says = ("sluice.shared_array(shape, dtype)", "push() copies")
    fails(sluice.Error, "request", lambda: sluice.Share("m", memory=np.zeros(10)), *says)
    fails(sluice.Error, "request", lambda: sluice.Share("m", memory=np.zeros((10, 10))[2:]), *says)
    array = sluice.shared_array((1024, 4), "u1", count=4)
    fails(sluice.Error, "request", lambda: sluice.Share("m", memory=array[:, 1:], count=4), "contiguous")
    fails(sluice.Error, "request", lambda: sluice.Share("m", memory=array[:, 5:6], count=4), "begin at a page")
    fails(sluice.Error, "request", lambda: sluice.Share("m", memory=array, count=3), "4 rows, and the ring 3 places")
    fails(sluice.Error, "request", lambda: sluice.Share("m", memory=sluice.shared_array((4, 5000), "u1"), count=4), "places of a ring")
    fails(ValueError, None, lambda: sluice.Share("m", {"x": array}, memory=array), "name")
    fails(sluice.Error, "share", lambda: sluice.Share("m", {"x": array}, memory=(0x7fff, 0)), "memory_fd")
    with open("/dev/zero", "r+b") as zero:
        fails(sluice.Error, "request", lambda: sluice.Share("m", {"x": array}, memory=(zero.fileno(), 0)))
    fails(ValueError, None, lambda: sluice.shared_array(0))
    fails(ValueError, None, lambda: sluice.shared_array(3, object))
    share = sluice.Share("m", memory=array, count=4)  # and this one is right
    share.close()
    del share
    gc.collect()
    equal(memfds(), 2, "descriptors of one array: ours, and that of its mapping")
    del array
    gc.collect()
    equal(memfds(), 0, "descriptors, when the array is gone")


@case("an element that fails in the middle is not published; a published one cannot be written any more")
def _(folder):
    with sluice.Share("fill", ARRAYS, 4) as share, sluice.follow("fill", timeout=5) as follower:
        def fail():
            with share.reserve() as element:
                element["image"][:] = 5
                raise RuntimeError("stop")
        fails(RuntimeError, None, fail)
        fails(ValueError, None, lambda: share.push({"spots": np.ones((1, 2), "f4")}, score="high"))
        fails(sluice.Timeout, None, lambda: follower.next(timeout=0))
        with share.reserve() as element:
            check((element["image"] == 5).all(), "the same place again")
            equal(element["spots"].shape, (10, 2), "all rows that there can be")
            element.number, element.user = 12, (1, 2)
            element.set_rows("spots", 1)
            fails(AttributeError, None, lambda: setattr(element, "numbre", 1), "there are: epoch, flags")
            fails(ValueError, None, lambda: element.set_rows("spots", 11), "there can be 10")
            fails(ValueError, None, lambda: element.set_rows("image", 1), "no ragged array")
            fails(ValueError, None, lambda: setattr(element, "user", range(9)), "at most 8")
            fails(OverflowError, None, lambda: setattr(element, "number", -1))
        frame = next(follower)
        equal((frame.number, frame.keep, frame.user[:2], len(frame["spots"]), list(frame.arrays)), (12, True, (1, 2), 1, ["image", "spots"]), "what was published")
        fails(ValueError, None, lambda: element["image"].__setitem__(0, 1), "read-only")
        for call in (element.commit, lambda: setattr(element, "number", 1), lambda: element.set_rows("spots", 1), lambda: element.leave_out("spots")):
            fails(sluice.Error, "state", call, "is committed")
        share.push({"spots": np.ones((1, 2), "f4")})
        frame = next(follower)
        equal((list(frame.arrays), "image" in frame), (["spots"], False), "an element without an image")
        fails(KeyError, None, lambda: frame["image"], "has no 'image'")
        fails(KeyError, None, lambda: follower.fetch_array("image"), "has no 'image'")
        fails(KeyError, None, lambda: share.reserve().leave_out("x"), "there are: image, spots")
        element = share.reserve()
        share.resize(ARRAYS, 2)
        fails(sluice.Error, "state", element.commit)
        fails(ValueError, None, lambda: element["image"].__setitem__(0, 1), "read-only")
        push(share, 1)
        equal(next(follower).n, 2, "behind the resize")


@case("what does not fit is refused: shapes, types, names, numbers of places")
def _(folder):
    array = sluice.Array
    for call, kind, says in (
            (lambda: sluice.Share("x", {}), ValueError, "1 to 24 arrays"),
            (lambda: sluice.Share("x"), ValueError, "sluice.Array(dtype, shape)"),
            (lambda: sluice.Share("x", {str(i): array("u1", 1) for i in range(25)}), ValueError, "not 25"),
            (lambda: sluice.Share("x", {"a": array(">u2", 1)}), ValueError, "no type >u2"),
            (lambda: sluice.Share("x", {"a": array("O", 1)}), ValueError, "no type object"),
            (lambda: sluice.Share("x", {"a": array("U3", 1)}), sluice.Error, "array 'a'"),
            (lambda: sluice.Share("x", {"a": array("u1", (1,) * 7)}), ValueError, "at most 6 dimensions"),
            (lambda: sluice.Share("x", {"a": array("u1", (3, 0))}), ValueError, "a dimension of 0"),
            (lambda: sluice.Share("x", {"a" * 32: array("u1", 1)}), ValueError, "31 bytes"),
            (lambda: sluice.Share("x", {"a": array("u1", 1, "b" * 20)}), ValueError, "its unit"),
            (lambda: sluice.Share("x", {"a": array("u1", (), ragged=True)}), sluice.Error, "array 'a'"),
            (lambda: sluice.Share("x", {"a": array("u1", 1)}, 0), ValueError, "at least one place"),
            (lambda: sluice.Share("x", {"a": array("u1", 1 << 31)}, 1 << 40), sluice.Error, "the ring is too large"),
            (lambda: sluice.Share("../x", {"a": array("u1", 1)}), sluice.Error, "no name of a share")):
        fails(kind, None, call, says)
    with sluice.Share("fits", ARRAYS, 4) as share:
        fails(sluice.Error, None, lambda: sluice.Share("fits", ARRAYS), "a share 'fits' exists already")
        for call, kind, says in (
                (lambda: share.push(np.zeros(3)), ValueError, "which array?"),
                (lambda: share.push({"image": np.zeros((64, 99))}), ValueError, "(64, 100), not (64, 99)"),
                (lambda: share.push({"image": np.zeros((64, 100))}), TypeError, "float64 cannot become"),
                (lambda: share.push({"image": [[1 << 16] * 100] * 64}), ValueError, "from 0 to 65535"),
                (lambda: share.push({"spots": np.zeros((11, 2), "f4")}), ValueError, "at most (10, 2)"),
                (lambda: share.push({"x": 1}), KeyError, "there are: image, spots"),
                (lambda: share.push({}, numbre=3), TypeError, "there are: epoch")):
            fails(kind, None, call, says)
        equal(share.counts().published, 0, "nothing was published")
        share.push({"spots": np.zeros((2, 2))}, score=float("nan"))  # float64 becomes float32
        equal((share.counts().published, share.url), (1, "share:fits"), "one")
        fails(ValueError, None, lambda: share.resize(ARRAYS, 0))
        push(share, 1)


@case("a share and a follower that a program forgets end with it, and followers are told")
def _(folder):
    code = ("import sluice, sys; s = sluice.Share('forgotten', {'x': sluice.Array('u1', (2,))}, 2); f = sluice.follow('forgotten'); e = s.reserve();"
            "sys.stdin.readline(); e['x'][:] = 7; e.commit(); v = f.next(view=True)['x']")
    writer = script(code, stdin=subprocess.PIPE)
    follower = sluice.follow("forgotten", wait=30, every=True)
    writer.communicate("go\n", timeout=60)
    equal(writer.returncode, 0, "exit status")
    equal([frame["x"].tolist() for frame in follower], [[7, 7]], "elements")


@case("a child process that is forked off can neither use nor end what its parent has opened")
def _(folder):
    code = ("import sluice, os, sys\n"
            "s = sluice.Share('forked', {'x': sluice.Array('u1', (2,))}, 2); f = sluice.follow('forked', every=True, timeout=30)\n"
            "r = sluice.Session(sys.argv[1], root=sys.argv[2]); print(r.state, flush=True)\n"
            "if os.fork() == 0:\n"
            "    for call in (s.reserve, f.next):\n"
            "        try:\n            call()\n"
            "        except sluice.Error as why:\n            print(why.code, 'before a fork' in str(why), flush=True)\n"
            "    print(r.state, flush=True); f.close(); r.close(); sys.exit()\n"
            "os.wait(); s.push([1, 2]); print(f.next()['x'], r.state, os.path.exists(r._log)); s.close(); print(list(f))\n")
    path = experiment(folder, "forked.yaml", **{**SMALL, "sinks": ["null"]})
    lines = ends(script(code, path, folder / "data")).splitlines()
    equal(lines, ["configured", "request True", "request True", "configured", "[1 2] configured True", "[]"], "what it says")


# ---- sessions ----

SMALL = {"detector": {"rows": 32, "columns": 64, "frames": 60}, "link": {"kind": "shm"}, "control": {"port": 0}}


@case("a session takes run after run: configure, start, wait, results; it is listed, attached to, and closed")
def _(folder):
    sections = {**SMALL, "sinks": [{"nexus": {"path": "run.nxs", "dataset": "raw"}}, "verify"]}
    with sluice.Session(experiment(folder, "scan.yaml", **sections), root=folder / "data", settings={"detector.frames": 30}) as session:
        equal((session.name, session.state, session.pid > 0), ("scan", "configured", True), "the session")
        info = next(info for info in sluice.sessions() if info.name == "scan")
        equal((info.alive, info.pid, info.root), (True, session.pid, str(folder / "data")), "in the list")
        result = session.run(timeout=60)
        equal((result.run, result.result, result.frames.settled, result.ledger.total.outcomes["stored"]), (1, "intact", 30, 60), "the first run")
        session.configure({"detector.frames": 40, "ring.poison": True})
        equal(session.set_metadata(sample="lysozyme", sample_temperature_K=77, keep=True)["sample"], "lysozyme", "metadata")
        with sluice.attach("scan") as other:
            equal((other.start(wait=60) in ("running", "ended"), other.wait(timeout=60)), (True, "ended"), "start and wait")
            status = other.status()
            equal((status.run, status.frames.kept, status["ledger"]["closed"], len(status.ledger.modules), status.metadata["sample"]),
                  (2, 40, True, 2, "lysozyme"), "the second run")
            equal(status.ledger.modules[1].settled, 40, "lists have attributes, too")
            check("frames" in dir(status) and "settled" in status.frames and len(status) > 20, "a mapping")
            fails(AttributeError, None, lambda: status.nothing, "there are: schema")
            equal(other.sinks(), {"nexus": f"{folder}/data/000002/run.nxs"}, "sinks")
            why = fails(sluice.Error, "state", other.pause, "pause")
            check(why.errno and not why.where, "errno")
            why = fails(sluice.Error, "experiment", lambda: other.configure(["detector.frames=many"]), "detector.frames")
            fails(sluice.Error, "request", lambda: other.request("dance"))
            equal(other.state, "fault", "state behind a wrong override")
            why = fails(sluice.Error, "experiment", lambda: other.wait("armed", timeout=30), "detector.frames")
            other.configure({"detector.frames": 10})
        equal(session.run(timeout=60).run, 3, "the third run")
        session.configure({"detector.frames": 0})
        session.start(wait=60)  # and its end is in the middle of a run
        process = session._process
    equal(process.poll(), 0, "exit status of the session")
    fails(sluice.Error, "absent", lambda: sluice.attach("scan"), "no session is called 'scan'")
    equal([info.name for info in sluice.sessions()], [], "sessions that are left")


@case("a run is watched, paused, resumed and stopped; statuses come until it has ended")
def _(folder):
    path = experiment(folder, "watch.yaml", **{**SMALL, "detector": {**LONG, "frames": 0}, "sinks": ["null"]})
    with sluice.Session(path, name="watched") as session:
        session.wait("running", timeout=60)
        states, before = [], -1
        for status in session.watch(0.1, changes=True):
            states.append(status.state)
            check(status.frames.settled >= before, "frames go back")
            before = status.frames.settled
            if len(states) == 3:
                equal(session.pause(wait=60), "paused", "pause")
                check(session.status().drained, "not drained")
                fails(sluice.Timeout, "timeout", lambda: session.wait("running", timeout=0.2), "not running within 0.2 s")
                equal(session.resume(wait=60), "running", "resume")
            if len(states) == 5:
                session.stop("enough")
        equal((states[0], states[-1]), ("running", "ended"), f"states: {states}")
        result = session.result(timeout=60)
        equal((result.stopped_by, result.result), ("enough", "intact"), "what it leaves behind")
        for status in session.watch(0.1) if session._process.poll() is None else ():
            equal(status.state, "ended", "a watch behind the end")
    fails(sluice.Error, "absent", lambda: sluice.attach("watched"))


@case("one run: its summary, out of a file or a dictionary; a run that cannot begin raises what the program says")
def _(folder):
    text = {"detector": {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 50}, "link": {"kind": "shm"}, "control": {"port": 0},
            "sinks": ["null", "verify"]}
    summary = sluice.run(text, emulate=True, settings={"detector.frames": 25}, timeout=60)
    equal((summary.result, summary.frames.settled, summary.exit), ("intact", 25, 0), "summary")
    fails(sluice.Error, "program", lambda: sluice.run({**text, "no_such_key": 1}), "no_such_key")
    fails(sluice.Error, "program", lambda: sluice.run(folder / "none.yaml"), "none.yaml")
    fails(sluice.Error, "program", lambda: sluice.Session(folder / "none.yaml", root=folder), "none.yaml")
    fails(TypeError, None, lambda: sluice.run(text, settings="detector.frames=3"), "a mapping or a list")
    fails(TypeError, None, lambda: sluice.run({"x": object()}))
    os.environ["SLUICE"], tempfile.tempdir = str(folder), str(folder)
    try:
        fails(sluice.Error, "program", lambda: sluice.run(text), "cannot be started")
        os.environ["SLUICE"] = SLUICE
        sluice.run(text, emulate=True)
    finally:
        os.environ["SLUICE"], tempfile.tempdir = SLUICE, None
    equal([path.name for path in folder.glob("sluice-*")], [], "folders that are left")


@case("a session that is killed is an error for those who wait, and is listed as crashed; Ctrl-C leaves a session alone")
def _(folder):
    path = experiment(folder, "killed.yaml", **{**SMALL, "detector": {**LONG, "frames": 0}, "sinks": ["null"]})
    session = sluice.Session(path, root=folder / "data")
    session.start(wait=60)
    interrupted = script("import sluice, os, signal, threading; c = sluice.attach('killed'); threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                         "try:\n    c.wait()\nexcept KeyboardInterrupt:\n    print(c.state)\n"
                         "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                         "try:\n    [s for s in c.watch(1000)]\nexcept KeyboardInterrupt:\n    print(c.state)\n")
    equal(ends(interrupted).split(), ["running", "running"], "after Ctrl-C")
    other = sluice.attach("killed")
    os.kill(session.pid, signal.SIGKILL)
    fails(sluice.Error, "connection", lambda: other.wait(timeout=60))
    wait_for("a crashed session", lambda: [info.alive for info in sluice.sessions() if info.name == "killed"] == [False])
    fails(sluice.Error, "crashed", other.status, "killed")
    other.close()
    session.close()


# ---- files ----

def tool(name):
    try:
        return __import__(name)
    except ImportError:
        return skip(f"python3-{name} is not installed")


PEAKS = {
    "detector": {"kind": "jungfrau", "modules": 2, "frames": 60, "dark_frames": 20, "hit_fraction": 0.5, "photon_energy_keV": 12.4, "rows": None,
                 "columns": None},
    "link": {"kind": "shm"}, "control": {"port": 0}, "metadata": {"sample": "lysozyme"},
    "stages": [{"correct": {"output": "photons_i16"}}, {"integrate": {"bins": 50, "unit": "q_nm"}}, {"peaks": {"min_peaks": 10}}],
}


@case("a file is read lazily: images, results and rows by frame number, ledger, metadata; in rolled data files or a single one")
def _(folder):
    h5py = tool("h5py")
    for rolled, frames, dark in ((7, 50, 20), (0, 20, 10)):
        detector = {**PEAKS["detector"], "frames": frames, "dark_frames": dark}
        sluice.run(experiment(folder, **{**PEAKS, "detector": detector, "sinks": [{"nexus": {"path": str(folder / "run.nxs"), "overwrite": True, "frames_per_file": rolled}}]}))
        with sluice.open(folder / "run.nxs") as run, h5py.File(folder / "run.nxs") as file:
            equal(run.state, "complete", "state")
            images, rows = file["entry/data/data"], file["entry/sluice/frames"]
            equal((run.images.shape, run.images.dtype, len(run.frames["keep"])), (images.shape, images.dtype, frames + dark), "shapes")
            check(len(images) > 5 and (run.images[3] == images[3]).all() and (run.images[-1] == images[-1]).all(), "images")
            check((run.images[2:9] == images[2:9]).all() and (np.asarray(run.images) == images[:]).all(), "several images")
            check((run.images[1, 5:7] == images[1, 5:7]).all() and (run.images[::-3][0] == images[-1]).all(), "parts of images")
            check((run.images[[0, 4]] == images[[0, 4]]).all() and run.images[5:5].shape == (0, *images.shape[1:]), "a list of images")
            fails(IndexError, None, lambda: run.images[len(images)], "row")
            fails(IndexError, None, lambda: run.images[-len(images) - 1])
            equal(len(list(run.images)), len(images), "iteration")
            numbers = file["entry/data/frame_number"][:]
            for index, number in enumerate(numbers):
                check((run.image_of(number) == images[index]).all(), f"image of frame {number}")
            rejected = rows["frame_number"][:][rows["image_index"][:] < 0]
            equal(run.image_of(int(rejected[-1])), None, "image of a rejected frame")
            fails(KeyError, None, lambda: run.image_of(10**9), "no frame has the number")
            found = run.result_of(int(numbers[0]))
            equal((len(found["peaks"]) == int(found["peaks_found"][0]) >= 10, found["profile"].shape[-1] if "profile" in found else 50), (True, 50), "results")
            check("peaks_first" not in found and "sequence" in found, f"names of results: {list(found)}")
            equal(run.result_of(int(rows["frame_number"][0])), {}, "results of a dark frame")
            equal(sorted(run.frames), sorted(name for name in rows if rows[name].ndim and not name.endswith("_names")), "columns")
            equal(run.reason_names[run.frames["reason"][run.row_of(int(numbers[0]))]], "peaks", "reason")
            equal((run.ledger.closed, int(run.ledger.sent.sum()), int(run.ledger["stored"].sum()), int(run.ledger.causes["dark"].sum())),
                  (True, 2 * (frames + dark), 2 * len(images), 2 * dark), "ledger")
            check(set(run.ledger) >= {"stored", "lost"} and "closed" in repr(run.ledger), f"{run.ledger!r}")
            equal(run.metadata["sample"], "lysozyme", "metadata")
            check("jungfrau" in run.experiment and run.outcome_names[1] == "stored" and "dark" in run.cause_names, "texts")
            check(run.refresh() is run and "complete" in repr(run) and "score" in repr(run.frames), "refresh")
        sizes = len(list(folder.glob("run_data_*.h5")))
        check(sizes > 2 if rolled else not sizes, f"{sizes} data files")


@case("a file that is being written can be read, and refresh() finds what has come since, to the end of the run")
def _(folder):
    tool("h5py")
    path = folder / "run.nxs"
    sections = {**SMALL, "detector": {**LONG, "frames": 0}, "sinks": [{"nexus": {"path": str(path), "dataset": "raw", "frames_per_file": 20}}]}
    with sluice.Session(experiment(folder, "live.yaml", **sections)) as session:
        wait_for("a file", path.exists)
        with sluice.open(path) as run:
            equal(run.state, "writing", "state")

            def images():
                run.refresh()
                try:
                    return len(run.images)
                except KeyError:
                    return 0
            wait_for("images in the second data file", lambda: images() > 30)
            first = len(run.images)
            number = int(run.frames["frame_number"][23])
            image = run.image_of(number)
            check((image == run.images[23]).all() and run.images[10:30].shape[0] == 20, "images of two data files")
            equal([int(n) for n in run.frames["sequence"][18:23]], [18, 19, 20, 21, 22], "rows of two data files")
            fails(sluice.Error, "state", lambda: run.ledger, "when the run ends")
            wait_for("more images", lambda: images() > first)
            session.stop(wait=60)
            equal(session.result(timeout=60).result, "intact", "result")
            run.refresh()
            equal((run.state, run.ledger.closed), ("complete", True), "state at the end")
            check((run.image_of(number) == image).all() and len(run.images) == int(run.ledger["stored"][0]), "the same image")


@case("what is no file of a run is refused with a reason")
def _(folder):
    h5py = tool("h5py")
    (folder / "text").write_text("not HDF5")
    with h5py.File(folder / "other.h5", "w") as file:
        file["x"] = 1
    fails(sluice.Error, "absent", lambda: sluice.open(folder / "none.nxs"), "no such file")
    fails(sluice.Error, "file", lambda: sluice.open(folder / "text"), "not a file that HDF5 can open")
    fails(sluice.Error, "file", lambda: sluice.open(folder / "other.h5"), "not the file of a run", "open the master")


# ---- installed ----

TRY = ("import sluice, numpy; s = sluice.Share('installed', {'x': sluice.Array('u1', (2,))}, 2); s.push([1, 2]); "
       "print(sluice.follow('installed').next()['x'].tolist(), sluice.__version__, sluice.__file__)")


@case("meson installs it where the Python of the system looks, and it finds its library and program there")
def _(folder):
    meson = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else shutil.which("meson")
    if not meson:
        skip("meson is not installed")
    subprocess.run([meson, "install", "-C", pathlib.Path(SLUICE).parent, "--no-rebuild", "--tags", "runtime,python-runtime", "--destdir", folder],
                   capture_output=True, text=True, check=True)
    place = next(folder.rglob("sluice/_cdef.py")).parent
    equal(sorted(path.name for path in place.iterdir() if path.name != "__pycache__"),
          sorted(path.name for path in (PACKAGE / "sluice").iterdir() if path.name != "__pycache__"), "files")
    env = {key: value for key, value in os.environ.items() if key not in ("SLUICE", "SLUICE_CLIENT_LIBRARY")}
    env.update(PYTHONPATH=str(place.parent), PATH="/usr/bin:/bin")
    out = ends(script(TRY + "; print(sluice.library_path()); print(sluice.program_path())", env=env, cwd=folder)).splitlines()
    check(out[0].startswith("[1, 2] 0") and str(place) in out[0], f"it prints {out}")
    check(out[1].startswith(str(folder)) and out[1].endswith("libsluice-client.so.0"), f"the library is {out[1]}")
    check(out[2].startswith(str(folder)) and out[2].endswith("bin/sluice"), f"the program is {out[2]}")


def pip_installs(folder, python, *options):
    """pip of this Python, without network."""
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        skip(f"{python} has no pip")
    source, target = folder / "source", folder / "site"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INDEX="1", PIP_ROOT_USER_ACTION="ignore", HOME=str(folder),
               http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    done = subprocess.run([python, "-m", "pip", "install", "--no-deps", "--no-compile", "--target", target, *options, source], env=env,
                          capture_output=True, text=True, check=False, timeout=120)
    equal(done.returncode, 0, f"pip install {options}: {done.stdout[-800:]} {done.stderr[-800:]}")
    check((target / "sluice/py.typed").exists() and (target / f"sluice-{sluice.__version__}.dist-info/RECORD").exists(), "what pip installed")
    equal(sorted(path.name for path in source.iterdir()), sorted(path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"), "the source folder")
    if subprocess.run([python, "-c", "import cffi, numpy"], capture_output=True, check=False).returncode:
        return
    out = ends(script(TRY, python=python, env={**env, "PYTHONPATH": str(target)}, cwd=folder))
    check(out.startswith("[1, 2]") and str(folder) in out, f"it prints {out}")


PIPS = dict.fromkeys(path for path in PYTHONS if path and os.path.exists(path))
for WHICH, OPTIONS in zip(PIPS, ((), ("--no-build-isolation",))):
    case(f"pip installs it without network: {' '.join(('pip install', *OPTIONS))} of {WHICH}")(
        lambda folder, which=WHICH, options=OPTIONS: pip_installs(folder, which, *options))


@case("a wheel says what it has, and the source archive makes the same one")
def _(folder):
    code = "import sys; sys.path.insert(0, sys.argv[1]); import backend; print(backend.build_wheel(sys.argv[2])); print(backend.build_sdist(sys.argv[2]))"
    wheel, archive = ends(script(code, PACKAGE, folder)).split()
    with zipfile.ZipFile(folder / wheel) as file:
        names = file.namelist()
        record = next(name for name in names if name.endswith("RECORD"))
        rows = [line.split(",") for line in file.read(record).decode().splitlines()]
        equal(sorted(row[0] for row in rows), sorted(names), "names of RECORD")
        for name, digest, size in rows:
            data = file.read(name)
            ours = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            check(name == record or (digest, int(size)) == (ours, len(data)), f"RECORD of {name}")
        about = file.read(next(name for name in names if name.endswith("METADATA"))).decode()
        check("Name: sluice\n" in about and "Requires-Dist: cffi" in about, "METADATA")
    with tarfile.open(folder / archive) as file:
        file.extractall(folder)
    again = folder / "again"
    again.mkdir()
    ends(script(code, folder / archive.removesuffix(".tar.gz"), again))
    equal((again / wheel).read_bytes(), (folder / wheel).read_bytes(), "the wheel of the archive")


if __name__ == "__main__":
    main()
