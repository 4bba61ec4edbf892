"""Run a script in several processes on this machine: `python -m mescal.launch -n 4 script.py arguments`.

The processes find each other over the loopback (`jax.distributed`) before the script begins; the script gives each its own
rows, `mescal.shard(rows[jax.process_index() :: jax.process_count()], mesh)`, and is otherwise written as for one process.
What process 0 prints is shown; of the others only errors are. When a process dies, the others are stopped, and the launcher
says which one it was and why, and exits with a code that is not zero. A run that keeps checkpoints goes on from the last one
when it is launched again: see `mescal.resume`.
"""

import argparse
import collections
import contextlib
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

LOOK = 0.05  # seconds between two looks at the processes
GRACE = 10.0  # seconds that a process has to end by itself once it is told to
HEARTBEAT = 60  # seconds after which processes give one up that no longer answers, were this launcher gone, too
KEPT = 20  # last lines of each process's errors, for the reason


class Member:
    """One process of the run, and the last lines of what it said."""

    def __init__(self, number: int, count: int, address: str, script: list[str]):
        self.number = number
        own = ["--join", str(number), "--address", address, "-n", str(count), *script]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mescal.launch", *own],
            stdout=None if number == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches the launcher alone, which asks everyone to stop, once
        )
        self.said: collections.deque[str] = collections.deque(maxlen=KEPT)
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self):
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            sys.stderr.write(f"[{self.number}] {line}")

    @property
    def code(self) -> int | None:
        """The exit code; minus the signal that killed it; None while it runs."""
        return self.process.poll()

    def reason(self) -> str:
        """Why it ended, in words."""
        code = self.code
        assert code is not None
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        self.listener.join(1.0)
        last = next((line for line in reversed(self.said) if line and not line.startswith(" ")), "")
        return f"ended with exit code {code}" + (f": {last}" if last else "")


def launch(count: int, script: list[str], grace: float = GRACE) -> int:
    """Run the script in `count` processes; the exit code of the first that failed, 0 if none did."""
    address = f"127.0.0.1:{_free_port()}"
    members: list[Member] = []
    try:
        for number in range(count):
            members.append(Member(number, count, address, script))
        while True:
            codes = [member.code for member in members]
            if all(code == 0 for code in codes):
                return 0
            failed = [member for member in members if member.code not in (None, 0)]
            if failed:
                # one that was killed is the cause; others may have noticed before we looked
                first = min(failed, key=lambda member: (member.code or 0) > 0)
                break
            time.sleep(LOOK)
    except KeyboardInterrupt:
        print(f"mescal.launch: asked to stop; all {count} ended within {_stop(members, grace):.1f} s.", file=sys.stderr)
        return 130
    reason = first.reason()
    took = _stop(members, grace)
    print(
        f"mescal.launch: process {first.number} of {count} {reason}.\n"
        f"  The others were stopped within {took:.1f} s.\n"
        "  What to do: mend the cause and launch again; a run that keeps checkpoints goes on from the last one "
        "(mescal.resume).",
        file=sys.stderr,
    )
    assert first.code is not None
    return first.code if first.code > 0 else 128 - first.code


def _stop(members: list[Member], grace: float) -> float:
    """End all processes, by force where they do not end by themselves; the seconds that it took."""
    started = time.monotonic()
    for member in members:
        with contextlib.suppress(OSError):
            member.process.terminate()
    for member in members:
        try:
            member.process.wait(max(0.0, grace - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:  # it waits for a sum that will never come
            member.process.kill()
            member.process.wait()
        member.listener.join(1.0)
    return time.monotonic() - started


def join(number: int, count: int, address: str, script: list[str]):
    """Be one of the processes: find the others, then run the script as if it had been called directly."""
    import jax

    jax.distributed.initialize(address, count, number, heartbeat_timeout_seconds=HEARTBEAT)
    sys.argv = list(script)
    sys.path.insert(0, str(Path(script[0]).resolve().parent))
    try:
        runpy.run_path(script[0], run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            print(error, file=sys.stderr)
            _end_now(error.code if isinstance(error.code, int) else 1)
    except BaseException as error:
        traceback.print_exc()
        _end_now(130 if isinstance(error, KeyboardInterrupt) else 1)


def _end_now(code: int):
    """Without waiting for the others, as an ordinary end would: they may wait for this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m mescal.launch", description="Run a script in several processes.")
    parser.add_argument("-n", "--processes", type=int, required=True, help="how many")
    parser.add_argument("--grace", type=float, default=GRACE, help="seconds to end in, once one has died; default: 10")
    parser.add_argument("--join", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="script.py ...", help="the script and its arguments"
    )
    options = parser.parse_args(arguments)
    if options.processes < 1:
        parser.error("-n must be at least 1")
    if not options.script or not Path(options.script[0]).is_file():
        parser.error(f"no script named {options.script[0]}" if options.script else "which script?")
    if options.join is not None:
        join(options.join, options.processes, options.address, options.script)
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    return launch(options.processes, options.script, options.grace)


def _interrupt(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
