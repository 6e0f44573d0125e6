"""`localfields predict`: what theory says of a task, with a picture in the terminal and, if asked, one in a file."""

from __future__ import annotations

import json
import math
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._spec import Count, name_of, registered
from ._data import data_options, leading_files, read_files
from ._options import (
    changed,
    field_options,
    option,
    run_command,
    run_one_of,
    use_compilation_cache,
    with_options,
    working,
)
from ._run import output_files

OPTIONS = {
    "starts": option(str, "16", "how many random first fields to follow", "INT"),
    "seed": option(str, "0", "of the random first fields", "INT"),
    "out": option(
        str,
        "",
        "file to write: .json, the report and the predicted field; .html, one page to read",
        "PATH",
    ),
    "plot": option(
        bool, False, "draw a page of pictures, beside --out or named after the stimulus"
    ),
    "overwrite": option(bool, False, "replace files that exist"),
}

ROWS = 8  # of a picture in the terminal
MOST_COLUMNS = 60
SHADES, NEGATIVE_SHADES = " ░▒▓█", " -=≡#"


def run(argv: Sequence[str]) -> None:
    """Offer files of data, and every registered stimulus; its numbers take one value, or one a class."""
    from .. import stimuli as stimuli
    from ..tasks import Discrimination

    task_options = field_options(Discrimination)
    if files := leading_files(argv, list(registered("stimulus"))):
        return _files(files, argv[len(files) :], task_options)
    commands = {
        name: _command(cls, field_options(cls), task_options)
        for name, cls in registered("stimulus").items()
    }
    about = (
        "Say whether a neuron that learns to tell the classes of one stimulus family apart becomes localized.\n"
        "Give the parameter in which they differ one value a class, label 0 first:\n"
        "localfields predict kur --k 10 --xi 1,3\n"
        "Or give files of your own data: one a class, one with --classes, or one, whose blurs are the classes:\n"
        "localfields predict short.npy long.npy --out report.html"
    )
    run_one_of(commands, argv, "localfields predict", "stimulus", about)


def _command(cls: Any, own: Any, task_options: Any) -> Any:
    from ..experiments.texts import read_task

    def command(**values: Any) -> None:
        _predict(read_task(cls, changed({**own, **task_options}, values)), **values)

    return with_options(command, {**own, **OPTIONS, **task_options}, cls)


def _files(files: list[str], argv: Sequence[str], task_options: Any) -> None:
    from ..stimuli import Samples

    own = data_options()

    def command(**values: Any) -> None:
        _predict(
            read_files(files, own, task_options, values),
            name=Path(files[0].partition(":")[0]).stem,
            **values,
        )

    with_options(command, {**own, **OPTIONS, **task_options}, Samples)
    run_command(command, argv, f"localfields predict {' '.join(files)}")


def _predict(
    task: Any, starts: str, seed: str, out: str, plot: bool, overwrite: bool, name: str = ""
) -> None:
    from .._files import publish
    from ..theory import predict

    count = Count(high=10**6).parse("starts", starts)
    first = Count(low=0, high=2**62).parse("seed", seed)
    name = name or name_of(type(task.stimuli[0]))
    target, picture = output_files(name, out, plot, overwrite, (".json", ".html"))
    use_compilation_cache()
    with working(f"following {count} starts on {task.size} sites"):
        prediction = predict(task, starts=count, seed=first)
    print(_report(prediction, shutil.get_terminal_size().columns))
    if target is not None:
        publish(
            target,
            lambda path: path.write_text(
                _written(path, prediction, count, first), encoding="utf-8"
            ),
        )
        print(f"wrote {target}")
    if picture is not None:
        from ..plots.data import prediction_picture

        publish(picture, lambda path: path.write_bytes(prediction_picture(prediction)))
        print(f"drew {picture}")


def _report(prediction: Any, width: int) -> str:
    """The report, wrapped, and the predicted field."""
    width = max(width, 40)
    lines = [prediction.report(width)]
    if prediction.flow is not None:
        starts, end = prediction.flow.num_members, float(prediction.flow.times[-1])
        which = f"first of {starts} starts" if starts > 1 else "the only start"
        caption = f"predicted field at flow time {end:.4g}, {which}:"
        lines += ["", textwrap.fill(caption, width), *draw_field(prediction.field, width)]
    return "\n".join(lines)


