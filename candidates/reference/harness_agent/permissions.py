"""Judges tool calls: role, deny rules, plan mode, ask rules, allow rules, and the mode, in this order."""

import os

from . import shellsplit
from .paths import Roots, is_within
from .patterns import command_regex, glob_regex
from .texts import as_json

MODES = ("ask", "accept-edits", "plan", "auto", "dont-ask")
STRICT_TO_LAX = ("plan", "dont-ask", "ask", "accept-edits", "auto")
EDITING = ("write", "edit", "patch", "remember")
HIDDEN_IN_PLAN = ("write", "edit", "patch", "bash", "task", "remember")
PATH_TOOLS = ("read", "write", "edit", "patch", "list", "glob", "grep")
SEARCH_TOOLS = ("list", "glob", "grep")
NAME_TOOLS = ("task", "skill")
LISTS = ("deny", "ask", "allow")

ALLOW, ASK, DENY = "allow", "ask", "deny"


def stricter(one: str, other: str) -> str:
    return min(one, other, key=STRICT_TO_LAX.index)


class Rule:
    """`TOOL` or `TOOL(PATTERN)`, with the place it comes from."""

    def __init__(self, text: str, source: str, tool_names):
        """Parse a rule; raise ValueError when it is not one."""
        self.text = text
        self.source = source
        tool, bracket, rest = text.partition("(")
        if tool not in tool_names:
            raise ValueError(f"unknown tool in rule: {text}")
        self.tool = tool
        self.pattern = None
        if bracket:
            if not rest.endswith(")"):
                raise ValueError(f"no `)` at the end of rule: {text}")
            self.pattern = rest[:-1].strip()
            if not self.pattern:
                raise ValueError(f"empty pattern in rule: {text}")
            if tool not in PATH_TOOLS + NAME_TOOLS + ("bash",):
                raise ValueError(f"{tool} takes no pattern in rule: {text}")

    def matches_name(self, name: str) -> bool:
        return self.pattern is None or bool(command_regex(self.pattern).match(name))

    def matches_path(self, absolute: str, workspace: str) -> bool:
        """Hold the rule against one absolute path."""
        if self.pattern is None:
            return True
        pattern = self.pattern.removeprefix("./")
        if pattern.endswith("/") or not pattern:
            pattern += "**"
        regex = glob_regex(pattern, directories=self.tool in SEARCH_TOOLS)
        if pattern.startswith("/"):
            return bool(regex.match(absolute))
        return is_within(absolute, workspace) and bool(regex.match(os.path.relpath(absolute, workspace)))


class Decision:
    """What becomes of a call; `ground` is the role, rule or mode that decided."""

    def __init__(self, verdict: str, ground: str):
        self.verdict = verdict
        self.ground = ground


class Call:
    """A checked call as rules see it."""

    def __init__(self, tool: str, arguments: dict, role_of_task: str = ""):
        self.tool = tool
        self.arguments = arguments
        self.role_of_task = role_of_task

    def paths(self) -> list[str]:
        if self.tool == "patch":
            from .tools.patch import touched_paths

            return touched_paths(self.arguments["text"])
        return [self.arguments.get("path") or "."]

    def is_reading(self) -> bool:
        if self.tool == "job":
            return self.arguments.get("action") == "output"
        return self.tool not in EDITING + ("bash", "task")

    def subject(self) -> str:
        """What the approval question shows."""
        if self.tool == "bash":
            return self.arguments["command"]
        if self.tool in PATH_TOOLS:
            return ", ".join(self.paths())
        return as_json(self.arguments)

    def key(self, roots: Roots):
        """Two calls with the same key are covered by one approval for the session."""
        if self.tool == "bash":
            return self.tool, self.arguments["command"]
        if self.tool in PATH_TOOLS:
            return (self.tool, *sorted({roots.real(path) for path in self.paths()}))
        if self.tool == "task":
            return self.tool, self.role_of_task
        if self.tool == "skill":
            return self.tool, self.arguments["name"]
        return (self.tool,)


