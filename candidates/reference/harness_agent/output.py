"""What a headless run prints: the answer, one object, or a stream of events."""

import json
import os
import sys

from .front import Front, one_line
from .texts import utf8
from .types import Result

ERROR_CODES = {
    1: "internal",
    2: "usage",
    3: "settings",
    4: "model",
    5: "turn_limit",
    6: "session_not_found",
    7: "hook_blocked",
    124: "time_limit",
    130: "interrupted",
}


def result_fields(result: Result) -> dict:
    """The fields that the result object and a response of the evaluation API share."""
    failed = result.exit_code != 0
    return {
        "text": "" if failed else result.text,
        "exit_code": result.exit_code,
        "session_id": result.session_id or None,
        "turns": result.turns,
        "tool_calls": result.tool_calls,
        "denials": result.denials,
        "usage": result.usage or {"requests": 0, "input_tokens": 0, "output_tokens": 0},
        "error": {"code": ERROR_CODES[result.exit_code], "message": one_line(result.error)} if failed else None,
    }


class HeadlessFront(Front):
    """Prints events as they happen when the format is `stream-json`."""

    def __init__(self, quiet=False, verbose=False):
        super().__init__(quiet, verbose)
        self.format = "text"

    def event(self, event: dict):
        if self.format == "stream-json":
            write_line(json.dumps(event, ensure_ascii=False))

    def finish(self, result: Result):
        """Print how the run ended."""
        if result.exit_code != 0:
            self.error(result.error)
        if self.format == "text":
            if result.exit_code == 0:
                write_line(result.text)
            return
        fields = result_fields(result)
        write_line(json.dumps({"type": "result", "ok": result.exit_code == 0, **fields}, ensure_ascii=False))


def write_line(text: str):
    """Print a line; a closed standard output is no reason to stop."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(utf8(text) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        drop_stdout()


def drop_stdout():
    """Let all further output go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
