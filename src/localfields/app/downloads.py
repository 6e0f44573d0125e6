"""Files of the runs that pages show: made when asked for, in a thread, under names that cannot be guessed."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from pathlib import Path
from typing import Any

from tornado.web import HTTPError, RequestHandler

from ..trajectory import Trajectory
from .watched import Watched

KINDS = {"nc": ("application/x-netcdf", "Data (netCDF)"), "svg": ("image/svg+xml", "Picture (SVG)")}


class Downloads:
    """The run that each page shows last, by a secret of the page."""

    def __init__(self) -> None:
        self.secrets: dict[int, str] = {}
        self.runs: dict[str, Watched] = {}

    def publish(self, page: Any, run: Watched) -> None:
        """Offer the run of a page, in place of the one before."""
        self.runs[self.secrets.setdefault(id(page), secrets.token_urlsafe(24))] = run

    def withdraw(self, page: Any) -> None:
        """Offer nothing of this page any more."""
        self.runs.pop(self.secrets.pop(id(page), ""), None)

    def links(self, page: Any) -> str:
        """HTML with a link for each kind of file."""
        secret = self.secrets[id(page)]
        name = self.runs[secret].texts.get("stimulus", "run")
        return " ".join(
            f"<a class='download' href='/download/{secret}.{kind}' download='{name}.{kind}'>{words}</a>"
            for kind, (_, words) in KINDS.items()
        )

    def patterns(self) -> list[tuple[str, Any, dict[str, Any]]]:
        """For the server: which addresses are answered here."""
        return [(rf"/download/([\w-]{{1,64}})\.({'|'.join(KINDS)})", File, {"downloads": self})]


class File(RequestHandler):
    """One file of one run."""

    def initialize(self, downloads: Downloads) -> None:
        """Remember what is offered."""
        self.downloads = downloads

    async def get(self, secret: str, kind: str) -> None:
        """Make the file and send it."""
        run = self.downloads.runs.get(secret)
        if run is None:
            raise HTTPError(404, reason="This run is gone: open the page again")
        content = await asyncio.get_running_loop().run_in_executor(
            None, make_file, run.trajectory(), kind
        )
        name = run.texts.get("stimulus", "run")
        self.set_header("Content-Type", KINDS[kind][0])
        self.set_header("Content-Disposition", f'attachment; filename="{name}.{kind}"')
        self.finish(content)


def make_file(run: Trajectory, kind: str) -> bytes:
    """A trajectory as the bytes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"run.{kind}"
        if kind == "nc":
            from ..store.export import export

            export(run, path)
        else:
            from ..plots.trajectory import save_overview

            save_overview(run, path)
        return path.read_bytes()
