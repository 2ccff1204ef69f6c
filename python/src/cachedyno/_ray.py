"""Workers of a measurement on the nodes of a Ray cluster, one on each node.

The program starts `python -m cachedyno._ray PLAN` for `--fleet ray:N`. PLAN is a JSON object:

    program, token_file   paths of the files that each worker gets, in memory
    join                  [HOST]:PORT of the driver; without a host, this node
    workers, cpus         number of workers, CPUs of each
    autoscaler_s          seconds for an autoscaler to add nodes; 0 does not ask for them
    others_s              seconds for other jobs to leave nodes that are large enough

On a failure the last line on standard error is a JSON object, which the program puts into words,
and the exit code is 1, or 130 after SIGTERM. Results are in the program's record.

Ray only places processes: it takes no part in timing, and no message passes through it between the
start of a worker and its end. The program travels to the nodes in Ray's object store. A
`runtime_env` would need the wheel, which an installed package no longer has, or a network to
install from, and could bring another version.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_LOOK_EVERY_S = 0.5
"""How often a signal can end the wait for CPUs: Ray does not return for one."""
_STOPPED_WITHIN_S = 10.0


def worker_class() -> type:
    """Return the class of actors; made in a function, it is sent to nodes without `cachedyno`."""

    class Worker:
        process: subprocess.Popen[bytes] | None = None
        is_stopped = False

        def run(self, program: bytes, token: bytes, join: list[str]) -> tuple[int, str]:
            """Run the worker; return its exit code and the end of its standard error."""
            # Nothing is left on the node even if Ray kills this process: the program is a file in
            # memory, and the token only passes through a pipe.
            descriptor = os.memfd_create("cachedyno")
            path = f"/proc/self/fd/{descriptor}"
            try:
                with open(descriptor, "wb", closefd=False) as file:
                    file.write(program)
                if self.is_stopped:
                    return 0, ""
                self.process = subprocess.Popen(
                    [path, "worker", *join, "--token-file", "/dev/stdin"],
                    pass_fds=[descriptor],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
                said = self.process.communicate(token)[1].decode(errors="replace")
                return self.process.returncode, said[-2000:]
            finally:
                os.close(descriptor)

        def stop(self) -> None:
            self.is_stopped = True
            if self.process is not None:
                self.process.kill()

    return Worker


def place(ray: Any, bundles: list[dict[str, int]], within_s: float) -> Any:
    """Return a placement group with each bundle on its own node, None if none has free CPUs."""
    group = ray.util.placement_group(bundles, strategy="STRICT_SPREAD")
    until = time.monotonic() + within_s
    while (left_s := until - time.monotonic()) > 0:
        if group.wait(timeout_seconds=min(_LOOK_EVERY_S, left_s)):
            return group
    ray.util.remove_placement_group(group)
    return None


def watch(ray: Any, running: dict[Any, int]) -> dict[str, Any] | None:
    """Wait for the results of workers, by their number; return how the first one failed."""
    while running:
        for result in ray.wait(list(running), timeout=1)[0]:
            worker = running.pop(result)
            try:
                exit_code, said = ray.get(result)
            except ray.exceptions.RayError as e:
                return {"lost": {"worker": worker, "error": str(e).partition("\n")[0]}}
            if exit_code != 0:
                return {"ended": {"worker": worker, "exit_code": exit_code, "said": said}}
    return None


def release(ray: Any, actors: list[Any], results: list[Any], asked: bool) -> None:
    """End the workers; give back their CPUs and the request to the autoscaler."""
    # A second signal would leave workers behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for actor in actors:
        actor.stop.remote()
    if results:
        ray.wait(results, num_returns=len(results), timeout=_STOPPED_WITHIN_S)
    if asked:
        importlib.import_module("ray.autoscaler.sdk").request_resources(bundles=[])
    # The placement group, also one that is still waited for, and the actors end with this job.
    ray.shutdown()


def run(ray: Any, plan: dict[str, Any]) -> dict[str, Any] | None:
    """Place and watch the workers in the cluster that Ray is connected to; return a failure."""
    host, _, port = plan["join"].rpartition(":")
    join = ["--join", f"{host or ray.util.get_node_ip_address()}:{port}"]
    # Ray reserves a number of CPUs, but not certain ones.
    join += ["--own-cpus", str(plan["cpus"])]
    bundles = [{"CPU": plan["cpus"]}] * plan["workers"]
    nodes = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    are_missing = sum(cpus >= plan["cpus"] for cpus in nodes) < plan["workers"]
    if are_missing and not plan["autoscaler_s"]:
        return {"missing": {"nodes": nodes}}
    actors: list[Any] = []
    running: dict[Any, int] = {}
    try:
        if are_missing:
            # It replaces any other request to the autoscaler until `release`.
            importlib.import_module("ray.autoscaler.sdk").request_resources(bundles=bundles)
        within_s = max(plan["autoscaler_s"], 0 if are_missing else plan["others_s"])
        group = place(ray, bundles, within_s)
        if group is None:
            free = ray.available_resources().get("CPU", 0)
            return {"busy": {"nodes": nodes, "free": free, "after_s": within_s}}
        files = [ray.put(Path(plan[name]).read_bytes()) for name in ("program", "token_file")]
        strategy = importlib.import_module("ray.util.scheduling_strategies")
        # One thread runs the worker, the other one stops it.
        of_worker = {"num_cpus": plan["cpus"], "max_restarts": 0, "max_concurrency": 2}
        worker = ray.remote(**of_worker)(worker_class())
        for number in range(plan["workers"]):
            bundle = strategy.PlacementGroupSchedulingStrategy(
                placement_group=group, placement_group_bundle_index=number
            )
            actors.append(worker.options(scheduling_strategy=bundle).remote())
            running[actors[-1].run.remote(*files, join)] = number
        return watch(ray, dict(running))
    finally:
        release(ray, actors, list(running), are_missing)


def main() -> int:
    """Run the command of the module's comment."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as e:
        return _fails({"no_ray": {"error": str(e)}})
    try:
        address = os.environ.get("RAY_ADDRESS") or "auto"
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, ValueError, RuntimeError) as e:
        return _fails({"no_cluster": {"error": str(e).partition("\n")[0]}})
    # After `ray.init`, which sets its own handler.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        failure = run(ray, json.loads(sys.argv[1]))
    except KeyboardInterrupt:
        return 130
    return 0 if failure is None else _fails(failure)


def _fails(failure: dict[str, Any]) -> int:
    print(json.dumps(failure), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
