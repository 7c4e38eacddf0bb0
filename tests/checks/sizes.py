"""./dev sizes: the longest source files, lines a folder, and what the built binaries weigh."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "src", "tests", "python"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = {}
    for name in listing.stdout.split():
        path = ROOT / name
        if path.suffix in (".h", ".cpp", ".py") and path.exists():
            lines[name] = len(path.read_text(errors="replace").splitlines())
    print("longest files")
    for name in sorted(lines, key=lines.get, reverse=True)[:15]:
        print(f"  {lines[name]:5}  {name}")
    print("lines a folder")
    folders = {}
    for name, n in lines.items():
        folder = "/".join(name.split("/")[:2])
        folders[folder] = folders.get(folder, 0) + n
    for folder, n in sorted(folders.items(), key=lambda x: -x[1]):
        print(f"  {n:5}  {folder}")
    print("binaries, MB")
    for path in sorted((ROOT / "build" / "release").glob("*")):
        if path.is_file() and not path.suffix and path.stat().st_mode & 0o100 or path.suffix == ".so":
            print(f"  {path.stat().st_size / 1e6:6.1f}  {path.name}")


if __name__ == "__main__":
    main()
