"""Contract 1, the command line: `./harness ARGS...` calls `main`."""


def main(argv: list[str]) -> int:
    """Run one command and return its exit code.

    `argv` is without the program name; data goes to stdout, all else to stderr.
    """
    raise NotImplementedError
