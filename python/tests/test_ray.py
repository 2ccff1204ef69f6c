from __future__ import annotations

import json
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

import cachedyno
from cachedyno import _ray
from conftest import SHORT

WORKER = """#!/bin/sh
# Stands in for `cachedyno worker --join HOST:PORT --own-cpus N --token-file FILE`.
echo "$* $(cat "$7")" >> 'PLACE/log'
echo $$ >> 'PLACE/pids'
echo "warming up" >&2
case "$3" in
fails:*) echo "error: bad" >&2; exit 7 ;;
hangs:*) exec sleep 100 ;;
esac
"""


class NoFreeNode:
    """A Ray whose one node has one CPU, and to which no other is added."""

    def __init__(self) -> None:
        self.util = self
        self.removed = 0

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1.0}}, {"Alive": False, "Resources": {}}]

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

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
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def request_resources(bundles: object) -> None:
        asked.append(bundles)

    sdk = types.SimpleNamespace(request_resources=request_resources)
    monkeypatch.setitem(sys.modules, "ray.autoscaler.sdk", sdk)
    monkeypatch.setattr(signal, "signal", lambda number, _: number)  # pyright: ignore
    plan = {"workers": 3, "cpus": 2, "join": "h:1", "autoscaler_s": 0.7, "others_s": 20.0}
    ray = NoFreeNode()
    assert _ray.run(ray, plan) == {"busy": {"nodes": [1.0], "free": 1.0, "after_s": 0.7}}
    assert asked == [[{"CPU": 2}] * 3, []]
    assert ray.removed == 2
    assert _ray.run(ray, {**plan, "autoscaler_s": 0.0}) == {"missing": {"nodes": [1.0]}}
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
            "PYTHONPATH": os.pathsep.join(sys.path),
            "RAY_ADDRESS": self.cluster.address,
        }

    def start(self, workers: int, join: str, **others: float) -> subprocess.Popen[str]:
        plan = {
            "program": str(self.place / "cachedyno"),
            "token_file": str(self.place / "token"),
            "join": join,
            "workers": workers,
            "cpus": 2,
            "autoscaler_s": 0.0,
            "others_s": 20.0,
            **others,
        }
        command = [sys.executable, "-m", "cachedyno._ray", json.dumps(plan)]
        return subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True)

    def ends(self, workers: int, join: str, **others: float) -> tuple[int, dict[str, Any]]:
        process = self.start(workers, join, **others)
        _, said = process.communicate(timeout=120)
        return process.returncode, json.loads(said.splitlines()[-1]) if said else {}

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
    assert cluster.ends(workers, "works:1") == (0, {})
    line = "worker --join works:1 --own-cpus 2 --token-file /dev/stdin hush"
    assert cluster.lines("log") == [line] * workers
    code, failure = cluster.ends(workers, "fails:1")
    assert (code, failure["ended"]["exit_code"]) == (1, 7)
    assert failure["ended"]["said"] == "warming up\nerror: bad\n"
    assert 0 <= failure["ended"]["worker"] < workers
    assert cluster.ends(workers + 1, "works:1") == (1, {"missing": {"nodes": [2.0] * workers}})
    before = len(cluster.lines("pids"))
    process = cluster.start(workers, "hangs:1")
    until = time.monotonic() + 60
    while len(cluster.lines("pids")) < before + workers and time.monotonic() < until:
        time.sleep(0.1)
    # A second fleet finds the CPUs of the first in use, and says so before its driver gives up.
    busy = {"busy": {"nodes": [2.0] * workers, "free": 0, "after_s": 1.5}}
    assert cluster.ends(workers, "works:1", others_s=1.5) == (1, busy)
    second = cluster.start(workers, "works:1")
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


def measure(cluster: Cluster, workers: int) -> None:
    """Check that the real program measures with workers on all nodes, and counts missing ones."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYTHONPATH", "RAY_ADDRESS"):
            patch.setenv(name, cluster.environment[name])
        short: dict[str, Any] = {**SHORT, "clients": workers + 1, "rate": 500}
        record = cachedyno.bench("redis", **short, fleet=cachedyno.fleet("ray", workers=workers))
        with pytest.raises(cachedyno.CachedynoError, match="the cluster has") as raised:
            cachedyno.bench("redis", **short, fleet=cachedyno.fleet("ray", workers=workers + 1))
    shares = record.summary["workers"]
    names = [share["worker"].partition(" on ")[0] for share in shares]
    assert names == [f"worker {number}" for number in range(1, workers + 1)]
    mixed = record.rows("results")[0]
    assert (mixed["operation"], mixed["error"]) == ("mixed", 0)
    facts = record.summary["conditions"]["facts"]
    cpus = next(fact["value"] for fact in facts if fact["name"] == "CPUs of the workers")
    is_container = Path("/proc/self/ns/pid").readlink() != Path("pid:[4026531836]")
    if not is_container and len(os.sched_getaffinity(0)) > workers:
        assert "," not in cpus, cpus
    assert "so 1 missing (start fewer workers" in str(raised.value)


def test_a_worker_on_a_node(place: Path, program: str, redis: str) -> None:
    assert program
    assert redis
    cluster = Cluster(place, nodes=1)
    try:
        check(cluster, workers=1)
        measure(cluster, workers=1)
    finally:
        cluster.cluster.shutdown()
    cluster.environment["RAY_ADDRESS"] = "no-address"
    code, failure = cluster.ends(1, "works:1")
    assert (code, list(failure)) == (1, ["no_cluster"])


@pytest.mark.soak
@pytest.mark.skipif("CACHEDYNO_SOAK" not in os.environ, reason="only with CACHEDYNO_SOAK=1")
def test_workers_on_three_nodes(place: Path, program: str, redis: str) -> None:
    assert program
    assert redis
    cluster = Cluster(place, nodes=3)
    try:
        check(cluster, workers=3)
        measure(cluster, workers=3)
    finally:
        cluster.cluster.shutdown()
