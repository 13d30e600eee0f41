"""One conversation of a process: its session, settings, rules and roots, and what a prompt does to it."""

import os

from . import compaction, extensions, store
from .context import ToolContext
from .conventions import read_ignore_rules
from .errors import HarnessError, PromptBlocked, SettingsError, UsageError
from .front import Front
from .hooks import Blocked, Hooks, context_block
from .loop import Agent
from .model import ChatModel
from .paths import Roots, find_workspace
from .permissions import Policy
from .prompt import TurnContext
from .session import Session
from .settings import Settings, home_directory
from .transport import split_url
from .types import Message, Options, Result


class ProcessState:
    """What all conversations of a process share."""

    def __init__(self):
        self.usage = {"requests": 0, "input_tokens": 0, "output_tokens": 0}
        self.hook_context = {}  # session id -> what session_start hooks printed
        self._jobs = None

    def jobs(self):
        if self._jobs is None:
            from .tools.shell import Jobs

            self._jobs = Jobs()
        return self._jobs


class Conversation:
    """Handles prompts one after the other; `prepare` says under which options."""

    def __init__(self, options: Options, front: Front, process=None):
        self.front = front
        self.process = process or ProcessState()
        self.usage = self.process.usage
        self.home = home_directory()
        self.flags = self.in_force = dict(options.flags)
        self.run_flags = {}
        self.workspace = find_workspace(options)
        self.session = None
        self.outcome = Result()
        self.chosen_mode = None  # by /mode or Shift-Tab
        self.chosen_model = None  # by /model
        self.chosen_dirs = []  # by /add-dir
        self.policy = None
        self.is_leaving = False  # after /exit

    def follow(self, other):
        """Take over what was chosen in a conversation that this one replaces."""
        self.chosen_mode, self.chosen_model = other.chosen_mode, other.chosen_model
        self.chosen_dirs = list(other.chosen_dirs)

    # Start.

    def prepare(self, run_flags=None):
        """Read settings and apply flags; `run_flags` are those of one run of the evaluation API."""
        self.run_flags = run_flags or {}
        flags = {**self.flags, **self.run_flags}
        for name in ("allow", "deny", "add-dir"):
            flags[name] = self.flags.get(name, []) + self.run_flags.get(name, [])
        self.in_force = flags
        self.check_flags()
        self._load_settings(flags)
        self._set_up_roots(flags)
        self._set_up_policy(flags)
        self._set_up_model()
        self.hooks = Hooks(self.settings["hooks"], self.workspace, self.shell_env, self.front.warn)
        self.ignore_rules = read_ignore_rules(self.workspace)

    def check_flags(self):
        """Refuse directories and roles that do not exist."""
        if not os.path.isdir(self.workspace):
            raise UsageError(f"--cwd: no such directory: {self.workspace}")
        for name in self.in_force.get("add-dir", []):
            if not os.path.isdir(os.path.join(self.workspace, name)):
                raise UsageError(f"--add-dir: no such directory: {name}")
        self.roles = self.find_roles()
        name = self.in_force.get("agent", "build")
        if name not in self.roles:
            raise self._unknown_role(name)

    def _unknown_role(self, name) -> UsageError:
        return UsageError(f"--agent: unknown role {name}; known roles: {', '.join(self.roles)}")

    def _load_settings(self, flags):
        self.settings = settings = Settings.load(self.workspace, flags.get("settings", ""))
        for warning in settings.warnings:
            self.front.warn(warning)
        for kind in ("deny", "allow"):
            for rule in flags[kind]:
                settings.add_rule(kind, rule, "flag")
        for flag, key in (("stream", "stream"), ("max-turns", "max_turns"), ("permission-mode", "permission_mode")):
            if flag in flags:
                settings.set(key, flags[flag], "flag")
        if "no-memory" in flags:
            settings.set("memory", False, "flag")

    def _set_up_roots(self, flags):
        self.roots = Roots(self.workspace, flags["add-dir"] + self.chosen_dirs)
        for name in self.settings["add_dirs"]:
            if os.path.isdir(self.roots.real(name)):
                self.roots.add(name)
            else:
                self.front.warn(f"add_dirs: no such directory: {name}")

    def _set_up_policy(self, flags):
        mode = self.settings["permission_mode"]
        if self.chosen_mode and "permission-mode" not in self.run_flags:
            mode = self.chosen_mode
        approved = self.policy.approved if self.policy else set()
        role = self.roles[flags.get("agent", "build")]
        self.policy = Policy(self.settings.rules, mode, role, self.roots)
        self.policy.approved = approved

    def _set_up_model(self):
        base_url = os.environ.get("HARNESS_BASE_URL", "")
        self.model = None
        try:
            split_url(base_url)
        except ValueError:
            return
        self.model = ChatModel(base_url, os.environ.get("HARNESS_API_KEY", ""), self.settings, self)
        self.model.usage = self.usage

    def choose_session(self):
        """Start or resume the session that the flags ask for."""
        flags = self.in_force
        saving = "no-save" not in flags
        chosen_id = flags.get("session-id", "")
        if chosen_id and os.path.lexists(store.session_path(chosen_id)):
            raise UsageError(f"session exists: {chosen_id}")
        if "continue" in flags:
            self.resume(store.newest(self.workspace), "fork" in flags, chosen_id)
        elif "resume" in flags:
            self.resume(flags["resume"], "fork" in flags, chosen_id)
        else:
            self._enter(store.new_session(self.workspace, self.model_name, saving, chosen_id))

    # Sessions.

    def is_saving(self) -> bool:
        return "no-save" not in self.in_force

    def resume(self, session_id, fork=False, chosen_id=""):
        """Move to a stored session, or to a copy of it."""
        loaded = store.load(session_id)
        for warning in loaded.warnings:
            self.front.warn(warning)
        if loaded.cwd != self.workspace:
            self.front.warn(f"session {session_id} belongs to {loaded.cwd}")
        self.chosen_model = None
        if fork:
            self._enter_fork(loaded, chosen_id)
            return
        loaded.saving = self.is_saving()
        self._enter(loaded)
        loaded.answer_open_calls()

    def fork(self):
        self._enter_fork(self.session, "")

    def _enter_fork(self, source, chosen_id):
        self._enter(store.fork(source, self.workspace, lambda: self.model_name(source), self.is_saving(), chosen_id))
        self.session.answer_open_calls()

    def start_new(self):
        """Leave the session for a new one, whose file is made at once."""
        self._enter(store.new_session(self.workspace, self.model_name, self.is_saving()))
        self.session.make_file()

    def _enter(self, session):
        from .changes import ChangeLog

        if self.session is not None and session.id != self.session.id:
            self.policy.approved = set()
        self.session = session
        self.outcome.session_id = session.id
        self.changes = ChangeLog(store.checkpoint_directory(session.id), session)

    # What counts at the moment.

    def model_name(self, session=None) -> str:
        """The model of the next request; empty when nothing names one."""
        session = session or self.session
        if "model" in self.run_flags:
            return self.run_flags["model"]
        stored = session.model_choice if session else None
        role_model = self.policy.role.model
        return self.chosen_model or self.flags.get("model") or stored or role_model or self.settings["model"]

    def effective_mode(self) -> str:
        return self.policy.effective_mode()

    def set_mode(self, mode):
        self.chosen_mode = mode
        self.policy.mode = mode

    def set_model(self, name):
        self.chosen_model = name
        self.session.set_model(name)

    def add_directory(self, path) -> str:
        real = self.roots.add(path)
        self.chosen_dirs.append(real)
        return real

    def offered_tools(self) -> list[str]:
        return Agent(ToolContext(self, self.session), self.policy, "", "", 1).offered()

    def shell_env(self) -> dict:
        """The environment of commands and hooks."""
        inherited = {name: value for name, value in os.environ.items() if name != "HARNESS_API_KEY"}
        return {**inherited, **self.settings["env"]}

    def find_roles(self) -> dict:
        return extensions.find_roles(self.workspace, self.home, self.front.warn_once)

    def find_skills(self, warn=None) -> dict:
        return extensions.find_skills(self.workspace, self.home, warn or (lambda text: None))

    def find_commands(self, warn=None) -> dict:
        from .slash import COMMANDS

        return extensions.find_commands(self.workspace, self.home, COMMANDS, warn or (lambda text: None))

    # Prompts.

    def run(self, prompt: str) -> Result:
        """Handle one prompt, whatever it is; only an interruption is raised, with `outcome` up to date."""
        outcome = self.outcome = Result(session_id=self.session.id)
        before = dict(self.usage)
        try:
            outcome.text = self._handle(prompt)
        except HarnessError as error:
            outcome.exit_code, outcome.error = error.exit_code, str(error)
        except Exception as error:
            outcome.exit_code, outcome.error = 1, internal(error)
        finally:
            outcome.session_id = self.session.id
            outcome.usage = {key: count - before[key] for key, count in self.usage.items()}
            self.front.warned.clear()
        return outcome

    def _handle(self, prompt) -> str:
        from . import slash

        if prompt.startswith("!"):
            return slash.shell_line(self, prompt[1:])
        if prompt.startswith("//"):
            return self.run_turn(prompt[1:])
        if prompt.startswith("/"):
            return slash.run(self, prompt)
        return self.run_turn(prompt)

    def require_address(self):
        """Refuse to go on when it is not known where the model is."""
        if self.model is None:
            value = os.environ.get("HARNESS_BASE_URL", "")
            raise SettingsError(f"HARNESS_BASE_URL is {'not an http address: ' + value if value else 'not set'}")

    def require_model(self):
        """Refuse a prompt for the model when there is no address or no name."""
        self.require_address()
        if not self.model_name():
            raise SettingsError("no model: use --model, HARNESS_MODEL or the setting model")

    def run_turn(self, prompt: str) -> str:
        """One turn of the model; return its answer."""
        from .attachments import attach

        self.require_model()
        turn = self.begin_turn()
        text, read_files = attach(self, prompt)
        text = self._prompt_hooks(text)
        system_text = self.system_text(turn)
        self.session.append(Message("user", text))
        for real, digest in read_files.items():
            self.session.saw(real, digest)
        context = ToolContext(self, self.session)
        agent = Agent(context, self.policy, system_text, self.model_name(), self.settings["max_turns"])
        return agent.run()

    def begin_turn(self):
        """Read the files that shape a turn; return what the system message is made of."""
        self.ignore_rules = read_ignore_rules(self.workspace)
        self.roles = self.find_roles()
        role_name = self.policy.role.name
        if role_name not in self.roles:
            raise self._unknown_role(role_name)
        self.policy.roles[0] = self.roles[role_name]
        ignores = ToolContext(self, self.session).ignores
        use_conventions = "no-conventions" not in self.in_force
        skills = self.find_skills(self.front.warn_once)
        self.turn = TurnContext(
            self.roots, self.home, self.settings, use_conventions, skills, ignores, self.front.warn
        )
        return self.turn

    def system_text(self, turn) -> str:
        flags = self.in_force
        return turn.system_text(
            self.policy.role,
            "skill" in self.offered_tools(),
            flags.get("system-prompt", ""),
            self.process.hook_context.get(self.session.id, ()),
            flags.get("append-system-prompt", ""),
        )

    def _prompt_hooks(self, text) -> str:
        """Run the hooks before a prompt; return it with what they added."""
        session_id, started = self.session.id, self.process.hook_context
        try:
            if session_id not in started:
                source = "resumed" if self.session.messages else "new"
                printed = self.hooks.run("session_start", session_id, source=source)
                started[session_id] = [context_block("session_start", part) for part in printed]
            printed = self.hooks.run("user_prompt", session_id, prompt=text)
        except Blocked as blocked:
            raise PromptBlocked(f"blocked by a hook: {blocked}") from None
        return "\n\n".join([text, *(context_block("user_prompt", part) for part in printed)])

    def compact(self, trigger, instructions, system: Message, model_name) -> int:
        """Replace the conversation by a summary; return how many messages it had."""
        self.hooks.run("before_compact", self.session.id, trigger=trigger)
        n_messages = len(self.session.messages)
        summary = compaction.summarize(self.model, model_name, system, self.session.messages, instructions)
        self.session.compact(trigger, summary)
        self.front.event({"type": "compact", "trigger": trigger, "summary": summary})
        return n_messages

    def run_sub_agent(self, caller: ToolContext, role, prompt, most_rounds) -> str:
        """Run a sub-agent to its end and return its final text."""
        policy = self.policy.for_role(role or self.policy.role)
        session = Session("", "", self.workspace, saving=False)
        session.append(Message("user", prompt))
        context = ToolContext(self, session)
        model_name = policy.role.model or self.model_name()
        agent = Agent(context, policy, "", model_name, most_rounds, is_sub_agent=True)
        agent.system.content = self.turn.system_text(policy.role, "skill" in agent.offered())
        return agent.run()

    # What the model client reports.

    def requesting(self, number):
        self.front.verbose(f"request {number}")

    def retrying(self, attempt, wait_s, reason):
        self.front.event({"type": "retry", "attempt": attempt, "wait_s": wait_s, "reason": reason})


def internal(error: Exception) -> str:
    return f"internal: {type(error).__name__}: {error}"
