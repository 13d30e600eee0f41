"""What a tool sees of the conversation that called it."""

import os

from .paths import is_within


class ToolContext:
    """The surroundings of one agent's tools; main conversation and sub-agents differ in the session."""

    def __init__(self, conversation, session):
        self.conversation = conversation
        self.session = session
        self.roots = conversation.roots
        self.settings = conversation.settings
        self.changes = conversation.changes
        self.front = conversation.front
        self.home = conversation.home
        self.ignore_rules = conversation.ignore_rules

    @property
    def jobs(self):
        return self.conversation.process.jobs()

    def shell_env(self) -> dict:
        return self.conversation.shell_env()

    def find_skills(self) -> dict:
        return self.conversation.find_skills()

    def find_roles(self) -> dict:
        return self.conversation.find_roles()

    def sub_agent(self, role, prompt, most_rounds) -> str:
        return self.conversation.run_sub_agent(self, role, prompt, most_rounds)

    # Paths that the model is not to see.

    def ignores(self, path: str) -> bool:
        """Tell whether `.harnessignore` covers a path, by its given or its real name."""
        names = {self.roots.given(path), self.roots.real(path)}
        return any(self._ignores_absolute(name, os.path.isdir(name)) for name in names)

    def hides(self, absolute: str, is_dir: bool) -> bool:
        """Tell whether a search passes over an entry that it found."""
        if not self.ignore_rules.rules:
            return False
        if self._ignores_absolute(absolute, is_dir):
            return True
        return os.path.islink(absolute) and self.ignores(absolute)

    def denies_reading(self, absolute: str) -> bool:
        return self.conversation.policy.rule_against_reading(absolute) is not None

    def _ignores_absolute(self, absolute, is_dir):
        workspace = self.roots.workspace
        if absolute == workspace or not is_within(absolute, workspace):
            return False
        return self.ignore_rules.matches(os.path.relpath(absolute, workspace), is_dir)
