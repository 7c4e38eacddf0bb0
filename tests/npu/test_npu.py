"""Generated NPU text is right, shown without an NPU: it compiles against stub headers that hold only documented names, computes
what it should in every order that its flags and barriers allow, needs each of them, and uses the memory and traffic that the
analysis says."""

import hashlib
import os
import re
import shutil

import pytest

pytest.importorskip("onnx")
import faults  # noqa: E402
import harness  # noqa: E402
import kernels as k  # noqa: E402
import pto_replay  # noqa: E402

GOLDEN = harness.HERE / "golden"
ULP = 2  # of float16; the result's own rounding is half of one
SUFFIXES = {"ascendc": (".cpp",), "pto": (".cpp", ".pto")}

RUNS = [(kernel, target, language) for kernel in k.KERNELS for target in k.TARGETS for language in k.LANGUAGES]
PTO = pytest.mark.contract("O18")
each_run = pytest.mark.parametrize(
    ("kernel", "target", "language"),
    [pytest.param(kernel, t, l, id=f"{kernel.name}-{t[-2:]}-{l}", marks=[PTO] if l == "pto" else []) for kernel, t, l in RUNS],
)


@pytest.fixture(scope="session")
def emitted(tmp_path_factory):
    """{(kernel, target, language): Emitted}"""
    folder = tmp_path_factory.mktemp("npu")
    texts = {}
    for kernel in k.KERNELS:
        model = folder / f"{kernel.name}.onnx"
        k.write_model(kernel, model)
        for target in k.TARGETS:
            for language in k.LANGUAGES:
                texts[kernel, target, language] = harness.emit(folder, model, language, target)
    return texts


