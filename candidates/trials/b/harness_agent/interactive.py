"""The interactive session: lines of a pipe, or a terminal."""

import os
import sys

from . import content, shell, signals
from .agent import Harness
from .base import Console, HarnessError, Stop
from .headless import choose_session, run_prompt
from .insession import COMMANDS


class Lines:
    """Input that is not a terminal."""

    terminal = False

    def __init__(self):
        self.rest = b""
        self.ended = sys.stdin is None

    def line(self):
        """The next line, None at the end of input."""
        while b"\n" not in self.rest and not self.ended:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            if not data:
                self.ended = True
            self.rest += data
        if not self.rest:
            return None
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def prompt(self, harness):
        """A whole prompt, with continued lines."""
        parts = []
        while True:
            line = self.line()
            if line is None:
                return "\n".join(parts + [""]) if parts else None
            if line.endswith("\\\\"):
                return "\n".join(parts + [line[:-1]])
            if not line.endswith("\\"):
                return "\n".join(parts + [line])
            parts.append(line[:-1])

    def answer(self, question):
        Console.out(question + "\n")
        return self.line()


class User:
    """Puts approvals and questions to whoever types."""

    def __init__(self, source):
        self.source = source

    def approve(self, question):
        while True:
            line = self.source.answer(question)
            if line is None:
                return "needs"
            answer = {"y": "allow", "a": "all", "n": "deny"}.get(line.strip().lower())
            if answer:
                return answer

    def ask(self, question, options):
        if not self.source.terminal and self.source.ended and not self.source.rest:
            return None
        text = "\n".join([question] + [f"{n}. {option}" for n, option in enumerate(options, 1)])
        line = self.source.answer(text)
        if line is None:
            return None
        line = line.strip()
        if not line:
            return "[no answer]"
        if line.isascii() and line.isdigit() and len(line) < 6 and 1 <= int(line) <= len(options):
            return options[int(line) - 1]
        return line


def main(flags, cwd):
    harness = Harness(flags, cwd, interactive=True)
    harness.load_settings()
    choose_session(harness, flags)
    content.own_commands(cwd, COMMANDS, True)
    terminal = False
    try:
        terminal = sys.stdin is not None and os.isatty(0)
    except OSError:
        pass
    if terminal:
        from .terminal import Terminal
        source = Terminal()
    else:
        source = Lines()
    harness.approver = User(source)
    while not harness.left:
        prompt = source.prompt(harness)
        if prompt is None:
            break
        if not prompt.strip():
            continue
        harness.begin_run()
        signals.cancel_turns(source.terminal)
        try:
            result = run_prompt(harness, prompt)
        except signals.Cancelled:
            continue
        finally:
            signals.cancel_turns(False)
        if result.exit_code == 0:
            if not harness.left or result.text:
                Console.out(result.text + "\n")
        elif result.exit_code == 130:
            if not isinstance(harness.stopped, signals.Cancelled):
                raise Stop(130, "interrupted")
            Console.out("\ninterrupted\n")
            try:
                harness.session.repair()
            except HarnessError as error:
                Console.error(error.message)
        else:
            Console.error(result.error)
    shell.kill_all()
    return 0
