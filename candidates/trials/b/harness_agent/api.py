"""Contract 3, the evaluation API: `./harness api` calls `serve`."""

import os
import sys

from . import content, session as sessions, shell
from .agent import Harness
from .base import MODES, Console, HarnessError, Stop, home, json_bytes, one_line, parse_json
from .flags import check_places
from .headless import fill, result_object, run_prompt
from .insession import Prompt, move_to
from .rules import Rule
from .types import Result

KEYS = ["id", "op", "prompt", "cwd", "options", "approvals"]
OPS = ["run", "state", "reset", "close"]
OPTIONS = ["permission_mode", "max_turns", "model", "agent", "allow", "deny", "add_dirs", "resume", "fork", "no_save"]


class Invalid(Exception):
    pass


class Answers:
    """Who answers approvals in one run."""

    def __init__(self, value):
        self.items = list(value) if type(value) is list else None
        self.always = value if type(value) is str else None

    def approve(self, question):
        if self.items:
            return self.items.pop(0)
        return "allow" if self.always == "allow" else "needs"

    def ask(self, question, options):
        return None


class Process:
    """What successive requests share."""

    def __init__(self, flags, cwd):
        self.flags = flags
        self.cwd = cwd
        self.harness = Harness(flags, cwd)
        self.closed = False

    # ---- checking

    def check(self, request):
        request = {k: v for k, v in request.items() if v is not None or k not in KEYS}
        if type(request.get("id")) not in (str, int, float, type(None)):
            raise Invalid("id is not a string, a number or null")
        op = request.get("op")
        if "op" not in request:
            raise Invalid("op is missing")
        if type(op) is not str or op not in OPS:
            raise Invalid(f"op is unknown: {op if type(op) is str else json_bytes(op).decode()}")
        for key in request:
            if key not in KEYS:
                raise Invalid(f"unknown key: {key}")
        prompt = request.get("prompt")
        if op == "run" and prompt is None:
            raise Invalid("prompt is missing")
        if prompt is not None and (type(prompt) is not str or not prompt.strip()):
            raise Invalid("prompt is not a text, or is empty")
        options = request.get("options", {})
        if type(options) is not dict:
            raise Invalid("options is not an object")
        options = {k: v for k, v in options.items() if v is not None or k not in OPTIONS}
        cwd = self._cwd(request, options)
        self._options(options, cwd)
        approvals = request.get("approvals", "deny")
        items = approvals if type(approvals) is list else [approvals]
        if any(i not in ("allow", "deny") for i in items):
            raise Invalid("approvals has a wrong value")
        return op, prompt, cwd, options, approvals

    def _cwd(self, request, options):
        present = self.harness.cwd if self.harness.session else self.cwd
        if "cwd" not in request:
            return present
        name = request["cwd"]
        if type(name) is not str or not name or "\0" in name or not os.path.isdir(name):
            raise Invalid(f"cwd is not a directory: {name}")
        real = os.path.realpath(name)
        if self.harness.session and real != self.harness.cwd and "resume" not in options:
            raise Invalid("cwd differs from the workspace of the conversation")
        return real

    def _options(self, options, cwd):
        def bad(key, why):
            return Invalid(f"options.{key}: {why}")

        for key, value in options.items():
            if key not in OPTIONS:
                raise bad(key, "unknown key")
            if key in ("allow", "deny", "add_dirs"):
                if type(value) is not list or any(type(x) is not str for x in value):
                    raise bad(key, "not a list of strings")
                for item in value:
                    if key == "add_dirs":
                        if "\0" in item or not item or not os.path.isdir(os.path.join(cwd, item)):
                            raise bad(key, f"not a directory: {item}")
                        continue
                    try:
                        Rule(item)
                    except ValueError:
                        raise bad(key, f"invalid rule: {item}") from None
            elif key in ("fork", "no_save"):
                if type(value) is not bool:
                    raise bad(key, "not a boolean")
            elif key == "max_turns":
                if type(value) is not int or value < 1:
                    raise bad(key, "not an integer from 1")
            elif type(value) is not str or not value:
                raise bad(key, "not a string, or empty")
            elif key == "permission_mode" and value not in MODES:
                raise bad(key, "unknown mode; modes: " + ", ".join(MODES))
            elif key == "agent" and value not in content.roles(cwd):
                raise bad(key, f"unknown role: {value}")
            elif key == "resume" and not sessions.ID.fullmatch(value):
                raise bad(key, f"not an id: {value}")
        if options.get("fork") and "resume" not in options:
            raise bad("fork", "needs resume")

    # ---- operations

    def run(self, prompt, cwd, options, approvals):
        h = self.harness
        before = h.cwd, h.session, h.settings
        names = {"permission_mode": "permission-mode", "max_turns": "max-turns", "model": "model", "agent": "agent",
                 "allow": "allow", "deny": "deny", "add_dirs": "add-dir", "no_save": "no-save"}
        h.options = {names[k]: v for k, v in options.items() if k in names}
        h.begin_run()
        h.approved = set()
        h.approver = Answers(approvals)
        result = Result()
        try:
            if h.session is None or cwd != h.cwd:
                h.cwd = cwd
            h.load_settings()
            check_places({**self.flags, **({"agent": h.option("agent")} if h.option("agent") else {})}, cwd)
            resume = options.get("resume")
            if resume:
                present = before[1]
                same = present is not None and present.id == resume and not options.get("fork") and before[0] == cwd
                if not same:
                    move_to(h, resume, bool(options.get("fork")))
            elif h.session is None:
                h.new_session()
            h.session.save = not h.option("no-save")
            result = run_prompt(h, prompt)
        except HarnessError as error:
            result.exit_code, result.error = error.code, error.message
            h.cwd, h.session = before[0], before[1]
            if h.cwd != cwd:
                h.settings = before[2]
            fill(result, h)
        except Exception:
            h.cwd, h.session = before[0], before[1]
            raise
        finally:
            h.options = {}
            h.left = False
            h.approved = set()
        if result.exit_code == 130:
            raise Stop(130, "interrupted")
        if result.exit_code:
            Console.error(result.error)
        return result_object(result)

    def state(self, cwd):
        h = self.harness
        session = h.session
        keep = h.cwd, h.settings, h.setting_dirs
        if session is None:
            h.cwd = cwd
        try:
            try:
                h.load_settings()
                roles = content.roles(h.cwd)
                role = roles.get(h.role_name())
                model = h.model_name(role)
                from .judge import stricter
                mode = stricter(h.run_mode(), role.mode if role else None)
            except HarnessError as error:
                Console.warn(error.message)
                model = self.flags.get("model")
                mode = self.flags.get("permission-mode") or "ask"
            where = h.cwd
        finally:
            if session is None:
                h.cwd = keep[0]
        messages = session.messages() if session else []
        return {"session_id": session.id if session else None, "cwd": where, "model": model,
                "permission_mode": mode, "title": session.title() if session else None, "messages": messages,
                "todos": session.todos if session else []}

    def reset(self):
        old = self.harness
        self.harness = Harness(self.flags, self.cwd)
        self.harness.total = old.total
        self.harness.jobs = old.jobs
        self.harness.hook_texts = old.hook_texts
        self.harness.begin_run()

    def answer(self, request):
        request_id = None
        try:
            if type(request) is not dict:
                raise Invalid("the request is not an object")
            if type(request.get("id")) in (str, int, float):
                request_id = request["id"]
            op, prompt, cwd, options, approvals = self.check(request)
            if op == "run":
                result = self.run(prompt, cwd, options, approvals)
            elif op == "state":
                result = self.state(cwd)
            else:
                self.reset()
                self.closed = op == "close"
                result = {}
            return {"id": request_id, "ok": True, "result": result}
        except Invalid as error:
            return failure(request_id, "invalid_request", str(error))
        except Exception as error:
            return failure(request_id, "internal", f"{type(error).__name__}: {error}")


