"""Contract 3, the evaluation API: `./harness api` calls `serve`."""

import os

from . import store
from .config import Config, checked_dirs, home_dir, workspace_of
from .core import Core, Run
from .flags import ID
from .insession import Leave, needs_model
from .library import Library
from .model import base_url
from .rules import parse_rule
from .runner import api_result, failed, fill, run_line
from .settings import MODES
from .types import Result
from .util import Console, HarnessError, compact, loads

OPS = ("run", "state", "reset", "close")
KEYS = ("id", "op", "prompt", "cwd", "options", "approvals")
LISTS = ("allow", "deny", "add_dirs")
OPTIONS = {"permission_mode": str, "max_turns": int, "model": str, "agent": str, "allow": list, "deny": list,
           "add_dirs": list, "resume": str, "fork": bool, "no_save": bool}


class Invalid(Exception):
    """What makes a request `invalid_request`."""


def _is_id(value) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool))


class Process:
    """One run of `harness api`, or the calls of `evaluate` in one Python process."""

    def __init__(self, flags=None, console=None):
        self.flags = flags or {}
        self.console = console or Console()
        self.core = None
        self.total = Run()
        self.started = {}

    # Checks

    def workspace(self, request: dict) -> str:
        cwd = request.get("cwd")
        if cwd is not None:
            if not isinstance(cwd, str) or not cwd or "\0" in cwd or not os.path.isdir(cwd):
                raise Invalid(f"cwd: not a directory: {cwd}")
            return os.path.realpath(cwd)
        if self.core:
            return self.core.workspace
        return workspace_of(self.flags.get("cwd", ""))

    def check(self, request: dict) -> dict:
        """The options without nulls; raises Invalid."""
        op = request.get("op")
        if "op" not in request or op is None:
            raise Invalid("op is missing")
        if op not in OPS if isinstance(op, str) else True:
            raise Invalid(f"op: unknown: {op}")
        for key in request:
            if key not in KEYS:
                raise Invalid(f"unknown key: {key}")
        prompt = request.get("prompt")
        if prompt is None:
            if op == "run":
                raise Invalid("prompt is missing")
        elif not isinstance(prompt, str) or not prompt.strip():
            raise Invalid("prompt must be a text that is not empty")
        workspace = self.workspace(request)
        options = request.get("options")
        if options is None:
            options = {}
        if not isinstance(options, dict):
            raise Invalid("options must be an object")
        options = {k: v for k, v in options.items() if v is not None or k not in OPTIONS}
        self._options(options, workspace)
        if op == "run" and self.core and workspace != self.core.workspace and "resume" not in options:
            raise Invalid(f"cwd: the conversation has another workspace: {self.core.workspace}")
        approvals = request.get("approvals")
        if not (approvals is None or approvals in ("allow", "deny") if not isinstance(approvals, list)
                else all(isinstance(a, str) and a in ("allow", "deny") for a in approvals)):
            raise Invalid("approvals must be allow, deny, or a list of these")
        return options

    def _options(self, options: dict, workspace: str) -> None:
        for key, value in options.items():
            if key not in OPTIONS:
                raise Invalid(f"options.{key}: unknown")
            kind = OPTIONS[key]
            fine = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
            if fine and kind is list:
                fine = all(isinstance(v, str) for v in value)
            if not fine:
                raise Invalid(f"options.{key}: wrong type")
        if options.get("permission_mode", "ask") not in MODES:
            raise Invalid(f"options.permission_mode: unknown: {options['permission_mode']}")
        if options.get("max_turns", 1) < 1:
            raise Invalid("options.max_turns: below 1")
        if options.get("model", "m") == "":
            raise Invalid("options.model: empty")
        for key in ("allow", "deny"):
            for rule in options.get(key, []):
                if parse_rule(rule) is None:
                    raise Invalid(f'options.{key}: invalid rule "{rule}"')
        if "agent" in options and options["agent"] not in Library(workspace, home_dir(), self.console).roles():
            raise Invalid(f"options.agent: unknown: {options['agent']}")
        try:
            if any("\0" in d or not d for d in options.get("add_dirs", [])):
                raise Invalid("options.add_dirs: not a directory")
            checked_dirs(options.get("add_dirs", []), workspace, "options.add_dirs")
        except HarnessError as e:
            raise Invalid(e.message) from None
        if "resume" in options and not ID.match(options["resume"]):
            raise Invalid(f"options.resume: not an id: {options['resume']}")
        if options.get("fork") and "resume" not in options:
            raise Invalid("options.fork needs options.resume")

    # Operations

    def answer(self, request: dict) -> dict:
        id = request.get("id")
        if not _is_id(id):
            return _error(None, "invalid_request", "id must be a string, a number or null")
        try:
            options = self.check(request)
            op = request["op"]
            result = {"run": lambda: self.run(request, options), "state": self.state,
                      "reset": self.reset, "close": self.reset}[op]()
            return {"id": id, "ok": True, "result": result}
        except Invalid as e:
            return _error(id, "invalid_request", str(e))
        except Exception as e:
            return _error(id, "internal", f"{type(e).__name__}: {e}")

    def _flags(self, options: dict) -> dict:
        flags = {k: v for k, v in self.flags.items() if k != "cwd"}
        for name, key in (("allow", "allow"), ("deny", "deny"), ("add-dir", "add_dirs")):
            joined = [*flags.get(name, []), *options.get(key, [])]
            if joined:
                flags[name] = joined
        if "agent" in options:
            flags["agent"] = options["agent"]
        if "max_turns" in options:
            flags["max-turns"] = str(options["max_turns"])
        if options.get("no_save"):
            flags["no-save"] = True
        return flags

    def _fail(self, error: HarnessError) -> dict:
        self.console.error(error.message, error.note)
        return api_result(failed(error.code, error.message, self.core.session.id if self.core else ""))

    def run(self, request: dict, options: dict) -> dict:
        prompt = request["prompt"]
        try:
            config = Config(self._flags(options), self.workspace(request), self.console).load_settings()
            for_model = needs_model(config.library, prompt)
            if for_model:
                base_url()
            self._prepare(config, options)
            if for_model:
                self.core.need_model()
        except HarnessError as e:
            return self._fail(e)
        core = self.core
        core.approve = _approvals(request.get("approvals"))
        core.question = None
        try:
            result = run_line(core, prompt)
        except Leave:
            result = fill(Result(), core)
        if result.exit_code:
            self.console.error(result.error)
        return api_result(result)

    def _prepare(self, config: Config, options: dict) -> None:
        """Configures the conversation, makes it, or replaces it by a stored one."""
        old = self.core
        core = old or Core(config, self.console)
        id = options.get("resume")
        session = None
        if id and (options.get("fork") or not old or id != old.session.id):
            saving = config.saving
            if options.get("fork"):
                source = old.session if old and id == old.session.id and not old.session.stored else \
                    store.resume(config.home, id, config.workspace, self.console, saving=False, repair=False)
                probe = Core(config, self.console, source)
                probe.typed_model, probe.option_model = core.typed_model, options.get("model")
                if not saving:
                    store.settle(source)
                session = probe.forked(source)
            else:
                session = store.resume(config.home, id, config.workspace, self.console, saving)
        core.configure(config)
        core.total, core.started = self.total, self.started
        core.option_model = options.get("model")
        core.option_mode = options.get("permission_mode")
        if session:
            core.move_to(session)
        core.session.saving = config.saving
        self.core = core

    def state(self) -> dict:
        core = self.core
        try:
            if core is None:
                core = Core(Config(self._flags({}), self.workspace({}), self.console).load_settings(), self.console)
                known = False
            else:
                core.configure(Config(self._flags({}), core.workspace, self.console).load_settings())
                core.option_model = core.option_mode = None
                known = True
            model, mode = core.model_name(), core.mode()
        except HarnessError:
            model, mode, known = None, "ask", core is not None
        session = core.session if known and core else None
        return {"session_id": session.id if session else None,
                "cwd": core.workspace if core else self.workspace({}),
                "model": model, "permission_mode": mode,
                "title": session.title if session else None,
                "messages": [m.wire() for m in session.messages] if session else [],
                "todos": session.todos if session else []}

    def reset(self) -> dict:
        self.core = None
        return {}


