"""The files of a data set: in `MESCAL_DATA`, else in the cache, else downloaded; always verified by sha256."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from .download import download_members
from .places import cache_folder, data_folder, sha256


@dataclass(frozen=True)
class Files:
    """The files that a data set is made of.

    **Arguments:**

    - `checksums`: sha256 of every file, by file name.
    - `archive`: the zip archive that holds them, as a path on the UCI repository; None where nobody publishes them.
    - `unpublished`: where there is no archive: why, as a clause.
    """

    checksums: Mapping[str, str]
    archive: str | None = None
    unpublished: str = ""

    def find(self, **how) -> dict[str, Path]:
        """Where each file lies; downloads those that are nowhere (`how`: see `download_members`)."""
        found = {name: path for name in self.checksums if (path := self._local(name))}
        missing = {name: digest for name, digest in self.checksums.items() if name not in found}
        if not missing:
            return found
        if self.archive is None:
            name, digest = next(iter(missing.items()))
            raise InputError(
                f"{name} is neither in the folder MESCAL_DATA nor in the cache, {cache_folder()}",
                f"the file with sha256 {digest}; it cannot be downloaded, because {self.unpublished}",
                f"put {name} into a folder and set MESCAL_DATA to that folder",
            )
        return found | download_members(self.archive, missing, cache_folder(), **how)

    def _local(self, name: str) -> Path | None:
        folder = data_folder()
        if folder is not None and (folder / name).is_file():
            self._verify(folder / name)
            return folder / name
        cached = cache_folder() / name
        # A cached file that is damaged counts as missing: the download replaces it.
        return cached if cached.is_file() and sha256(cached) == self.checksums[name] else None

    def _verify(self, path: Path):
        digest = sha256(path)
        if digest != self.checksums[path.name]:
            raise InputError(
                f"{path} has sha256 {digest}",
                f"sha256 {self.checksums[path.name]}",
                "get the file again, or move it out of the folder MESCAL_DATA to have it downloaded",
            )
