"""Ways a run ends other than by an answer, and the exit code of each."""

OK = 0
INTERNAL = 1


class HarnessError(Exception):
    """Ends the run; the text goes to stderr and into the result's `error`."""

    exit_code = INTERNAL


class UsageError(HarnessError):
    exit_code = 2
    usage = ""  # a further line that says how a command is called


class SettingsError(HarnessError):
    exit_code = 3


class ModelError(HarnessError):
    exit_code = 4


class ContextOverflow(ModelError):
    """The model refused the request because it is too long."""


class TurnLimit(HarnessError):
    exit_code = 5


class SessionNotFound(HarnessError):
    exit_code = 6


class PromptBlocked(HarnessError):
    exit_code = 7


class TimeLimit(BaseException):
    """Raised by the alarm signal, so no `except Exception` may swallow it."""

    exit_code = 124


class Interrupted(BaseException):
    exit_code = 130


class ToolError(Exception):
    """The call failed; the text becomes the result, after `error: `."""
