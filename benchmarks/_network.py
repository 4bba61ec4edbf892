"""A simulation of collectives on devices in nodes: who waits for whom, round by round.

An all-reduce is a recursive doubling: in round k device i exchanges all bytes with device i xor 2^k. A reduce-scatter is a
recursive halving: the same partners, farthest first, half of what is left each time. A device begins a round when it and its
partner are ready; an exchange takes latency + bytes / bandwidth of the link between them. Adding up is free.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Link:
    """Seconds until a message arrives, and bytes per second in one direction."""

    latency: float
    bandwidth: float

    def seconds(self, size: float) -> float:
        """Of one message."""
        return self.latency + size / self.bandwidth


@dataclass(frozen=True)
class Network:
    """Devices, a power of two of them, in nodes of equally many, also a power of two."""

    devices: int
    per_node: int
    inside: Link
    between: Link

    @property
    def rounds(self) -> int:
        """Exchanges of every device in one collective."""
        return self.devices.bit_length() - 1

    def _exchange(self, ready: np.ndarray, stride: int, size: float) -> np.ndarray:
        link = self.inside if stride < self.per_node else self.between
        return np.maximum(ready, ready[np.arange(self.devices) ^ stride]) + link.seconds(size)

    def all_reduce(self, ready: np.ndarray, size: float) -> np.ndarray:
        """When every device has the sum, from when each had its part."""
        for k in range(self.rounds):
            ready = self._exchange(ready, 1 << k, size)
        return ready

    def reduce_scatter(self, ready: np.ndarray, size: float) -> np.ndarray:
        """When every device has its share of the sum of `size` bytes."""
        for k in reversed(range(self.rounds)):
            size /= 2
            ready = self._exchange(ready, 1 << k, size)
        return ready

    def step(self, compute: np.ndarray, rows: float, sums: float) -> float:
        """Seconds per step over many: rows are exchanged, each device computes for its time, sums are added up.

        `compute` has a row per step and a column per device; sizes are in bytes, none of `rows` where each keeps to its own.
        """
        ready = np.zeros(self.devices)
        for own in compute:
            ready = self.reduce_scatter(ready, rows) if rows else ready
            ready = self.all_reduce(ready + own, sums)
        return float(ready.max() / len(compute))


def fitted(seconds: dict[int, float], rounds: int) -> Link:
    """The link that explains measured all-reduces best, by least squares of relative errors; never a negative latency."""
    sizes = np.array(sorted(seconds), float)
    taken = np.array([seconds[int(size)] for size in sizes]) / rounds
    rows = np.stack([np.ones_like(sizes), sizes], axis=1) / taken[:, None]
    (latency, per_byte), *_ = np.linalg.lstsq(rows, np.ones_like(sizes), rcond=None)
    return Link(max(0.0, float(latency)), 1 / max(1e-15, float(per_byte)))
