"""Signals and the time limit of a run."""

import signal
import time

from .base import START, Stop, raise_stop

_turn = {"cancel": False}


class Cancelled(Stop):
    """Ctrl-C in a terminal while a turn runs."""


def _interrupted(number, frame):
    if number == signal.SIGINT and _turn["cancel"]:
        raise_stop(Cancelled(130, "interrupted"))
    else:
        raise_stop(Stop(130, "interrupted"))


def install():
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupted)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    except ValueError:  # not the main thread
        pass


def time_limit(text):
    def over(number, frame):
        raise_stop(Stop(124, f"time limit of {text} s is over"))

    left = min(float(text), 1e8) - (time.monotonic() - START)
    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))


def quiet():
    """The run is over: only its outcome is to be printed now."""
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    except ValueError:
        pass


def cancel_turns(on):
    _turn["cancel"] = on
