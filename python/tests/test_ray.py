from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachedyno import _ray
from conftest import Fake

WORKER = """#!/bin/sh
# Stands in for `cachedyno worker --join HOST:PORT --token-file FILE`.
printf '%s ' "$1 $2 $3 $4" $(stat -c %a "$5" "$(dirname "$5")") "$(cat "$5")" >> 'PLACE/log'
echo >> 'PLACE/log'
echo $$ >> 'PLACE/pids'
echo "warming up" >&2
case "$3" in
fails:*) echo "error: bad" >&2; exit 7 ;;
hangs:*) exec sleep 100 ;;
esac
"""


def test_missing_nodes_are_counted() -> None:
    assert _ray.missing_nodes([4, 2, 2], 3, 2) is None
    said = _ray.missing_nodes([4, 2, 1], 8, 2)
    assert said is not None
    assert said.startswith(
        "8 workers with 2 CPUs each need 8 nodes with 2 CPUs; the cluster has 3 (CPUs: 4, 2, 1), "
        "2 of them large enough, so 6 missing"
    )
    said = _ray.missing_nodes([1], 1, 2)
    assert said is not None
    assert said.startswith("1 worker with 2 CPUs needs 1 node with 2 CPUs; the cluster has 1")


class NoFreeNode:
    """A Ray whose one node has one CPU, and to which no other is added."""

    def __init__(self) -> None:
        self.util = self
        self.removed = 0

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1.0}}, {"Alive": False, "Resources": {}}]

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def put(self, value: bytes) -> bytes:
        return value

    def placement_group(self, bundles: list[dict[str, int]], strategy: str) -> NoFreeNode:
        assert (bundles, strategy) == ([{"CPU": 2}] * 3, "STRICT_SPREAD")
        return self

    def wait(self, timeout_seconds: float) -> bool:
        time.sleep(timeout_seconds)
        return False

    def remove_placement_group(self, group: object) -> None:
        assert group is self
        self.removed += 1

    def shutdown(self) -> None:
        self.removed += 1


def test_the_autoscaler_is_asked_and_released(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def request_resources(bundles: object) -> None:
        asked.append(bundles)

    sdk = types.SimpleNamespace(request_resources=request_resources)
    monkeypatch.setitem(sys.modules, "ray.autoscaler.sdk", sdk)
    monkeypatch.setattr(signal, "signal", lambda number, _: number)  # pyright: ignore
    assert fake.path.exists()
    token = tmp_path / "token"
    token.write_text("hush")
    options = argparse.Namespace(
        workers=3, cpus=2, join="h:1", token_file=str(token), wait=0.7, within=300.0
    )
    ray = NoFreeNode()
    with pytest.raises(_ray.PlacementError, match=r"after 0.7 s, .* nodes \(1\) have 1 free"):
        _ray.run(ray, options)
    assert asked == [[{"CPU": 2}] * 3, []]
    assert ray.removed == 2
    options.wait = 0.0
    with pytest.raises(_ray.PlacementError, match=r"the cluster has 1 \(CPUs: 1\)"):
        _ray.run(ray, options)
    assert len(asked) == 2


class Cluster:
    """A Ray cluster on this machine, and the command that places workers in it."""

    def __init__(self, place: Path, nodes: int) -> None:
        cluster: Any = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")
        self.place = place
        (place / "token").write_text("hush")
        program = place / "cachedyno"
        program.write_text(WORKER.replace("PLACE", str(place)))
        program.chmod(0o755)
        self.cluster = cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
        for _ in range(1, nodes):
            self.cluster.add_node(num_cpus=2)
        self.environment = {
            **os.environ,
            "CACHEDYNO": str(program),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "RAY_ADDRESS": self.cluster.address,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "cachedyno._ray", "--token-file", f"{self.place}/token"]
        return subprocess.Popen(
            [*command, *arguments], env=self.environment, stderr=subprocess.PIPE, text=True
        )

    def ends(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        _, said = process.communicate(timeout=120)
        return process.returncode, said

    def lines(self, name: str) -> list[str]:
        path = self.place / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def place() -> Iterator[Path]:
    # Sockets of Ray have long names, so its directory must have a short one.
    with (
        tempfile.TemporaryDirectory(prefix="cdr", dir="/tmp") as path,
        pytest.MonkeyPatch.context() as m,
    ):
        m.setenv("TMPDIR", path)
        m.setenv("RAY_TMPDIR", path)
        yield Path(path)


def check(cluster: Cluster, workers: int) -> None:
    """Check fleets that end well, fail, do not fit, find others' workers, and are ended."""
    count = ("--workers", str(workers), "--cpus", "2")
    assert cluster.ends(*count, "--join", "works:1")[0] == 0
    assert cluster.lines("log") == ["worker --join works:1 --token-file 600 700 hush "] * workers
    code, said = cluster.ends(*count, "--join", "fails:1")
    assert code == 7
    assert "ended with exit code 7\n  warming up\n  error: bad\n" in said
    code, said = cluster.ends("--workers", str(workers + 1), "--cpus", "2", "--join", "works:1")
    assert (code, f"need {workers + 1} nodes with 2 CPUs; the" in said) == (3, True)
    before = len(cluster.lines("pids"))
    process = cluster.start(*count, "--join", "hangs:1")
    until = time.monotonic() + 60
    while len(cluster.lines("pids")) < before + workers and time.monotonic() < until:
        time.sleep(0.1)
    # A second fleet finds the CPUs of the first in use, and says so before its driver gives up.
    code, said = cluster.ends(*count, "--join", "works:1", "--within", "3")
    assert code == 3
    assert "2 free CPUs; after 1.5 s, the cluster's nodes" in said
    assert "0 free CPUs in all" in said
    second = cluster.start(*count, "--join", "works:1")
    time.sleep(3)
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=10)
    assert second.returncode == 130
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    started = cluster.lines("pids")[before:]
    assert len(started) == workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)
    assert list(cluster.place.glob("cachedyno-worker-*")) == []


def test_a_worker_on_a_node(place: Path) -> None:
    cluster = Cluster(place, nodes=1)
    try:
        check(cluster, workers=1)
    finally:
        cluster.cluster.shutdown()
    for address in (cluster.environment["RAY_ADDRESS"], ""):
        cluster.environment["RAY_ADDRESS"] = address
        code, said = cluster.ends("--workers", "1", "--join", "works:1")
        assert (code, f"no Ray cluster at `{address or 'auto'}`" in said) == (3, True)


@pytest.mark.soak
@pytest.mark.skipif("CACHEDYNO_SOAK" not in os.environ, reason="only with CACHEDYNO_SOAK=1")
def test_workers_on_three_nodes(place: Path) -> None:
    cluster = Cluster(place, nodes=3)
    try:
        check(cluster, workers=3)
    finally:
        cluster.cluster.shutdown()
