"""Hooks: commands of the user that run at certain moments and may block what comes next."""

import json
import os

EVENTS = ("session_start", "user_prompt", "before_tool", "after_tool", "before_compact", "stop")
KEYS = ("match", "command", "timeout_s")
DEFAULT_TIMEOUT_S = 10
MOST_CONTEXT = 10_000


class Blocked(Exception):
    """A hook ended with 2; the text is its reason."""


def check_hooks(value):
    """Return the setting `hooks` without unknown keys; raise ValueError when it is not valid."""
    if not isinstance(value, dict):
        raise ValueError("hooks must be an object")
    known = {}
    for event in EVENTS:
        hooks = value.get(event, [])
        if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):
            raise ValueError(f"hooks.{event} must be a list of objects")
        for hook in hooks:
            _check_hook(event, hook)
        known[event] = [{key: hook[key] for key in KEYS if key in hook} for hook in hooks]
    return {event: hooks for event, hooks in known.items() if event in value}


def unknown_keys(value) -> list[str]:
    """The names of unknown events and of unknown keys of hooks."""
    found = [f"hooks.{event}" for event in value if event not in EVENTS]
    for event in EVENTS:
        keys = {key: None for hook in value.get(event, []) for key in hook if key not in KEYS}
        found += [f"hooks.{event}.{key}" for key in keys]
    return found


def _check_hook(event, hook):
    if not isinstance(hook.get("command"), str) or not hook["command"].strip():
        raise ValueError(f"hooks.{event}: command must be a non-empty string")
    if not isinstance(hook.get("match", ""), str):
        raise ValueError(f"hooks.{event}: match must be a string")
    timeout_s = hook.get("timeout_s", DEFAULT_TIMEOUT_S)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int) or not 1 <= timeout_s <= 600:
        raise ValueError(f"hooks.{event}: timeout_s must be an integer from 1 to 600")


class Hooks:
    """The hooks of one workspace."""

    def __init__(self, setting, cwd, environment, warn):
        self.setting = setting
        self.cwd = cwd
        self.environment = environment  # function that returns the variables of a command
        self.warn = warn

    def run(self, event, session_id, **more) -> list[str]:
        """Run the hooks of an event in order; return what they printed, or raise Blocked."""
        printed = []
        for hook in self.setting.get(event, []):
            if "tool" in more and not matches(hook.get("match", ""), more["tool"]):
                continue
            facts = {"event": event, "session_id": session_id, "cwd": self.cwd, **more}
            if text := self._run_one(event, hook, facts):
                printed.append(text)
        return printed

    def _run_one(self, event, hook, facts) -> str:
        import subprocess

        from . import processes

        timeout_s = hook.get("timeout_s", DEFAULT_TIMEOUT_S)
        scratch = processes.scratch_file
        with scratch() as stdin, scratch() as stdout, scratch() as stderr:
            stdin.write(json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            stdin.seek(0)
            streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
            try:
                with processes.running(hook["command"], self.cwd, self.environment(), **streams) as process:
                    process.wait(timeout_s)
            except processes.CannotRun as error:
                self.warn(f"hook {event}: {error}")
                return ""
            except subprocess.TimeoutExpired:
                self.warn(f"hook {event}: timed out after {timeout_s} s")
                return ""
            if process.returncode == 2:
                raise Blocked(read_back(stderr).strip() or "blocked")
            if process.returncode != 0:
                status = process.returncode
                self.warn(f"hook {event}: exit {status if status > 0 else 128 - status}")
                return ""
            text = read_back(stdout).strip()
            return text if len(text) <= MOST_CONTEXT else text[:MOST_CONTEXT] + "…"


def read_back(file) -> str:
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), min(size, 1_000_000), 0).decode("utf-8", "replace")


def matches(pattern: str, tool: str) -> bool:
    names = [name.strip() for name in pattern.split("|")]
    return pattern.strip() in ("", "*") or tool in names


def context_block(event: str, text: str) -> str:
    return f'<hook event="{event}">\n{text}\n</hook>'
