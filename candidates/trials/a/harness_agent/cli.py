"""Contract 1, the command line: `./harness ARGS...` calls `main`."""

import os
import signal
import sys

from . import api, commands, interactive
from .config import Config
from .flags import ONLY_COMMANDS, conflicts, parse
from .headless import run_headless
from .proc import kill_all
from .runner import failed, result_object
from .types import Options
from .util import Console, HarnessError, Interrupted, TimeLimit, clean, compact, encode, ensure_standard_fds, write_fd


def main(argv: list[str]) -> int:
    """Run one command and return its exit code.

    `argv` is without the program name; data goes to stdout, all else to stderr.
    """
    ensure_standard_fds()
    if sys.getfilesystemencoding().lower() != "utf-8" and argv == sys.argv[1:]:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", sys.argv[0], *argv])
    console = Console()
    catch_signals()
    try:
        return _main([_utf8(a) for a in argv], console)
    except HarnessError as e:
        console.error(e.message, e.note)
        return e.code
    except Interrupted:
        console.error("interrupted")
        return 130
    except OSError as e:
        console.error(f"internal: {e}")
        return 1
    except Exception as e:  # no traceback is printed
        console.error(f"internal: {type(e).__name__}: {e}")
        return 1
    finally:
        ignore_signals()
        kill_all()


def _utf8(arg: str) -> str:
    return os.fsencode(arg).decode("utf-8", "surrogateescape")


def catch_signals() -> None:
    def stop(*_):
        ignore_signals()
        raise Interrupted

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        try:
            signal.signal(number, stop)
        except ValueError:  # not the main thread
            return


def ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        try:
            signal.signal(number, signal.SIG_IGN)
        except ValueError:
            return


def _print(text: str) -> None:
    write_fd(1, encode(text + "\n"))


def _main(argv: list[str], console: Console) -> int:
    line = parse(argv)
    flags = line.flags
    console.quiet, console.verbose = bool(flags.get("quiet")), bool(flags.get("verbose"))
    if flags.get("help"):
        name = line.words[0] if line.words else ""
        if name and name not in commands.COMMANDS:
            raise commands.unknown_command(name)
        _print(commands.topic(name) if name else commands.overview())
        return 0
    if flags.get("version"):
        _print(f"harness {commands.VERSION}")
        return 0
    if line.words:
        return _command(line.words, flags, console)
    for name in ONLY_COMMANDS:
        if name in flags:
            raise HarnessError(2, f"--{name} is not for a session; it needs a command")
    conflicts(flags)
    if "print" in flags:
        return _headless(flags, console)
    return interactive.start(flags, console)


def _command(words, flags, console) -> int:
    name = words[0]
    if name not in commands.COMMANDS:
        raise commands.unknown_command(name)
    if "print" in flags:
        raise HarnessError(2, f"--print is not for {name}: they cannot be combined")
    if flags.get("quiet") and flags.get("verbose"):
        conflicts({"quiet": True, "verbose": True})
    code, text = commands.run(words, flags, console) if name != "api" or len(words) > 1 else (0, "")
    if name == "api":
        return _api(flags, console)
    if text:
        _print(text)
    return code


def _api(flags, console) -> int:
    allowed = commands.API_FLAGS
    for flag in flags:
        if flag not in allowed:
            raise HarnessError(2, f"--{flag} is not for api")
    Config(flags, "", console)
    api.PROCESS = api.Process(flags, console)
    stdin, stdout = os.fdopen(0, "rb", closefd=False), os.fdopen(1, "wb", closefd=False)
    return api.serve(stdin, stdout)


def _headless(flags: dict, console: Console) -> int:
    def expired(*_):
        ignore_signals()
        raise TimeLimit

    format = flags.get("output-format")
    emitted = []

    def emit(event):
        emitted.append(event["type"])
        _print(compact(event))

    result = None
    try:
        if "timeout-s" in flags:
            signal.signal(signal.SIGALRM, expired)
            signal.setitimer(signal.ITIMER_REAL, float(flags["timeout-s"]))
        prompt = _prompt(flags.pop("print"))
        if not prompt.strip():
            raise HarnessError(2, "empty prompt")
        format = format or _format_setting(flags)
        options = Options(flags=flags, emit=emit if format == "stream-json" else None)
        result = run_headless(prompt, options)
    except Interrupted:
        result = failed(130, "interrupted")
    except TimeLimit:
        result = failed(124, f"time limit of {flags['timeout-s']} s reached")
    ignore_signals()
    kill_all()
    if result.exit_code:
        console.error(result.error)
    if format in ("json", "stream-json"):
        if not (result.exit_code == 2 and not result.session_id):
            _print(compact(result_object(result)))
    elif result.exit_code == 0:
        _print(result.text)
    return result.exit_code


def _format_setting(flags: dict) -> str:
    """The setting output_format; faults of the start are reported by the run itself."""
    quiet = Console(quiet=True)
    try:
        return Config(flags, "", quiet).load_settings().value("output_format")
    except HarnessError:
        return "text"


def _prompt(text: str) -> str:
    """The prompt of the command line with what was piped in."""
    text = clean(text)
    if text == "-":
        return _piped().rstrip("\r\n")
    if os.isatty(0):
        return text
    piped = _piped()
    return f"{text}\n\n{piped.rstrip(chr(13) + chr(10))}" if piped.strip() else text


def _piped() -> str:
    chunks = []
    while True:
        try:
            data = os.read(0, 65536)
        except OSError:
            data = b""
        if not data:
            return b"".join(chunks).decode("utf-8", "replace")
        chunks.append(data)
