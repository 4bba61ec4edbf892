"""Writes the paper from its template and the stored results of benchmarks: `python paper/write.py`.

No number of the paper is typed: a name in double braces stands for a value of `values`, and every one of these is used.
"""

import json
import re
import runpy
from pathlib import Path
from typing import Any

from scipy.stats import beta

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
NOISE = "noise 0.01"
CONFIDENCE = 0.95


def stored(name: str) -> dict[str, Any]:
    """A stored result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def values() -> dict[str, str]:
    """Every value of the template, as it is written."""
    return {**cutest(), **experiments(), **field(), **judge(), **machine(), **umbrella()}


def cutest() -> dict[str, str]:
    """Noisy CUTEst: shares by method at the main level of noise."""
    result = stored("noisy_cutest")
    settings = result["settings"]
    rows = next(rows for title, rows in result["tables"].items() if title.startswith(f"{NOISE}: share"))
    ours, peers = ([row for row in rows if row["kind"] == kind] for kind in ("ours", "peer"))
    peers = [row for row in peers if row["claimed by itself"]]  # those that stop by a test of their own
    best = {"ours": max(ours, key=lambda row: row["share"]), "peer": max(peers, key=lambda row: row["share"])}
    shares = {f"cutest_best_{kind}_share": percent(row["share"]) for kind, row in best.items()}
    return shares | {
        "cutest_problems": str(max(row["problems"] for row in rows)),
        "cutest_budget": f"{settings['budget']:,.0f}",
        "cutest_tol": f"{settings['tol']:g}",
        "cutest_draws": f"{settings['averaged_draws']['0.01']:,}",
        "cutest_table": table(rows),
        "cutest_profiled": str(len(settings["profiled_problems"])),
        "cutest_best_ours": best["ours"]["method"],
        "cutest_best_peer": best["peer"]["method"],
        "cutest_claims": str(sum(row["claimed by itself"] for row in peers)),
        "cutest_refused": str(sum(row["of these refused"] for row in peers)),
        "cutest_refused_ours": str(sum(row["of these refused"] for row in ours)),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Shares, and claims that the judge refused, in the order of the shares."""
    lines = ["| method | whose | certified | of | claimed, and refused |", "|---|---|---:|---:|---:|"]
    for row in sorted(rows, key=lambda row: -row["share"]):
        cells = (row["method"], row["kind"], row["certified"], row["problems"], row["of these refused"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def experiments() -> dict[str, str]:
    """The paper's experiments: seconds beside the fastest certified peer."""
    ratios = [row["ratio"] for row in stored("paper")["tables"]["auto beside the fastest peer"]]
    slower = sum(ratio > 1 for ratio in ratios)
    found = {"paper_cases": len(ratios), "paper_low": f"{min(ratios):.2g}", "paper_high": f"{max(ratios):.2g}"}
    return {name: str(value) for name, value in (found | {"paper_slower": slower}).items()}


def field() -> dict[str, str]:
    """What recent work compares on: how many were certified, and our evaluations on the networks beside those of SLSQP."""
    summary, *tables = stored("field")["tables"].items()
    certified = {row["method"]: row["certified"].partition("/")[0] for row in summary[1]}
    networks = [
        {row["method"]: row["work"] for row in rows}
        for title, rows in tables
        if title.rpartition(": ")[2].startswith("physics/")
    ]
    return {
        "field_problems": str(len(tables)),
        "field_ours": certified["auto"],
        "field_slsqp": certified["SLSQP"],
        "field_barrier": certified["penalty-barrier"],
        "field_networks": str(len(networks)),
        "field_factors": " and ".join(f"{work['auto'] / work['SLSQP']:.0f}" for work in networks),
    }


def judge() -> dict[str, str]:
    """What independent references say of certificates."""
    (runs,), (points,) = (stored(name)["tables"].values() for name in ("judged_runs", "fuzz"))
    sums = {name: sum(row[name] for row in runs) for name in ("runs", "certified", "false")}
    # The largest rate at which so few false ones are seen with a probability of 1 - CONFIDENCE (Clopper and Pearson).
    rate = float(beta.ppf(CONFIDENCE, sums["false"] + 1, sums["certified"] - sums["false"]))
    return {f"judged_{name}": f"{value:,}" for name, value in sums.items()} | {
        "judged_confidence": percent(CONFIDENCE),
        "judged_bound": f"{1e4 * rate:.1f}",
        "fuzz_points": f"{sum(row['judged'] for row in points):,}",
        "fuzz_false": str(sum(row["false"] for row in points if row["kind"] == "finite")),
    }


def machine() -> dict[str, str]:
    """A fresh installation, and one GPU."""
    tables, gpu = stored("install")["tables"], stored("gpu")
    seconds = {row["of"]: row["seconds"] for row in tables["CPU seconds"]}
    sizes = {row["package"]: row["megabytes"] for row in tables["megabytes installed"]}
    (default,) = next(rows for title, rows in gpu["tables"].items() if "as it is by default" in title)
    return {
        "install_first": f"{seconds['import and a first solve']:.1f}",
        "install_own": f"{sizes['mescal']:.0f}",
        "install_all": f"{sizes['in all']:.0f}",
        "gpu_device": gpu["settings"]["device"],
        "gpu_date": gpu["date"][:10],
        "gpu_rows": f"{gpu['settings']['rows']:,}",
        "gpu_columns": str(gpu["settings"]["d"]),
        "gpu_rate": f"{default['gigabytes_per_s']:,.0f}",
        "gpu_share": percent(default["share_of_copy_bandwidth"]),
    }


def umbrella() -> dict[str, str]:
    """Resplits above the rate that was asked for."""
    rows = next(rows for title, rows in stored("estimators")["tables"].items() if title.startswith("the umbrella"))
    return {
        "umbrella_resplits": f"{rows[0]['resplits']:,}",
        "umbrella_sets": str(len(rows)),
        "umbrella_shares": " and ".join(f"{100 * row['share']:.1f}" for row in rows),
        "umbrella_delta": percent(rows[0]["delta"]),
    }


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{100 * share:.0f}"


def text() -> str:
    """The paper; an error where a name has no value, or a value no place."""
    template, known = (HERE / "template.md").read_text(encoding="utf-8"), values()
    asked = set(re.findall(r"\{\{(\w+)\}\}", template))
    if asked != set(known):
        raise ValueError(
            f"names without a value: {sorted(asked - set(known))}; without a place: {sorted(set(known) - asked)}"
        )
    return re.sub(r"\{\{(\w+)\}\}", lambda match: known[match[1]], template)


def figure() -> str:
    """Profiles of noisy CUTEst by work, as SVG."""
    draw = runpy.run_path(str(HERE.parent / "docs" / "benchmark_profiles.py"))["draw"]
    settings = stored("noisy_cutest")["settings"]
    return draw({title: curves for title, curves in settings["profiles"].items() if "work" in title}, settings["kinds"])


if __name__ == "__main__":
    (HERE / "paper.md").write_text(text(), encoding="utf-8")
    (HERE / "profiles.svg").write_text(figure(), encoding="utf-8")
