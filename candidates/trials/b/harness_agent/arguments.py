"""What each tool takes: the schemas, and the checks of arguments."""

from .base import cut, js, parse_json


class Param:
    def __init__(self, name, kind="string", required=True, low=None, high=None, words=None, items=None,
                 blank=False, about=""):
        self.name, self.kind, self.required, self.low, self.high = name, kind, required, low, high
        self.words, self.items, self.blank, self.about = words, items, blank, about

    def schema(self):
        out = {"type": self.kind}
        if self.about:
            out["description"] = self.about
        if self.low is not None:
            out["minimum"] = self.low
        if self.high is not None:
            out["maximum"] = self.high
        if self.words:
            out["enum"] = self.words
        if self.kind == "array":
            if type(self.items) is list:
                out["items"] = _object(self.items)
            else:
                out["items"] = self.items.schema()
        return out


def _object(params):
    return {"type": "object", "properties": {p.name: p.schema() for p in params},
            "required": [p.name for p in params if p.required], "additionalProperties": False}


def _path(required=True, about="Path, relative to the workspace or absolute."):
    return Param("path", required=required, blank=True, about=about)


SIGNATURES = {
    "read": [_path(), Param("offset", "integer", False, 1, about="First line to show."),
             Param("limit", "integer", False, 1, about="Greatest number of lines to show.")],
    "write": [_path(), Param("content", about="The whole new content.")],
    "edit": [_path(), Param("old", about="Text to replace; it must occur exactly once unless all is true."),
             Param("new", about="Text to put in its place."), Param("all", "boolean", False)],
    "patch": [Param("text", blank=True, about="*** Begin Patch … *** End Patch")],
    "list": [_path(False), Param("depth", "integer", False, 1, 5)],
    "glob": [Param("pattern", blank=True), _path(False)],
    "grep": [Param("pattern", blank=True, about="A regular expression of Python."), _path(False),
             Param("include", required=False, blank=True, about="A pattern of file names."),
             Param("limit", "integer", False, 1)],
    "bash": [Param("command", blank=True), Param("timeout_s", "integer", False, 1, 600),
             Param("background", "boolean", False)],
    "job": [Param("id", blank=True), Param("action", words=["output", "kill"])],
    "todo": [Param("items", "array", items=[
        Param("text", blank=True), Param("status", words=["pending", "in_progress", "done"])])],
    "task": [Param("prompt", blank=True), Param("agent", required=False, blank=True, about="Name of a role.")],
    "ask": [Param("question", blank=True),
            Param("options", "array", False, items=Param("", blank=True))],
    "remember": [Param("text", blank=True), Param("scope", required=False, words=["project", "user"])],
    "skill": [Param("name", blank=True)],
}

DESCRIPTIONS = {
    "read": "Shows the lines of a text file with their numbers.",
    "write": "Creates a file or replaces its whole content; read an existing file first.",
    "edit": "Replaces one piece of text in a file that was read before.",
    "patch": "Changes several files at once by a patch.",
    "list": "Shows the entries of a directory.",
    "glob": "Finds files by a pattern of their path.",
    "grep": "Finds lines that match a regular expression.",
    "bash": "Runs a shell command in the workspace.",
    "job": "Shows the output of a background job, or ends it.",
    "todo": "Replaces the list of what is to be done.",
    "task": "Lets a sub-agent do a piece of work.",
    "ask": "Puts a question to the user.",
    "remember": "Adds one line to a memory file.",
    "skill": "Gives the text of a skill.",
}


def function_of(name):
    return {"name": name, "description": DESCRIPTIONS[name], "parameters": _object(SIGNATURES[name])}


class Fault(Exception):
    """A fault of the arguments; the text follows `error: `."""


def decode(text):
    if not text.strip():
        return {}
    try:
        value = parse_json(text)
    except ValueError as error:
        raise Fault(f"arguments are not valid JSON: {str(error).splitlines()[0]}") from None
    if type(value) is not dict:
        raise Fault("arguments are not an object")
    return value


_TYPES = {"string": (str, "a string"), "integer": (int, "an integer"), "boolean": (bool, "a boolean"),
          "array": (list, "an array"), "object": (dict, "an object")}


def _shown(value):
    return cut(js(value), 200)


def _type(param, name, value):
    kind, words = _TYPES[param.kind]
    if type(value) is not kind:
        raise Fault(f'parameter "{name}" is not {words}: {_shown(value)}')
    if kind is str and any(c == "\0" or 0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise Fault(f'parameter "{name}" holds a character that cannot be used')
    if kind is list:
        for n, item in enumerate(value):
            inner = f"{name}[{n}]"
            if type(param.items) is not list:
                _type(param.items, inner, item)
                continue
            if type(item) is not dict:
                raise Fault(f'parameter "{inner}" is not an object: {_shown(item)}')
            _keys(param.items, item, inner + ".")
            for one in param.items:
                _type(one, f"{inner}.{one.name}", item[one.name])


def _keys(params, value, prefix=""):
    for param in params:
        if param.required and value.get(param.name) is None:
            raise Fault(f'missing parameter "{prefix}{param.name}"')
    names = [p.name for p in params]
    for key in value:
        if key not in names:
            raise Fault(f'unknown parameter "{prefix}{key}"; known parameters: ' + ", ".join(names))


def _range(param, name, value):
    if param.kind == "integer":
        if param.high is not None and not param.low <= value <= param.high:
            raise Fault(f'parameter "{name}" must be from {param.low} to {param.high}: {_shown(value)}')
        if param.low is not None and value < param.low:
            raise Fault(f'parameter "{name}" must be at least {param.low}: {_shown(value)}')
    elif param.words and value not in param.words:
        raise Fault(f'parameter "{name}" must be one of {", ".join(param.words)}: {_shown(value)}')
    elif param.blank and not value.strip():
        raise Fault(f'parameter "{name}" is empty')
    elif param.kind == "array":
        for n, item in enumerate(value):
            if type(param.items) is list:
                for one in param.items:
                    _range(one, f"{name}[{n}].{one.name}", item[one.name])
            else:
                _range(param.items, f"{name}[{n}]", item)


def check(tool, value):
    """The arguments less nulls; Fault for the first thing that is wrong."""
    params = SIGNATURES[tool]
    _keys(params, value)
    present = [p for p in params if value.get(p.name) is not None]
    for param in present:
        _type(param, param.name, value[param.name])
    for param in present:
        if tool == "edit" and param.name == "old" and value["old"] == "":
            raise Fault('parameter "old" is empty')
        _range(param, param.name, value[param.name])
    out = {p.name: value[p.name] for p in present}
    if tool == "edit" and out["old"] == out["new"]:
        raise Fault("old and new are the same")
    if tool == "bash" and out.get("background") and "timeout_s" in out:
        raise Fault('parameter "timeout_s" cannot be combined with background')
    if tool == "todo" and sum(i["status"] == "in_progress" for i in out["items"]) > 1:
        raise Fault("more than one item is in_progress")
    return out
