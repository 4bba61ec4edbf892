"""Results: the report of a benchmark with machine, versions, date and settings; as JSON and as text."""

import datetime
import importlib
import json
import os
import platform
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from threadpoolctl import threadpool_info

import mescal

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn")


def measure(name: str, quick: bool, threads: int) -> dict[str, Any]:
    """Run one benchmark; its report and everything needed to read it later."""
    started, load = time.perf_counter(), _load()
    report = importlib.import_module(f"benchmarks.{name}").run(quick)
    return {
        "benchmark": name,
        "quick": quick,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": time.perf_counter() - started,
        "machine": machine(),
        "threads": threads,
        "clock": "CPU time of the process" if threads == 1 else "wall clock",
        "load_average": {"before": load, "after": _load()},
        "versions": {"python": platform.python_version(), "mescal": mescal.__version__}
        | {package: version(package) for package in PACKAGES},
        **asdict(report),
    }


def machine() -> dict[str, Any]:
    """What kind of machine this is; nothing that names it."""
    pools = [f"{p['internal_api']} {p.get('version')}" for p in threadpool_info() if p["user_api"] == "blas"]
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "numpy_blas": sorted(set(pools)),
    }


def store(result: dict[str, Any], folder: Path) -> Path:
    """Write one result as JSON, its numbers cut to five digits."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['benchmark']}.json"
    path.write_text(json.dumps(_short(result), indent=1, allow_nan=False) + "\n")
    return path


def readable(result: dict[str, Any]) -> str:
    """Tables, targets and conclusions as text."""
    lines = []
    for title, rows in result["tables"].items():
        header = list(dict.fromkeys(key for row in rows for key in row))
        cells = [header, *([_cell(row.get(key)) for key in header] for row in rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
        lines += ["", title]
        lines += ["  " + "  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in cells]
    lines += [""] if result["targets"] or result["conclusions"] else []
    for target in result["targets"]:
        verdict = "met" if target["met"] else "MISSED"
        lines.append(f"{verdict:6}  {target['what']}: {target['value']:.3g} (at most {target['at_most']:g})")
    lines += result["conclusions"]
    before, after = (result["load_average"][when] for when in ("before", "after"))
    lines.append(
        f"{result['threads']} of {result['machine']['cores']} cores, {result['clock']}, "
        f"load average {before} -> {after}, {result['seconds']:.0f} s"
    )
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _short(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(entry) for entry in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
