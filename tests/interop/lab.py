"""lab.py - a guest with Soft-RoCE beside a private network namespace.

    this process and what it starts ── tap ── wire ── QEMU (software emulation)
    10.77.0.1, fd77::1                                10.77.0.2, fd77::2

The calling process moves into a network namespace of its own, which has no name: it goes when the last process in it
ends, and the tap with it. Whatever is started dies with the thread that started it. Nothing else on the machine
changes, so there is nothing to clean up, however the run ends.

    lab = Lab(kernel, programs, folder)
    lab.guest.run("ibv_devinfo")                # to its end: a Done
    with lab.guest.start("cat") as cat: ...     # in the background, with stdin and stdout
    lab.wire.faults("guest", loss=20, seed=7)
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading
import time

import image

HOST = {4: "10.77.0.1", 6: "fd77::1"}
GUEST = {4: "10.77.0.2", 6: "fd77::2"}
MTU = 4500  # for a path MTU of 4096
AGENT_PORT = 7700
QUEUE_PACKETS = 100000  # the tap's usual 1000 are lost in a burst
EMULATED = ("-accel", "tcg,thread=multi", "-cpu", "max")
BOOT_TIMEOUT_S, CONNECT_TIMEOUT_S = 60, 10

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000


def die_with_parent():
    """In the child, before exec."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(command, **options):
    """A program that dies with this thread."""
    return subprocess.Popen([str(word) for word in command], preexec_fn=die_with_parent, **options)


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()


def missing():
    """Why there can be no lab here; None: there can."""
    if os.geteuid():
        return "a private network namespace and a tap need root"
    for program in ("qemu-system-x86_64", "busybox", "ip", "rdma", "ibv_devinfo", "ib_write_bw", "depmod", "dpkg-deb"):
        try:
            image.find(program)
        except image.Unavailable as why:
            return f"{why} (tools/deps.sh interop)"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun"
    return None


# ---- the host's side of the network ----

def enter_private_network():
    if LIBC.unshare(CLONE_NEWNET):
        raise image.Unavailable(f"no network namespace: {os.strerror(ctypes.get_errno())}")


def open_tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    except OSError as error:
        os.close(fd)
        raise image.Unavailable(f"no tap: {error.strerror}") from None
    return fd


def configure(name, mtu):
    for arguments in ("link set lo up", f"link set {name} mtu {mtu} txqueuelen {QUEUE_PACKETS} up",
                      f"addr add {HOST[4]}/24 dev {name}",
                      f"addr add {HOST[6]}/64 dev {name} nodad"):
        image.run("ip", *arguments.split())
    # Ports of receivers are not for connections to the guest, which leave them in TIME_WAIT for a minute.
    pathlib.Path("/proc/sys/net/ipv4/ip_local_reserved_ports").write_text("47900-47999")


# ---- the cable ----

