"""`localfields app`: the explorer in a browser."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from ._options import STORE, Command, Option, open_store, run_command

NEEDED = ("panel", "bokeh")

ABOUT = """Open the explorer: turn the gain and watch a receptive field being born.

It is a page for a browser on this machine; nothing is fetched from, or sent to, any other."""

OPTIONS = {
    "port": Option("to listen on", "INT", default=5006, convert=int),
    "address": Option(
        "to listen on; others can reach any but a loopback one", "ADDRESS", default="127.0.0.1"
    ),
    "host": Option(
        "further names it may be asked for by, joined by commas",
        "NAME,…",
        default=[],
        repeated=True,
    ),
    "store": STORE,
    "report": Option("folder of the reproduction report", "PATH", default="report"),
    "workers": Option("processes that carry out runs", "INT", default=2, convert=int),
    "show": Option("open a browser", default=False),
}


def run(argv: Sequence[str]) -> None:
    """Read the options and serve."""
    run_command(Command(app, {"options": OPTIONS}, ABOUT), argv, "localfields app")


def app(
    port: int, address: str, host: list[str], store: str, report: str, workers: int, show: bool
) -> None:
    """Serve, if the libraries for it are installed."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            raise InputError(
                f"The explorer needs {name}. Install it with `pip install 'localfields[app]'`, "
                "or in a checkout with `make app`."
            )
    from ..app.server import serve

    hosts = [name.strip() for names in host for name in names.split(",") if name.strip()]
    serve(address, port, open_store(store).path, show, workers, hosts, Path(report))
