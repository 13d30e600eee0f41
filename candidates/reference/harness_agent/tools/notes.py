"""todo, ask, remember and skill: the tools that touch no file of the workspace."""

from .. import frontmatter
from .. import memory
from ..errors import ToolError

MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


def todo(context, items):
    context.session.set_todos(items)
    return todo_lines(items) or "[no todos]"


def todo_lines(items) -> str:
    return "\n".join(f"{MARKS[item['status']]} {item['text']}" for item in items)


def ask(context, question, options=()):
    answer = context.front.ask(question, list(options))
    if answer is None:
        raise ToolError("no one to ask")
    return answer


def remember(context, text, scope="project"):
    if scope == "project" and not memory.is_inside(context.roots):
        raise ToolError("outside the workspace: .harness/memory.md")
    try:
        memory.remember(scope, text, context.roots.workspace, context.home)
    except OSError as error:
        path = memory.memory_path(scope, context.roots.workspace, context.home)
        raise ToolError(f"cannot write {path}: {error.strerror}") from None
    return f"remembered ({scope})"


def skill(context, name):
    skills = context.find_skills()
    if name not in skills:
        raise ToolError(f'unknown skill "{name}"; known skills: {", ".join(skills) or "none"}')
    return frontmatter.body_text(skills[name].body) or "[empty skill]"
