"""Reading and writing files."""

from __future__ import annotations

# The suffixes of files, which are their formats; and the same in words.
SUFFIXES = (".csv", ".parquet", ".npy", ".npz")
ENDINGS = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
