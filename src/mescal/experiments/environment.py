"""Where a run took place: versions and the kind of machine, and nothing that names the machine or its owner."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax

from ..version import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    found = {"python": platform.python_version(), "mescal": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """The kind of machine: system, architecture, cores, and the device that JAX computes on."""
    device = jax.devices()[0]
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "backend": device.platform,
        "device": device.device_kind,
    }