@pytest.fixture(scope="session")
def found(emitted, tmp_path_factory):
    """{(language, name of the run): what was found}: all texts, and the same with faults planted."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile the generated texts with")
    jobs = {language: {} for language in k.LANGUAGES}
    for (kernel, target, language), text in emitted.items():
        jobs[language].setdefault(name_of(kernel, text), harness.Job(name_of(kernel, text), kernel, text, text.source, kernel.mutate))
        if target == k.TARGETS[0]:
            for fault in faults.of(kernel, language):
                name = f"{kernel.name}-{fault.name}"
                jobs[language][name] = harness.Job(name, kernel, text, fault.plant(text.source))
    return harness.run(tmp_path_factory.mktemp("programs"), {language: list(all_of.values()) for language, all_of in jobs.items()})


def name_of(kernel, text):
    """Of the run of a text: what targets share, they run once."""
    bare = "\n".join(line for line in text.source.splitlines() if not line.startswith("//"))
    return f"{kernel.name}-{hashlib.sha256(bare.encode()).hexdigest()[:12]}"


@pytest.fixture
def run(found, emitted):
    return lambda kernel, target, language: found[language, name_of(kernel, emitted[kernel, target, language])]


@each_run
def test_values_are_those_of_float64(run, kernel, target, language):
    assert run(kernel, target, language)["ulp"] <= ULP


@each_run
def test_calls_keep_the_documented_limits(run, kernel, target, language):
    r = run(kernel, target, language)
    assert r["misuse"] == {} and r["undefined"] == {}


@each_run
def test_no_order_of_the_pipes_changes_a_value_or_hangs(run, kernel, target, language):
    r = run(kernel, target, language)
    assert r["races"] == {} and r["schedules"] == []


@each_run
def test_any_number_of_blocks_gives_the_same(run, kernel, target, language):
    assert run(kernel, target, language)["blocks"] == []


@each_run
def test_every_sync_is_needed(run, kernel, target, language, record_property):
    """Each sync statement, and for the smaller kernels each single sync operation, taken out is noticed. Only the first run of a
    barrier in a loop may be idle: it orders later iterations."""
    r = run(kernel, target, language)
    for level in ("statements", "single")[: kernel.mutate]:
        m = r[level]
        title = f"count {language}, sync {'statements' if level == 'statements' else 'operations'} taken out one by one"
        for key, what in (("removed", "tried"), ("noticed", "noticed"), ("open", "of these by an open rule"), ("idle", "idle")):
            record_property(f"{title}: {what}", m[key])
        assert m["removed"] > 0 and m["missed"] == [] and m["noticed"] + m["idle"] == m["removed"]
        assert level == "single" or m["idle"] == 0


@each_run
def test_memory_and_traffic_are_what_the_analysis_says(run, emitted, kernel, target, language):
    r, said = run(kernel, target, language), emitted[kernel, target, language].kernel
    assert {m.lower(): n for m, n in r["peak"].items() if n} == {m: n for m, n in said["peak"].items() if n}
    assert (r["read"], r["written"]) == (said["gm_read_bytes"], said["gm_write_bytes"])


@each_run
def test_header_says_what_the_kernel_needs(emitted, kernel, target, language):
    text, said = emitted[kernel, target, language].source, emitted[kernel, target, language].kernel
    head = text[: text.index("#include")]
    assert f"for {target}." in head and "CANN 8.3 or later" in head and "automatic synchronisation off" in head
    memories = {m: int(n) for m, n in re.findall(r"^// Memory (\w+): (\d+) of \d+ bytes$", head, re.M)}
    assert memories == {m: n for m, n in said["peak"].items() if n}
    assert f"// Launch: {said['blocks']} block" in head and f" on {kernel.unit} cores" in head
    assert 1 <= said["blocks"] <= k.CORES[target][kernel.unit]


@pytest.mark.parametrize(("kernel", "target"), [(kernel, t) for kernel in k.KERNELS for t in k.TARGETS], ids=lambda x: getattr(x, "name", x))
@PTO
def test_pto_text_does_what_the_cpp_form_does(run, emitted, kernel, target):
    trace = run(kernel, target, "pto")["trace"]
    assert len(trace) > 10 and pto_replay.steps(emitted[kernel, target, "pto"].files[".pto"]) == trace


@pytest.mark.parametrize("language", k.LANGUAGES)
@pytest.mark.parametrize("name", faults.NAMES)
def test_planted_faults_are_caught(found, name, language):
    planted = [(kernel, f) for kernel in k.KERNELS for f in faults.of(kernel, language) if f.name == name]
    assert planted, "no kernel carries this fault"
    for kernel, fault in planted:
        r = found[language, f"{kernel.name}-{name}"]
        print(f"{language} {kernel.name} with {name}: " + "; ".join(fault.signs(r)))
        assert fault.signs(r), f"{kernel.name} with {name} passes"


@pytest.mark.parametrize("target", k.TARGETS)
@pytest.mark.parametrize("language", k.LANGUAGES)
@pytest.mark.parametrize("kernel", [kernel for kernel in k.KERNELS if kernel.golden], ids=lambda kernel: kernel.name)
def test_text_is_as_kept(emitted, kernel, language, target):
    for suffix in SUFFIXES[language]:
        text = emitted[kernel, target, language].files[suffix]
        kept = GOLDEN / target / language / f"{kernel.name}{suffix}"
        if os.environ.get("GAF_BLESS"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(text)
        assert kept.exists(), f"{kept.relative_to(harness.ROOT)} is missing: ./dev bless writes it"
        assert text.splitlines() == kept.read_text().splitlines(), "./dev bless takes the new text over"


def test_emitting_again_gives_the_same_bytes(emitted, tmp_path):
    kernel = k.KERNELS[0]
    k.write_model(kernel, tmp_path / f"{kernel.name}.onnx")
    for language in k.LANGUAGES:
        again = harness.emit(tmp_path, tmp_path / f"{kernel.name}.onnx", language, k.TARGETS[0])
        assert again.files == emitted[kernel, k.TARGETS[0], language].files
