"""Line input from a terminal: editing, history, and the keys of the chapter on sessions."""

import codecs
import os
import select
import sys
import termios
import time
import unicodedata

from .lines import continuation

ESCAPE_WAIT_S = 0.05
SEQUENCES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end", "[Z": "shift-tab",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[7~": "home", "[4~": "end", "[8~": "end", "[3~": "delete",
}  # fmt: skip
CONTROLS = {
    "\x01": "home", "\x02": "left", "\x03": "ctrl-c", "\x04": "ctrl-d", "\x05": "end", "\x06": "right",
    "\x08": "backspace", "\x0b": "cut-right", "\x0c": "redraw", "\x0e": "down", "\x10": "up",
    "\x15": "cut-left", "\x17": "cut-word", "\x7f": "backspace", "\r": "enter", "\n": "enter",
}  # fmt: skip


class Keys:
    """The keyboard: turns bytes into names of keys and single characters."""

    def __init__(self, fd):
        self.fd = fd
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.waiting = []

    def next(self) -> str:
        """The next key; `end` of input is ''."""
        char = self._char()
        if char == "\x1b":
            return self._sequence()
        return CONTROLS.get(char, char)

    def _char(self, timeout_s=None):
        while not self.waiting:
            if timeout_s is not None and not select.select([self.fd], [], [], timeout_s)[0]:
                return None
            data = os.read(self.fd, 1024)
            if not data:
                return ""
            self.waiting += self.decoder.decode(data)
        return self.waiting.pop(0)

    def _sequence(self):
        first = self._char(ESCAPE_WAIT_S)
        if first not in ("[", "O"):
            return "unknown"
        sequence = first
        while True:
            char = self._char(ESCAPE_WAIT_S)
            if not char:
                return "unknown"
            sequence += char
            if char.isalpha() or char == "~":
                return SEQUENCES.get(sequence, "unknown")


class Terminal:
    """Puts the terminal into the mode for editing or for a running turn, and back at the end."""

    def __init__(self):
        self.fd = sys.stdin.fileno()
        self.original = termios.tcgetattr(self.fd)
        self.keys = Keys(self.fd)

    def set_mode(self, keyboard_signals: bool):
        """No echo and no line buffer; Ctrl-C is a signal only while a turn runs."""
        mode = termios.tcgetattr(self.fd)
        mode[0] &= ~(termios.IXON | termios.ISTRIP)
        mode[0] |= termios.ICRNL
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        if keyboard_signals:
            mode[3] |= termios.ISIG
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        mode[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self.fd, termios.TCSADRAIN, mode)

    def restore(self):
        termios.tcsetattr(self.fd, termios.TCSADRAIN, self.original)


