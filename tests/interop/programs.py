"""programs.py - programs that others wrote, against ours: rdma-core's ping-pongs and perftest.

`sluice pingpong` is the other end of ibv_*_pingpong. Perftest finds its other end over TCP: the client says something
of a known length, the server answers with as much; here the driver speaks that, and a peer has the queue pair. Both
sides exchange versions, buffer sizes and the path MTU, then their keys several times, for each is also a rendezvous;
at the end some report their figures.
"""

import ipaddress
import re
import socket
import struct

import lab
from harness import Failed, check, equal, wait_for
from peers import CANARY, EVER, Local, same_bytes

PORT = 18515  # of all of them
TIMEOUT_S = 40
QKEY = 0x11111111  # perftest's
VERSION_BYTES, KEYS_BYTES, REPORT_BYTES = 16, 108, 8
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}


def gid_index(guest, family):
    """Of the guest's address, as the options of these programs want it."""
    wanted = ipaddress.ip_address(lab.GUEST[family])
    for index, text in re.findall(r"GID\[\s*(\d+)\]:\s+(\S+?),", guest.run("ibv_devinfo -v").text()):
        address = ipaddress.ip_address(text)
        if getattr(address, "ipv4_mapped", None) == wanted or address == wanted:
            return int(index)
    raise Failed(f"the guest has no GID for {wanted}")


def listens(table):
    """Whether /proc/net/tcp or tcp6 shows a listener on our port."""
    return re.search(rf":{PORT:04X} \S+ 0A ", table)


# ---- ping-pong ----

def wait_guest_listens(guest):
    wait_for("a server in the guest", lambda: listens(guest.run("cat /proc/net/tcp /proc/net/tcp6").text()), TIMEOUT_S)


def wait_host_listens():
    def look():
        text = ""
        for name in ("tcp", "tcp6"):
            with open(f"/proc/thread-self/net/{name}", encoding="ascii") as table:
                text += table.read()
        return listens(text)
    wait_for("a server here", look, TIMEOUT_S)


def pingpong(ends, sluice, service, family, guest_serves, size, mtu, count=100):
    """Messages to and fro; both check what they get, and both must be content."""
    guest = ends.lab.guest
    ends.restart()  # port 4791 is wanted
    theirs = f"ibv_{service}_pingpong -d rxe0 -g {gid_index(guest, family)} -n {count} -s {size} -c"
    theirs += "" if service == "ud" else f" -m {mtu}"
    # All of them meet over IPv4: rdma-core's servers listen there only.
    ours = [sluice, "pingpong", "--service", service, "--size", size, "--mtu", mtu, "--iters", count, "--check",
            "--source", lab.HOST[family]]
    if guest_serves:
        with guest.start(theirs) as server:
            wait_guest_listens(guest)
            end = finish(Local([*ours, lab.GUEST[4]]))
            done = server.wait_or_kill(TIMEOUT_S if end[0] == 0 else 1)
    else:
        server = Local([*ours, "--listen", lab.HOST[4]])
        try:
            wait_host_listens()
            done = guest.run(f"{theirs} {lab.HOST[4]}", TIMEOUT_S)
        finally:
            end = finish(server)
    check(end[0] == 0, f"sluice pingpong: exit status {end[0]}\n{end[1]}{done.report()}")
    check(done.status == 0, done.report())
    check(f"{count} iters in" in done.text(), done.report())


def finish(program):
    """Exit status and messages of one of ours."""
    try:
        return program.finish(TIMEOUT_S), program.complaints()
    finally:
        program.close()


# ---- perftest ----

class Talk:
    """The TCP connection of a perftest program, from the other end."""

    def __init__(self, connection):
        self.connection = connection
        self.connection.settimeout(TIMEOUT_S)

    def read(self, length):
        data = b""
        while len(data) < length:
            part = self.connection.recv(length - len(data))
            check(part, f"perftest went away after {data!r}")
            data += part
        return data

    def write(self, data):
        self.connection.sendall(data)


