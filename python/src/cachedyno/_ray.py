"""Workers of a measurement on the nodes of a Ray cluster, one on each node.

    python -m cachedyno._ray --workers 8 --cpus 2 --join [HOST]:PORT --token-file FILE

Ray only places processes: it takes no part in timing, and no message passes through it between the
start of a worker and its end. Exit codes: 0 all workers ended well, 3 the cluster cannot be used,
130 interrupted, otherwise that of the first worker that failed.

The program travels to the nodes as bytes in Ray's object store. A `runtime_env` with `pip` or
`py_modules` would need the wheel, which an installed package no longer has, or a network to install
from, and could bring another version; the bytes are those that this machine runs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cachedyno import _program

CANNOT_PLACE = 3
_FREE_WITHIN_S = 20.0
"""How long other jobs may occupy the CPUs of nodes that are large enough, at most."""
_LOOK_EVERY_S = 0.5
"""How often a signal can end the wait for CPUs: Ray does not return for one."""
_STOPPED_WITHIN_S = 10.0
_CONNECT_WITHIN_S = 5.0
_PORT = 10001
"""Default port of `ray://HOST`."""


class PlacementError(Exception):
    """The cluster cannot take the workers; the text says what is missing."""


def worker_class() -> type:
    """Return the class of actors.

    A class made in a function is sent to the nodes by value, so they need no `cachedyno`.
    """

    class Worker:
        """Runs one `cachedyno worker`; its files are in a private directory until it ends."""

        def __init__(self) -> None:
            self.process: subprocess.Popen[str] | None = None
            self.is_stopped = False

        def run(self, program: bytes, token: bytes, join: str) -> tuple[int, list[str]]:
            """Run the worker; return its exit code and its last lines on standard error."""
            place = tempfile.mkdtemp(prefix="cachedyno-worker-")
            try:
                path, token_path = f"{place}/cachedyno", f"{place}/token"
                for name, content, mode in ((path, program, 0o700), (token_path, token, 0o600)):
                    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                    with os.fdopen(descriptor, "wb") as file:
                        file.write(content)
                command = [path, "worker", "--join", join, "--token-file", token_path]
                if self.is_stopped:
                    return 130, []
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
                last: collections.deque[str] = collections.deque(maxlen=20)
                last.extend(line.rstrip("\n") for line in self.process.stderr or ())
                return self.process.wait(), list(last)
            finally:
                shutil.rmtree(place, ignore_errors=True)

        def stop(self) -> None:
            """Ask the worker to end; `run` then returns."""
            self.is_stopped = True
            if self.process is not None:
                self.process.terminate()
                try:
                    self.process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    self.process.kill()

    return Worker


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _needed(workers: int, cpus: int, free: str) -> str:
    """Return what workers need: "2 workers with 1 CPU each need 2 nodes with 1 free CPU"."""
    each, need = (" each", "need") if workers > 1 else ("", "needs")
    return (
        f"{_counted(workers, 'worker')} with {_counted(cpus, 'CPU')}{each} {need} "
        f"{_counted(workers, 'node')} with {_counted(cpus, free + 'CPU')}"
    )


def missing_nodes(cpus_of_nodes: Sequence[float], workers: int, cpus: int) -> str | None:
    """Return why nodes with these numbers of CPUs cannot take the workers; None if they can."""
    fit = sum(1 for of_node in cpus_of_nodes if of_node >= cpus)
    if fit >= workers:
        return None
    have = ", ".join(f"{of_node:g}" for of_node in sorted(cpus_of_nodes, reverse=True)) or "none"
    return (
        f"{_needed(workers, cpus, '')}; the cluster has {len(cpus_of_nodes)} (CPUs: {have}), {fit} "
        f"of them large enough, so {workers - fit} missing (start fewer workers, add nodes, or let "
        "an autoscaler add them: CACHEDYNO_RAY_WAIT=300 waits for them, in seconds)"
    )


def place_workers(ray: Any, bundles: list[dict[str, int]], wait_s: float) -> Any:
    """Return a placement group with each bundle on a node of its own.

    Raises PlacementError if the nodes have no free CPUs after `wait_s` seconds.
    """
    group = ray.util.placement_group(bundles, strategy="STRICT_SPREAD")
    until = time.monotonic() + wait_s
    while (left_s := until - time.monotonic()) > 0:
        if group.wait(timeout_seconds=min(_LOOK_EVERY_S, left_s)):
            return group
    ray.util.remove_placement_group(group)
    raise PlacementError(
        f"{_needed(len(bundles), bundles[0]['CPU'], 'free ')}; after {wait_s:g} s, the cluster's "
        f"nodes ({len(cpus_of_nodes(ray))}) have {ray.available_resources().get('CPU', 0):g} free "
        "CPUs in all (wait until other jobs end, or start fewer workers)"
    )


def cpus_of_nodes(ray: Any) -> list[float]:
    """Return the CPUs of each node that is alive, free or not."""
    return [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]


def watch(ray: Any, running: dict[Any, str]) -> int:
    """Wait for the workers, by their results; return the exit code of the first that failed."""
    while running:
        ended, _ = ray.wait(list(running), num_returns=1, timeout=1)
        for result in ended:
            name = running.pop(result)
            try:
                exit_code, last = ray.get(result)
            except ray.exceptions.RayError as e:
                print(f"{name} was lost: {str(e).splitlines()[0]}", file=sys.stderr)
                return 1
            if exit_code != 0:
                said = "".join(f"\n  {line}" for line in last)
                print(f"{name} ended with exit code {exit_code}{said}", file=sys.stderr)
                return exit_code if 0 < exit_code < 128 else 1
    return 0


def release(ray: Any, group: Any, actors: list[Any], results: list[Any], asked: bool) -> None:
    """End the workers, and give back the bundles and the request to the autoscaler."""
    # A second signal would leave workers behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for actor in actors:
        actor.stop.remote()
    if results:
        ray.wait(results, num_returns=len(results), timeout=_STOPPED_WITHIN_S)
    for actor in actors:
        # Ray also kills a worker process that did not end.
        ray.kill(actor)
    if group is not None:
        ray.util.remove_placement_group(group)
    if asked:
        importlib.import_module("ray.autoscaler.sdk").request_resources(bundles=[])
    ray.shutdown()


def run(ray: Any, options: argparse.Namespace) -> int:
    """Place and watch the workers in the cluster that Ray is connected to."""
    token = Path(options.token_file).read_bytes()
    host, _, port = options.join.rpartition(":")
    join = f"{host or ray.util.get_node_ip_address()}:{port}"
    program = ray.put(_program.find().read_bytes())
    bundles = [{"CPU": options.cpus}] * options.workers
    missing = missing_nodes(cpus_of_nodes(ray), options.workers, options.cpus)
    if missing is not None and options.wait <= 0:
        raise PlacementError(missing)
    group: Any = None
    actors: list[Any] = []
    running: dict[Any, str] = {}
    results: list[Any] = []
    try:
        if missing is not None:
            # It holds for the whole cluster, in place of any other request, until `release`.
            importlib.import_module("ray.autoscaler.sdk").request_resources(bundles=bundles)
        # The driver would give up without the reason.
        free_within_s = min(_FREE_WITHIN_S, options.within / 2)
        wait_s = max(options.wait, 0.0 if missing else free_within_s)
        group = place_workers(ray, bundles, wait_s)
        strategy = importlib.import_module("ray.util.scheduling_strategies")
        # One thread runs the worker, the other one stops it.
        remote = ray.remote(num_cpus=options.cpus, max_restarts=0, max_concurrency=2)
        worker = remote(worker_class())
        for number in range(options.workers):
            bundle = strategy.PlacementGroupSchedulingStrategy(
                placement_group=group, placement_group_bundle_index=number
            )
            actors.append(worker.options(scheduling_strategy=bundle).remote())
            results.append(actors[-1].run.remote(program, token, join))
            running[results[-1]] = f"worker {number + 1} of {options.workers}"
        return watch(ray, running)
    finally:
        # Also of a placement group that is still waited for: Ray removes it with this job.
        release(ray, group, actors, results, missing is not None)


def connect() -> Any:
    """Return Ray, connected to the running cluster; raises PlacementError if there is none."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as e:
        raise PlacementError("Ray is not installed (pip install 'cachedyno[ray]')") from e
    address = os.environ.get("RAY_ADDRESS") or "auto"
    try:
        if address != "auto":
            # Ray itself tries for minutes.
            parts = urlsplit(address if "://" in address else "//" + address)
            place = (parts.hostname or "", parts.port or _PORT)
            socket.create_connection(place, _CONNECT_WITHIN_S).close()
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, ValueError, RuntimeError) as e:
        raise PlacementError(
            f"no Ray cluster at `{address}`: {str(e).splitlines()[0]} (start one with `ray start "
            "--head`, or name its address by RAY_ADDRESS)"
        ) from e
    return ray


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of the module's comment."""
    parser = argparse.ArgumentParser(prog="python -m cachedyno._ray")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--cpus", type=int, default=1, help="CPUs of each worker")
    parser.add_argument(
        "--join", required=True, metavar="[HOST]:PORT", help="the driver; here without a host"
    )
    parser.add_argument("--token-file", required=True, metavar="FILE")
    parser.add_argument(
        "--wait",
        type=float,
        default=float(os.environ.get("CACHEDYNO_RAY_WAIT") or 0),
        metavar="SECONDS",
        help="time for an autoscaler to add nodes",
    )
    parser.add_argument(
        "--within",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="how long the driver waits for the workers to join",
    )
    options = parser.parse_args(arguments)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        ray = connect()
        # After `ray.init`, which sets its own handler.
        signal.signal(signal.SIGTERM, interrupted)
        return run(ray, options)
    except PlacementError as e:
        print(f"error: {e}", file=sys.stderr)
        return CANNOT_PLACE
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
