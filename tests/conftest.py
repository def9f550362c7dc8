"""Settings of all tests."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

from forks import Forks

# Some virtual machines say that they have matrix units, and hide how to use them: torch then fails in bfloat16.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
settings.register_profile(
    "made", deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("made")
torch.set_num_threads(1)  # the networks are small: threads would only wait for each other


@pytest.fixture(scope="session")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
