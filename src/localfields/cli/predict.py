"""`localfields predict`: what theory says of a task, with a picture in the terminal or a file."""

from __future__ import annotations

import json
import math
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._spec import Count, name_of, registered
from .._start import use_compilation_cache
from ._data import data_options, leading_files, read_files
from ._options import (
    OVERWRITE,
    Command,
    Option,
    field_options,
    given,
    run_command,
    run_one_of,
    working,
)
from ._run import output_files

OPTIONS = {
    "starts": Option("how many random initial fields to follow", "INT", default="16"),
    "seed": Option("seed of the random initial fields", "INT", default="0"),
    "out": Option(
        "file to write: .json, the report and the predicted field; .html, one page to read",
        "PATH",
        default="",
    ),
    "plot": Option(
        "draw a page of pictures, beside --out or named after the stimulus", default=False
    ),
    "overwrite": OVERWRITE,
}

ABOUT = """Say whether a neuron that learns to tell the classes of one stimulus family apart becomes
localized. Give the parameter in which they differ one value per class, label 0 first:

  localfields predict kur --k 10 --xi 1,3

Or give files of your own data: one per class, one with --classes, or one whose blurs are classes:

  localfields predict short.npy long.npy --out report.html"""

ROWS = 8  # of a picture in the terminal
MOST_COLUMNS = 60
SHADES, NEGATIVE_SHADES = " ░▒▓█", " -=≡#"


def run(argv: Sequence[str]) -> None:
    """Read files of data, or offer every registered stimulus."""
    if files := leading_files(argv, list(registered("stimulus"))):
        command = _file_command(files)
        run_command(command, argv[len(files) :], f"localfields predict {' '.join(files)}")
        return
    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    run_one_of(commands, argv, "localfields predict", "stimulus", ABOUT)


def _command(cls: Any) -> Command:
    from ..experiments.texts import read_task
    from ..tasks import Discrimination

    options, task_options = field_options(cls), field_options(Discrimination)

    def command(**values: Any) -> None:
        _predict(read_task(cls, given({**options, **task_options}, values)), **values)

    groups = {"stimulus": options, "task": task_options, "output": OPTIONS}
    return Command(command, groups, cls.__doc__)


def _file_command(files: list[str]) -> Command:
    from ..stimuli import Samples
    from ..tasks import Discrimination

    options, task_options = data_options(), field_options(Discrimination)

    def command(**values: Any) -> None:
        task = read_files(files, options, task_options, values)
        _predict(task, name=Path(files[0].partition(":")[0]).stem, **values)

    groups = {"data": options, "task": task_options, "output": OPTIONS}
    return Command(command, groups, Samples.__doc__ or "")


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
    with working(f"following {count} starts on {task.size} sites") as status:
        watched = {} if status is None else {"on_progress": status.update}
        prediction = predict(task, starts=count, seed=first, **watched)
    print(_report(prediction, shutil.get_terminal_size().columns))
    if target is not None:
        content = _document(target.suffix, prediction, count, first)
        publish(target, lambda path: path.write_text(content, encoding="utf-8"))
        print(f"wrote {target}")
    if picture is not None:
        from .. import plots
        from ..plots._style import save_picture

        publish(picture, lambda path: save_picture(path, plots.prediction, prediction))
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


def _document(suffix: str, prediction: Any, starts: int, seed: int) -> str:
    if suffix == ".json":
        from .. import __version__

        settings = {"localfields": __version__, "starts": starts, "seed": seed}
        document = {**settings, **prediction.to_json()}
        return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    from ..plots._pages import prediction_page

    return prediction_page(prediction)


# -- pictures of plain characters ------------------------------------------------------------


def draw_field(field: Any, width: int) -> list[str]:
    r"""Lines of text that show a receptive field: bars of dots on a ring, shades on a torus.

    Args:
        field: Weights, of the lattice's shape; of three axes, the slice through the largest weight
            is shown.
        width: Columns of the terminal; of many sites, the largest weight of each group is shown.

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
    """At most so many values along the longest axis: the largest weight of each group of sites."""
    import numpy as np

    step = math.ceil(max(field.shape) / most)
    for axis, n in enumerate(field.shape):
        starts = np.arange(0, n, step)
        top = np.maximum.reduceat(field, starts, axis)
        bottom = np.minimum.reduceat(field, starts, axis)
        field = np.where(top >= -bottom, top, bottom)
    return field


def _bars(field: Any, width: int) -> list[str]:
    import numpy as np

    columns = min(MOST_COLUMNS, max(width, 40) - 10)
    values = _coarse(field, 2 * columns)
    values = np.repeat(values, max(1, min(6, 2 * columns // len(values))))
    top, bottom = max(0.0, float(values.max())), min(0.0, float(values.min()))
    unit = (top - bottom) / (4 * ROWS) or 1.0
    heights = np.maximum(1, np.rint(np.abs(values) / unit)).astype(int)
    heights *= np.where(values >= 0, 1, -1)
    above, below = max(0, int(heights.max())), max(0, -int(heights.min()))
    num_rows = 4 * math.ceil((above + below) / 4)  # of dots; four make a line of text
    level = above - np.arange(num_rows)[:, None] - 0.5  # of each row of dots, zero at the axis
    dots = ((level > 0) & (level < heights)) | ((level < 0) & (level > heights))
    dots = np.pad(dots, ((0, 0), (0, len(values) % 2)))
    # In a braille character the dots 1 2 3 7 run down the left column, and 4 5 6 8 down the right.
    bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    cells = (dots.reshape(-1, 4, dots.shape[1] // 2, 2) * bits[:, None, :]).sum(axis=(1, 3))
    names = {max(0, above - 1) // 4: "0"}
    names |= {0: f"{top:.3g}"} if top > 0 else {}
    names |= {len(cells) - 1: f"{bottom:.3g}"} if bottom < 0 else {}
    lines = []
    for row, line in enumerate(cells.tolist()):
        dots_text = "".join(chr(0x2800 + cell) for cell in line)
        lines.append(f"{names.get(row, ''):>8} {'┤' if row in names else '│'}{dots_text}")
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
        "".join(2 * (SHADES[k] if k >= 0 else NEGATIVE_SHADES[-k]) for k in row)
        for row in levels.tolist()
    ]
    edge = "─" * len(rows[0])
    low = f" or {NEGATIVE_SHADES[-1]} ({-limit:.3g})" if levels.min() < 0 else ""
    legend = f"  from blank (0) to {SHADES[-1]} ({limit:.3g}){low}"
    return [f"  ┌{edge}┐", *(f"  │{row}│" for row in rows), f"  └{edge}┘", legend]
