"""How the pictures of the gallery look, and where they go: `python examples/NAME.py [FOLDER]`."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from mescal.report.colours import LOOKS

BLUE, ORANGE, GREEN, PINK, BROWN, GREY = (look.colour for look in LOOKS)
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures"

plt.rcParams.update(
    {
        "figure.dpi": 120,
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e4e4e4",
        "axes.axisbelow": True,
        "legend.frameon": False,
    }
)


def save(figure, name: str) -> Path:
    """Write FOLDER/NAME.png and say so."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.png"
    figure.savefig(path, metadata={"Software": None})
    print(f"wrote {path}")
    return path
