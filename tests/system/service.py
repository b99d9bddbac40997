"""service.py - what the tests of `sluice serve` share: a service of the test's own, requests whose answers are held against the OpenAPI
document, event streams, and sessions that end with the test."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import time

import harness
from harness import Program, check, equal, experiment, skip, wait_for

# A run that is slow because of its rate, not because of this machine.
SLOWLY = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 100000, "frame_rate_Hz": 100}
TO_NOTHING = {"sinks": ["null", "verify"], "link": {"kind": "shm"}, "control": {"port": 0}}
TO_A_FILE = {"sinks": [{"nexus": {"dataset": "raw", "flush_s": 0.1}}], "link": {"kind": "shm"}, "control": {"port": 0}}
API = "/api/v1"
SEEN = {}  # (method, path of the document): statuses that were answered
DOCUMENT = {}  # the OpenAPI document of this program, once it is read


def require():
    """Skip where this program has no service."""
    if "libmicrohttpd" in harness.run("serve", "--openapi", folder=harness.RUN_DIR.parent).err():
        skip("libmicrohttpd-dev was not found when this was built")
    Program.started.clear()


def put_experiment(service, name, **sections):
    """An experiment file in the folder of the service."""
    sections = {"detector": {**SLOWLY, **sections.pop("detector", {})}, **TO_NOTHING, **sections}
    return experiment(service.experiments, name=f"{name}.yaml", **sections)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()
        self.type = self.headers.get("content-type", "").split(";")[0]

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """Of an error."""
        return self.json["error"]["code"]


# ---- answers are as the document says ----

def document(service):
    if not DOCUMENT:
        connection = http.client.HTTPConnection(service.host, service.port, timeout=60)
        connection.request("GET", f"{API}/openapi.json", headers=service.headers("configure"))
        DOCUMENT.update(json.loads(connection.getresponse().read()))
        connection.close()
    return DOCUMENT


def matches(pattern, path):
    wanted, parts = pattern.strip("/").split("/"), path.strip("/").split("/")
    if wanted[-1] == "{path}":
        parts = [*parts[:len(wanted) - 1], "/".join(parts[len(wanted) - 1:])]
    return len(wanted) == len(parts) and all(w.startswith("{") or w == p for w, p in zip(wanted, parts))


def operation_of(service, method, path):
    """The template that fits, a literal one before one with placeholders; None: the document has none."""
    fitting = [t for t in document(service)["paths"] if matches(t, path.split("?")[0])]
    fitting.sort(key=lambda t: t.count("{"))
    method = "get" if method == "HEAD" else method.lower()
    return next(((t, document(service)["paths"][t][method]) for t in fitting if method in document(service)["paths"][t]), None)


def validator(schema):
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("python3-jsonschema is not installed")
    return jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver("", DOCUMENT))


def held_against_document(service, method, path, answer):
    found = operation_of(service, method, path)
    if not found:
        check(answer.status in (400, 403, 404, 405, 414, 503), f"{method} {path} is not documented, and answers {answer.status}")
        return
    template, operation = found
    SEEN.setdefault((method, template), set()).add(answer.status)
    said = operation["responses"].get(str(answer.status)) or operation["responses"]["default"]
    check(str(answer.status) in operation["responses"] or answer.status >= 400, f"{method} {template}: {answer.status} is not documented")
    content = said.get("content", {})
    if method == "HEAD" or not answer.body:
        return
    check(answer.type in content or "*/*" in content or any(answer.type == kind.split(";")[0] for kind in content),
          f"{method} {template}: {answer.status} is of type {answer.type}, documented are {list(content)}")
    schema = content.get(answer.type, {}).get("schema")
    if answer.type == "application/json" and schema:
        problems = [f"{'/'.join(map(str, e.path))}: {e.message[:300]}" for e in validator(schema).iter_errors(answer.json)]
        check(not problems, f"{method} {template} {answer.status}:\n" + "\n".join(problems[:5]))


# ---- the service ----

class Service:
    """`sluice serve` in a folder; its sessions register in a folder of the case's own."""

    def __init__(self, folder, *arguments, tokens=None, root=None, wrapper=(), limit=None, env=None):
        self.folder, self.arguments, self.tokens = folder, [str(a) for a in arguments], tokens or {}
        self.wrapper, self.limit = wrapper, limit
        self.root = root or folder / "runs"
        self.experiments = folder / "experiments"
        self.experiments.mkdir(exist_ok=True)
        self.sockets = folder / "sockets"
        os.environ["SLUICE_RUN_DIR"] = str(self.sockets)
        os.environ.update(env or {})
        if tokens:
            path = folder / "tokens"
            path.write_text("".join(f"{role} {role}-client {token}\n" for role, token in tokens.items()))
            path.chmod(0o600)
            self.arguments += ["--tokens", str(path)]
        self.host, self.program = "127.0.0.1", None
        self.start()

    def start(self):
        port_file = self.folder / "service-port"
        with contextlib.suppress(FileNotFoundError):
            port_file.unlink()
        self.program = Program("serve", "--listen", "127.0.0.1:0", "--root", self.root, "--experiments", self.experiments,
                               "--port_file", port_file, *self.arguments, folder=self.folder, wrapper=self.wrapper, limit=self.limit)
        wait_for("the service", lambda: harness.text_of(port_file).endswith("\n") or not self.program.running())
        check(self.program.running(), f"the service ended at once: {self.program.err()}")
        self.port = int(port_file.read_text())

    def kill(self):
        self.program.send(signal.SIGKILL)
        self.program.process.wait()

    def headers(self, role):
        return {"Authorization": f"Bearer {self.tokens[role]}"} if self.tokens and role else {}

    def raw(self, method, path, body=None, headers=None, role="configure"):
        """An answer, whatever it is."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=harness.TIMEOUT_S)
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        connection.request(method, path, data, {**self.headers(role), **(headers or {})})
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def ask(self, method, path, body=None, status=None, **options):
        """An answer of the API that is as the document says; status: the one it must have."""
        path = path if path.startswith("/api") or path in ("/", "/metrics") else API + path
        answer = self.raw(method, path, body, **options)
        held_against_document(self, method, path, answer)
        if status:
            equal(answer.status, status, f"{method} {path}: {answer.body[:600]!r}: status")
        return answer

    def get(self, path, **options):
        return self.ask("GET", path, status=200, **options).json

    def begin(self, name, body=None, **sections):
        """A session of a new experiment, started; its run, too."""
        put_experiment(self, name, **sections)
        self.ask("POST", "/sessions", {"experiment": name, **(body or {})}, status=201)
        self.ask("POST", f"/sessions/{name}/start", status=202)
        self.until(name, "running", "ended")

    def session(self, name):
        return self.get(f"/sessions/{name}")

    def until(self, name, *states):
        return wait_for(f"{name}: {states}", lambda: (s := self.session(name))["state"] in states and s)

    def frames(self, name):
        return ((self.session(name)["status"] or {}).get("frames") or {}).get("settled", 0)

    def end(self):
        """Sessions outlive the service; they must not outlive the test."""
        if self.program.running():
            self.program.send(signal.SIGTERM)
            self.program.wait()
        for lock in self.sockets.glob("*.lock"):
            end_session(self.sockets, lock.stem)


def end_session(sockets, name):
    """Over its socket, else by its process, which is ours: its command line has our folder."""
    with contextlib.suppress(OSError):
        here = os.open(sockets, os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(10)
            client.connect(f"/proc/self/fd/{here}/{name}.sock")
            client.sendall(b'{"call":"abort"}\n{"call":"close"}\n')
            while client.recv(65536):
                pass
        os.close(here)
    with contextlib.suppress(OSError, ValueError):
        pid = json.loads((sockets / f"{name}.json").read_text())["pid"]
        if str(sockets.parent).encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def serving(folder, *arguments, **options):
    require()
    service = Service(folder, *arguments, **options)
    try:
        yield service
        check("Sanitizer" not in service.program.err() and "runtime error:" not in service.program.err(), "a sanitizer complains")
    finally:
        service.end()


def pid_of(service, name):
    """Of a session."""
    return json.loads((service.sockets / f"{name}.json").read_text())["pid"]


def runs(pid):
    """Not ended, and not waiting to be collected either."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill_session(service, name):
    """kill -9, and wait: on a busy host it takes a while until a process is gone, and its locks with it."""
    pid = pid_of(service, name)
    os.kill(pid, signal.SIGKILL)
    wait_for(f"the end of {name}", lambda: not runs(pid))


