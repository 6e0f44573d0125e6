"""`localfields app`: the explorer in a browser."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from ..errors import Said, refuse
from ._options import run_command

NEEDED = ("panel", "bokeh")


def run(argv: Sequence[str]) -> None:
    """Read the options and serve."""
    run_command(app, _joined(argv), "localfields app")


def app(
    port: Annotated[int, tyro.conf.arg(help="to listen on")] = 5006,
    address: Annotated[
        str, tyro.conf.arg(help="to listen on; others can reach any but a loopback one")
    ] = "127.0.0.1",
    host: Annotated[
        str,
        tyro.conf.arg(
            help="further names it may be asked for by, joined by commas", metavar="NAME,…"
        ),
    ] = "",
    store: Annotated[
        str,
        tyro.conf.arg(
            help="folder of results; otherwise $LOCALFIELDS_STORE, or runs", metavar="PATH"
        ),
    ] = "",
    report: Annotated[
        str, tyro.conf.arg(help="folder of the reproduction report", metavar="PATH")
    ] = "report",
    workers: Annotated[int, tyro.conf.arg(help="processes that carry out runs")] = 2,
    show: Annotated[
        bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help="open a browser")
    ] = False,
) -> None:
    """Open the explorer: turn the gain and watch a receptive field being born.

    It is a page for a browser on this machine; nothing is fetched from, or sent to, any other.
    """
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            advice = "Install it with `pip install 'localfields[app]'`, or in a checkout with `make app`."
            refuse(
                "The explorer's environment",
                Said(f"one without `{name}`"),
                "one with panel and bokeh",
                advice,
            )
    from ..app.server import serve
    from ..store import Store

    hosts = [one.strip() for one in host.split(",") if one.strip()]
    where = Store(store or None).path
    serve(address, port, where, show, workers, hosts, Path(report))


def _joined(argv: Sequence[str]) -> list[str]:
    """`--host a --host b` is `--host a,b`."""
    words, hosts, rest = list(argv), [], []
    while words:
        word = words.pop(0)
        if word.startswith("--host="):
            hosts.append(word.removeprefix("--host="))
        elif word == "--host" and words:
            hosts.append(words.pop(0))
        else:
            rest.append(word)
    return rest + (["--host", ",".join(hosts)] if hosts else [])
