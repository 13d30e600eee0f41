"""A terminal: the prompt sign, keys, history."""

import codecs
import os
import termios
import time
import unicodedata

from .base import Console, STRICT, Stop
from .signals import Cancelled

CYCLE = {"ask": "accept-edits", "accept-edits": "plan", "plan": "ask", "auto": "ask", "dont-ask": "ask"}
assert set(CYCLE) == set(STRICT)


class Leave(BaseException):
    pass


class Terminal:
    terminal = True
    ended = False
    rest = b""

    def __init__(self):
        self.history = []
        self.keys = b""
        self.hint = 0.0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    # ---- raw input

    def _raw(self):
        old = termios.tcgetattr(0)
        new = termios.tcgetattr(0)
        new[0] &= ~(termios.ICRNL | termios.IXON | termios.INLCR)
        new[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        new[6][termios.VMIN] = 1
        new[6][termios.VTIME] = 0
        termios.tcsetattr(0, termios.TCSADRAIN, new)
        return old

    def _byte(self, wait=None):
        if not self.keys:
            if wait is not None:
                import select
                if not select.select([0], [], [], wait)[0]:
                    return b""
            self.keys = os.read(0, 1024)
            if not self.keys:
                return None
        byte, self.keys = self.keys[:1], self.keys[1:]
        return byte

    def _key(self):
        """A character, or the name of a key."""
        while True:
            byte = self._byte()
            if byte is None:
                return "end"
            if byte == b"\x1b":
                seq = self._byte(0.05)
                if seq not in (b"[", b"O"):
                    return "escape"
                text = b""
                while True:
                    more = self._byte(0.05)
                    if not more:
                        break
                    text += more
                    if 0x40 <= more[0] <= 0x7E:
                        break
                return {b"A": "up", b"B": "down", b"Z": "shift-tab", b"C": "right", b"D": "left", b"H": "home",
                        b"F": "finish", b"3~": "delete"}.get(text, "other")
            char = self.decoder.decode(byte)
            if char:
                return char

    @staticmethod
    def _show(sign, text, at):
        shown = text.replace("\n", "\u23ce")
        width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown[at:])
        Console.out("\r" + sign + shown + "\x1b[K" + (f"\x1b[{width}D" if width else ""))

    def _edit(self, sign, harness=None, asking=False, continued=False):
        """One line; None for the end of input. Raises KeyboardInterrupt for Ctrl-C."""
        old = self._raw()
        text, at = "", 0
        place = len(self.history)
        try:
            Console.out(sign)
            while True:
                key = self._key()
                if key in ("\r", "\n"):
                    Console.out("\r\n")
                    return text
                if key == "end":
                    return None
                if key == "\x03":
                    Console.out("\r\n")
                    raise KeyboardInterrupt(text)
                if key == "\x04":
                    if not text and not continued:
                        Console.out("\r\n")
                        return None
                    continue
                if key in ("\x7f", "\x08"):
                    if at:
                        text, at = text[:at - 1] + text[at:], at - 1
                elif key == "\x15":
                    text, at = text[at:], 0
                elif key == "delete":
                    text = text[:at] + text[at + 1:]
                elif key in ("home", "\x01"):
                    at = 0
                elif key in ("finish", "\x05"):
                    at = len(text)
                elif key == "left":
                    at = max(0, at - 1)
                elif key == "right":
                    at = min(len(text), at + 1)
                elif key in ("up", "down") and not asking:
                    place = max(0, place - 1) if key == "up" else min(len(self.history), place + 1)
                    text = self.history[place] if place < len(self.history) else ""
                    at = len(text)
                elif key == "shift-tab" and harness is not None:
                    harness.typed_mode = CYCLE[harness.run_mode()]
                    Console.out(f"\r\x1b[Kmode: {harness.typed_mode}\r\n")
                elif len(key) == 1 and (key >= " " or key == "\t"):
                    text, at = text[:at] + key + text[at:], at + 1
                else:
                    continue
                self._show(sign, text, at)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, old)

    # ---- prompts and answers

    def prompt(self, harness):
        parts = []
        while True:
            try:
                line = self._edit(". " if parts else "> ", harness, continued=bool(parts))
            except KeyboardInterrupt as typed:
                if str(typed) or parts:
                    parts = []
                    self.hint = 0.0
                    continue
                now = time.monotonic()
                if self.hint and now - self.hint <= 1:
                    os._exit(self._leave())
                self.hint = now
                Console.out("press Ctrl-C again to leave\r\n")
                continue
            self.hint = 0.0
            if line is None:
                return None
            if line.endswith("\\") and not line.endswith("\\\\"):
                parts.append(line[:-1])
                continue
            if line.endswith("\\\\"):
                line = line[:-1]
            text = "\n".join(parts + [line])
            if text.strip():
                self.history.append(text)
            return text

    @staticmethod
    def _leave():
        from . import shell
        shell.kill_all()
        return 130

    def answer(self, question):
        first, _, last = question.rpartition("\n")
        if first:
            Console.out(first + "\n")
        if not last.endswith(" "):
            Console.out(last + "\n")
            last = ""
        try:
            return self._edit(last, asking=True)
        except KeyboardInterrupt:
            raise Cancelled(130, "interrupted") from None


__all__ = ["Terminal", "Stop"]
