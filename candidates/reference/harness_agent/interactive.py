"""The interactive session: prompts from a terminal or a pipe, one after the other."""

import signal
import sys

from .conversation import Conversation
from .errors import OK, Interrupted
from .front import ALWAYS, NO, NOBODY, ONCE, Front
from .interrupts import deliver
from .lines import continuation
from .output import write_line
from .types import Options

CYCLE = {"ask": "accept-edits", "accept-edits": "plan", "plan": "ask"}
ANSWERS = {"y": ONCE, "a": ALWAYS, "n": NO}


def interact(values) -> int:
    """Handle prompts until the user leaves; return the exit code."""
    front = InteractiveFront("quiet" in values, "verbose" in values)
    conversation = Conversation(Options(flags=values), front)
    conversation.prepare()
    conversation.find_commands(front.warn_once)
    conversation.choose_session()
    front.warned.clear()
    front.open(conversation)
    if front.is_terminal:
        signal.signal(signal.SIGINT, lambda number, frame: deliver(KeyboardInterrupt()))
    try:
        return read_prompts(conversation, front)
    except KeyboardInterrupt:
        return Interrupted.exit_code
    finally:
        front.close()


def read_prompts(conversation, front) -> int:
    while (prompt := front.input.prompt()) is not None:
        if not prompt.strip():
            continue
        front.input.turn_runs()
        try:
            result = conversation.run(prompt)
        except KeyboardInterrupt:
            conversation.session.answer_open_calls()
            write_line("interrupted")
            continue
        if result.exit_code != OK:
            front.error(result.error)
        elif result.text or not prompt.startswith("/"):
            write_line(result.text)
        if conversation.is_leaving:
            break
    return OK


class InteractiveFront(Front):
    """Puts approvals and questions to the user."""

    def open(self, conversation):
        """Find out where input comes from."""
        self.conversation = conversation
        self.is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        if self.is_terminal:
            from .terminal import TerminalInput

            self.input = TerminalInput(self.next_mode)
        else:
            self.input = PipeInput()

    def close(self):
        self.input.close()

    def next_mode(self) -> str:
        mode = CYCLE.get(self.conversation.policy.mode, "ask")
        self.conversation.set_mode(mode)
        return f"mode: {mode}"

    def event(self, event):
        if self.is_terminal and not self.is_quiet and event["type"] == "tool_call":
            write_line(f"· {event['name']}")

    def approve(self, tool, subject):
        shown = subject.replace("\n", "\\n")
        while (answer := self.input.answer(f"allow {tool} {shown}? [y/a/n] ")) is not None:
            if answer.strip().lower() in ANSWERS:
                return ANSWERS[answer.strip().lower()]
        return NOBODY

    def ask(self, question, options):
        lines = [question, *(f"{number}. {option}" for number, option in enumerate(options, 1))]
        answer = self.input.answer("\n".join(lines) + "\n")
        if answer is None:
            return None
        answer = answer.strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1]
        return answer or "[no answer]"


class PipeInput:
    """Prompts and answers from standard input that is no terminal: one a line."""

    def __init__(self):
        self.stream = sys.stdin.buffer if sys.stdin is not None else None

    def prompt(self):
        lines = []
        while (line := self._line()) is not None:
            line, goes_on = continuation(line)
            lines.append(line)
            if not goes_on:
                return "\n".join(lines)
        return "\n".join(lines) + "\n" if lines else None

    def answer(self, question):
        sys.stdout.write(question)
        line = self._line()
        sys.stdout.write("" if question.endswith("\n") else "\n")
        sys.stdout.flush()
        return line

    def turn_runs(self):
        """A pipe has no modes."""
        return

    def close(self):
        """Nothing was changed that would be put back."""
        return

    def _line(self):
        data = self.stream.readline() if self.stream else b""
        return data.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r") if data else None
