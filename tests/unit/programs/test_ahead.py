"""Programs compiled for GPUs that are not present: their kernels, facts and files.

The seven architectures share most texts of kernels. The default tests compile each text of a
program for one architecture; ``make check-kernels`` (the marker ``sweep``) compiles it for each.
"""

import json
import zlib

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import images
from gputensor.errors import ProgramError, ProgramFileError
from gputensor.programs import file, targets
from gputensor.programs.ahead.packed import packed, unpacked
from gputensor.programs.function import Number
from tests.support.nvrtc_library import needs_nvrtc
from tests.support.programs import ahead_models, hand_models

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
#: Programs whose kernels must compile: written by hand in two dtypes, and the small ones.
PROGRAMS = [
    *((name, dtype) for name in ("mlp", "encoder", "llama") for dtype in ("float32", "bfloat16")),
    ("plate", None),
    *((name, None) for name in ahead_models.MODELS),
]


def compiled(name, dtype, target, rng):
    with gt.Device("host"):
        if name in ahead_models.MODELS:
            return ahead_models.MODELS[name](rng).compile(target)
        model = hand_models.MODELS[name](**({} if dtype is None else {"dtype": dtype}))
        return gt.compile(model.functions, weights=model.weights, state=model.state, target=target)


def check_images(program, architectures):
    """Check that each launch of each architecture has a compiled kernel."""
    ahead = program.data.ahead
    assert [str(target) for target in ahead.lists] == architectures
    for target, lists in ahead.lists.items():
        used = {number for one in lists.values() for number in one.kernels}
        for number in used:
            image = ahead.kernels.all[number].images[str(target)].data()
            assert image[:4] == b"\x7fELF", target


@pytest.fixture(scope="module")
def compiled_texts():
    """The texts of kernels that the tests of this module have compiled."""
    return set()


@pytest.fixture
def each_text_once(monkeypatch, compiled_texts):
    """Compile a text for the first architecture that needs it."""
    image_of = images.image_of

    def first_image_of(program, target):
        text = program.text()
        if text in compiled_texts:
            return b"\x7fELF"
        compiled_texts.add(text)  # before it is done: other threads compile at the same time
        return image_of(program, target)

    monkeypatch.setattr(images, "image_of", first_image_of)


@needs_nvrtc
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("ahead")  # one worker, so that no text is compiled twice
@pytest.mark.parametrize(("name", "dtype"), PROGRAMS)
def test_every_kernel_compiles(name, dtype, rng, each_text_once):
    # In random order, so that over time each text is compiled for each architecture.
    order = [ARCHITECTURES[i] for i in rng.permutation(len(ARCHITECTURES))]
    check_images(compiled(name, dtype, order, rng), order)


@needs_nvrtc
@pytest.mark.sweep
@pytest.mark.parametrize(("name", "dtype"), PROGRAMS)
def test_every_kernel_compiles_for_each_architecture(name, dtype, rng):
    check_images(compiled(name, dtype, list(ARCHITECTURES), rng), list(ARCHITECTURES))


@needs_nvrtc
def test_a_file_contains_the_compiled_kernels(rng, tmp_path):
    program = compiled("wide", None, ["a100", "l4+ptx"], rng)
    path = tmp_path / "wide.gtp"
    program.save(path)
    found, made = file.read(path).ahead, program.data.ahead
    assert list(found.lists) == list(made.lists)
    for target, lists in made.lists.items():
        kept = {key: one.to_bytes() for key, one in found.lists[target].items()}
        assert kept == {key: one.to_bytes() for key, one in lists.items()}
    for one, other in zip(found.kernels.all, made.kernels.all, strict=True):
        assert (one.entry, one.source) == (other.entry, other.source)
        images = {name: image.data() for name, image in one.images.items()}
        assert images == {name: image.data() for name, image in other.images.items()}
        assert set(images) == {"sm_80", "sm_89", "compute_89"}
    program.save(tmp_path / "again.gtp")
    assert (tmp_path / "again.gtp").read_bytes() == path.read_bytes()


@needs_nvrtc
def test_the_same_program_gives_the_same_file(tmp_path):
    for name in ("one", "two"):
        rng = np.random.default_rng(5)
        compiled("network", None, ["h200"], rng).save(tmp_path / f"{name}.gtp")
    assert (tmp_path / "one.gtp").read_bytes() == (tmp_path / "two.gtp").read_bytes()