def _written(path: Path, prediction: Any, starts: int, seed: int) -> str:
    if path.suffix == ".json":
        from .. import __version__

        about = {"localfields": __version__, "starts": starts, "seed": seed}
        document = {**about, **prediction.to_json()}
        return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    from ..plots.data import prediction_page

    return prediction_page(prediction)


# -- pictures of plain characters -------------------------------------------------------------------------------


def draw_field(field: Any, width: int) -> list[str]:
    r"""Lines of text that show a receptive field: bars of dots on a ring, shades on a torus.

    Args:
        field: Weights, of the lattice's shape; of three axes the slice through the largest weight is shown.
        width: Columns of the terminal; of many sites the largest weight of each group is shown.

    Example:
        >>> import numpy as np
        >>> print(*draw_field(np.array([[0.0, 1.0], [-0.5, 0.2]]), width=40), sep="\n")
          ┌────┐
          │  ██│
          │==░░│
          └────┘
          from blank (0) to █ (1) or # (-1)
    """
    import numpy as np

    if not np.isfinite(field).all():
        return ["  not finite: nothing to draw"]
    return _bars(field, width) if field.ndim == 1 else _shades(field, width)


def _coarse(field: Any, most: int) -> Any:
    """At most so many values along the longest axis: of each group of sites, the weight of largest size."""
    import numpy as np

    step = math.ceil(max(field.shape) / most)
    for axis, n in enumerate(field.shape):
        starts = np.arange(0, n, step)
        top, bottom = (
            np.maximum.reduceat(field, starts, axis),
            np.minimum.reduceat(field, starts, axis),
        )
        field = np.where(top >= -bottom, top, bottom)
    return field


def _bars(field: Any, width: int) -> list[str]:
    import numpy as np

    columns = min(MOST_COLUMNS, max(width, 40) - 10)
    values = _coarse(field, 2 * columns)
    values = np.repeat(values, max(1, min(6, 2 * columns // len(values))))
    top, bottom = max(0.0, float(values.max())), min(0.0, float(values.min()))
    unit = (top - bottom) / (4 * ROWS) or 1.0
    heights = np.where(values >= 0, 1, -1) * np.maximum(1, np.rint(np.abs(values) / unit)).astype(
        int
    )
    above, below = max(0, int(heights.max())), max(0, -int(heights.min()))
    level = (
        above - np.arange(-(-(above + below) // 4) * 4)[:, None] - 0.5
    )  # of each row of dots, zero at the axis
    dots = ((level > 0) & (level < heights)) | ((level < 0) & (level > heights))
    dots = np.pad(dots, ((0, 0), (0, len(values) % 2)))
    # In a character of braille the dots 1 2 3 7 run down its left column, and 4 5 6 8 down the right one.
    bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    cells = (dots.reshape(-1, 4, dots.shape[1] // 2, 2) * bits[:, None, :]).sum(axis=(1, 3))
    names = {max(0, above - 1) // 4: "0"}
    names |= {0: f"{top:.3g}"} if top > 0 else {}
    names |= {len(cells) - 1: f"{bottom:.3g}"} if bottom < 0 else {}
    lines = [
        f"{names.get(row, ''):>8} {'┤' if row in names else '│'}{''.join(chr(0x2800 + cell) for cell in line)}"
        for row, line in enumerate(cells.tolist())
    ]
    last = str(len(field) - 1)
    axis = f"0{last:>{max(len(last) + 1, cells.shape[1] - 1)}}"
    return [*lines, f"{'':>8} └{'─' * cells.shape[1]}", f"{'site':>8}  {axis}"]


def _shades(field: Any, width: int) -> list[str]:
    import numpy as np

    planes = field.reshape(*field.shape[:2], -1)
    plane = planes[:, :, int(np.abs(planes).max(axis=(0, 1)).argmax())]
    values = _coarse(plane, min(MOST_COLUMNS, max(width, 40) - 4) // 2)
    limit = float(np.abs(values).max())
    levels = np.rint(values / (limit or 1.0) * (len(SHADES) - 1)).astype(int)
    rows = [
        "".join(2 * (SHADES[one] if one >= 0 else NEGATIVE_SHADES[-one]) for one in row)
        for row in levels.tolist()
    ]
    edge = "─" * len(rows[0])
    low = f" or {NEGATIVE_SHADES[-1]} ({-limit:.3g})" if levels.min() < 0 else ""
    legend = f"  from blank (0) to {SHADES[-1]} ({limit:.3g}){low}"
    return [f"  ┌{edge}┐", *(f"  │{row}│" for row in rows), f"  └{edge}┘", legend]