class LineEditor:
    """Edits one line; `special` handles keys that end neither the line nor the session."""

    def __init__(self, terminal, history, on_shift_tab):
        self.terminal = terminal
        self.history = history
        self.on_shift_tab = on_shift_tab  # returns the text to print
        self.text = ""
        self.at = 0
        self.sign = ""
        self.row = 0  # of the cursor, counted from the row of the sign

    def read(self, sign, uses_history=True):
        """Return the line, or the name of the key that left it: `ctrl-c`, `ctrl-d` (only when empty), `end`."""
        self.sign, self.text, self.at, self.row = sign, "", 0, 0
        past, index, draft = (self.history if uses_history else []), len(self.history), ""
        self._draw()
        while True:
            key = self.terminal.keys.next()
            if key == "":
                return None, "end"
            if key == "enter":
                self._leave()
                return self.text, "enter"
            if key == "ctrl-c":
                self._leave()
                return self.text, "ctrl-c"
            if key == "ctrl-d":
                if not self.text:
                    return "", "ctrl-d"
            elif key == "shift-tab":
                self._print_above(self.on_shift_tab())
            elif key in ("up", "down") and past:
                wanted = index + (-1 if key == "up" else 1)
                if 0 <= wanted <= len(past):
                    if index == len(past):
                        draft = self.text
                    index = wanted
                    self.text = past[index] if index < len(past) else (draft if key == "up" else "")
                    self.at = len(self.text)
                    self._draw()
            else:
                self._edit(key)

    def _edit(self, key):
        text, at = self.text, self.at
        if key == "left":
            self.at = max(at - 1, 0)
        elif key == "right":
            self.at = min(at + 1, len(text))
        elif key == "home":
            self.at = 0
        elif key == "end":
            self.at = len(text)
        elif key == "backspace" and at:
            self.text, self.at = text[: at - 1] + text[at:], at - 1
        elif key == "delete":
            self.text = text[:at] + text[at + 1 :]
        elif key == "cut-left":
            self.text, self.at = text[at:], 0
        elif key == "cut-right":
            self.text = text[:at]
        elif key == "cut-word":
            kept = text[:at].rstrip()
            kept = kept[: len(kept) - len(kept.split(" ")[-1])]
            self.text, self.at = kept + text[at:], len(kept)
        elif len(key) == 1 and (key.isprintable() or key == "\t"):
            self.text, self.at = text[:at] + key + text[at:], at + 1
            if self.at == len(self.text) and key != "\t" and position(self.sign, self.text)[1] > position(self.sign, text)[1]:
                write(key)  # at the end of a row that has room there is no need to draw all anew
                return
        elif key != "redraw":
            return
        self._draw()

    # Drawing.

    def _draw(self):
        out = "\r" + (f"\x1b[{self.row}A" if self.row else "") + "\x1b[J"
        out += self.sign + self.text.replace("\t", " ").replace("\n", "\r\n")
        end_row, end_column = position(self.sign, self.text)
        if end_column == 0 and end_row and not self.text.endswith("\n"):
            out += "\r\n"  # the cursor still hangs at the right edge
        row, column = position(self.sign, self.text[: self.at])
        if end_row > row:
            out += f"\x1b[{end_row - row}A"
        out += "\r" + (f"\x1b[{column}C" if column else "")
        self.row = row
        write(out)

    def _leave(self):
        """Move to the line after the text."""
        end_row, _ = position(self.sign, self.text)
        write((f"\x1b[{end_row - self.row}B" if end_row > self.row else "") + "\r\n")
        self.row = 0

    def _print_above(self, line):
        write("\r" + (f"\x1b[{self.row}A" if self.row else "") + f"\x1b[J{line}\r\n")
        self.row = 0
        self._draw()


def position(sign, text):
    """Row and column of the cursor after `sign` and `text` were printed."""
    columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
    row, column = 0, len(sign)
    for char in text:
        if char == "\n":
            row, column = row + 1, 0
            continue
        width = char_width(char)
        if column + width > columns:
            row, column = row + 1, 0
        column += width
    if column >= columns:
        row, column = row + 1, 0
    return row, column


def char_width(char) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


class TerminalInput:
    """Prompts and answers from a terminal."""

    def __init__(self, on_shift_tab):
        self.terminal = Terminal()
        self.history = []
        self.editor = LineEditor(self.terminal, self.history, on_shift_tab)
        self.last_ctrl_c = None
        self.terminal.set_mode(keyboard_signals=False)

    def prompt(self):
        """The next prompt, None at the end; raises KeyboardInterrupt when the user leaves by Ctrl-C."""
        self.terminal.set_mode(keyboard_signals=False)
        lines = []
        while True:
            text, key = self.editor.read(". " if lines else "> ")
            if key == "enter":
                self.last_ctrl_c = None
                text, goes_on = continuation(text)
                lines.append(text)
                if not goes_on:
                    return self._finished(lines)
            elif key == "ctrl-c":
                self._cleared(bool(text or lines))
                lines = []
            elif key == "end" or not lines:
                write("\r\n")
                return None

    def answer(self, question):
        """The answer to a question, None at the end of input."""
        self.terminal.set_mode(keyboard_signals=False)
        head, _, last = question.rpartition("\n")
        if head:
            write(head.replace("\n", "\r\n") + "\r\n")
        try:
            text, key = self.editor.read(last, uses_history=False)
            if key == "ctrl-c":
                raise KeyboardInterrupt
            if key != "enter":
                write("\r\n")
                return None
            return text
        finally:
            self.turn_runs()

    def turn_runs(self):
        self.terminal.set_mode(keyboard_signals=True)

    def close(self):
        self.terminal.restore()

    def _finished(self, lines):
        prompt = "\n".join(lines)
        if prompt.strip():
            self.history.append(prompt)
        return prompt

    def _cleared(self, had_text):
        """Ctrl-C at the prompt: the first at an empty one warns, the second within a second leaves."""
        now = time.monotonic()
        if had_text:
            self.last_ctrl_c = None
        elif self.last_ctrl_c is not None and now - self.last_ctrl_c <= 1:
            raise KeyboardInterrupt
        else:
            self.last_ctrl_c = now
            write("press Ctrl-C again to leave\r\n")