def keys_text(address, qpn, psn, rkey, va):
    """What both sides tell each other about their queue pair."""
    packed = ipaddress.ip_address(address).packed
    gid = packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
    text = f"{0:04x}:{16:04x}:{qpn:06x}:{psn:06x}:{rkey:08x}:{va:016x}:{gid.hex(':')}:{0:08x}:"
    return text.encode().ljust(KEYS_BYTES, b"\0")


def parse_keys(data):
    words = data.rstrip(b"\0").decode().split(":")
    return {"qpn": int(words[2], 16), "psn": int(words[3], 16), "rkey": int(words[4], 16), "va": int(words[5], 16)}


class Test:
    """One run of a perftest program against a peer of ours."""

    def __init__(self, ends, family, transport, size, count, pmtu):
        self.peer, self.guest = ends.get("user", family), ends.lab.guest
        self.family, self.transport, self.size, self.count, self.pmtu = family, transport, size, count, pmtu
        self.index = gid_index(self.guest, family)
        room = max(size + 40, 65536)
        self.region = self.peer.region(2 * room, "write", "read")
        self.region.fill()
        self.qp = self.peer.qp(transport, count + 8, qkey=QKEY)
        self.keys = keys_text(self.peer.address, self.qp.qpn, 0x4711, self.region.rkey, self.region.va)

    def receives(self):
        for index in range(self.count):
            self.qp.recv(self.region, 0, self.size + 40, id=index)
        self.peer.settle()

    def connect(self, theirs):
        self.qp.connect(address=lab.GUEST[self.family], qpn=theirs["qpn"], pmtu=self.pmtu, psn=0x4711,
                        peer_psn=theirs["psn"], retries=EVER[self.peer.name])

    def command(self, program, *more):
        words = [program, "-d", "rxe0", "-x", str(self.index), "-c", self.transport.upper(), "-s", str(self.size),
                 "-n", str(self.count), "-m", str(self.pmtu), "-p", str(PORT), "-F", *more]
        return " ".join(words + (["--ipv6"] if self.family == 6 else []))

    def serve(self, talk):
        """Answer a client until it is done. Its first keys connect us; all else is an echo."""
        for length in (VERSION_BYTES, 4, 4, 2):  # version, buffer, cache line, MTU
            talk.write(talk.read(length))
        connected = False
        while True:
            head = talk.read(5)
            if head == b"done\0":
                return
            if re.match(rb"[0-9a-f]{4}:", head):  # keys are text, reports are not
                theirs = parse_keys(head + talk.read(KEYS_BYTES - 5))
                if not connected:
                    self.connect(theirs)
                connected = True
                talk.write(self.keys)
            else:
                talk.write(head + talk.read(REPORT_BYTES - 5))

    def as_server(self, program):
        """The client runs in the guest: the other end must be content, and say what it measured."""
        with socket.create_server((lab.HOST[4], PORT)) as listener:
            listener.settimeout(TIMEOUT_S)
            with self.guest.start(self.command(program, lab.HOST[4])) as client:
                try:
                    with listener.accept()[0] as connection:
                        self.serve(Talk(connection))
                except (Failed, OSError) as problem:
                    client.close()
                    raise Failed(f"{problem}\n{client.out.decode()}{client.err.decode()}") from None
                done = client.wait(TIMEOUT_S)
        check(done.status == 0, done.report())
        check(re.search(rf"^ {self.size}\s+{self.count}\s", done.text(), re.M), done.report())
        return done

    def greet(self, talk):
        """As a client: all that comes before the data."""
        version = re.search(r"Version: (\S+)", self.guest.run("ib_send_bw --version").text())[1]
        for ours in (version.encode().ljust(VERSION_BYTES, b"\0"), struct.pack(">I", 4096), struct.pack(">I", 64),
                     f"{MTU_CODES[self.pmtu]}\0".encode()):
            talk.write(ours)
            talk.read(len(ours))
        talk.write(self.keys)
        theirs = parse_keys(talk.read(KEYS_BYTES))
        self.connect(theirs)
        for _ in range(3):  # connected, shown, receives posted
            talk.write(self.keys)
            talk.read(KEYS_BYTES)
        return theirs

    def as_client(self, program, send):
        """The server runs in the guest; send() does the work."""
        with self.guest.start(self.command(program)) as server:
            wait_guest_listens(self.guest)
            with socket.create_connection((lab.GUEST[4], PORT), TIMEOUT_S) as connection:
                talk = Talk(connection)
                theirs = self.greet(talk)
                send(theirs)
                talk.write(self.keys)
                talk.read(KEYS_BYTES)
                talk.write(b"done\0")
                done = server.wait(TIMEOUT_S)
        check(done.status == 0, done.report())
        check(re.search(rf"^ {self.size}\s+{self.count}\s", done.text(), re.M), done.report())


