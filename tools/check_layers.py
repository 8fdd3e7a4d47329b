#!/usr/bin/env python3
"""Checks that #include arrows between the folders of src/ and warpcheck/ point down only.

usage: check_layers.py [ROOT]. Reads include lines alone. A file may include its own folder, the
public headers (dsattn/...) and the folders its row names; exit status 1 lists what breaks that.
"""
import pathlib
import re
import sys

# The longest matching prefix decides the row; a new folder needs a row before it can be used.
ALLOWED = {
    "base": [],
    "plan": ["base"],
    "sim": ["base", "plan"],
    "ref": ["base"],
    "cpu": ["base"],
    "gpu/ptx": [],
    "gpu/tile": ["gpu/ptx"],
    "gpu/pipe": ["gpu/ptx"],
    "gpu/math": ["base"],
    "gpu/host": ["base", "plan"],
    "gpu": ["base", "plan", "gpu/ptx", "gpu/tile", "gpu/pipe", "gpu/math"],  # kernel folders
    "ops": ["base", "plan", "sim", "ref", "cpu", "gpu"],
    "problem": ["base", "ops"],
    "cli": ["base", "plan", "cpu", "ops", "problem", "demo"],  # demo: examples/demo, behind one verb
    "warpcheck/isa": [],
    "warpcheck/parse": ["warpcheck/isa"],
    "warpcheck/ir": ["warpcheck/isa", "warpcheck/parse"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layer_of(folder: str):
    parts = folder.split("/")
    prefixes = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((p for p in prefixes if p in ALLOWED), None)


def problems(root: pathlib.Path):
    checker = root / "warpcheck"
    files = [*(root / "src").rglob("*"), *checker.rglob("*")]
    for path in sorted(p for p in files if p.suffix in {".h", ".cc", ".cu", ".cuh"}):
        if checker / "tests" in path.parents:
            continue
        base = root if checker in path.parents else root / "src"
        folder = path.parent.relative_to(base).as_posix()
        own = layer_of(folder)
        if own is None:
            yield f"{path.relative_to(root)}: folder {folder} has no row in check_layers.py"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match[1].startswith("dsattn/"):
                continue
            target = pathlib.PurePosixPath(match[1]).parent.as_posix()
            allowed = [folder, *ALLOWED[own]]
            if not any((target + "/").startswith(a + "/") for a in allowed):
                yield f"{path.relative_to(root)}:{number}: {own} may not include {target}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found) or "layers: every include arrow points down")
    sys.exit(1 if found else 0)
