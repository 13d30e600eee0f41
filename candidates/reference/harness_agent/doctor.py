"""`harness doctor`: checks what a run needs."""

import os

from .errors import SettingsError
from .settings import Settings, home_directory, places, read_file
from .transport import split_url


def checks(workspace, extra_file, warn) -> list:
    """Pairs of check and reason; the reason is empty when all is well."""
    return [
        ("base-url", base_url()),
        ("model", model(workspace, extra_file)),
        ("state-directory", state_directory()),
        *((f"settings-{level}", settings_file(path, warn)) for level, path in places(workspace).items()),
    ]


def base_url() -> str:
    value = os.environ.get("HARNESS_BASE_URL", "")
    if not value:
        return "HARNESS_BASE_URL is not set"
    try:
        split_url(value)
    except ValueError:
        return "HARNESS_BASE_URL is not an http address"
    return ""


def model(workspace, extra_file) -> str:
    """Whether some level names a model; levels that are broken name none."""
    if os.environ.get("HARNESS_MODEL"):
        return ""
    paths = list(places(workspace).values())
    if extra_file:
        paths.append(os.path.join(workspace, extra_file))
    for path in paths:
        try:
            if "model" in read_file(path)[0]:
                return ""
        except SettingsError:
            continue
    return "no level names a model"


def state_directory() -> str:
    folder = home_directory()
    if os.path.lexists(folder) and not os.path.isdir(folder):
        return f"{folder} is no directory"
    parent = folder
    while not os.path.isdir(parent):
        if os.path.lexists(parent):
            return f"{parent} is no directory"
        parent = os.path.dirname(parent)
    return "" if os.access(parent, os.W_OK | os.X_OK) else f"{parent} cannot be written"


def settings_file(path, warn) -> str:
    settings = Settings()
    try:
        settings.add_file("", path, must_exist=False)
    except SettingsError as error:
        return str(error)
    for warning in settings.warnings:
        warn(warning)
    return ""
