"""Forty runs on clusters of this machine, Dask's and Ray's, a worker killed in their midst: nothing is lost, nothing differs."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from mescal.experiments import RayExecutor, product, sweep
from tests.experiments.test_sweep import content

RUNS = 40


def forty_tasks():
    """Eight groups of five seeds, which have programs in common."""
    groups = (
        product(
            ["saddles/circle"],
            [("newton-cg", {"exact": 8192 + k})],
            seeds=range(5),
            tols=[0.05],
            parameters={"sigma": 0.0},
        )
        for k in range(8)
    )
    return [task for group in groups for task in group]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What a sweep in this process stores; the programs that it compiles are kept for the workers."""
    root = tmp_path_factory.mktemp("alone")
    assert sweep(forty_tasks(), root).certified
    return content(root)


class Killer:
    """Watches a sweep, and kills one worker with SIGKILL when the first run has been stored."""

    def __init__(self, workers: Callable[[], list[int]]):
        self.workers, self.killed, self.ended = workers, 0, 0

    def __call__(self, event: str, folder: Path, given):
        self.ended += event == "finished"
        if event == "finished" and not self.killed:
            self.killed = self.workers()[0]
            os.kill(self.killed, signal.SIGKILL)


def swept_on(executor, root: Path, workers: Callable[[], list[int]]):
    """The sweep on an executor that loses one worker; the content of its store."""
    killer = Killer(workers)
    swept = sweep(forty_tasks(), root, jobs=executor, watch=killer)
    assert killer.killed and not psutil.pid_exists(killer.killed)
    assert swept.certified and len(swept.runs) == RUNS == killer.ended
    return content(root)


def test_the_tasks_are_forty_runs_of_eight_groups():
    tasks = forty_tasks()
    assert len({str(task) for task in tasks}) == len(tasks) == RUNS
    assert len({str(task.options) for task in tasks}) == 8


@pytest.mark.slow
def test_dask(tmp_path, alone):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'mescal-opt[dask]'")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = lambda: list(client.run(os.getpid).values())
        assert swept_on(client.get_executor(), tmp_path, workers) == alone


# Ray starts its servers by forking, of which JAX warns; they run other programs at once.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_ray(tmp_path, alone):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'mescal-opt[ray]'")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        assert swept_on(RayExecutor(), tmp_path, busy_workers) == alone
    finally:
        ray.shutdown()


def busy_workers() -> list[int]:
    """Ray names a worker after the function that it runs."""
    mine = psutil.Process().children(recursive=True)
    return [process.pid for process in mine if process.name().startswith("ray::_in_worker")]
