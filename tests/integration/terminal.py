# SPDX-License-Identifier: MIT
"""terminal: a program on a terminal of ours, and what it shows there.

The terminal is a VT52, for that has few commands: each is below.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import harness as h


class Terminal:
    def __init__(self, words, rows=24, columns=100, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(env or {}, TERM="vt52")
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(words[0], words)
        self.rows, self.columns = rows, columns
        self.cells = []
        self.row = self.column = 0
        self.command = ""
        self.status = None
        self.clear(0, 0)

    def resize(self, rows, columns):
        """The program is told, as by any terminal."""
        self.rows, self.columns = rows, columns
        self.cells = [line[:columns] + [" "] * (columns - len(line)) for line in self.cells[:rows]]
        self.cells += [[" "] * columns for _ in range(rows - len(self.cells))]
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # ------------------------------------------------------------ what it draws

    def clear(self, row, column):
        """From there to the end."""
        self.cells[row:] = [self.cells[row][:column] + [" "] * (self.columns - column)] if column else [[" "] * self.columns]
        self.cells += [[" "] * self.columns for _ in range(self.rows - len(self.cells))]

    def obey(self):
        what = self.command[1:2]
        if what == "Y":  # to a row and column, 32 added to each
            if len(self.command) < 4:
                return
            self.row, self.column = min(ord(self.command[2]) - 32, self.rows - 1), min(ord(self.command[3]) - 32, self.columns - 1)
        elif what == "K":
            self.cells[self.row][self.column:] = [" "] * (self.columns - self.column)
        elif what == "J":
            self.clear(self.row, self.column)
        elif what in "ABCDHI":  # up, down, right, left, home, up
            self.row = {"A": max(self.row - 1, 0), "I": max(self.row - 1, 0), "B": min(self.row + 1, self.rows - 1), "H": 0}.get(what, self.row)
            self.column = {"C": min(self.column + 1, self.columns - 1), "D": max(self.column - 1, 0), "H": 0}.get(what, self.column)
        else:
            h.need(what in "=>FG", "the program sends %r", self.command)  # keypad and character set
        self.command = ""

    def take(self, character):
        if self.command or character == "\033":
            self.command += character
            if len(self.command) > 1:
                self.obey()
        elif character == "\n" and self.row == self.rows - 1:
            self.cells = self.cells[1:] + [[" "] * self.columns]
        elif character in "\r\n\b\t":
            self.row += character == "\n"
            self.column = {"\r": 0, "\b": max(self.column - 1, 0), "\t": min(self.column // 8 * 8 + 8, self.columns - 1)}.get(character, self.column)
        elif character >= " ":
            self.cells[self.row][self.column] = character
            self.column = min(self.column + 1, self.columns - 1)

    def read(self, seconds):
        """False: it has ended."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError:
                data = b""
            for character in data.decode("ascii", "replace"):
                self.take(character)
            return bool(data)
        return True

    # ------------------------------------------------------------ for tests

    def lines(self):
        return ["".join(line).rstrip() for line in self.cells]

    def until(self, truth, what, seconds=30):
        """The lines, once they are so."""
        end = time.monotonic() + seconds
        while not truth(self.lines()):
            h.need(self.read(0.05), "%s: it has ended, showing\n%s", what, "\n".join(self.lines()))
            h.need(time.monotonic() < end, "%s: not within %d s; it shows\n%s", what, seconds, "\n".join(self.lines()))
        return self.lines()

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def wait(self, seconds=30):
        """Its exit status, as the shell has it."""
        end = time.monotonic() + seconds
        while self.status is None:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = h.status_of(os.waitstatus_to_exitcode(status))
            elif time.monotonic() > end:
                self.close()
                raise h.Failure("it does not end")
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = 137
        os.close(self.fd)
