"""The fourteen tools: their schemas, the checks of arguments, and how a call reaches its code.

The code of a tool is imported when it is first called, so that a run starts fast.
"""

import re
from importlib import import_module

from ..errors import ToolError
from ..texts import as_json, from_json

NAMES = (
    "read", "write", "edit", "patch", "list", "glob", "grep",
    "bash", "job", "todo", "task", "ask", "remember", "skill",
)  # fmt: skip
MAY_BE_BLANK = {"content", "old", "new"}
UNUSABLE = re.compile("[\0\ud800-\udfff]")


class Tool:
    """Name, schema and code of one tool; parameters stand in the order of the signature."""

    def __init__(self, name, code, description, required=(), /, **properties):
        self.name = name
        self.code = code  # module:function
        self.description = description
        self.required = required
        self.properties = properties

    def schema(self) -> dict:
        parameters = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def parse(self, text: str) -> dict:
        """Return the arguments of a call; raise ToolError with the first fault."""
        try:
            arguments = from_json(text) if text.strip() else {}
        except ValueError as error:
            raise ToolError(f"arguments are not valid JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise ToolError("arguments are not an object")
        return self.check(arguments)

    def check(self, arguments: dict) -> dict:
        for name in self.required:
            if arguments.get(name) is None:
                raise ToolError(f'missing parameter "{name}"')
        check_known(arguments, self.properties)
        present = [(name, schema) for name, schema in self.properties.items() if arguments.get(name) is not None]
        for name, schema in present:
            check_type(name, schema, arguments[name])
        for name, schema in present:
            check_range(name, schema, arguments[name])
        checked = {name: arguments[name] for name, _ in present}
        check_together(self.name, checked)
        return checked

    def run(self, context, arguments: dict) -> str:
        module, _, function = self.code.partition(":")
        return getattr(import_module(f"{__name__}.{module}"), function)(context, **arguments)


def check_known(values, properties, prefix=""):
    for name in values:
        if name not in properties:
            raise ToolError(f'unknown parameter "{prefix}{name}"; known parameters: {", ".join(properties)}')


def check_type(name, schema, value):
    kind = schema["type"]
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }[kind]
    if not fits:
        article = "an" if kind[0] in "aeiou" else "a"
        raise ToolError(f'parameter "{name}" is not {article} {kind}: {shown(value)}')
    if kind == "string" and UNUSABLE.search(value):
        raise ToolError(f'parameter "{name}" holds a character that cannot be used')
    if kind == "array":
        for index, item in enumerate(value):
            check_item_type(f"{name}[{index}]", schema["items"], item)


def check_item_type(name, schema, item):
    check_type(name, schema, item)
    if schema["type"] == "object":
        properties = schema["properties"]
        for key in schema["required"]:
            if item.get(key) is None:
                raise ToolError(f'missing parameter "{name}.{key}"')
        check_known(item, properties, f"{name}.")
        for key, inner in properties.items():
            check_type(f"{name}.{key}", inner, item[key])


def check_range(name, schema, value):
    if "minimum" in schema:
        lowest, highest = schema["minimum"], schema.get("maximum")
        if value < lowest or (highest is not None and value > highest):
            wanted = f"at least {lowest}" if highest is None else f"from {lowest} to {highest}"
            raise ToolError(f'parameter "{name}" must be {wanted}: {shown(value)}')
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(f'parameter "{name}" must be one of {", ".join(schema["enum"])}: {shown(value)}')
    if schema["type"] == "string" and "enum" not in schema:
        last_part = name.rpartition(".")[2]
        if (last_part == "old" and not value) or (last_part not in MAY_BE_BLANK and not value.strip()):
            raise ToolError(f'parameter "{name}" is empty')
    if schema["type"] == "array":
        for index, item in enumerate(value):
            if schema["items"]["type"] == "object":
                for key, inner in schema["items"]["properties"].items():
                    check_range(f"{name}[{index}].{key}", inner, item[key])
            else:
                check_range(f"{name}[{index}]", schema["items"], item)


def check_together(tool, arguments):
    """Refuse values that are right by themselves and do not go together."""
    if tool == "edit" and arguments["old"] == arguments["new"]:
        raise ToolError("old and new are the same")
    if tool == "bash" and arguments.get("background") and "timeout_s" in arguments:
        raise ToolError('parameter "timeout_s" cannot be combined with background')
    if tool == "todo" and sum(item["status"] == "in_progress" for item in arguments["items"]) > 1:
        raise ToolError("more than one item is in_progress")


