"""Models without Python: `to_onnx`. Needs onnx (the extra `onnx`)."""

from __future__ import annotations

try:
    from made.export.onnx_file import to_onnx
except ModuleNotFoundError as error:
    if error.name != "onnx":
        raise
    raise ImportError("the export needs a package: pip install 'made[onnx]'.") from None

__all__ = ["to_onnx"]
