"""How a call is judged: role, rules, mode."""

import json
import os
from dataclasses import dataclass

from .library import Role
from .patchtool import paths_of
from .paths import Place
from .rules import (DIRECTORY_TOOLS, FILE_TOOLS, Rule, command_allowed_by, command_denied_by, name_matches,
                    path_matches)
from .util import dumps

READING = {"read", "list", "glob", "grep", "todo", "skill", "ask"}
EDITING = {"write", "edit", "patch", "remember"}
HIDDEN_IN_PLAN = {"write", "edit", "patch", "bash", "task", "remember"}


@dataclass
class Verdict:
    decision: str  # allow, ask or deny
    reason: str  # role NAME, rule RULE or mode MODE


def class_of(tool: str, args: dict) -> str:
    if tool in READING or (tool == "job" and args.get("action", "output") == "output"):
        return "reading"
    return "editing" if tool in EDITING else "executing"


class Judge:
    """Judges calls by the rules of a run; role and mode are given for each call."""

    def __init__(self, workspace: str, deny: list[Rule], ask: list[Rule], allow: list[Rule]):
        self.workspace = workspace
        self.deny, self.ask, self.allow = deny, ask, allow

    # Subjects

    def places(self, tool: str, args: dict) -> list[Place]:
        if tool == "patch":
            return [Place(p, self.workspace) for p in paths_of(args.get("text", "")) if "\0" not in p]
        if tool in FILE_TOOLS:
            return [Place(args.get("path", "."), self.workspace)]
        return []

    def _hits(self, rule: Rule, tool: str, args: dict, places, role_name: str) -> bool:
        """Deny and ask rules: text and real path are both tried."""
        if rule.bare:
            return True
        if tool == "bash":
            return command_denied_by(rule, args.get("command", ""))
        if tool == "task":
            return name_matches(rule.pattern, args.get("agent") or role_name)
        if tool == "skill":
            return name_matches(rule.pattern, args.get("name", ""))
        return any(self._path_hit(rule, p.text, p.real, tool in DIRECTORY_TOOLS) for p in places)

    def _path_hit(self, rule, text, real, directory):
        return rule.bare or path_matches(rule.pattern, text, self.workspace, directory) \
            or path_matches(rule.pattern, real, self.workspace, directory)

    def unread(self, text: str, real: str):
        """The deny rule for `read` that covers a file, or None."""
        for rule in self.deny:
            if rule.tool == "read" and self._path_hit(rule, text, real, False):
                return rule
        return None

    def _denying(self, tool, args, places, role_name):
        for rule in self.deny:
            if rule.tool == tool and self._hits(rule, tool, args, places, role_name):
                return rule
            if tool == "grep" and rule.tool == "read" and "path" in args:
                for p in places:
                    if not os.path.isdir(p.real) and self._path_hit(rule, p.text, p.real, False):
                        return rule
        return None

    def _allowing(self, tool, args, places, role_name):
        rules = [r for r in self.allow if r.tool == tool]
        if tool == "bash":
            return command_allowed_by(rules, args.get("command", ""))
        for rule in rules:
            if rule.bare:
                return rule
        if tool in FILE_TOOLS:
            used = []
            for p in places:
                hit = next((r for r in rules if path_matches(r.pattern, p.real, self.workspace,
                                                             tool in DIRECTORY_TOOLS)), None)
                if hit is None:
                    return None
                used.append(hit)
            return next((r for r in rules if r in used), None)
        return next((r for r in rules if self._hits(r, tool, args, places, role_name)), None)

    # The verdict

    def judge(self, tool: str, args: dict, roles: list[Role], mode: str) -> Verdict:
        """`roles` is the role of the run, for a sub-agent its own first and then its caller's."""
        for role in roles:
            if not role.has(tool, args):
                return Verdict("deny", f"role {role.name}")
        role_name = roles[0].name
        places = self.places(tool, args)
        rule = self._denying(tool, args, places, role_name)
        if rule:
            return Verdict("deny", f"rule {rule.text}")
        kind = class_of(tool, args)
        if mode == "plan" and kind != "reading":
            return Verdict("deny", "mode plan")
        for rule in self.ask:
            if rule.tool == tool and self._hits(rule, tool, args, places, role_name):
                if mode == "dont-ask":
                    return Verdict("deny", "mode dont-ask")
                return Verdict("ask", f"rule {rule.text}")
        rule = self._allowing(tool, args, places, role_name)
        if rule:
            return Verdict("allow", f"rule {rule.text}")
        if kind == "reading" or mode == "auto" or (mode == "accept-edits" and kind == "editing"):
            return Verdict("allow", f"mode {mode}")
        return Verdict("deny" if mode == "dont-ask" else "ask", f"mode {mode}")

    def hidden(self, tool: str, roles: list[Role], mode: str) -> bool:
        if any(role.tools is not None and tool not in role.tools for role in roles):
            return True
        if mode == "plan" and tool in HIDDEN_IN_PLAN:
            return True
        return any(r.tool == tool and r.bare for r in self.deny)

    # Approval

    def subject(self, tool: str, args: dict) -> str:
        """What the question names."""
        if tool == "bash":
            text = args["command"]
        elif tool == "patch":
            text = ", ".join(paths_of(args["text"]))
        elif tool in FILE_TOOLS:
            text = args.get("path", ".")
        else:
            text = dumps(args)
        return text.replace("\n", "\\n")

    def approval_key(self, tool: str, args: dict, role_name: str):
        if tool == "patch":
            return tool, json.dumps(sorted({p.real for p in self.places(tool, args)}))
        if tool in FILE_TOOLS:
            return tool, self.places(tool, args)[0].real
        if tool == "bash":
            return tool, args["command"]
        if tool == "task":
            return tool, args.get("agent") or role_name
        if tool == "skill":
            return tool, args["name"]
        return tool, ""
