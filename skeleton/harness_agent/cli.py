"""Contract 1, the command line: `./harness ARGS...` calls `main`."""


def main(argv: list[str]) -> int:
    """Run one command (`argv` without the program name); return the exit code."""
    raise NotImplementedError
