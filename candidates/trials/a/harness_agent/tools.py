"""Runs one allowed call: the path checks, and then the tool itself."""

import os
from contextlib import contextmanager

from . import arguments, memory, patchtool
from .checkpoints import same
from .filetools import FileTools, Refusal
from .library import Broken, skill_body
from .paths import Place
from .proc import JOBS, environment, run_shell
from .rules import FILE_TOOLS
from .searchtools import Search
from .util import digest, reason_of, replace_file, shown

MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


def todo_text(items) -> str:
    return "\n".join(f"{MARKS[i['status']]} {i['text']}" for i in items) or "[no todos]"


class Changes:
    """Notes each file change of a turn before it is made."""

    def __init__(self, session):
        self.session = session

    @contextmanager
    def change(self, path: str, data):
        points = self.session.checkpoints
        before, _ = points.now(path)
        if same(before, None if data is None else {"file": digest(data)}):
            yield
            return
        n = points.begin(self.session.turn_key(), path, data)
        try:
            yield
        except OSError:
            points.abort(n)
            raise
        points.finish(n)

    def mark(self, path: str):
        state, data = self.session.checkpoints.now(path)
        return path, state, data, len(self.session.checkpoints.entries)

    def take_back(self, mark) -> bool:
        """Takes back what was made since the mark; false when nothing was."""
        path, state, data, count = mark
        points = self.session.checkpoints
        if same(points.now(path)[0], state):
            return False
        if state is None:
            os.unlink(path)
        elif "link" in state:
            os.symlink(state["link"], path)
        else:
            replace_file(path, data, state["mode"])
        for entry in points.entries[count:]:
            if entry["path"] == path and not entry["undone"]:
                points.abort(entry["n"])
        return True


class ToolBox:
    def __init__(self, core, agent):
        self.core = core
        self.agent = agent
        self.workspace = core.workspace
        self.roots = core.roots
        self.ignore = agent.turn.ignore
        self.files = FileTools(agent.reads, Changes(core.session))
        self.search = Search(self.workspace, self.roots, self.ignore, core.judge.unread)

    def run(self, tool: str, args: dict) -> str:
        try:
            places = self._checked(tool, args) if tool in FILE_TOOLS else {}
            return getattr(self, "t_" + tool)(args, places)
        except Refusal as e:
            return str(e)
        except OSError as e:
            return f"error: {tool} failed: {reason_of(e)}"

    def _checked(self, tool, args) -> dict:
        """The places of a file tool, after the checks of paths."""
        if tool == "patch":
            givens = [p for p in patchtool.paths_of(args["text"]) if "\0" not in p]
        else:
            givens = [args.get("path", ".")]
        places = {given: Place(given, self.workspace) for given in givens}
        for place in places.values():
            fault = place.fault(self.workspace, self.roots, self.ignore, tool in ("write", "edit", "patch"))
            if fault:
                raise Refusal(fault)
        if tool == "glob":
            pattern = args["pattern"]
            if pattern.startswith("/") or ".." in pattern.split("/"):
                raise Refusal(f"error: outside the workspace: {pattern}")
        return places

    @staticmethod
    def _place(places) -> Place:
        return next(iter(places.values()))

    def t_read(self, a, places):
        return self.files.read(self._place(places), a.get("offset"), a.get("limit"))

    def t_write(self, a, places):
        return self.files.write(self._place(places), a["content"])

    def t_edit(self, a, places):
        return self.files.edit(self._place(places), a["old"], a["new"], a.get("all", False))

    def t_patch(self, a, places):
        return patchtool.run(a["text"], places, self.files)

    def t_list(self, a, places):
        return self.search.list(self._place(places), a.get("depth", 1))

    def t_glob(self, a, places):
        return self.search.glob(self._place(places), a["pattern"])

    def t_grep(self, a, places):
        return self.search.grep(self._place(places), a["pattern"], a.get("include"), a.get("limit", 100))

    def t_bash(self, a, _):
        env = environment(self.core.env)
        try:
            if a.get("background"):
                return f"[job {JOBS.start(a['command'], self.workspace, env).id} started]"
            limit = a.get("timeout_s") or self.core.config.value("bash_timeout_s")
            return run_shell(a["command"], self.workspace, env, limit)
        except OSError as e:
            return f"error: cannot run the command: {e.strerror}"

    def t_job(self, a, _):
        job = JOBS.jobs.get(a["id"])
        if job is None:
            return f'error: unknown job "{a["id"]}"; known jobs: {", ".join(JOBS.jobs) or "none"}'
        return job.kill() if a["action"] == "kill" else job.output()

    def t_todo(self, a, _):
        self.agent.set_todos(a["items"])
        return todo_text(a["items"])

    def t_task(self, a, _):
        return self.core.sub_agent(self.agent, a["prompt"], a.get("agent", ""))

    def t_ask(self, a, _):
        answer = self.core.question(a["question"], a.get("options", [])) if self.core.question else None
        return "error: no one to ask" if answer is None else answer or "[no answer]"

    def t_remember(self, a, _):
        return memory.add(a["text"], a.get("scope", "project"), self.workspace, self.core.home, self.roots)

    def t_skill(self, a, _):
        skills = self.core.config.library.skills()
        skill = skills.get(a["name"])
        if skill is None:
            return f'error: unknown skill "{a["name"]}"; known skills: {", ".join(skills) or "none"}'
        try:
            return skill_body(skill.path) or "[empty skill]"
        except (OSError, Broken) as e:
            return f"error: cannot read {shown(skill.path)}: {e}"


assert all(hasattr(ToolBox, "t_" + name) for name in arguments.SIGNATURES)
