"""Prepare the clients that the tests beside this file use, each in an environment of its own.

    python tests/clients/prepare.py FOLDER

Needs the package index, and for the inspector Node with npm. What cannot be prepared is said, and
its tests then fail rather than skip; without Node the inspector's tests are skipped, with a line.
The tests find the folder by MCPL_HEARTBEAT_CLIENTS.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
# It makes environments on machines that have no ensurepip, too.
import start

PYTHON_CLIENTS = {
    "mcp": ["mcp>=2.3,<3", "trio"],
    "fastmcp": ["fastmcp>=4.1,<5"],
    "conform": ["mcp-conform==0.1.0"],
    "launchers": ["uv", "pipx"],
}
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE_MAJOR = 20


def main(folder: Path) -> int:
    """Make everything in ``folder``; return 1 when something could not be made."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = {name: (_python_client, packages) for name, packages in PYTHON_CLIENTS.items()}
    jobs["inspector"] = (_inspector, [INSPECTOR])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda job: _one(folder / job[0], *job[1]), jobs.items()))
    return 0 if all(done) else 1


def _one(target: Path, make, packages: list[str]) -> bool:
    started = time.monotonic()
    try:
        said = make(target, packages)
    except (OSError, subprocess.CalledProcessError) as failure:
        words = (getattr(failure, "stderr", b"") or b"").decode(errors="replace")
        print(f"{target.name}: could not be prepared: {failure}\n{words[-2000:]}", flush=True)
        return False
    print(f"{target.name}: {said} ({time.monotonic() - started:.0f} s)", flush=True)
    return True


def _python_client(target: Path, packages: list[str]) -> str:
    python = target / "bin" / "python"
    if not python.exists():
        start.make_environment(target)
    if not start.has_pip(target):
        start.add_pip(target)
    _run([python, "-m", "pip", "install", "--quiet", "--no-input", "--no-compile", *packages])
    return ", ".join(packages)


def _inspector(target: Path, packages: list[str]) -> str:
    too_old = node_missing()
    if too_old:
        return f"left out: {too_old}"
    target.mkdir(exist_ok=True)
    npm = ["npm", "install", "--prefix", target, "--no-save", "--no-audit", "--no-fund"]
    _run([*npm, "--engine-strict=false", "--ignore-scripts", *packages])
    return ", ".join(packages)


def node_missing() -> str:
    """Say why the inspector cannot run here, or nothing when it can."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return "there is no Node with npm here"
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = found.stdout.strip().removeprefix("v").partition(".")[0]
    if not major.isdigit() or int(major) < NODE_MAJOR:
        return f"Node {found.stdout.strip()} is here, and the inspector needs {NODE_MAJOR} or later"
    return ""


def _run(command: list[object]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PIP_USER"}
    subprocess.run(
        [str(part) for part in command],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
