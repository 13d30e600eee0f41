"""Line editing in a terminal: keys, history, and the prompt sign."""

import codecs
import os
import re
import select
import termios
import time

from .util import TurnCancelled, write_fd


class LeaveTwice(Exception):
    """Ctrl-C twice at an empty prompt."""


class Terminal:
    def __init__(self, visible: bool, cycle_mode):
        self.fd = 0
        self.visible = visible  # standard output is a terminal too
        self.cycle_mode = cycle_mode
        self.saved = termios.tcgetattr(self.fd)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.keys = ""
        self.closed = False
        self.history = []
        self.last_interrupt = 0.0

    def _set(self, signals: bool):
        mode = termios.tcgetattr(self.fd)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[3] = (mode[3] | termios.ISIG | termios.NOFLSH) if signals else mode[3] & ~termios.ISIG
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self.fd, termios.TCSANOW, mode)

    def during_turn(self):
        self._set(True)

    def restore(self):
        try:
            termios.tcsetattr(self.fd, termios.TCSADRAIN, self.saved)
        except termios.error:
            pass

    def show(self, text: str):
        if self.visible:
            write_fd(1, text.encode("utf-8", "replace"))

    def _more(self, wait=None) -> bool:
        if wait is not None and not select.select([self.fd], [], [], wait)[0]:
            return False
        try:
            data = os.read(self.fd, 4096)
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return False
        self.keys += self.decoder.decode(data)
        return True

    def _key(self) -> str:
        """One key, an escape sequence whole; "" at the end of input."""
        while not self.keys:
            if self.closed or not (self._more() or not self.closed):
                return ""
        if self.keys[0] != "\x1b":
            key, self.keys = self.keys[0], self.keys[1:]
            return key
        while True:
            m = re.match(r"\x1b(\[[0-9;]*[A-Za-z~]|O[A-Za-z])", self.keys)
            if m:
                self.keys = self.keys[m.end():]
                return m.group()
            if re.match(r"\x1b(\[[0-9;]*|O)?\Z", self.keys) and self._more(0.05):
                continue
            self.keys = self.keys[1:]
            return "\x1b"

    def line(self, sign: str, continued=False, question=False):
        """One line; None at Ctrl-D or the end of input. "\x03" stands for a cleared prompt."""
        self._set(False)
        try:
            return self._edit(sign, continued, question)
        finally:
            self._set(True)

    def _edit(self, sign, continued, question):
        text, at = "", len(self.history)

        def draw():
            self.show("\r\x1b[K" + sign + text.replace("\n", "\\n"))

        self.show(sign)
        while True:
            key = self._key()
            if key == "":
                self.show("\n")
                return text or None
            if key in "\r\n":
                self.show("\n")
                return text
            if key == "\x03":
                self.show("^C\n")
                if question:
                    raise TurnCancelled
                if text or continued:
                    self.last_interrupt = 0.0
                    return "\x03"
                now = time.monotonic()
                if self.last_interrupt and now - self.last_interrupt <= 1:
                    raise LeaveTwice
                self.last_interrupt = now
                self.show("press Ctrl-C again to leave\n" + sign)
                continue
            if key == "\x04":
                if not text and not continued:
                    self.show("\n")
                    return None
                continue
            if key in ("\x7f", "\b"):
                text = text[:-1]
            elif key == "\x15":
                text = ""
            elif key in ("\x1b[A", "\x1bOA") and not question:
                if at > 0:
                    at -= 1
                    text = self.history[at]
            elif key in ("\x1b[B", "\x1bOB") and not question:
                if at < len(self.history):
                    at += 1
                    text = self.history[at] if at < len(self.history) else ""
            elif key == "\x1b[Z" and not question:
                self.show("\r\x1b[K" + self.cycle_mode() + "\n")
            elif key.startswith("\x1b") or (ord(key) < 32 and key != "\t"):
                continue
            else:
                text += key
                self.show(key)
                continue
            draw()
