"""Files that are damaged, or made to do harm: one sentence in place of what Arrow says, and no batch goes untested.

Arrow and Parquet hold no checksum of the whole. Their readers trust what a file says of itself, and so does every
function of Arrow: an offset that leads beyond a buffer ends the process. ``need_sound`` stands before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_REASON = 200
SMALL = 1 << 24
AGAIN = "Write or copy the file again."


class UnreadableError(ValueError):
    """A file that cannot be read; says why, and what to do."""


@contextmanager
def reading(label: str, kind: str | None = None) -> Iterator[None]:
    """Say in one sentence what goes wrong inside while a file is read, or what was read is converted.

    ``kind`` is the format that the file begins as, if its beginning says so. Sentences of our own pass as they are.
    """
    import pyarrow as pa

    try:
        yield
    except MemoryError:
        raise UnreadableError(
            f"{label} does not fit into memory, or is damaged. Use fewer rows, or write the file again."
        ) from None
    except (
        *(pa.ArrowException, OSError, UnicodeError, ArithmeticError, LookupError),
        *(SystemError, NotImplementedError, RecursionError),
    ) as error:
        begins = f"begins as {kind}, but " if kind else ""
        raise UnreadableError(f"{label} {begins}cannot be read: {reason_of(error)}. {AGAIN}") from None


def reason_of(error: BaseException | str) -> str:
    """Return what an error says, as a part of a sentence."""
    words = " ".join((str(error).split("\n")[0] or type(error).__name__).split()).rstrip(".")
    return words if len(words) <= LONGEST_REASON else f"{words[:LONGEST_REASON]}…"


def need_sound(batch: pa.RecordBatch) -> None:
    """Let Arrow raise if an offset, an index, a length or a text in a batch is not valid."""
    batch.validate(full=True)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the types of the columns that ``plain_batch`` makes of those of a file."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def plain_batch(batch: Any) -> Any:
    """Return a batch without what few functions of Arrow can read: runs, categories of bytes, a missing category."""
    import pyarrow as pa

    columns = [_plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names) if columns else batch


def unpacked_bytes(batch: Any) -> int:
    """Return how many bytes the cells of a batch take, each written out: categories may be long texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = int(batch.nbytes)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
            size += longest * len(column) if longest * len(column) <= SMALL else _written_out(column)
    return size


def _written_out(column: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    from guardband.data.text_cells import is_bytes

    return is_bytes(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _plain_type(kind: Any) -> Any:
    import pyarrow as pa

    from guardband.data.text_cells import is_bytes

    if pa.types.is_run_end_encoded(kind) or (pa.types.is_dictionary(kind) and is_bytes(kind.value_type)):
        return kind.value_type
    return kind


def _plain(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_decode(column)
    if _plain_type(kind) != kind:
        return column.dictionary_decode()
    if pa.types.is_dictionary(kind) and column.dictionary.null_count and not pa.types.is_nested(kind.value_type):
        return column.dictionary_decode().dictionary_encode().cast(kind)
    return column
