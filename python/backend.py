"""backend.py - makes the wheel and the source archive of this folder: a build backend for pip (PEP 517, 660) of the standard
library alone, so that `pip install` needs neither network nor other packages."""

import base64
import hashlib
import io
import pathlib
import tarfile
import zipfile

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
TAG = "py3-none-any"
TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def project():
    return tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def name_of(about):
    return f"{about['name']}-{about['version']}"


def metadata(about):
    """The file METADATA."""
    lines = ["Metadata-Version: 2.1", f"Name: {about['name']}", f"Version: {about['version']}", f"Summary: {about['description']}",
             f"License: {about['license']['text']}", f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in about["dependencies"]]
    for extra, needs in about["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
    lines += ["Description-Content-Type: text/markdown", "", (HERE / about["readme"]).read_text(encoding="utf-8")]
    return "\n".join(lines).encode()


def sources():
    """{path in the wheel: bytes} of the package."""
    found = sorted(path for path in (HERE / "sluice").rglob("*") if path.suffix in (".py", ".typed") or path.name == "py.typed")
    return {path.relative_to(HERE).as_posix(): path.read_bytes() for path in found}


def hash_of(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(folder, files):
    """A wheel of these files; returns its name."""
    about = project()
    info = f"{name_of(about)}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: sluice backend\nRoot-Is-Purelib: true\nTag: {TAG}\n"
    files = {**files, f"{info}/METADATA": metadata(about), f"{info}/WHEEL": wheel.encode()}
    rows = [f"{path},{hash_of(data)},{len(data)}\n" for path, data in files.items()] + [f"{info}/RECORD,,\n"]
    files[f"{info}/RECORD"] = "".join(rows).encode()
    name = f"{name_of(about)}-{TAG}.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"sluice-editable.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    about = project()
    files = {**sources(), **{name: (HERE / name).read_bytes() for name in ("README.md", "backend.py", "pyproject.toml")},
             "PKG-INFO": metadata(about)}
    name = f"{name_of(about)}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name_of(about)}/{path}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return name