class Policy:
    """Rules, mode and approvals of one conversation; a sub-agent gets one made by `for_role`."""

    def __init__(self, rules: dict, mode: str, role, roots: Roots):
        self.rules = rules  # deny, ask, allow -> list of Rule
        self.mode = mode
        self.roots = roots
        self.roles = [role]
        self.approved = set()  # keys of calls that were approved for the session

    def for_role(self, role) -> "Policy":
        """The policy of a sub-agent: the caller's mode, rules and approvals, and both roles."""
        inner = Policy(self.rules, self.effective_mode(), role, self.roots)
        inner.roles = [role, *self.roles]
        inner.approved = self.approved
        return inner

    @property
    def role(self):
        return self.roles[0]

    def effective_mode(self) -> str:
        mode = self.mode
        if self.role.permission_mode:
            mode = stricter(mode, self.role.permission_mode)
        return mode

    def offers(self, tool: str) -> bool:
        """Tell whether requests offer the tool."""
        return (
            all(role.has(tool) for role in self.roles)
            and not any(rule.tool == tool and rule.pattern is None for rule in self.rules["deny"])
            and not (self.effective_mode() == "plan" and tool in HIDDEN_IN_PLAN)
        )

    def judge(self, call: Call) -> Decision:
        for role in self.roles:
            if not role.allows(call):
                return Decision(DENY, f"role {role.name}")
        mode = self.effective_mode()
        if rule := self.denying_rule(call):
            return Decision(DENY, f"rule {rule.text}")
        if mode == "plan" and not call.is_reading():
            return Decision(DENY, "mode plan")
        if rule := self._matching("ask", call):
            return self._question(call, mode, f"rule {rule.text}")
        if rule := self._allowing_rule(call):
            return Decision(ALLOW, f"rule {rule.text}")
        if mode == "auto" or call.is_reading() or (mode == "accept-edits" and call.tool in EDITING):
            return Decision(ALLOW, f"mode {mode}")
        return self._question(call, mode, f"mode {mode}")

    def denying_rule(self, call: Call):
        """The deny rule that matches the call, or None."""
        if rule := self._matching("deny", call):
            return rule
        if call.tool == "grep":
            path = call.paths()[0]
            if not os.path.isdir(self.roots.real(path)):
                return self.rule_against_reading(path)
        return None

    def rule_against_reading(self, path: str):
        """The deny rule for `read` that matches a path by its given or its real name, or None."""
        rules = [rule for rule in self.rules["deny"] if rule.tool == "read"]
        return next((rule for rule in rules if self._path_matches(rule, path)), None)

    def approve_for_session(self, call: Call):
        self.approved.add(call.key(self.roots))

    def _question(self, call, mode, ground):
        if mode == "dont-ask":
            return Decision(DENY, "mode dont-ask")
        if call.key(self.roots) in self.approved:
            return Decision(ALLOW, ground)
        return Decision(ASK, ground)

    def _matching(self, kind, call):
        """The first deny or ask rule that matches any subject of the call, or None."""
        rules = [rule for rule in self.rules[kind] if rule.tool == call.tool]
        return next((rule for rule in rules if self._matches_any(rule, call)), None)

    def _matches_any(self, rule, call):
        if rule.pattern is None:
            return True
        if call.tool == "bash":
            command = call.arguments["command"]
            parts, closed = shellsplit.split(command)
            if not closed:
                parts = parts + shellsplit.split(command, quotes=False)[0]
            tried = [command.strip(), *(form for part in parts for form in shellsplit.forms(part))]
            return any(rule.matches_name(text) for text in tried)
        if call.tool in PATH_TOOLS:
            return any(self._path_matches(rule, path) for path in call.paths())
        return rule.matches_name(self._name(call))

    def _path_matches(self, rule, path):
        names = (self.roots.given(path), self.roots.real(path))
        return any(rule.matches_path(name, self.roots.workspace) for name in names)

    def _allowing_rule(self, call):
        """The first allow rule that has a part in letting the call through, or None when they do not."""
        rules = [rule for rule in self.rules["allow"] if rule.tool == call.tool]
        bare = [rule for rule in rules if rule.pattern is None]
        if call.tool == "bash":
            parts, closed = shellsplit.split(call.arguments["command"])
            return _covering(rules if closed and parts else bare, parts or [""], _allows_part)
        if call.tool in PATH_TOOLS:
            reals = [self.roots.real(path) for path in call.paths()]
            matches = lambda rule, real: rule.matches_path(real, self.roots.workspace)  # noqa: E731
            return _covering(rules if reals else bare, reals or [""], matches)
        return _covering(rules, [self._name(call)], Rule.matches_name) if call.tool in NAME_TOOLS else next(iter(bare), None)

    @staticmethod
    def _name(call):
        return call.role_of_task if call.tool == "task" else call.arguments["name"]


def _covering(rules, subjects, matches):
    """The first rule that matches a subject when each subject is matched by some rule, or None."""
    if not all(any(matches(rule, subject) for rule in rules) for subject in subjects):
        return None
    return next((rule for rule in rules if any(matches(rule, subject) for subject in subjects)), None)


def _allows_part(rule, part) -> bool:
    if rule.pattern is None:
        return True
    return rule.matches_name(part) and (">" in rule.pattern or not shellsplit.writes_file(part))


def judge_check(policy: Policy, tool: str, subject) -> Decision:
    """Judge a call of which only the subject is known; None when not even that."""
    arguments = {}
    if tool == "patch":
        arguments = {"text": f"*** Update File: {subject}"}
    elif tool in PATH_TOOLS:
        arguments = {"path": subject}
    elif tool == "bash":
        arguments = {"command": subject or ""}
    elif tool == "skill":
        arguments = {"name": subject or ""}
    elif tool == "job":
        arguments = {"action": subject or "output"}
    call = Call(tool, arguments, (subject or "build") if tool == "task" else "")
    if subject is None and tool in ("bash", "skill"):
        policy.rules = {kind: [rule for rule in rules if rule.pattern is None] for kind, rules in policy.rules.items()}
    return policy.judge(call)