class Stream:
    """An event stream, read line by line."""

    def __init__(self, service, query="", role="configure"):
        self.socket = socket.create_connection((service.host, service.port), timeout=harness.TIMEOUT_S)
        headers = "".join(f"{name}: {value}\r\n" for name, value in service.headers(role).items())
        self.socket.sendall(f"GET {API}/events{query} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        self.file = self.socket.makefile("rb")
        equal(self.file.readline().split()[1], b"200", "status of a stream")
        while self.file.readline().strip():
            pass
        self.text = b""

    def _line(self):
        """Out of chunks of the transfer encoding."""
        while b"\n" not in self.text:
            size = int(self.file.readline() or b"0", 16)
            if not size:
                return None
            self.text += self.file.read(size)
            self.file.readline()
        line, self.text = self.text.split(b"\n", 1)
        return line.decode()

    def next(self):
        """(name, data) of the next event; None: the stream has ended."""
        name, data = None, None
        while True:
            line = self._line()
            if line is None:
                return None
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif not line and name:
                return name, data

    def until(self, name, condition=lambda data: True, timeout_s=harness.TIMEOUT_S):
        """The data of the first event of that name for which the condition holds."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            event = self.next()
            check(event, f"the stream ended before '{name}' came")
            if event[0] == name and condition(event[1]):
                return event[1]
        raise harness.Failed(f"no event '{name}' came in time")

    def close(self):
        self.file.close()
        self.socket.close()
