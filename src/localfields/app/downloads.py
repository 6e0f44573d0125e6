"""Files of the runs that pages show, made on demand and served under names nobody can guess."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from pathlib import Path
from typing import Any

from tornado.web import HTTPError, RequestHandler

from ..trajectory import Trajectory
from .live_run import LiveRun

FILE_TYPES = {
    "nc": ("application/x-netcdf", "Data (netCDF)"),
    "svg": ("image/svg+xml", "Picture (SVG)"),
}


class Downloads:
    """The last run of each page, by a secret of the page."""

    def __init__(self) -> None:
        self.secrets: dict[int, str] = {}
        self.runs: dict[str, LiveRun] = {}

    def publish(self, page: Any, run: LiveRun) -> None:
        """Offer the run of a page, instead of the one before."""
        self.runs[self.secrets.setdefault(id(page), secrets.token_urlsafe(24))] = run

    def withdraw(self, page: Any) -> None:
        """Offer nothing of this page any more."""
        self.runs.pop(self.secrets.pop(id(page), ""), None)

    def links(self, page: Any) -> str:
        """HTML with a link for each type of file."""
        secret = self.secrets[id(page)]
        name = self.runs[secret].texts.get("stimulus", "run")
        return " ".join(
            f"<a class='download' href='/download/{secret}.{suffix}' "
            f"download='{name}.{suffix}'>{label}</a>"
            for suffix, (_, label) in FILE_TYPES.items()
        )

    def patterns(self) -> list[tuple[str, Any, dict[str, Any]]]:
        """The paths that are answered here, for the server."""
        suffixes = "|".join(FILE_TYPES)
        return [(rf"/download/([\w-]{{1,64}})\.({suffixes})", RunFile, {"downloads": self})]


class RunFile(RequestHandler):
    """One file of one run."""

    def initialize(self, downloads: Downloads) -> None:
        """Remember what is offered."""
        self.downloads = downloads

    async def get(self, secret: str, suffix: str) -> None:
        """Make the file and send it."""
        run = self.downloads.runs.get(secret)
        if run is None:
            raise HTTPError(404, reason="This run is gone: open the page again")
        loop = asyncio.get_running_loop()
        content = await loop.run_in_executor(None, make_file, run.trajectory(), suffix)
        name = run.texts.get("stimulus", "run")
        self.set_header("Content-Type", FILE_TYPES[suffix][0])
        self.set_header("Content-Disposition", f'attachment; filename="{name}.{suffix}"')
        self.finish(content)


def make_file(run: Trajectory, suffix: str) -> bytes:
    """A trajectory as the bytes of a file."""
    from .. import plots
    from ..plots._style import save_picture
    from ..store.export import export

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"run.{suffix}"
        if suffix == "nc":
            export(run, path)
        else:
            save_picture(path, plots.overview, run)
        return path.read_bytes()
