"""Contract 2, the headless entry: `./harness -p PROMPT` ends here."""

import os
import sys

from . import session as sessions, shell
from .agent import Harness
from .base import ERROR_NAMES, Console, HarnessError, Stop, js, one_line
from .flags import check_places, conflicts, workspace
from .insession import Prompt, move_to
from .types import Options, Result


def error_object(result):
    if not result.exit_code:
        return None
    return {"code": ERROR_NAMES[result.exit_code], "message": one_line(result.error)}


def result_object(result):
    """The values of the result, as `json` prints them and the evaluation API gives them."""
    return {"text": result.text, "exit_code": result.exit_code, "session_id": result.session_id or None,
            "turns": result.turns, "tool_calls": result.tool_calls, "denials": result.denials,
            "usage": result.usage, "error": error_object(result)}


def event_object(result):
    value = result_object(result)
    return {"type": "result", "ok": result.exit_code == 0, **value}


def choose_session(harness, flags):
    """The session of the command line; codes 6 and 2."""
    if "continue" in flags or "resume" in flags:
        session_id = flags.get("resume")
        if session_id is None:
            session_id = sessions.newest(harness.cwd)
            if session_id is None:
                raise HarnessError(6, f"no session in {harness.cwd}")
        new_id = flags.get("session-id")
        if new_id:
            _free(new_id)
        move_to(harness, session_id, "fork" in flags, new_id)
        return
    if "session-id" in flags:
        _free(flags["session-id"])
    harness.new_session(flags.get("session-id"))


def _free(session_id):
    if os.path.lexists(sessions.path_of(session_id)):
        error = HarnessError(2, f"session exists: {session_id}")
        error.silent = True
        raise error


def run_prompt(harness, prompt):
    """One prompt in a chosen session; never raises but for signals."""
    result = Result()
    try:
        text, command = Prompt(harness).answer(prompt)
        result.text = text
    except HarnessError as error:
        result.exit_code, result.error = error.code, error.message
    except Stop as stop:
        harness.stopped = stop
        result.exit_code, result.error = stop.code, stop.message
    except RecursionError:
        result.exit_code, result.error = 1, "internal: too deeply nested"
    except Exception as error:  # whatever was not foreseen
        result.exit_code, result.error = 1, f"internal: {type(error).__name__}: {error}"
    fill(result, harness)
    return result


def fill(result, harness):
    result.session_id = harness.session.id if harness.session else ""
    result.turns = harness.turns
    result.tool_calls = harness.tool_calls
    result.denials = harness.denials
    result.usage = dict(harness.usage)


def execute(prompt, flags, cwd, emit=None):
    """(result, output format, whether a usage error may be printed as data)"""
    harness = Harness(flags, cwd)
    result = Result(usage=dict(harness.usage))
    chosen = False
    style = flags.get("output-format") or "text"
    try:
        harness.load_settings()
        style = flags.get("output-format") or harness.settings.get("output_format")
        choose_session(harness, flags)
        role = harness.role()
        chosen = True
        if emit and style == "stream-json":
            harness.emit = emit
            emit({"type": "init", "session_id": harness.session.id, "cwd": cwd, "model": harness.model_name(),
                  "permission_mode": harness.mode(role), "tools": harness.offered(role)})
            emit({"type": "user", "text": prompt})
        result = run_prompt(harness, prompt)
    except HarnessError as error:
        result.exit_code, result.error = error.code, error.message
    except Stop as stop:
        result.exit_code, result.error = stop.code, stop.message
    return result, style, chosen


def run_headless(prompt: str, options: Options) -> Result:
    """Answer one prompt without asking anybody; never raise, report in the result."""
    try:
        flags = dict(options.flags)
        if options.cwd:
            flags["cwd"] = options.cwd
        conflicts({**flags, "print": prompt})
        cwd = workspace(flags)
        check_places(flags, cwd)
        if not prompt.strip():
            raise HarnessError(2, "empty prompt")
        return execute(prompt, flags, cwd)[0]
    except HarnessError as error:
        return Result(exit_code=error.code, error=error.message)
    except Exception as error:
        return Result(exit_code=1, error=f"internal: {error}")


def read_prompt(text):
    """The prompt of the command line with piped input."""
    stdin = sys.stdin
    if text != "-" and (stdin is None or _is_terminal(stdin)):
        return text
    try:
        data = stdin.buffer.read() if stdin is not None else b""
    except (OSError, ValueError):
        data = b""
    piped = data.decode("utf-8", "replace").rstrip("\r\n")
    if text == "-":
        return piped
    return f"{text}\n\n{piped}" if piped.strip() else text


def _is_terminal(stream):
    try:
        return stream.isatty()
    except ValueError:
        return False


def main(flags, cwd):
    """`harness -p`: prints the outcome and returns the exit code."""
    from .signals import quiet
    def emit(event):
        Console.out(js(event) + "\n")

    style, chosen = flags.get("output-format") or "text", False
    try:
        prompt = read_prompt(flags["print"])
        if not prompt.strip():
            raise HarnessError(2, "empty prompt")
        result, style, chosen = execute(prompt, flags, cwd, emit)
    except HarnessError as error:
        result = Result(exit_code=error.code, error=error.message, usage=Harness(flags, cwd).usage)
    except Stop as stop:
        result = Result(exit_code=stop.code, error=stop.message, usage=Harness(flags, cwd).usage)
    quiet()
    shell.kill_all()
    data = style != "text" and (result.exit_code != 2 or chosen)
    if data:
        emit(event_object(result))
    elif style == "text" and result.exit_code == 0:
        Console.out(result.text + "\n")
    if result.exit_code:
        Console.error(result.error)
    return result.exit_code
