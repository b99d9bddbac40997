"""terminal.py - a program in a terminal: a pty, and a screen that understands the sequences that `sluice ctl watch` writes, and no other."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import Failed, die_with_parent

SEQUENCE = re.compile(rb"\033\[(\??)([0-9;]*)([A-Za-z])")
MODES = {"1049": "other", "25": "cursor", "7": "wraps"}


class Terminal:
    """What a program has drawn: `rows()`, and `styles` of cells (SGR parameters). `other`: its other buffer is shown."""

    def __init__(self, *arguments, columns=80, rows=24, env=None, wrapper=()):
        self.columns, self.height = columns, rows
        self.row = self.column = 0
        self.style, self.rest = "", b""
        self.other, self.cursor, self.wraps = False, True, True
        self.before = ""  # text beside sequences, on the ordinary buffer
        self.clear()
        self.master, slave = pty.openpty()
        self.resize(columns, rows, tell=False)
        self.settings = termios.tcgetattr(slave)
        self.slave = slave
        values = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})}
        values.pop("NO_COLOR", None) if "NO_COLOR" not in (env or {}) else None

        def prepare():
            die_with_parent()
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen([*map(str, wrapper), *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave, env=values,
                                        preexec_fn=prepare)

    def resize(self, columns, rows, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.columns, self.height = columns, rows
        if tell:
            self.clear()
            self.process.send_signal(signal.SIGWINCH)

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.height)]
        self.styles = [[""] * self.columns for _ in range(self.height)]

    def press(self, keys):
        os.write(self.master, keys.encode())

    def rows(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.rows())

    def as_before(self):
        """The terminal is as the program found it."""
        return (self.other, self.cursor, self.wraps, termios.tcgetattr(self.slave)) == (False, True, True, self.settings)

    # ---- reading ----

    def read(self, seconds=0.0):
        """What has come by then."""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return
            try:
                self.take(os.read(self.master, 65536))
            except OSError:  # the last program has closed it
                return

    def until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {seconds} s; the screen:\n{self.text()}\n{self.before}")
            self.read(0.05)

    def shows(self, *words):
        self.until(f"{words} on the screen", lambda: all(word in self.text() for word in words))

    def ends(self):
        """Its exit status, once all it wrote was read."""
        self.until("the end", lambda: self.process.poll() is not None)
        self.read(0.2)
        return self.process.returncode

    def take(self, new):
        text = self.rest + new
        # A sequence, or a character, may be cut.
        cut = re.search(rb"\033(\[[?0-9;]*)?$|[\xc0-\xff][\x80-\xbf]{0,2}$", text)
        at = cut.start() if cut and not self.whole(text[cut.start():]) else len(text)
        text, self.rest = text[:at], text[at:]
        place = 0
        for found in SEQUENCE.finditer(text):
            self.put(text[place:found.start()])
            self.command(*(group.decode() for group in found.groups()))
            place = found.end()
        self.put(text[place:])

    @staticmethod
    def whole(text):
        try:
            return not text.startswith(b"\033") and bool(text.decode())
        except UnicodeDecodeError:
            return False

    def put(self, text):
        text = text.decode()
        if not self.other:
            self.before += text
            return
        for character in text:
            if ord(character) < 32 or 127 <= ord(character) < 160:
                raise Failed(f"a control character on the screen: {character!r}")
            if self.row >= self.height or self.column >= self.columns:
                raise Failed(f"text outside of the screen, at row {self.row}, column {self.column}")
            self.cells[self.row][self.column] = character
            self.styles[self.row][self.column] = self.style
            self.column += 1

    def command(self, private, parameters, letter):
        if private and parameters in MODES and letter in "hl":
            setattr(self, MODES[parameters], letter == "h")
            if parameters == "1049" and letter == "h":
                self.clear()
        elif letter == "H" and not private:
            row, column = (int(part) for part in parameters.split(";"))
            self.row, self.column = row - 1, column - 1
        elif letter == "J" and parameters == "2":
            self.clear()
        elif letter == "m":
            self.style = parameters
        else:
            raise Failed(f"a sequence that terminals may not know: {private}{parameters}{letter}")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