class Wire:
    """The program that carries frames, and loses them when asked."""

    def __init__(self, program, tap, stream, capture=None):
        self.process = spawn([program, tap, stream, *([capture] if capture else [])], pass_fds=(tap, stream),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().strip()

    def faults(self, toward, **faults):
        """See wire.c; no faults named: none."""
        answer = self.ask(" ".join(["faults", toward, *(f"{name}={value}" for name, value in faults.items())]))
        if answer != "ok":
            raise RuntimeError(f"wire: {answer!r}")

    def clean(self):
        for toward in ("guest", "host"):
            self.faults(toward)

    def count(self, toward):
        return {name: int(value) for name, value in (word.split("=") for word in self.ask(f"count {toward}").split())}


# ---- commands in the guest ----

class Done:
    """A command that ended: its exit status, what it wrote."""

    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err

    def text(self):
        return self.out.decode(errors="replace")

    def report(self):
        err = self.err.decode(errors="replace")
        return f"{self.command}: exit status {self.status}\n{self.text()}{err}"


class Command:
    """A command in the guest. Its stdout can be read as it comes; its stderr is collected. Leaving the context, or
    close(), kills it. As a file: write(), flush(), readline(), read(n), like the pipes of a local process."""

    def __init__(self, line):
        self.line = line
        self.socket = socket.create_connection((GUEST[4], AGENT_PORT), CONNECT_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.out, self.err = bytearray(), bytearray()
        self.status = None
        self.send(b"r", line.encode())

    def send(self, kind, data):
        self.socket.sendall(kind + struct.pack(">I", len(data)) + data)

    def write(self, data):
        for at in range(0, len(data), 1 << 19):
            self.send(b"i", data[at:at + (1 << 19)])

    def flush(self):
        pass

    def feed(self, data):
        """All of its stdin; a command that ends before it has read that is no error."""
        with contextlib.suppress(OSError):
            self.write(data)
            self.send(b"i", b"")

    def exactly(self, length):
        data = bytearray()
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise ConnectionError(f"the guest's agent is gone: {self.line}")
            data += part
        return bytes(data)

    def receive(self):
        """One frame; False after the last."""
        if self.status is not None:
            return False
        head = self.exactly(5)
        data = self.exactly(int.from_bytes(head[1:], "big"))
        if head[:1] == b"x":
            self.status = int.from_bytes(data, "big")
        else:
            (self.out if head[:1] == b"o" else self.err).extend(data)
        return True

    def take(self, length):
        data = bytes(self.out[:length])
        del self.out[:length]
        return data

    def readline(self):
        while b"\n" not in self.out and self.receive():
            pass
        return self.take(self.out.find(b"\n") + 1 or len(self.out))

    def read(self, length):
        while len(self.out) < length and self.receive():
            pass
        return self.take(length)

    def settimeout(self, seconds):
        """For every single wait that follows."""
        self.socket.settimeout(seconds)

    def wait(self, timeout_s):
        """Until it ends by itself; a TimeoutError otherwise."""
        deadline = time.monotonic() + timeout_s
        more = True
        while more:
            self.settimeout(max(0.001, deadline - time.monotonic()))
            more = self.receive()
        return Done(self.line, self.status, bytes(self.out), bytes(self.err))

    def wait_or_kill(self, timeout_s):
        """Until it ends; exit status None when it was killed."""
        try:
            return self.wait(timeout_s)
        except TimeoutError:
            self.err += b"(timed out)\n"
            return Done(self.line, None, bytes(self.out), bytes(self.err))
        finally:
            self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class NotUp(RuntimeError):
    """The guest did not boot."""


class Guest:
    """The virtual machine. `release`: its kernel."""

    def __init__(self, kernel, initrd, stream, folder, mtu, memory_mib, cpus, accelerator, append):
        self.release = kernel.release
        self.serial = folder / "serial.txt"
        self.complaints = folder / "qemu.txt"
        append = (f"console=ttyS0 quiet panic=-1 mitigations=off no_timer_check interop.mtu={mtu} "
                  f"interop.ipv4={GUEST[4]}/24 interop.ipv6={GUEST[6]}/64 interop.port={AGENT_PORT} {append}")
        with open(self.complaints, "wb") as complaints:
            self.process = spawn(
                ["qemu-system-x86_64", *accelerator, "-smp", cpus, "-m", memory_mib, "-M", "pc",
                 "-nodefaults", "-display", "none", "-serial", f"file:{self.serial}", "-no-reboot",
                 "-kernel", kernel.image, "-initrd", initrd, "-netdev", f"socket,id=n0,fd={stream}",
                 "-device", f"virtio-net-pci,netdev=n0,host_mtu={mtu},romfile=", "-append", append],
                pass_fds=(stream,), stdin=subprocess.DEVNULL, stdout=complaints, stderr=complaints)

    def log(self, lines=30):
        """What kernel and QEMU said last."""
        text = ""
        for path in (self.complaints, self.serial):
            text += path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def wait_up(self, timeout_s):
        deadline = time.monotonic() + timeout_s
        while True:
            with contextlib.suppress(OSError), self.start(f"ping -c 1 -w 1 {HOST[6]}") as probe:
                # The first packet to a neighbour may have to wait longer than whoever sent it.
                if probe.wait(CONNECT_TIMEOUT_S).status == 0:
                    return
            if self.process.poll() is not None:
                raise NotUp(f"QEMU ended with {self.process.returncode} before the guest was up\n{self.log(60)}")
            if time.monotonic() > deadline:
                raise NotUp(f"the guest is not up after {timeout_s} s\n{self.log(60)}")
            time.sleep(0.1)

    def start(self, line):
        return Command(line)

    def run(self, line, timeout_s=60, stdin=b""):
        """Run a shell command to its end."""
        with self.start(line) as command:
            # It may write before it has read all.
            feeder = threading.Thread(target=command.feed, args=(stdin,), daemon=True)
            feeder.start()
            done = command.wait_or_kill(timeout_s)
            feeder.join()
            return done

    def must(self, line, timeout_s=60, stdin=b""):
        """As run(), and it must succeed."""
        done = self.run(line, timeout_s, stdin)
        if done.status != 0:
            raise RuntimeError(done.report())
        return done

    def push(self, path, target, mode=0o755):
        """Copy a file into the guest."""
        self.must(f"cat >{target} && chmod {mode:o} {target}", stdin=pathlib.Path(path).read_bytes())

    def pull(self, source):
        """The bytes of a file in the guest."""
        return self.must(f"cat {source}").out


class Lab:
    """Namespace, cable and guest. Must be made in the main thread, before others open sockets."""

    def __init__(self, kernel, programs, folder, capture=None, mtu=MTU, memory_mib=768, cpus=2,
                 accelerator=EMULATED, append="", boot_timeout_s=BOOT_TIMEOUT_S):
        """`programs`: {name: path}; `wire` is for this side, the others are for the guest's /bin."""
        folder.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        enter_private_network()
        tap = open_tap("interop")
        configure("interop", mtu)
        ours, qemus = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for end_ in (ours, qemus):
            end_.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        initrd = folder / "initrd"
        image.initrd(initrd, kernel, {name: path for name, path in programs.items() if name != "wire"})
        self.guest = Guest(kernel, initrd, qemus.fileno(), folder, mtu, memory_mib, cpus, accelerator, append)
        self.wire = Wire(programs["wire"], tap, ours.fileno(), capture)
        ours.close()
        qemus.close()
        os.close(tap)
        try:
            self.guest.wait_up(boot_timeout_s)
        except BaseException:
            self.close()
            raise
        initrd.unlink()  # QEMU has read it
        self.boot_s = time.monotonic() - start

    def close(self):
        end(self.guest.process)
        end(self.wire.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
