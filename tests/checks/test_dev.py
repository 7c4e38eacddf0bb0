"""The developer's script answers clearly where it cannot go on."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def dev(*arguments, path=None):
    env = dict(os.environ, **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {}))
    return subprocess.run([ROOT / "dev", *arguments], capture_output=True, text=True, env=env, timeout=60)


def stub(folder, name, body):
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def test_help_lists_the_verbs():
    out = dev("help")
    assert out.returncode == 0
    verbs = "demo build test models conformance regressions contract bench bless fmt tidy fuzz sizes wheel help".split()
    assert all(f"\n  {verb} " in out.stdout for verb in verbs)


def test_unknown_words_are_usage_errors():
    assert dev("tset").returncode == 2
    out = dev("test", "--preset", "msan")
    assert out.returncode == 2 and "unknown preset 'msan'" in out.stderr


def test_without_root_it_says_what_to_install(tmp_path):
    stub(tmp_path, "dpkg-query", "exit 1")
    stub(tmp_path, "id", "echo 1000")
    out = dev("build", path=tmp_path)
    assert out.returncode == 1
    assert "as root: apt-get install g++ cmake" in out.stderr


def test_without_network_it_stops_and_says_what_it_needed(tmp_path):
    stub(tmp_path, "dpkg-query", "exit 1")
    stub(tmp_path, "id", "echo 0")
    stub(tmp_path, "apt-get", "exit 100")
    out = dev("build", path=tmp_path)
    assert out.returncode == 1
    assert "no network?" in out.stderr and "ninja-build" in out.stderr
