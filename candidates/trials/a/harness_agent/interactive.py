"""The interactive session: lines from a pipe or from a terminal."""

import os
import signal

from . import store
from .config import Config
from .core import Core
from .headless import check_session_id, choose_session
from .insession import BUILTIN, Leave
from .proc import kill_all
from .runner import run_line
from .util import Console, Interrupted, TurnCancelled, encode, write_fd

CYCLE = {"ask": "accept-edits", "accept-edits": "plan", "plan": "ask"}


class PipeInput:
    """Lines of a standard input that is not a terminal."""

    def __init__(self):
        self.buffer = b""
        self.ended = False

    def line(self, sign="", continued=False, question=False):
        while b"\n" not in self.buffer and not self.ended:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            if not data:
                self.ended = True
            self.buffer += data
        if not self.buffer:
            return None
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode("utf-8", "replace")

    def during_turn(self):
        pass

    def restore(self):
        pass


class Interactive:
    def __init__(self, core: Core, console: Console):
        self.core = core
        self.console = console
        self.terminal = os.isatty(0)
        self.busy = False
        self.ended = False
        if self.terminal:
            from .terminal import Terminal
            self.input = Terminal(os.isatty(1), self.next_mode)
        else:
            self.input = PipeInput()
        core.approve = self.approve
        core.question = self.question

    def out(self, text: str) -> None:
        write_fd(1, encode(text))

    def next_mode(self) -> str:
        core = self.core
        core.typed_mode = CYCLE.get(core.run_mode(), "ask")
        return f"mode: {core.typed_mode}"

    # Questions

    def answer(self, sign: str):
        """The next line of input, or None at its end."""
        if self.ended:
            return None
        line = self.input.line(sign, question=True)
        if line is None:
            self.ended = not self.terminal
        return line

    def approve(self, question: str):
        while not self.ended:
            if self.terminal:
                if not self.input.visible:
                    self.out(question)
                line = self.answer(question)
            else:
                self.out(question)
                line = self.answer("")
            if line is None:
                return None
            word = line.strip().lower()
            if word in ("y", "a", "n"):
                return {"y": True, "a": "all", "n": False}[word]
        return None

    def question(self, text: str, options: list[str]):
        if self.ended:
            return None
        self.out("\n".join([text, *(f"{n}. {o}" for n, o in enumerate(options, 1))]) + "\n")
        line = self.answer("")
        if line is None:
            return None
        line = line.strip()
        if line.isascii() and line.isdigit() and len(line) < 10 and 1 <= int(line) <= len(options):
            return options[int(line) - 1]
        return line

    # Prompts

    def prompt(self):
        """The next prompt, continued lines joined; None at the end of input."""
        text = ""
        continued = False
        while True:
            line = self.input.line(". " if continued else "> ", continued)
            if line == "\x03":
                text, continued = "", False
                continue
            if line is None:
                return text if continued else None
            if line.endswith("\\\\"):
                return text + line[:-1]
            if not line.endswith("\\"):
                return text + line
            text += line[:-1] + "\n"
            continued = True

    def on_interrupt(self, *_):
        if self.busy:
            self.busy = False
            raise TurnCancelled

    def loop(self) -> int:
        if self.terminal:
            signal.signal(signal.SIGINT, self.on_interrupt)
            from .terminal import LeaveTwice
        else:
            class LeaveTwice(Exception):
                pass
        while not self.ended:
            try:
                line = self.prompt()
            except LeaveTwice:
                return 130
            if line is None:
                return 0
            if not line.strip():
                continue
            if self.terminal:
                self.input.history.append(line)
            try:
                self.busy = True
                result = run_line(self.core, line)
                self.busy = False
            except Leave:
                return 0
            except TurnCancelled:
                store.settle(self.core.session)
                self.out("interrupted\n")
                continue
            if result.exit_code:
                self.console.error(result.error)
            else:
                self.out(result.text + "\n")
        return 0


def start(flags: dict, console: Console) -> int:
    config = Config(flags, "", console)
    check_session_id(config)
    config.load_settings()
    core = Core(config, console)
    core.session = choose_session(core, flags)
    config.library.commands(BUILTIN, warn_builtin=True)
    session = Interactive(core, console)
    try:
        return session.loop()
    except Interrupted:
        console.error("interrupted")
        return 130
    finally:
        kill_all()
        session.input.restore()


