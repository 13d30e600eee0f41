"""One run of one line: its result, and the forms in which it is shown."""

from .core import Core, Run
from .insession import Leave, handle
from .types import Result
from .util import ERROR_CODES, HarnessError


def failed(code: int, message: str, session_id="", note="") -> Result:
    return Result(exit_code=code, session_id=session_id, error=message, usage=Run().usage())


def fill(result: Result, core: Core) -> Result:
    """Puts the numbers of the present run into a result."""
    run = core.run
    result.session_id = core.session.id
    result.turns = run.turns
    result.tool_calls = run.tool_calls
    result.denials = run.denials
    result.usage = run.usage()
    return result


def run_line(core: Core, line: str) -> Result:
    """Runs one line; raises Leave only for `/exit`."""
    core.run = Run()
    result = Result()
    try:
        result.text = handle(core, line)
    except HarnessError as e:
        result.exit_code, result.error = e.code, e.message
    except Leave:
        raise
    except OSError as e:
        result.exit_code, result.error = 1, f"internal: {e}"
    except Exception as e:  # no traceback is printed
        result.exit_code, result.error = 1, f"internal: {type(e).__name__}: {e}"
    return fill(result, core)


def error_object(result: Result):
    if result.exit_code == 0:
        return None
    return {"code": ERROR_CODES[result.exit_code], "message": result.error}


def api_result(result: Result) -> dict:
    return {"text": result.text if result.exit_code == 0 else "", "exit_code": result.exit_code,
            "session_id": result.session_id or None, "turns": result.turns, "tool_calls": result.tool_calls,
            "denials": result.denials, "usage": result.usage, "error": error_object(result)}


def result_object(result: Result) -> dict:
    api = api_result(result)
    return {"type": "result", "ok": result.exit_code == 0, "text": api.pop("text"), **api}


def start_events(core: Core, prompt: str) -> None:
    core.emit({"type": "init", "session_id": core.session.id, "cwd": core.workspace, "model": core.model_name(),
               "permission_mode": core.mode(), "tools": core.offered_now()})
    core.emit({"type": "user", "text": prompt})
