"""Files of products to tune: what is read, and the errors of unreadable lines."""

import json

import pytest

from gputensor.blas.plan import FIELDS, signature_of_shape
from gputensor.blas.tuning.shapes_file import name_of_signature, read_signatures


def named(signature):
    return dict(zip(FIELDS, signature, strict=True))


def test_lines_of_text_name_row_major_products(tmp_path):
    path = tmp_path / "shapes.txt"
    path.write_text("# layers\n\n16x4096x8192 bf16 NT  # down\n3x5x7 fp64\n")
    first, second = map(named, read_signatures(path))
    assert (first["m"], first["n"], first["k"]) == (4096, 16, 8192)
    assert (first["lda"], first["ldb"], first["ldd"]) == (8192, 8192, 4096)
    assert (second["m"], second["n"], second["k"]) == (5, 3, 7)
    assert (second["lda"], second["ldb"], second["ldd"]) == (5, 7, 5)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("16x4096 bf16", "form"),
        ("16x4096x-1 bf16", "form"),
        ("16x4096x8192", "form"),
        ("16x4096x8192 bf16 NT now", "form"),
        ("16x4096x8192 int3", "kind"),
        ("16x4096x8192 bf16 XY", "layout"),
        ("0x1x1 bf16", "got 0x1x1; expected 1 or more"),
        ("99999999999999999999x2x2 fp32", "too large"),
        ("9999999999x9999999999x2 fp32", "spans more than"),
        ("4294967296x4294967296x1 fp32", "spans more than"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, line, what):
    path = tmp_path / "shapes.txt"
    path.write_text(f"16x16x16 fp32\n{line}\n")
    with pytest.raises(ValueError, match=rf"shapes\.txt, line 2: .*{what}"):
        read_signatures(path)
    # The error is reported once; the next file is read normally.
    path.write_text("16x16x16 fp32\n")
    assert len(read_signatures(path)) == 1


GOOD = named(signature_of_shape(16, 64, 512, "bf16"))


@pytest.mark.parametrize(
    "text",
    [
        '{"problems": [{"m": 1}]}',
        '{"problems": ' + "[" * 100_000,
        *(
            json.dumps({"problems": [GOOD | change]})
            for change in ({"m": 1e999}, {"m": 10**30}, {"m": 64.5}, {"stride_a": -1})
        ),
    ],
)
def test_a_broken_recording_is_named(tmp_path, text):
    path = tmp_path / "recorded.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"recorded\.json: got .*; expected a file of untuned"):
        read_signatures(path)


def test_a_binary_file_is_named(tmp_path):
    path = tmp_path / "shapes.txt"
    path.write_bytes(b"\xff\xfe16x16x16 fp32\n")
    with pytest.raises(ValueError, match=r"shapes\.txt: got .*; expected a file of text"):
        read_signatures(path)


def test_a_signature_is_named_as_its_line(tmp_path):
    path = tmp_path / "shapes.txt"
    lines = ["16x4096x8192 bf16 NT", "3x5x7 fp64 NN", "64x32x16 tf32 TN"]
    path.write_text("\n".join(lines))
    assert [name_of_signature(one) for one in read_signatures(path)] == lines
