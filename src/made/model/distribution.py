"""A model as a distribution of `torch.distributions`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from made.model.rows import RowCodec


class RowDistribution(Distribution):
    """The rows of a model: an event is a row of codes, a tensor of shape (columns).

    The code of a value from a list is its number in it, 0, 1, ...; a number is its own code; NaN is not observed.
    :meth:`encode` and :meth:`decode` convert tables. Random numbers come from torch (``torch.manual_seed``). It has
    no gradients. ``columns`` are the names of the columns.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_rsample = False

    def __init__(self, model: RowCodec) -> None:
        self.model, self.columns = model, model.schema.names
        super().__init__(event_shape=torch.Size([len(self.columns)]), validate_args=False)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.model.view.evidence.items())
        return f"RowDistribution({', '.join(self.columns)}{given and ' | ' + given})"

    @property
    def support(self) -> constraints.Constraint:
        """Real numbers: values outside the support of a column are refused by :meth:`log_prob`."""
        return constraints.independent(constraints.real, 1)

    def log_prob(self, value: Tensor) -> Tensor:
        """log p of each row, in nats; of what is observed of it. Shapes: (..., columns) to (...)."""
        if value.ndim == 0 or value.shape[-1] != len(self.columns):
            raise ValueError(f"'value' should have the shape (..., {len(self.columns)}), not {tuple(value.shape)}.")
        codes = value.detach().reshape(-1, len(self.columns)).double().cpu().numpy()
        return torch.from_numpy(self.model.view.score(codes)).reshape(value.shape[:-1]).to(value.device)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Rows that are drawn, as codes in double precision. Shape: ``sample_shape`` and columns."""
        shape = torch.Size(sample_shape)
        nothing = np.full((shape.numel(), len(self.columns)), np.nan)
        seed = int(torch.randint(2**63 - 1, ()))
        generator = torch.Generator(self.model.ensemble.network.c.device).manual_seed(seed)
        return torch.from_numpy(self.model.view.draw(nothing, generator, 1.0)).reshape(*shape, len(self.columns))

    def encode(self, X: Any) -> Tensor:
        """Rows of a table as codes. Shape: (rows, columns)."""
        return torch.from_numpy(self.model.codes(X))

    def decode(self, value: Tensor) -> Any:
        """Codes, (rows, columns), as a table of the kind that the model was fitted on."""
        return self.model.decode(value.detach().double().cpu().numpy())
