from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import cachedyno
from conftest import SHORT, Fake

PASSWORD = "hush-hush"


@pytest.fixture
def server(redis: str, tmp_path: Path) -> Iterator[int]:
    """Return the port of a server that needs the password."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    configuration = (
        f"port {port}\nbind 127.0.0.1\nrequirepass {PASSWORD}\nsave ''\ndir {tmp_path}\n"
    )
    with subprocess.Popen(
        [redis, "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(configuration)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
        process.terminate()


def command_lines() -> str:
    paths = Path("/proc").glob("[0-9]*/cmdline")
    texts: list[str] = []
    for path in paths:
        try:
            texts.append(path.read_bytes().decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return "\n".join(texts)


def test_a_password_is_used_and_never_shown(program: str, server: int) -> None:
    del program
    seen: list[str] = []
    record = cachedyno.bench(
        f"redis://:{PASSWORD}@127.0.0.1:{server}/0",
        progress=lambda _: seen.append(command_lines()),
        **SHORT,
    )
    assert record.rows("results")[0]["ok"]
    assert any("cachedyno" in text for text in seen)
    assert not any(PASSWORD in text for text in seen)
    shown = [repr(record), record._repr_html_(), str(record.summary)]  # pyright: ignore[reportPrivateUsage]
    files = [path.read_bytes() for path in record.path.iterdir() if path.is_file()]
    assert PASSWORD not in "".join(shown)
    assert PASSWORD.encode() not in b"".join(files)


def test_a_wrong_password_is_not_in_the_exception(program: str, server: int) -> None:
    del program
    with pytest.raises(cachedyno.TargetError) as caught:
        cachedyno.bench(f"redis://:wrong-word@127.0.0.1:{server}/0", **SHORT)
    assert "wrong-word" not in f"{caught.value!r} {caught.value} {caught.value.__dict__}"


def test_an_error_that_repeats_a_password_is_masked(fake: Fake) -> None:
    fake.ends(3, error=f"error: login with `{PASSWORD}` failed\n")
    with pytest.raises(cachedyno.TargetError, match=r"login with `\*\*\*` failed"):
        cachedyno.bench(f"a=redis://:{PASSWORD}@h")
    assert fake.arguments[1] == "a=redis://h"
    assert f"CACHEDYNO_PASSWORD_A={PASSWORD}" in fake.environment