def write_bw(ends, family, transport, size, pmtu, count=40):
    test = Test(ends, family, transport, size, count, pmtu)
    test.as_server("ib_write_bw")
    memory = test.region.dump()
    check(memory[:size].count(CANARY) < size // 16, "the client's bytes are not here")
    # Short messages are spread over a page.
    end = max(size, 4096)
    same_bytes(memory[end:], bytes([CANARY]) * (len(memory) - end), "memory behind the message")
    equal(test.qp.state(), "rts", "state")


def read_bw(ends, family, transport, size, pmtu, count=40):
    test = Test(ends, family, transport, size, count, pmtu)
    test.as_server("ib_read_bw")
    equal(test.qp.state(), "rts", "state")


def send_bw(ends, family, transport, size, pmtu, count=40):
    test = Test(ends, family, transport, size, count, pmtu)
    test.receives()
    test.as_server("ib_send_bw")
    got = test.peer.polls(count)
    wanted = size + 40 if transport == "ud" else size
    equal([(c.what, c.bytes) for c in got], [("recv", wanted)] * count, "completions")


def send_bw_server(ends, family, transport, size, pmtu, count=40):
    test = Test(ends, family, transport, size, count, pmtu)

    def send(theirs):
        to = {"to": lab.GUEST[family], "to_qpn": theirs["qpn"], "to_qkey": QKEY} if transport == "ud" else None
        for index in range(count):
            test.qp.post("send", test.region, 0, size, id=index, to=to)
        test.peer.polls(count)

    test.as_client("ib_send_bw", send)


def cases(ends, sluice):
    for service in ("rc", "uc", "ud"):
        for guest_serves in (True, False):
            way = f"sluice pingpong {'to' if guest_serves else 'from'} ibv_{service}_pingpong"
            sizes = ((1000, 1024),) if service == "ud" else ((4096, 1024), (30001, 4096))
            for family in (4, 6):
                for size, mtu in sizes:
                    def run(service=service, family=family, guest_serves=guest_serves, size=size, mtu=mtu):
                        pingpong(ends, sluice, service, family, guest_serves, size, mtu)
                    yield f"{way}, IPv{family}, {size} bytes, PMTU {mtu}", run
    for name, function, transport, family, size, pmtu in (
            ("ib_write_bw to user", write_bw, "rc", 4, 65536, 1024),
            ("ib_write_bw to user", write_bw, "uc", 4, 65536, 1024),
            ("ib_write_bw to user", write_bw, "uc", 6, 4096, 4096),
            ("ib_read_bw to user", read_bw, "rc", 4, 65536, 1024),
            ("ib_read_bw to user", read_bw, "rc", 6, 30000, 4096),
            ("ib_send_bw to user", send_bw, "rc", 4, 20000, 1024),
            ("ib_send_bw to user", send_bw, "uc", 4, 20000, 1024),
            ("ib_send_bw to user", send_bw, "ud", 4, 1024, 4096),
            ("user to ib_send_bw", send_bw_server, "rc", 4, 20000, 1024),
            ("user to ib_send_bw", send_bw_server, "uc", 6, 20000, 4096),
            ("user to ib_send_bw", send_bw_server, "ud", 4, 1024, 4096)):
        def test(function=function, transport=transport, family=family, size=size, pmtu=pmtu):
            function(ends, family, transport, size, pmtu)
        yield f"{name}: {transport.upper()}, IPv{family}, {size} bytes, PMTU {pmtu}", test
