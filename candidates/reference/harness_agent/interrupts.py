"""Signals that end a run or a turn, as exceptions that wait while something must not be torn apart.

A command that was started and is not yet known could not be killed, and a message that is in memory
and not in the file would make the two differ.
"""

from contextlib import contextmanager

_depth = 0
_waiting = None


def deliver(error: BaseException):
    """Raise an exception now, or at the end of the region that holds it back. Called by signal handlers."""
    global _waiting
    if _depth:
        _waiting = error
    else:
        raise error


@contextmanager
def held():
    """A short region that no signal interrupts."""
    global _depth, _waiting
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0 and _waiting is not None:
            error, _waiting = _waiting, None
            raise error