@needs_nvrtc
def test_kernels_of_a_changed_file_are_not_loaded(rng, tmp_path):
    program = compiled("wide", None, ["a100"], rng)
    path = tmp_path / "wide.gtp"
    image = program.data.ahead.kernels.all[0].images["sm_80"].data()
    for compress, rule in (
        (False, "those of its SHA-256"),
        (True, rf"a zlib stream of {len(image)}"),
    ):
        program.save(path, compress=compress)
        raw = bytearray(path.read_bytes())
        stored = zlib.compress(image, 9) if compress else image
        raw[bytes(raw).index(stored) + len(stored) // 2] ^= 1
        path.write_bytes(raw)
        kernels = file.read(path).ahead.kernels.all  # bytes are not checked yet
        found = rf"kernel\.0\.sm_80: got other bytes; expected ({rule}|those of its SHA-256)"
        with pytest.raises(ProgramFileError, match=found):
            kernels[0].images["sm_80"].data()


@needs_nvrtc
def test_files_are_compressed_by_default(rng, tmp_path):
    program = compiled("network", None, ["a100+ptx"], rng)
    program.save(tmp_path / "small.gtp")
    program.save(tmp_path / "plain.gtp", compress=False)
    small, plain = (file.open_file(tmp_path / f"{name}.gtp") for name in ("small", "plain"))
    code = [name for name in plain.entries if name.split(".")[0] in ("kernel", "launches", "steps")]
    assert {name.split(".")[0] for name in code} == {"kernel", "launches", "steps"}
    for name in code:
        assert zlib.decompress(small.data(name)) == bytes(plain.data(name)), name
    counts = [sum(len(one.data(name)) for name in code) for one in (small, plain)]
    assert counts[0] * 3 < counts[1]
    text = zlib.decompress(small.data("program"))
    assert small.metadata["program_nbytes"] == str(len(text))
    made = [json.loads(one) for one in (text, bytes(plain.data("program")))]
    assert made[0]["ahead"].pop("packed")
    assert made[0] == made[1]


@pytest.mark.parametrize("change", ["shorter", "longer", "behind", "no stream"])
def test_a_stream_without_its_declared_size_is_refused(change, rng):
    content = rng.bytes(500) * 2
    stream, nbytes = packed(content), len(content)
    assert unpacked("kernel.0.sm_80", stream, nbytes) == content
    nbytes += {"shorter": -1, "longer": 1}.get(change, 0)
    stream = {"behind": stream + b"x", "no stream": content}.get(change, stream)
    with pytest.raises(ProgramFileError, match=rf"expected a zlib stream of {nbytes}"):
        unpacked("kernel.0.sm_80", stream, nbytes)


@needs_nvrtc
def test_facts_have_to_agree_on_all_targets():
    def model(x):
        return x * 2 if gt.get_device_capability() >= (9, 0) else x + 1

    for target, operation in (("a100", "add"), ("h200", "mul")):
        with gt.Device("host"):  # a GPU of another kind refuses to open the program
            program = gt.compile(model, gt.spec((4,)), target=[target])
        (function,) = program.data.functions.values()
        assert [call.attributes["op"] for call in function.calls] == [operation]
    with pytest.raises(ProgramError, match=r"sm_90: get_device_capability: got \(9, 0\)"):
        gt.compile(model, gt.spec((4,)), target=["a100", "h200"])


def test_a_gpu_that_is_not_there_has_no_name():
    def model(x):
        return x * len(gt.get_device_name())

    with pytest.raises(gt.TraceError, match=r"get_device_name\(\) of a GPU that is not present"):
        gt.compile(model, gt.spec((4,)), target="a100")


@needs_nvrtc
def test_architectures_that_the_compiler_lacks_are_named(monkeypatch):
    known = gt.compile(lambda x: x + 1, gt.spec((4,)), target="thor").data.ahead.kernels.all
    assert all(set(kernel.images) == {"sm_110"} for kernel in known)
    monkeypatch.setitem(targets.TARGETS, "sm_999", targets.Target(999, 1, 1 << 10))
    with pytest.raises(gt.errors.DeviceError, match=r"NVRTC [0-9.]+ does not compile for sm_999"):
        gt.compile(lambda x: x + 1, gt.spec((4,)), target="sm_999")


def test_calls_of_another_library_have_no_launches(monkeypatch, rng, tmp_path):
    monkeypatch.setattr(images, "image_of", lambda program, target: b"\x7fELF")

    def model(x):
        return gt.linalg.inv(x * 2) + 1

    with gt.Device("host"):
        program = gt.compile(model, gt.spec((4, 4)), target="h200")
        program.save(tmp_path / "inverse.gtp")
        (lists,) = program.data.ahead.lists.values()
        assert len(lists) == 2
        x = rng.uniform(-1, 1, (4, 4)) + 8 * np.eye(4)  # its condition is at most 3
        with gt.load_program(tmp_path / "inverse.gtp") as opened:
            found = opened(gt.asarray(x, dtype="float32")).numpy()
    np.testing.assert_allclose(found, np.linalg.inv(2 * x) + 1, rtol=1e-4)


def test_numbers_beyond_their_dtypes_are_one_line_when_saving(monkeypatch, tmp_path):
    monkeypatch.setattr(images, "image_of", lambda program, target: b"\x7fELF")
    with gt.Device("host"):
        program = gt.compile(lambda x: gt.add(x, 7), gt.spec(3, "int32"), target="h200")
    ((name, function),) = program.data.functions.items()
    for call in function.calls:
        call.reads = tuple(
            one._replace(value=2**62) if isinstance(one, Number) else one for one in call.reads
        )
    with pytest.raises(ProgramError, match=rf"^{name}: [^\n]*out of bounds for int32$"):
        program.save(tmp_path / "p.gtp")
    assert not (tmp_path / "p.gtp").exists()
