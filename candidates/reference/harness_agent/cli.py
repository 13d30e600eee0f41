"""Contract 1, the command line: `./harness ARGS...` calls `main`."""

import signal
import sys
import time

from .errors import HarnessError, Interrupted, TimeLimit, UsageError
from .flags import CommandLine, check_conflicts
from .interrupts import deliver

STARTED = time.monotonic()
LONGEST_ALARM_S = 1e8  # three years; timers do not take every number


def main(argv: list[str]) -> int:
    """Run one command and return its exit code.

    `argv` is without the program name; data goes to stdout, all else to stderr.
    """
    use_utf8()
    try:
        catch_signals()
        return run(argv)
    except (HarnessError, TimeLimit, Interrupted) as error:
        report(str(error), getattr(error, "usage", ""))
        return error.exit_code
    except KeyboardInterrupt:
        report("interrupted")
        return Interrupted.exit_code
    except Exception as error:
        report(f"internal: {type(error).__name__}: {error}")
        return 1
    finally:
        end_commands()


def run(argv) -> int:
    line = CommandLine(argv)
    line.check()
    values = line.values
    if "help" in values or "version" in values:
        from . import commands

        topic = line.arguments[:1] if "help" in values else []
        return commands.print_help(topic) if "help" in values else commands.print_version()
    if line.arguments:
        from . import commands

        return commands.run(line)
    check_conflicts(values)
    if "print" in values:
        return headless(values)
    from .interactive import interact

    return interact(values)


def headless(values) -> int:
    from .headless import run_headless
    from .output import HeadlessFront
    from .types import Options, Result

    front = HeadlessFront("quiet" in values, "verbose" in values)
    front.format = values.get("output-format", "text")
    try:
        if "timeout-s" in values:
            start_alarm(values["timeout-s"])
        prompt = full_prompt(values["print"])
        if not prompt.strip():
            raise UsageError("empty prompt")
        result = run_headless(prompt, Options(flags=values, front=front))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except (TimeLimit, Interrupted) as error:
        result = Result(exit_code=error.exit_code, error=str(error))
    if result.exit_code == UsageError.exit_code and not result.session_id:
        raise UsageError(result.error)
    front.finish(result)
    return result.exit_code


def full_prompt(typed: str) -> str:
    """The prompt of `-p`, with what is piped in."""
    if typed == "-":
        return read_stdin().rstrip("\r\n")
    if sys.stdin is None or sys.stdin.isatty():
        return typed
    piped = read_stdin()
    return f"{typed}\n\n" + piped.rstrip("\r\n") if piped.strip() else typed


def read_stdin() -> str:
    if sys.stdin is None:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def use_utf8():
    """Make the standard streams UTF-8, whatever the locale."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def catch_signals():
    """Turn the signals that end a run into exceptions."""

    def interrupted(number, frame):
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        deliver(Interrupted("interrupted"))

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)


def start_alarm(text: str):
    """Let TimeLimit be raised when the time of the whole run is over."""

    def over(number, frame):
        deliver(TimeLimit(f"time limit of {text} s reached"))

    signal.signal(signal.SIGALRM, over)
    left_s = float(text) - (time.monotonic() - STARTED)
    signal.setitimer(signal.ITIMER_REAL, min(max(left_s, 0.001), LONGEST_ALARM_S))


def report(message: str, usage=""):
    from .front import Front

    Front().error(message)
    if usage:
        Front().note(usage)


def end_commands():
    """Kill what commands of the model left behind."""
    processes = sys.modules.get(f"{__package__}.processes")
    if processes:
        processes.kill_everything()
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        from .output import drop_stdout

        drop_stdout()
