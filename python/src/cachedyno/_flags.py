"""Arguments of the program: keyword arguments become flags, and passwords leave the command line.

No flag is named here, so a new flag of the program needs no change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import cast
from urllib.parse import unquote, unquote_plus

from cachedyno._fleet import Fleet

_PRODUCTS = {
    "memcached": "memcached",
    "memcacheds": "memcached",
    "mysql": "mysql",
    "postgres": "postgres",
    "postgresql": "postgres",
    "redis": "redis",
    "rediss": "redis",
}
"""Names of targets given as a bare URL, by the scheme up to a `+`."""
_RESERVED = {"format", "quiet", "details"}
"""Flags that determine the output, which this package reads."""


def to_arguments(flags: Mapping[str, object]) -> list[str]:
    """Return the flags for keyword arguments.

    `allow_shared=True` becomes `--allow-shared`, `rate="20k"` becomes `--rate 20k`, a list repeats
    its flag, a mapping repeats it with `KEY=VALUE`, and None or False leaves the flag out.
    """
    arguments: list[str] = []
    for name, value in flags.items():
        if name in _RESERVED:
            raise TypeError(f"`{name}` cannot be set, as it determines the output to read")
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
            continue
        for text in _values(name, value):
            # A text that starts with `-` would be read as a flag.
            arguments += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    return arguments


def _values(name: str, value: object) -> Iterable[str]:
    if value is None or value is False:
        return
    if isinstance(value, Mapping):
        for key, one in cast("Mapping[object, object]", value).items():
            yield f"{key}={_text(name, one)}"
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes | os.PathLike):
        for one in cast("Iterable[object]", value):
            yield _text(name, one)
    else:
        yield _text(name, value)


def _text(name: str, value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str | Fleet):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(cast("os.PathLike[str]", value))
    kind = type(value).__name__
    raise TypeError(f"`{name}` has a value of type {kind} (expected the text that the flag takes)")


def hide_passwords(arguments: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Split arguments into those without passwords of URLs, and variables with the passwords.

    The program reads the password of the target NAME from the variable CACHEDYNO_PASSWORD_NAME,
    and gives it to none of the servers that it starts.
    """
    cleaned: list[str] = []
    variables: dict[str, str] = {}
    for argument in arguments:
        prefix = "--target=" if argument.startswith("--target=") else ""
        target, name, password = _split(argument[len(prefix) :])
        cleaned.append(prefix + target)
        if password:
            variables["CACHEDYNO_PASSWORD_" + re.sub("[^A-Z0-9]", "_", name.upper())] = password
    return cleaned, variables


def _split(target: str) -> tuple[str, str, str]:
    """Split `[NAME=]URL` into that without its password, the target's name, and the password.

    The password is empty if there is none, or if the text is no URL of a store.
    """
    scheme, mark, rest = target.partition("://")
    name, equals, scheme = scheme.rpartition("=")
    product = _PRODUCTS.get(scheme.split("+")[0])
    if not mark or product is None:
        return target, "", ""
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority, tail = rest[:end], rest[end:]
    login, at, hosts = authority.rpartition("@")
    user, _, password = login.partition(":")
    if password:
        authority = user + at + hosts if user else hosts
    path, _, query = tail.partition("?")
    pairs = query.split("&") if query else []
    kept = [pair for pair in pairs if unquote_plus(pair.partition("=")[0]) != "password"]
    if len(kept) < len(pairs):
        given = next(pair for pair in pairs if pair not in kept)
        password = unquote_plus(given.partition("=")[2])
        tail = path + ("?" + "&".join(kept) if kept else "")
    else:
        password = unquote(password)
    if not password:
        return target, "", ""
    return f"{name}{equals}{scheme}://{authority}{tail}", name or product, password
