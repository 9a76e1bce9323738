"""Tables of model files, loaded or why not, and their deviations from other programs."""

from typing import Any

import _common as common
from _tables import provenance, table

# Characters of a reason.
_LONGEST = 170


def model_table() -> str:
    """Return a table for each package and the number of models that agree."""
    rows = common.read("models")
    parts = []
    for package, program in dict.fromkeys((r["package"], r["program"]) for r in rows):
        mine = [r for r in rows if (r["package"], r["program"]) == (package, program)]
        name = {"pinocchio": "Pinocchio", "mujoco": "MuJoCo"}[program]
        loaded = [r for r in mine if "bodies" in r]
        close = [
            r
            for r in loaded
            if all(r.get(key) is not None and r[key] <= 1e-10 for key in _QUANTITIES)
        ]
        parts += [
            f"## {package} {mine[0]['version']}, {'URDF' if program == 'pinocchio' else 'MJCF'}",
            f"{len(loaded)} of {len(mine)} files are loaded; {len(close)} of these agree with "
            f"{name} to 1e-10 in all three quantities.",
            table(
                ["file", "bodies", "M", "h", "accelerations", "remarks"], list(map(_cells, mine))
            ),
        ]
    return "\n\n".join([*parts, provenance(rows)])


_QUANTITIES = "mass_matrix", "bias_forces", "accelerations"


def _cells(row: dict[str, Any]) -> list[str]:
    remarks = []
    if row["ignored"]:
        remarks.append("without " + ", ".join(row["ignored"]))
    for key, word in (("loops", "loops"), ("couplings", "couplings"), ("warnings", "warnings")):
        if row.get(key):
            remarks.append(f"{row[key]} {word if row[key] > 1 else word[:-1]}")
    if "mass_matrix" in row and row["accelerations"] is None:
        remarks.append("no accelerations: the mass matrix is singular")
    elif row.get("condition") is not None:
        remarks.append(f"condition number of M {row['condition']:.1e}")
    file = row["file"].rpartition("/")[2]
    remarks += [row[k].removeprefix(f"{file}: ") for k in ("error", "peer_error") if k in row]
    numbers = ["" if row.get(key) is None else f"{row[key]:.1e}" for key in _QUANTITIES]
    text = "; ".join(
        remark if len(remark) < _LONGEST else f"{remark[:_LONGEST]} ..." for remark in remarks
    )
    return [f"`{row['file']}`", str(row.get("bodies", "")), *numbers, text.replace("|", "\\|")]
