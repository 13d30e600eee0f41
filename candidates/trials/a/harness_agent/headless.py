"""Contract 2, the headless entry: `./harness -p PROMPT` ends here."""

import os

from . import store
from .config import Config, normal_flags
from .core import Core
from .insession import Leave, needs_model
from .model import base_url
from .runner import failed, fill, run_line, start_events
from .types import Options, Result
from .util import Console, HarnessError, Interrupted, TimeLimit


def choose_session(core: Core, flags: dict) -> store.Session:
    """The session of a start: new, resumed, or a copy."""
    home, workspace = core.home, core.workspace
    id = flags.get("resume", "")
    if flags.get("continue"):
        found = store.stored(home, workspace)
        if not found:
            raise HarnessError(6, f"no session in {workspace}")
        id = found[0].id
    if not id:
        return core.new_session(flags.get("session-id", ""))
    if not flags.get("fork"):
        return core.resumed(id)
    source = store.resume(home, id, workspace, core.console, saving=False, repair=False)
    if not core.config.saving:
        store.settle(source)
    copy = core.forked(source, flags.get("session-id", ""))
    return copy


def check_session_id(config: Config) -> None:
    id = config.flags.get("session-id", "")
    if id and os.path.lexists(store.session_path(config.home, id)):
        raise HarnessError(2, f"session exists: {id}")


def run_headless(prompt: str, options: Options) -> Result:
    """Answer one prompt without asking anybody; never raise, report in the result."""
    console = Console()
    core = None
    flags = {}
    chosen = False
    try:
        flags = normal_flags(options.flags)
        console = Console(bool(flags.get("quiet")), bool(flags.get("verbose")))
        if not prompt.strip():
            raise HarnessError(2, "empty prompt")
        config = Config(flags, options.cwd, console)
        check_session_id(config)
        config.load_settings()
        for_model = needs_model(config.library, prompt)
        if for_model:
            base_url()
        core = Core(config, console)
        core.session = choose_session(core, flags)
        if for_model:
            core.need_model()
        chosen = True
        if options.emit:
            core.emit = options.emit
            start_events(core, prompt)
        try:
            return run_line(core, prompt)
        except Leave:
            return fill(Result(), core)
    except HarnessError as e:
        return failed(e.code, e.message)
    except Interrupted:
        result = failed(130, "interrupted")
    except TimeLimit:
        result = failed(124, f"time limit of {flags.get('timeout-s', '')} s reached")
    except OSError as e:
        result = failed(1, f"internal: {e}")
    except Exception as e:
        result = failed(1, f"internal: {type(e).__name__}: {e}")
    return fill(result, core) if chosen else result
