"""Files of products to tune: what is read, and what is said of a line that cannot be."""

import pytest

from gputensor.blas.shapes_file import read_signatures
from gputensor.blas.signature import FIELDS


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
        ("0x1x1 bf16", "size below 1"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, line, what):
    path = tmp_path / "shapes.txt"
    path.write_text(f"16x16x16 fp32\n{line}\n")
    with pytest.raises(ValueError, match=rf"shapes\.txt, line 2: .*{what}"):
        read_signatures(path)
    # What was wrong is said once; the next file is read as if nothing had been.
    path.write_text("16x16x16 fp32\n")
    assert len(read_signatures(path)) == 1


def test_a_broken_recording_is_named(tmp_path):
    path = tmp_path / "recorded.json"
    path.write_text('{"problems": [{"m": 1}]}')
    with pytest.raises(ValueError, match="not a file of untuned products"):
        read_signatures(path)
