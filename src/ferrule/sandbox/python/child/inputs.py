"""Places a run's inputs, in the child: variables, and files in its folder."""

from __future__ import annotations

import os
from typing import Any, Final

from ferrule.sandbox.python.wire.decoding import ValueBuilder, ValueDecoder
from ferrule.sandbox.python.wire.frames import FrameBlobs


def place_inputs(tree: dict[str, Any], data: bytes, namespace: dict[str, Any]) -> None:
    """Set the variables and write the files of a request. Raises `OSError` if there is no space for a file."""
    decoder = ValueDecoder(FrameBlobs(data), _BUILDERS, is_trusted=True)
    for name, value in tree["inputs"].items():
        namespace[name] = decoder.decode(value)
    for file in tree["files"]:
        folder = os.path.dirname(file["name"])  # noqa: PTH120 - strings, for speed: this is in every run
        if folder:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        with open(file["name"], "wb") as opened:  # noqa: PTH123
            opened.write(decoder.take_blob(file))


def _build_frame(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    import pandas as pd

    names = decoder.decode_list(tree["names"])
    columns = decoder.decode_list(tree["of"])
    index = _build_index(decoder, tree)
    frame = pd.DataFrame(dict(enumerate(columns)), index=index)
    frame.columns = pd.Index(names)
    return frame


def _build_series(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    import pandas as pd

    name = decoder.decode(tree["name"])
    values = decoder.decode_list(tree["of"])[0]
    return pd.Series(values, index=_build_index(decoder, tree), name=name)


def _build_index(decoder: ValueDecoder, tree: dict[str, Any]) -> Any:
    import pandas as pd

    labels, names = decoder.decode(tree["index"]), decoder.decode_list(tree["index_names"])
    if len(names) > 1:
        return pd.MultiIndex.from_tuples(labels, names=names)
    return pd.Index(labels, name=names[0])


_BUILDERS: Final[dict[str, ValueBuilder]] = {"frame": _build_frame, "series": _build_series}