def shown(value) -> str:
    """A value as errors show it."""
    text = as_json(value)
    return text if len(text) <= 200 else text[:200] + "…"


def _text(description, **more):
    return {"type": "string", "description": description, **more}


def _number(description, lowest=1, highest=None):
    schema = {"type": "integer", "description": description, "minimum": lowest}
    return schema if highest is None else {**schema, "maximum": highest}


PATH = _text("File, relative to the workspace or absolute.")
FOLDER = _text("Directory, relative to the workspace or absolute; the workspace when left out.")

TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "read",
            "files:read",
            "Read a text file. Each line is shown as its number, a TAB, and the text.",
            ("path",),
            path=PATH,
            offset=_number("First line to show, counted from 1."),
            limit=_number("Most lines to show; 2000 when left out."),
        ),
        Tool(
            "write",
            "files:write",
            "Create a file or replace its whole content. An existing file has to be read first.",
            ("path", "content"),
            path=PATH,
            content=_text("The whole new content."),
        ),
        Tool(
            "edit",
            "files:edit",
            "Replace a piece of text in a file that was read before. The piece has to occur exactly once unless all is true.",
            ("path", "old", "new"),
            path=PATH,
            old=_text("Literal text to replace, without line numbers."),
            new=_text("Text to put in its place."),
            all={"type": "boolean", "description": "Replace every occurrence."},
        ),
        Tool(
            "patch",
            "patch:patch",
            "Add, update and delete several files at once, all or nothing. The text begins with `*** Begin Patch`, "
            "ends with `*** End Patch`, and has sections `*** Add File: PATH` (lines with +), `*** Update File: PATH` "
            "(hunks: `@@` or `@@ LINE`, then lines with space, - or +) and `*** Delete File: PATH`.",
            ("text",),
            text=_text("The patch."),
        ),
        Tool(
            "list",
            "search:list_directory",
            "List the entries of a directory; directories end in /.",
            path=FOLDER,
            depth=_number("Levels to show, 1 to 5.", 1, 5),
        ),
        Tool(
            "glob",
            "search:glob",
            "Find files by a pattern of their path, such as **/*.py.",
            ("pattern",),
            pattern=_text("Pattern with *, **, ?, [..] and {a,b}, relative to path."),
            path=FOLDER,
        ),
        Tool(
            "grep",
            "search:grep",
            "Find lines that match a regular expression (Python syntax), as path:line:text.",
            ("pattern",),
            pattern=_text("Regular expression, held against each line."),
            path=_text("File or directory to search; the workspace when left out."),
            include=_text("Pattern of the files to search, such as *.py."),
            limit=_number("Most lines to show; 100 when left out."),
        ),
        Tool(
            "bash",
            "shell:bash",
            "Run a command with /bin/sh in the workspace. The result ends with [exit N].",
            ("command",),
            command=_text("The command."),
            timeout_s=_number("Longest time in seconds, 1 to 600.", 1, 600),
            background={"type": "boolean", "description": "Start the command as a job and go on at once."},
        ),
        Tool(
            "job",
            "shell:job",
            "Show the output of a background job, or kill it.",
            ("id", "action"),
            id=_text("Id of the job."),
            action=_text("What to do.", enum=["output", "kill"]),
        ),
        Tool(
            "todo",
            "notes:todo",
            "Replace the list of things to do. At most one item is in_progress.",
            ("items",),
            items={
                "type": "array",
                "description": "The whole new list.",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": _text("What is to be done."),
                        "status": _text("State of the item.", enum=["pending", "in_progress", "done"]),
                    },
                    "required": ["text", "status"],
                    "additionalProperties": False,
                },
            },
        ),
        Tool(
            "task",
            "task:task",
            "Let a sub-agent do a piece of work in a conversation of its own; its final text is the result.",
            ("prompt",),
            prompt=_text("What the sub-agent is to do; it knows nothing else of this conversation."),
            agent=_text("Role of the sub-agent; the present role when left out."),
        ),
        Tool(
            "ask",
            "notes:ask",
            "Ask the user a question.",
            ("question",),
            question=_text("The question."),
            options={"type": "array", "description": "Answers to choose from.", "items": {"type": "string"}},
        ),
        Tool(
            "remember",
            "notes:remember",
            "Add one line to the memory file, which later sessions are given.",
            ("text",),
            text=_text("What to remember."),
            scope=_text("Memory of the project or of the user; project when left out.", enum=["project", "user"]),
        ),
        Tool(
            "skill",
            "notes:skill",
            "Show the text of a skill that the system message names.",
            ("name",),
            name=_text("Name of the skill."),
        ),
    )
}
