"""From models to findings: `gaf emit` writes the texts, g++ compiles them against the stub headers (one program a language, so
that the headers are read once), the program runs each kernel under every check of engine/runner.h and answers in JSON."""

import dataclasses
import json
import os
import pathlib
import subprocess

import kernels as k

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("GAF_BUILD", ROOT / "build" / "release"))
HEADERS = {"ascendc": ("kernel_operator.h", HERE / "ascendc"), "pto": ("pto/pto-inst.hpp", HERE / "pto")}


@dataclasses.dataclass
class Emitted:
    """What `gaf emit --json` said of one model for one target and language."""

    files: dict  # suffix -> text
    kernel: dict  # name, buffers, blocks, peak, gm_read_bytes, gm_write_bytes

    @property
    def source(self):
        return self.files[".cpp"]


def gaf(folder, *words, code=0):
    environment = {key: v for key, v in os.environ.items() if not key.startswith("AUTOFUSION_")}
    environment["AUTOFUSION_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run([BUILD / "gaf", *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def emit(folder, model, language, target):
    out = folder / f"{model.stem}-{language}-{target}"
    document = json.loads(gaf(folder, "emit", model, "-o", out, "--backend", language, "--target", target, "--json").stdout)
    assert document["schema"] == "gaf.emit/1"
    (kernel,) = document["kernels"]
    files = {pathlib.Path(f).suffix: pathlib.Path(out, f).read_text() for f in document["files"]}
    return Emitted(files, kernel)


@dataclasses.dataclass
class Job:
    """One run of one text."""

    name: str
    kernel: k.Kernel
    emitted: Emitted
    source: str  # the emitted text, or one with a fault planted
    mutate: int = 0


def program(folder, language, jobs):
    """The C++ source of a program that holds the texts of `jobs`, each in a namespace and under a name of its own."""
    header, _ = HEADERS[language]
    lines = [f"#include <{header}>", '#include "engine/runner.h"']
    for i, job in enumerate(jobs):
        name, count = job.emitted.kernel["name"], len(job.emitted.kernel["buffers"])
        text = folder / f"{language}{i}.cpp"
        text.write_text(job.source)
        lines += [f"#define {name} kernel{i}", f"namespace text{i} {{", f'#include "{text.name}"', "}", f"#undef {name}"]
        lines.append(f"static void run{i}(uint8_t* const* b) {{ text{i}::kernel{i}({', '.join(f'b[{j}]' for j in range(count))}); }}")
    lines.append(f"int main(int n, char** v) {{ return npu::run_cases(n, v, {{{', '.join(f'run{i}' for i in range(len(jobs)))}}}); }}")
    return "\n".join(lines) + "\n"


def start_compiler(folder, language, jobs):
    source = folder / f"{language}.cpp"
    source.write_text(program(folder, language, jobs))
    words = ["g++", "-std=c++20", "-O0", f"-I{HEADERS[language][1]}", f"-I{HERE}", source, BUILD / "libnpu_engine.a", "-o", folder / language]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def dump_file(language, job):
    return f"{language}-{job.name}.trace"


def write_cases(folder, language, jobs):
    lines = []
    for i, job in enumerate(jobs):
        data, result = k.inputs_and_result(job.kernel)
        for name, array in data.items():
            array.tofile(folder / f"{job.kernel.name}.{name}")
        result.tofile(folder / f"{job.kernel.name}.f64")
        lines.append(f"case {job.name} {i}")
        for buffer in job.emitted.kernel["buffers"]:
            is_input = buffer["role"] == "in"
            lines.append(f"in {job.kernel.name}.{buffer['name']}" if is_input else f"out {k.result_bytes(job.kernel)} {job.kernel.name}.f64")
        lines += [f"blocks {' '.join(map(str, k.block_counts(job.kernel)))}", f"mutate {job.mutate}", f"dump {dump_file(language, job)}", "end"]
    (folder / f"{language}.cases").write_text("\n".join(lines) + "\n")


def run(folder, jobs_of):
    """{language: [Job]} -> {(language, name): what was found}."""
    compilers = {language: start_compiler(folder, language, jobs) for language, jobs in jobs_of.items()}
    for language, jobs in jobs_of.items():
        write_cases(folder, language, jobs)
    programs = {}
    for language, compiler in compilers.items():
        errors = compiler.communicate(timeout=600)[1]
        assert compiler.returncode == 0, errors[:8000]
        programs[language] = subprocess.Popen([folder / language, f"{language}.cases"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found = {}
    for language, running in programs.items():
        out, errors = running.communicate(timeout=600)
        assert running.returncode == 0, errors[-2000:]
        for job, result in zip(jobs_of[language], json.loads(out), strict=True):
            found[language, result["name"]] = {**result, "trace": (folder / dump_file(language, job)).read_text().splitlines()}
    return found