def _approvals(value):
    if value == "allow":
        return lambda question: True
    if isinstance(value, list):
        left = list(value)
        return lambda question: left.pop(0) == "allow" if left else None
    return lambda question: None


def _error(id, code: str, message: str) -> dict:
    return {"id": id, "ok": False, "error": {"code": code, "message": " ".join(message.split()) or code}}


PROCESS = Process()


def evaluate(request: dict) -> dict:
    """Answer one request; an error is a response with `ok: false`, not an exception."""
    if not isinstance(request, dict):
        return _error(None, "invalid_request", "the request is not an object")
    return PROCESS.answer(request)


def _answer_line(text) -> dict:
    try:
        request = loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except ValueError as e:
        return _error(None, "invalid_json", f"not valid JSON: {e}")
    return evaluate(request)


def serve(stdin, stdout) -> int:
    """Read one JSON request a line, write one JSON response a line, until end of input."""
    source = getattr(stdin, "buffer", stdin)
    binary = getattr(stdout, "buffer", None)
    while True:
        line = source.readline()
        if not line:
            return 0
        if not line.strip():
            continue
        response = _answer_line(line)
        text = compact(response) + "\n"
        try:
            if binary is not None:
                stdout.flush()
                binary.write(text.encode("utf-8"))
                binary.flush()
            else:
                try:
                    stdout.write(text)
                except TypeError:
                    stdout.write(text.encode("utf-8"))
                stdout.flush()
        except (BrokenPipeError, ValueError):
            pass
        if response["ok"] and _is_close(line):
            return 0


def _is_close(line) -> bool:
    return loads(line.decode("utf-8") if isinstance(line, bytes) else line).get("op") == "close"
