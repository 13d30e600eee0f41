"""The signatures of the tools: their schemas, and the checks of a call's arguments."""

import re

from .util import compact, cut, loads


class P:
    """One parameter; `blank` refuses an empty text."""

    def __init__(self, name, type="string", required=True, words=None, low=None, high=None, blank=False,
                 item=None, about=""):
        self.name, self.type, self.required = name, type, required
        self.words, self.low, self.high, self.blank, self.item, self.about = words, low, high, blank, item, about

    def schema(self) -> dict:
        out = {"type": self.type}
        if self.about:
            out["description"] = self.about
        if self.words:
            out["enum"] = self.words
        if self.low is not None:
            out["minimum"] = self.low
        if self.high is not None:
            out["maximum"] = self.high
        if self.type == "array":
            out["items"] = object_schema(self.item) if isinstance(self.item, list) else {"type": "string"}
        return out


def object_schema(params) -> dict:
    return {"type": "object", "properties": {p.name: p.schema() for p in params},
            "required": [p.name for p in params if p.required], "additionalProperties": False}


SIGNATURES = {
    "read": ("Read a text file; lines are shown with their numbers.",
             [P("path", blank=True), P("offset", "integer", False, low=1, about="first line, default 1"),
              P("limit", "integer", False, low=1, about="number of lines, default 2000")]),
    "write": ("Create a file or replace its whole content.", [P("path", blank=True), P("content")]),
    "edit": ("Replace one piece of text in a file; old must occur exactly once unless all is true.",
             [P("path", blank=True), P("old"), P("new"), P("all", "boolean", False)]),
    "patch": ("Change several files at once by a patch from *** Begin Patch to *** End Patch.",
              [P("text", blank=True)]),
    "list": ("List the entries of a directory.",
             [P("path", required=False, blank=True), P("depth", "integer", False, low=1, high=5)]),
    "glob": ("Find files by a pattern on their path.", [P("pattern", blank=True), P("path", required=False, blank=True)]),
    "grep": ("Find lines that match a regular expression of Python.",
             [P("pattern", blank=True), P("path", required=False, blank=True), P("include", required=False, blank=True),
              P("limit", "integer", False, low=1)]),
    "bash": ("Run a shell command in the workspace.",
             [P("command", blank=True), P("timeout_s", "integer", False, low=1, high=600), P("background", "boolean", False)]),
    "job": ("Show the output of a background job, or end it.", [P("id", blank=True), P("action", words=["output", "kill"])]),
    "todo": ("Replace the list of what is to be done.",
             [P("items", "array", item=[P("text", blank=True), P("status", words=["pending", "in_progress", "done"])])]),
    "task": ("Let a sub-agent do a piece of work in a conversation of its own.",
             [P("prompt", blank=True), P("agent", required=False, blank=True)]),
    "ask": ("Ask the user a question.", [P("question", blank=True), P("options", "array", False, item="string")]),
    "remember": ("Add one line to the memory of the project or of the user.",
                 [P("text", blank=True), P("scope", required=False, words=["project", "user"])]),
    "skill": ("Get the text of a skill.", [P("name", blank=True)]),
}


def function_of(name: str) -> dict:
    about, params = SIGNATURES[name]
    return {"name": name, "description": about, "parameters": object_schema(params)}


def decode(text: str):
    """(arguments, "") or (None, error)."""
    if not text.strip():
        return {}, ""
    try:
        value = loads(text)
    except ValueError as e:
        return None, f"error: arguments are not valid JSON: {e}"
    if not isinstance(value, dict):
        return None, "error: arguments are not an object"
    return value, ""


def _fits(value, type: str) -> bool:
    return {"string": isinstance(value, str), "boolean": isinstance(value, bool), "array": isinstance(value, list),
            "object": isinstance(value, dict), "integer": isinstance(value, int) and not isinstance(value, bool)}[type]


def _type_fault(name, value, type) -> str:
    if not _fits(value, type):
        article = "an" if type[0] in "aoi" else "a"
        return f'error: parameter "{name}" is not {article} {type}: {cut(compact(value), 200) if type != "integer" else compact(value)}'
    if type == "string" and re.search("[\0\ud800-\udfff]", value):
        return f'error: parameter "{name}" holds a character that cannot be used'
    return ""


def _range_fault(p: P, name, value) -> str:
    if p.type == "integer":
        if (p.low is not None and value < p.low) or (p.high is not None and value > p.high):
            form = f"at least {p.low}" if p.high is None else f"from {p.low} to {p.high}"
            return f'error: parameter "{name}" must be {form}: {value}'
    if p.words and value not in p.words:
        return f'error: parameter "{name}" must be one of {", ".join(p.words)}: "{value}"'
    if p.blank and not value.strip():
        return f'error: parameter "{name}" is empty'
    if p.type == "array" and p.item == "string":
        for n, item in enumerate(value):
            if not item.strip():
                return f'error: parameter "{name}[{n}]" is empty'
    return ""


def check_object(params, args: dict, prefix="") -> str:
    for p in params:
        if p.required and args.get(p.name) is None:
            return f'error: missing parameter "{prefix}{p.name}"'
    known = [p.name for p in params]
    for name in args:
        if name not in known:
            return f'error: unknown parameter "{prefix}{name}"; known parameters: {", ".join(known)}'
    present = [p for p in params if args.get(p.name) is not None]
    for p in present:
        name, value = prefix + p.name, args[p.name]
        fault = _type_fault(name, value, p.type)
        if fault:
            return fault
        for n, item in enumerate(value if p.type == "array" else ()):
            at = f"{name}[{n}]"
            fault = _type_fault(at, item, "object" if isinstance(p.item, list) else "string")
            if not fault and isinstance(p.item, list):
                fault = check_object(p.item, item, at + ".")
            if fault:
                return fault
    for p in present:
        if prefix + p.name == "old" and args["old"] == "":
            return 'error: parameter "old" is empty'
        fault = _range_fault(p, prefix + p.name, args[p.name])
        if fault:
            return fault
    return ""


def check(tool: str, args: dict):
    """(arguments without nulls, "") or (None, error)."""
    fault = check_object(SIGNATURES[tool][1], args)
    if fault:
        return None, fault
    args = {k: v for k, v in args.items() if v is not None}
    if tool == "edit" and args["old"] == args["new"]:
        return None, "error: old and new are the same"
    if tool == "bash" and args.get("background") and "timeout_s" in args:
        return None, 'error: parameter "timeout_s" cannot be combined with background'
    if tool == "todo" and sum(i["status"] == "in_progress" for i in args["items"]) > 1:
        return None, "error: more than one item is in_progress"
    return args, ""
