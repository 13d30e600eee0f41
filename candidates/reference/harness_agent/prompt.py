"""The system message: made anew when a turn begins, the same for all requests of the turn."""

from . import conventions, memory

BUILT_IN = """You are a coding agent that works in a directory of files through tools.
Read a file before you change it, and keep changes small and to the point.
Run commands to check your work where you can. When a call is denied, do not try to get around it.
When you are done, answer in plain text and call no tool.

Workspace: {workspace}
Role: {role}"""
LONGEST_DESCRIPTION = 1024


class TurnContext:
    """What a turn found in the files that shape it."""

    def __init__(self, roots, home, settings, use_conventions, skills, ignore, warn):
        self.workspace = roots.workspace
        self.skills = skills
        self.conventions = conventions.convention_blocks(roots, home, ignore, warn) if use_conventions else ""
        self.memory = memory.memory_blocks(roots, home, warn) if settings["memory"] else ""

    def system_text(self, role, with_skills, replaced="", hook_context=(), appended="") -> str:
        """Join the parts of a system message; empty ones leave no trace."""
        parts = [replaced or BUILT_IN.format(workspace=self.workspace, role=role.name)]
        if role.source != "built-in" or not replaced:
            parts.append(role.body)
        parts += [self.conventions, self.memory, self.skill_block() if with_skills else ""]
        parts += [*hook_context, appended]
        return "\n\n".join(part for part in parts if part)

    def skill_block(self) -> str:
        if not self.skills:
            return ""
        lines = [f"- {skill.name}: {shortened(skill.description)}" for skill in self.skills.values()]
        return "\n".join(["<skills>", *lines, "</skills>"])


def shortened(description: str) -> str:
    return description if len(description) <= LONGEST_DESCRIPTION else description[:LONGEST_DESCRIPTION] + "…"
