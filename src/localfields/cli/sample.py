"""`localfields sample`: samples of one stimulus, as a file, a picture, or a table of statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._start import use_compilation_cache
from ._options import OVERWRITE, Command, Option, field_options, given, run_one_of, working
from ._run import output_files

SUFFIXES = (".npz", ".npy", ".csv")

OPTIONS = {
    "num": Option("how many samples", "INT", default="1000"),
    "seed": Option("seed of the random key", "INT", default="0"),
    "out": Option(
        "file to write: .npz (samples and specification), .npy or .csv", "PATH", default=""
    ),
    "plot": Option("also draw a picture, beside --out or named after the stimulus", default=False),
    "overwrite": OVERWRITE,
}


def run(argv: Sequence[str]) -> None:
    """Offer every registered stimulus as a subcommand."""
    from .._spec import registered

    commands = {name: _command(cls) for name, cls in registered("stimulus").items()}
    about = "Draw samples of a stimulus. Its parameters are options; all have defaults."
    run_one_of(commands, argv, "localfields sample", "stimulus", about)


def _command(cls: Any) -> Command:
    from .._spec import from_text

    stimulus_options = field_options(cls)

    def command(**values: Any) -> None:
        _sample(from_text(cls, given(stimulus_options, values)), **values)

    return Command(command, {"stimulus": stimulus_options, "output": OPTIONS}, cls.__doc__)


def _sample(stimulus: Any, num: str, seed: str, out: str, plot: bool, overwrite: bool) -> None:
    import numpy as np

    from .._files import publish
    from .._spec import Count, name_of

    count = Count(high=2**31).parse("num", num)
    start = Count(low=0, high=2**62).parse("seed", seed)
    target, picture = output_files(name_of(type(stimulus)), out, plot, overwrite, SUFFIXES)
    use_compilation_cache()
    with working(f"drawing {count} samples of {stimulus.size} sites"):
        x = np.asarray(stimulus.sample(start, count))
    if target is not None:
        publish(target, lambda path: _write(path, x, stimulus, start))
        print(f"wrote {count} samples of {stimulus.size} sites to {target}")
    if picture is not None:
        from .. import plots
        from ..plots._style import save_picture

        publish(picture, lambda path: save_picture(path, plots.stimulus, stimulus, x))
        print(f"drew {picture}")
    if target is None and picture is None:
        _summarize(stimulus, x)


def _write(path: Path, x: Any, stimulus: Any, seed: int) -> None:
    import numpy as np

    if path.suffix == ".npz":
        np.savez(path, x=x, specification=json.dumps(stimulus.to_json()), seed=seed)
    elif path.suffix == ".npy":
        np.save(path, x)
    else:
        digits = "%.9g" if x.dtype == np.float32 else "%.17g"  # read back to the same bits
        np.savetxt(path, x, delimiter=",", fmt=digits)


def _summarize(stimulus: Any, x: Any) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    x = x.astype(float)
    marginal = stimulus.marginal()
    centered = x - x.mean()
    rows = [
        ("mean", x.mean(), stimulus.mean()),
        ("variance", x.var(), float(stimulus.covariance().flat[0])),
    ]
    if marginal is not None:
        kurtosis = np.mean(centered**4) / np.mean(centered**2) ** 2
        rows += [
            ("mean size E|X|", np.abs(centered).mean(), marginal.mean_abs),
            ("kurtosis", kurtosis, marginal.kurtosis),
        ]
    table = Table("", "samples", "exact", title=repr(stimulus), title_justify="left")
    for name, sampled, exact in rows:
        table.add_row(name, f"{sampled:.4f}", f"{exact:.4f}".replace("inf", "∞"))
    Console().print(table)
