from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cachedyno
from cachedyno._flags import hide_passwords, to_arguments
from conftest import Fake


def test_keyword_arguments_become_flags() -> None:
    given: dict[str, object] = {
        "allow_shared": True,
        "no_fill": False,
        "rate": "20k",
        "clients": 50,
        "hit_ratio": 0.5,
        "keys": 1e6,
        "seed": None,
        "disk": Path("/mnt/a"),
        "slo": ["p99<1ms", "error<1%"],
        "set": {"profile": "page", "redis.io-threads": 4},
        "a_new_flag": "10s",
        "key_prefix": "-x",
    }
    assert to_arguments(given) == [
        "--allow-shared",
        *("--rate", "20k"),
        *("--clients", "50"),
        *("--hit-ratio", "0.5"),
        *("--keys", "1000000"),
        *("--disk", "/mnt/a"),
        *("--slo", "p99<1ms", "--slo", "error<1%"),
        *("--set", "profile=page", "--set", "redis.io-threads=4"),
        *("--a-new-flag", "10s"),
        "--key-prefix=-x",
    ]


@pytest.mark.parametrize(
    "flags", [{"format": "text"}, {"quiet": True}, {"rate": object()}, {"set": {"a": True}}]
)
def test_values_without_a_text_are_refused(flags: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=next(iter(flags))):
        to_arguments(flags)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: cachedyno.run("sessions", scale="quick", targets=["redis"], set={"a": 1}),
            "run sessions --target redis --set a=1 --scale quick",
        ),
        (lambda: cachedyno.run(None, resume="0123"), "run --resume 0123"),
        (lambda: cachedyno.run("ramp", targets="redis"), "run ramp --target redis"),
        (
            lambda: cachedyno.bench("redis", "memcached", rate="20k", args=["--even"]),
            "bench redis memcached --rate 20k --even",
        ),
        (
            lambda: cachedyno.bench("redis", fleet=cachedyno.fleet("ray", workers=8)),
            "bench redis --fleet ray:8",
        ),
        (
            lambda: cachedyno.find_max("redis", slo="p99<1ms", out="cachedyno-records"),
            "find-max redis --out cachedyno-records --slo p99<1ms",
        ),
    ],
)
def test_functions_start_their_commands(fake: Fake, call: Any, expected: str) -> None:
    call()
    assert fake.arguments == [*expected.split(), "--format", "json"]


def test_fleets_have_the_syntax_of_their_flag() -> None:
    listen = cachedyno.fleet("listen", address="0.0.0.0:7000", workers=8)
    assert str(listen) == "listen:0.0.0.0:7000,8"
    assert str(cachedyno.fleet("local", workers=3)) == "local:3"
    assert to_arguments({"fleet": cachedyno.fleet("ray", workers=8)}) == ["--fleet", "ray:8"]
    with pytest.raises(AttributeError):
        listen.workers = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "workers", "address"),
    [
        ("local", 0, None),
        ("local", "2", None),
        ("local", True, None),
        ("ray", 1, "h:1"),
        ("listen", 1, None),
        ("listen", 1, "127.0.0.1"),
        ("slurm", 1, None),
    ],
)
def test_wrong_fleets_are_refused(kind: Any, workers: Any, address: str | None) -> None:
    with pytest.raises(ValueError, match="fleet"):
        cachedyno.fleet(kind, workers=workers, address=address)


@pytest.mark.parametrize(
    ("given", "cleaned", "name", "password"),
    [
        ("redis://:hush@h:1/2", "redis://h:1/2", "REDIS", "hush"),
        ("rediss+cluster://me:a:b@h:1", "rediss+cluster://me@h:1", "REDIS", "a:b"),
        ("shop=mysql://me:a%40b@h/db", "shop=mysql://me@h/db", "SHOP", "a@b"),
        ("mc=memcached://me:a%2Cb@h:1,h:2", "mc=memcached://me@h:1,h:2", "MC", "a,b"),
        ("postgresql://me:x@h/d?a=b", "postgresql://me@h/d?a=b", "POSTGRES", "x"),
        (
            "my-db=mysql+unix:///s?password=x%26&database=d",
            "my-db=mysql+unix:///s?database=d",
            "MY_DB",
            "x&",
        ),
        ("mysql+unix:///s?password=x", "mysql+unix:///s", "MYSQL", "x"),
        ("--target=a:redis=redis://:p@h", "--target=a:redis=redis://h", "A_REDIS", "p"),
    ],
)
def test_passwords_leave_the_command_line(
    given: str, cleaned: str, name: str, password: str
) -> None:
    arguments = (["bench", cleaned], {f"CACHEDYNO_PASSWORD_{name}": password})
    assert hide_passwords(["bench", given]) == arguments


@pytest.mark.parametrize(
    "argument",
    ["run", "redis", "a=redis://h", "redis://me@h", "file:///a:b@c", "--set", "a=b", "x=/mnt/a"],
)
def test_other_arguments_stay_as_they_are(argument: str) -> None:
    assert hide_passwords([argument]) == ([argument], {})
