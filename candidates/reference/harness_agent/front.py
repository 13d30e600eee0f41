"""Who stands in front of a conversation: takes events and notes, answers approvals and questions."""

import sys

ONCE, ALWAYS, NO, NOBODY = "once", "always", "no", "nobody"


class Front:
    """A front that answers nothing; base of the others."""

    def __init__(self, quiet=False, verbose=False):
        self.is_quiet = quiet
        self.is_verbose = verbose
        self.warned = set()  # warnings of this run, each said once
        self.faults = set()  # warnings of this process, each said once

    def event(self, event: dict):
        """One event of the run, as `stream-json` prints it; nobody looks here."""
        return

    def approve(self, tool: str, subject: str) -> str:
        return NOBODY

    def ask(self, question: str, options: list):
        """The answer to a question, or None when there is nobody."""
        return None

    def warn(self, text: str):
        if not self.is_quiet and text not in self.warned:
            self.warned.add(text)
            self.note(f"warning: {one_line(text)}")

    def warn_once(self, text: str):
        """Warn of a faulty file, once in a process."""
        if text not in self.faults:
            self.faults.add(text)
            self.warn(text)

    def error(self, text: str):
        self.note(f"error: {one_line(text)}")

    def verbose(self, text: str):
        if self.is_verbose:
            self.note(text)

    def note(self, line: str):
        if sys.stderr is not None:
            try:
                print(line, file=sys.stderr, flush=True)
            except OSError:
                pass


def one_line(text: str) -> str:
    return " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
