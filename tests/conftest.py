"""Settings of all tests."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "made", deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("made")
torch.set_num_threads(1)  # the networks are small: threads would only wait for each other


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
