"""Whether a call is allowed, denied, or has to be approved."""

import os

from .base import MODES, STRICT
from .files import patch_subjects
from .rules import EDITING, FILE_TOOLS, READING, TOOLS, Command, path_match, star_match

PLAN_HIDDEN = {"write", "edit", "patch", "bash", "task", "remember"}


def stricter(a, b):
    if b is None:
        return a
    return a if STRICT.index(a) <= STRICT.index(b) else b


def tools_offered(roles, mode, deny, memory, sub=False):
    """Names of the tools of the next request, in order."""
    bare = {rule.tool for rule in deny if rule.pattern is None}
    out = []
    for name in TOOLS:
        if any(not role.has(name) for role in roles) or name in bare:
            continue
        if mode == "plan" and name in PLAN_HIDDEN:
            continue
        if (name == "remember" and not memory) or (name == "task" and sub):
            continue
        out.append(name)
    return out


class Subject:
    """What rules are compared with."""

    def __init__(self, tool, arguments, role_name):
        self.tool = tool
        self.paths = self.command = self.name = None
        if tool == "patch":
            self.paths = patch_subjects(arguments["text"])
        elif tool in FILE_TOOLS:
            self.paths = [arguments.get("path", ".")]
        elif tool == "bash":
            self.command = Command(arguments["command"])
        elif tool == "task":
            self.name = arguments.get("agent", role_name)
        elif tool == "skill":
            self.name = arguments["name"]

    def hit(self, rule, cwd):
        """For deny and ask rules."""
        if rule.tool != self.tool:
            return False
        if rule.pattern is None:
            return True
        if self.command is not None:
            return self.command.hit(rule)
        if self.name is not None:
            return star_match(rule.pattern, self.name)
        return any(path_match(rule, path, cwd, False) for path in self.paths or ())

    def denied_by(self, rule, cwd):
        if self.hit(rule, cwd):
            return True
        if self.tool == "grep" and rule.tool == "read" and self.paths:
            path = self.paths[0]
            if os.path.isdir(os.path.join(cwd, path)):
                return False
            return rule.pattern is None or path_match(rule, path, cwd, False)
        return False

    def allowed_by(self, rules, cwd):
        rules = [r for r in rules if r.tool == self.tool]
        if not rules:
            return None
        if self.command is not None:
            return self.command.allowed_by(rules)
        bare = [r for r in rules if r.pattern is None]
        if self.name is not None:
            return next((r for r in rules if r.pattern is None or star_match(r.pattern, self.name)), None)
        if not self.paths:
            return bare[0] if bare else None
        first = None
        for path in self.paths:
            found = next((r for r in rules if r.pattern is None or path_match(r, path, cwd, True)), None)
            if found is None:
                return None
            if first is None or rules.index(found) < rules.index(first):
                first = found
        return first


def judge(tool, arguments, subject, roles, mode, rules, cwd):
    """(decision, reason); `rules` gives the list of a name."""
    for role in roles:
        if not role.has(tool, arguments):
            return "deny", f"role {role.name}"
    for rule in rules("deny"):
        if subject.denied_by(rule, cwd):
            return "deny", f"rule {rule.text}"
    reading = tool in READING or (tool == "job" and arguments.get("action") != "kill")
    if mode == "plan" and not reading:
        return "deny", "mode plan"
    for rule in rules("ask"):
        if subject.hit(rule, cwd):
            return ("deny", "mode dont-ask") if mode == "dont-ask" else ("ask", f"rule {rule.text}")
    rule = subject.allowed_by(rules("allow"), cwd)
    if rule is not None:
        return "allow", f"rule {rule.text}"
    if reading or mode == "auto" or (mode == "accept-edits" and tool in EDITING):
        return "allow", f"mode {mode}"
    return ("deny" if mode == "dont-ask" else "ask"), f"mode {mode}"


assert set(STRICT) == set(MODES)
