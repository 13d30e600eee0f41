"""`harness config`: settings as they count, and changes of one key in one file."""

import json
import os

from .errors import SettingsError, UsageError
from .permissions import LISTS, Rule
from .settings import DEFAULTS, Settings, check_value, places, read_object
from .texts import from_json
from .tools import NAMES as TOOL_NAMES
from .tools.files import replace_file

STRING_KEYS = ("model", "permission_mode", "output_format")


def load(setting) -> Settings:
    settings = Settings.load(setting.workspace, setting.values.get("settings", ""))
    for warning in settings.warnings:
        setting.front.warn(warning)
    return settings


def rows(settings) -> list:
    """Key, value and source of every key, sorted."""
    found = []
    for key in DEFAULTS:
        if key == "permissions":
            found += [(f"permissions.{kind}", *rule_list(settings, kind)) for kind in LISTS]
        else:
            value = settings[key] if key != "model" or settings[key] else None
            found.append((key, value, settings.sources.get(key, "default")))
    return sorted(found)


def rule_list(settings, kind):
    return [rule.text for rule in settings.rules[kind]], settings.sources.get(f"permissions.{kind}", "default")


def get(settings, key):
    """The value of one key; raise UsageError when there is no such key."""
    if key == "permissions":
        return {kind: rule_list(settings, kind)[0] for kind in LISTS}
    if key.startswith("env.") and len(key) > 4:
        return settings["env"].get(key[4:])
    for name, value, _ in rows(settings):
        if name == key:
            return value
    raise UsageError(f"unknown key: {key}")


def set_value(workspace, level, key, text) -> str:
    """Write one key into the file of a level and return its path."""
    value = parse(key, text)
    path = places(workspace)[level]
    content = read_object(path)
    outer, _, inner = key.partition(".")
    if not inner:
        content[outer] = value
    elif isinstance(content.setdefault(outer, {}), dict):
        content[outer][inner] = value
    else:
        raise SettingsError(f"{path}: {outer} is not an object")
    replace_file(os.path.realpath(path), (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))
    return path


def parse(key, text):
    """Read the value for a key; raise UsageError when key or value is not valid."""
    outer, _, inner = key.partition(".")
    is_known = (outer == "env" or outer == "permissions" and inner in LISTS) if inner else outer == key
    if outer not in DEFAULTS or not is_known:
        raise UsageError(f"unknown key: {key}")
    try:
        value = text if key in STRING_KEYS or inner and outer == "env" else from_json(text)
        whole = {inner: value} if inner else value
        check_value(outer, whole)
        check_rules(whole if outer == "permissions" else {})
    except ValueError as error:
        raise UsageError(f'invalid value "{text}" for {key}: {error}') from None
    return value


def check_rules(permissions):
    for kind, rules in permissions.items():
        if kind not in LISTS:
            raise ValueError(f"unknown key permissions.{kind}")
        for rule in rules:
            Rule(rule, "", TOOL_NAMES)