def failure(request_id, code, message):
    return {"id": request_id, "ok": False, "error": {"code": code, "message": one_line(message) or code}}


_shared = None


def evaluate(request: dict) -> dict:
    """Answer one request; an error is a response with `ok: false`, not an exception."""
    global _shared
    try:
        if _shared is None:
            _shared = Process({}, os.path.realpath(os.getcwd()))
        if _shared.harness.session is None:
            _shared.cwd = os.path.realpath(os.getcwd())
        return _shared.answer(request)
    except Exception as error:
        return failure(None, "internal", f"{type(error).__name__}: {error}")


def _lines(stdin):
    """Lines as bytes, read without looking ahead further than needed."""
    buffer = getattr(stdin, "buffer", stdin)
    while True:
        line = buffer.readline()
        if not line:
            return
        yield line if type(line) is bytes else line.encode("utf-8", "surrogateescape")


def serve(stdin, stdout, process=None) -> int:
    """Read one JSON request a line, write one JSON response a line, until end of input."""
    process = process or Process({}, os.path.realpath(os.getcwd()))
    for line in _lines(stdin):
        text = line.decode("utf-8", "replace")
        if not text.strip():
            continue
        try:
            request = parse_json(line.decode("utf-8"))
        except ValueError as error:
            response = failure(None, "invalid_json", f"not valid JSON: {error}")
        else:
            response = process.answer(request)
        Console._write(stdout, json_bytes(response).decode("utf-8") + "\n")
        if process.closed:
            break
    return 0


def main(flags, cwd):
    check_places(flags, cwd)
    code = serve(sys.stdin, sys.stdout, Process(flags, cwd))
    shell.kill_all()
    return code


__all__ = ["evaluate", "serve", "main", "home", "Prompt"]
