"""Contract 1, the command line: `./harness ARGS...` calls `main`."""

import os
import sys

sys.dont_write_bytecode = True

from . import shell, signals  # noqa: E402
from .base import VERSION, Console, HarnessError, Stop  # noqa: E402


def _arguments(argv):
    """Arguments as UTF-8, whatever the locale."""
    out = []
    for arg in argv:
        try:
            out.append(os.fsencode(arg).decode("utf-8", "surrogateescape"))
        except UnicodeError:
            out.append(arg)
    return out


def _utf8_names():
    """File names are UTF-8 too: begin again in the mode for that, once."""
    if sys.getfilesystemencoding().lower() in ("utf-8", "utf8") or sys.flags.utf8_mode:
        return
    if os.path.basename(sys.argv[0]) == "harness" and os.path.exists(sys.argv[0]):
        os.execv(sys.executable, [sys.executable, "-X", "utf8"] + sys.argv)


def main(argv: list[str]) -> int:
    """Run one command and return its exit code.

    `argv` is without the program name; data goes to stdout, all else to stderr.
    """
    _utf8_names()
    signals.install()
    try:
        return _main(_arguments(argv))
    except HarnessError as error:
        Console.error(error.message)
        if getattr(error, "usage", None):
            Console.err(error.usage + "\n")
        return error.code
    except Stop as stop:
        Console.error(stop.message)
        return stop.code
    except RecursionError:
        Console.error("internal: too deeply nested")
        return 1
    except Exception as error:
        Console.error(f"internal: {type(error).__name__}: {error}")
        return 1
    finally:
        signals.quiet()
        shell.kill_all()


def _main(argv):
    from . import commands, flags as reading

    line = reading.read(argv)
    flags, words = line.flags, line.words
    Console.level = "quiet" if "quiet" in flags else "verbose" if "verbose" in flags else "normal"
    if "help" in flags:
        name = words[0] if words and words[0] in reading.NAMES else None
        Console.out((commands.topic(name) if name else commands.overview()) + "\n")
        return 0
    if "version" in flags:
        Console.out(f"harness {VERSION}\n")
        return 0
    if line.mistakes:
        raise line.mistakes[0]
    if words:
        return commands.run(words, flags)
    reading.conflicts(flags)
    cwd = reading.workspace(flags)
    reading.check_places(flags, cwd)
    if "timeout-s" in flags:
        signals.time_limit(flags["timeout-s"])
    if "print" in flags:
        from . import headless
        return headless.main(flags, cwd)
    from . import interactive
    return interactive.main(flags, cwd)
