"""Systems whose likelihood is estimated or bounded: both against the truth, which small models have by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from made import baselines
from made.baselines import annealing, bipartite
from made.baselines.annealing import LogPartition, anneal, log_partition, sample_visible
from made.baselines.bipartite import Bipartite, CenteredBipartite, GibbsChains, contrastive_loss
from made.baselines.darn import DARN
from made.baselines.dbm import DBM, add_second_layer, mean_field, variational_bound
from made.baselines.dbn import DBN
from made.baselines.rbm import RBM
from oracle import chi_square, structured

COLUMNS = 5


def states(units: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=units)), dtype=torch.float64)


WORLDS = states(COLUMNS).numpy().astype(np.uint8)
TRAIN, VALID = structured(seed=0), structured(100, seed=1)
SMALL = {
    "rbm": lambda seed=0: RBM(4, max_epochs=30, learning_rate=0.03, seed=seed),
    "dbn": lambda seed=0: DBN((4, 3), max_epochs=30, learning_rate=0.03, seed=seed),
    "dbm": lambda seed=0: DBM((4, 3), max_epochs=30, learning_rate=0.03, seed=seed),
    "darn": lambda seed=0: DARN(4, max_epochs=30, learning_rate=0.03, seed=seed),
    "darn-noise": lambda seed=0: DARN(4, noise=True, max_epochs=30, learning_rate=0.03, seed=seed),
}


def random_machine(left: int, right: int, seed: int, scale: float = 0.7) -> Bipartite:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((left, right), (left,), (right,))
    return Bipartite(*(scale * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes))


def brute(machine: Bipartite) -> float:
    """log Z, by all states of both sides."""
    x, y = states(len(machine.a)), states(len(machine.b))
    weights = (x @ machine.a)[:, None] + y @ machine.b + x @ machine.W @ y.t()
    return float(weights.flatten().logsumexp(dim=0))


@pytest.fixture(scope="module", autouse=True)
def short_epochs():
    before, bipartite.EPOCH_ROWS = bipartite.EPOCH_ROWS, 1
    yield
    bipartite.EPOCH_ROWS = before


@pytest.fixture(scope="module", params=list(SMALL))
def fitted(request):
    return SMALL[request.param]().fit(TRAIN, VALID)


def truth(model) -> np.ndarray:
    """log p of all rows, by all states of all hidden units."""
    x = states(COLUMNS)
    if isinstance(model, RBM):
        machine = model.machine_.double()
        joint = (x @ machine.a)[:, None] + states(4) @ machine.b + x @ machine.W @ states(4).t()
        return (joint.logsumexp(dim=1) - brute(machine)).numpy()
    if isinstance(model, DBM):
        machine, every = model.machine_.double(), states(4)
        both = torch.cat([x.repeat_interleave(8, 0), states(3).repeat(len(x), 1)], dim=1)
        joint = (both @ machine.a)[:, None] + every @ machine.b + both @ machine.W @ every.t()
        return (joint.reshape(len(x), -1).logsumexp(dim=1) - brute(machine)).numpy()
    h = states(4)
    if isinstance(model, DBN):
        lower, upper, above = model.lower_.machine_.double(), model.machine_.double(), states(3)
        top = (h @ upper.a)[:, None] + above @ upper.b + h @ upper.W @ above.t()
        prior = top.logsumexp(dim=1) - brute(upper)
        logits = (lower.a + h @ lower.W.t()).expand(len(x), -1, -1)
    else:
        network = model.network_.double()
        with torch.no_grad():
            below, above = F.linear(h, network.U.tril(-1), network.b), F.linear(x, network.A.tril(-1), network.c)
            prior = -F.binary_cross_entropy_with_logits(below, h, reduction="none").sum(dim=1)
            logits = above[:, None] + h @ network.V.t()
        network.float()
    rows = -F.binary_cross_entropy_with_logits(logits, x[:, None].expand_as(logits), reduction="none").sum(dim=2)
    return (rows + prior).logsumexp(dim=1).detach().numpy()


def test_every_system_has_a_small_one_here() -> None:
    assert set(SMALL) == {name for name, system in baselines.SYSTEMS.items() if not system.exact}
    for name, small in SMALL.items():
        system = baselines.SYSTEMS[name].factory(3)
        assert (type(system), system.seed, getattr(system, "noise", None)) == (
            type(small()),
            3,
            getattr(small(), "noise", None),
        )


def test_the_truth_sums_to_one(fitted) -> None:
    assert np.exp(truth(fitted)).sum() == pytest.approx(1, abs=1e-6)


def test_what_is_said_of_a_likelihood_holds(fitted) -> None:
    answer, exact = fitted.log_prob(WORLDS), truth(fitted)
    assert answer.kind == {RBM: "exact", DBN: "bound", DBM: "bound", DARN: "estimate"}[type(fitted)]
    assert answer.values.dtype == np.float64
    if answer.kind == "exact":
        assert answer.values == pytest.approx(exact, abs=1e-5)
        assert answer.standard_error == 0
    elif answer.kind == "bound":
        assert answer.mean() <= exact.mean() + 3 * answer.standard_error + 1e-6
        assert (answer.values <= exact + (1e-6 if isinstance(fitted, DBM) else 0.5)).all()
        assert answer.mean() > exact.mean() - 2  # it says something
    else:
        assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error + 1e-3
        assert answer.standard_error > 0
    assert np.array_equal(answer.values, fitted.log_prob(WORLDS).values)


def test_a_sampler_fits_its_enumerated_distribution(fitted) -> None:
    """The frequencies of all states, by the statistic of a chi-square test."""
    count = 20_000
    drawn = fitted.sample(count, seed=5)
    assert (drawn.dtype, drawn.shape) == (np.uint8, (count, COLUMNS))
    assert chi_square(drawn, np.exp(truth(fitted))) < 5
    assert np.array_equal(drawn, fitted.sample(count, seed=5))
    assert not np.array_equal(drawn, fitted.sample(count, seed=6))


@pytest.mark.parametrize("name", list(SMALL))
def test_a_seed_makes_the_same_model(name) -> None:
    first, again, other = (SMALL[name](seed).fit(TRAIN[:100], VALID).log_prob(WORLDS).values for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", list(SMALL))
def test_what_depends_is_learned(name) -> None:
    test, mean = structured(1000, seed=2), TRAIN.mean(axis=0)
    alone = (test * np.log(mean) + (1 - test) * np.log(1 - mean)).sum(axis=1).mean()
    model = SMALL[name]()
    model.training |= {"max_epochs": 100, "learning_rate": 0.05}
    assert model.fit(TRAIN, VALID).log_prob(test).mean() > alone + 0.3


@pytest.mark.parametrize("name", list(SMALL))
def test_time_ends_training(name) -> None:
    model = SMALL[name]()
    model.training |= {"max_epochs": 10_000, "patience": 10_000}
    assert 0 < model.fit(TRAIN, VALID, seconds=0.3).epochs < 1000


@pytest.mark.parametrize("shape", [(3, 4), (6, 2), (2, 2)])
def test_a_constant_is_summed_where_a_side_is_small(shape) -> None:
    machine = random_machine(*shape, seed=1)
    log_z = log_partition(machine, torch.zeros(shape[0]), chains=1, temperatures=1)
    assert log_z == LogPartition(pytest.approx(brute(machine), abs=1e-10), 0.0, False)
    assert log_partition(machine.transposed(), torch.zeros(shape[1]), chains=1, temperatures=1).value == log_z.value


@pytest.mark.parametrize("seed", range(8))
def test_annealing_agrees_with_summation(seed, monkeypatch) -> None:
    """Of an RBM, and of a DBM, which is bipartite, too: its columns and its second layer against its first."""
    for machine in (random_machine(6, 5, seed), random_machine(5 + 3, 4, seed + 100)):
        exact = brute(machine)
        monkeypatch.setattr(annealing, "EXACT", 0)
        base = torch.linspace(-1, 1, len(machine.a), dtype=torch.float64)
        log_z = log_partition(machine, base, chains=400, temperatures=200, seed=seed)
        monkeypatch.undo()
        assert log_z.estimated
        assert 0 < log_z.standard_error < 0.1
        assert abs(log_z.value - exact) < 3 * log_z.standard_error


@pytest.mark.parametrize("others", [3, 300])
def test_a_dbm_begins_as_the_rbm_below(others) -> None:
    """Units that join it with small weights change nothing: the bound is its likelihood, however many they are."""
    rbm = random_machine(5, 4, seed=1)
    joined, x = add_second_layer(Bipartite(*(each.float() for each in rbm)), others, seed=0).double(), states(5)
    every = states(4).double()  # log Z by all states of the first layer
    log_z = joined.transposed().neg_free_energy(every).logsumexp(dim=0)
    exact, below = rbm.neg_free_energy(x) - brute(rbm), variational_bound(joined, x, 5) - log_z
    assert torch.allclose(below, exact, atol=0.02)


@pytest.mark.parametrize(
    "deep",
    [
        lambda: DBM((4, 3), max_epochs=4, learning_rate=0.03, together={"learning_rate": 3.0}),
        lambda: DBN((4,), max_epochs=2, learning_rate=0.03, upper={"learning_rate": 3.0}, draws=400),
    ],
)
def test_what_learns_nothing_more_stays_an_rbm(deep) -> None:
    """At a rate that spoils everything, the upper layers keep what they began with."""
    rbm = RBM(4, max_epochs=2, learning_rate=0.03).fit(TRAIN, VALID)
    assert -deep().fit(TRAIN, VALID).log_prob(VALID).mean() == pytest.approx(-rbm.log_prob(VALID).mean(), abs=0.05)


def test_all_epochs_are_reported() -> None:
    for system in (DBM((4, 3), max_epochs=4, pretraining=0.5), DBN((4,), max_epochs=2)):
        seen = []
        system.report = lambda epoch, score, seconds, seen=seen: seen.append(epoch)
        system.fit(TRAIN, VALID)
        assert seen == [0, 1, 0, 1]


def test_without_a_way_to_go_annealing_is_importance_sampling() -> None:
    """One step from independent units: the mean weight is unbiased all the same."""
    machine = random_machine(4, 3, seed=3, scale=0.3)
    _, weights = anneal(machine, torch.zeros(4), 200_000, 1, torch.Generator().manual_seed(0))
    assert float(weights.logsumexp(dim=0)) - math.log(200_000) == pytest.approx(brute(machine), abs=0.01)


def test_annealed_draws_fit(monkeypatch) -> None:
    machine = random_machine(4, 6, seed=2)
    x = states(4)
    probabilities = (machine.neg_free_energy(x) - brute(machine)).exp().numpy()
    monkeypatch.setattr(annealing, "EXACT", 0)
    drawn = sample_visible(machine, torch.zeros(4), 20_000, temperatures=50, seed=3)
    assert chi_square(drawn.numpy().astype(np.uint8), probabilities) < 5


def test_an_estimated_rbm_says_so(monkeypatch) -> None:
    model = SMALL["rbm"]()
    exact = model.fit(TRAIN, VALID).log_prob(WORLDS)
    monkeypatch.setattr(annealing, "EXACT", 0)
    model.log_partition_ = log_partition(model.machine_, model.base_, chains=100, temperatures=300)
    answer = model.log_prob(WORLDS)
    assert answer.kind == "estimate"
    assert 0 < answer.standard_error < 0.1
    assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error


def test_a_centered_machine_is_the_same_distribution() -> None:
    machine = random_machine(4, 3, seed=0)
    network = CenteredBipartite(torch.full((4,), 0.3, dtype=torch.float64), 3, begin=machine)
    for ours, theirs in zip(network.snapshot(), machine, strict=True):
        assert torch.allclose(ours, theirs)


def test_the_contrast_has_the_gradient_of_the_likelihood() -> None:
    """With all states of the model, each as often as it is likely, in place of a few draws."""
    machine = Bipartite(*(each.requires_grad_() for each in random_machine(3, 2, seed=0)))
    x, rows = states(3), torch.tensor([[1.0, 0, 1], [0, 1, 1]], dtype=torch.float64)
    exact = (machine.neg_free_energy(x).logsumexp(dim=0) - machine.neg_free_energy(rows).mean()).squeeze()
    expected = torch.autograd.grad(exact, machine)
    share = (machine.neg_free_energy(x) - brute(machine.detach())).exp().detach()
    found = torch.autograd.grad(
        (share * machine.neg_free_energy(x)).sum() - machine.neg_free_energy(rows).mean(), machine
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-10)
    drawn = sample_visible(machine.detach(), torch.zeros(3), 100_000, temperatures=1)
    for ours, theirs in zip(
        torch.autograd.grad(contrastive_loss(machine, rows, drawn), machine), expected, strict=True
    ):
        assert torch.allclose(ours, theirs, atol=0.01)


def test_chains_go_on_where_they_ended_if_they_persist() -> None:
    still = Bipartite(*(torch.zeros(shape) for shape in ((3, 2), (3,), (2,))))
    still = Bipartite(still.W, torch.tensor([40.0, -40.0, 40.0]), still.b)
    rows, generator = torch.zeros(4, 3), torch.Generator().manual_seed(0)
    for persistent in (True, False):
        chains = GibbsChains(0, persistent)
        chains.last = torch.ones(4, 3)
        assert torch.equal(chains(still, rows, generator), torch.ones(4, 3) if persistent else rows)
        chains.steps = 1
        assert torch.equal(chains(still, rows, generator), torch.tensor([[1.0, 0, 1]]).expand(4, -1))


def test_steps_of_chains_grow_from_one(monkeypatch) -> None:
    taken = []
    monkeypatch.setattr(bipartite, "gibbs", lambda machine, x, steps, generator: taken.append(steps) or x)
    chains, machine, rows = GibbsChains(5, True, growth=10), random_machine(3, 2, seed=0), torch.zeros(1, 3)
    for _ in range(12):
        chains(machine, rows, torch.Generator())
    assert taken == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5]
    taken.clear()
    RBM(4, steps=3, growing=True, max_epochs=9, batch_size=len(TRAIN)).fit(TRAIN, VALID)
    assert taken == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_mean_field_only_gets_closer() -> None:
    machine, x = random_machine(5 + 3, 4, seed=4), states(5)
    values = torch.stack([variational_bound(machine, x, rounds) for rounds in (0, 1, 2, 5, 50)])
    assert (values.diff(dim=0) >= -1e-10).all()
    first, second = mean_field(machine, x, 200)
    assert torch.allclose(first, machine.conditional(torch.cat([x, second], dim=1)), atol=1e-6)
    assert torch.allclose(second, machine.transposed().conditional(first)[:, 5:], atol=1e-6)


def test_a_dbn_begins_with_the_likelihood_of_its_rbm() -> None:
    """As many units above as columns, and nothing learned there: the bound is exact, whatever is drawn."""
    model = DBN((4,), max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    lower = model.lower_
    model.machine_, exact = lower.machine_.transposed(), lower.log_prob(WORLDS).values
    model.log_partition_ = log_partition(model.machine_, model.base_, chains=1, temperatures=1)
    model.draws = 2000
    assert model.log_prob(WORLDS).values == pytest.approx(exact, abs=0.1)
    assert model.log_prob(WORLDS).mean() == pytest.approx(exact.mean(), abs=4 * model.log_prob(WORLDS).standard_error)


def test_the_estimate_of_darn_converges_as_its_draws_grow() -> None:
    model = SMALL["darn"]().fit(TRAIN, VALID)
    exact, gaps = truth(model), []
    with torch.no_grad():
        assert model.network_.exact(states(COLUMNS).float()).numpy() == pytest.approx(exact, abs=1e-5)
    for draws in (1, 10, 300, 5000):
        model.draws = draws
        answer = model.log_prob(WORLDS)
        gaps.append(float(np.abs(answer.values - exact).mean()))
        if draws >= 300:
            assert abs(answer.mean() - exact.mean()) < 3 * answer.standard_error + 1e-5
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[-1] < 0.03
    assert model.bound(WORLDS).kind == "bound"
    assert (model.bound(WORLDS).values <= exact + 0.05).all()


def test_both_losses_of_darn_are_the_bound() -> None:
    network = SMALL["darn"]().fit(TRAIN, VALID).network_.double()
    network.U.data.zero_()  # and with nothing between hidden units and columns, log p(x, h) is linear in h
    network.V.data.zero_()
    x, h = states(COLUMNS), states(4)
    weights, logits = network.weights(), F.linear(x, network.E, network.b_q)
    base, log_q = network.c + weights.apply("A", x), -F.softplus(-(2 * h - 1) * logits[:, None]).sum(dim=-1)
    log_p = torch.stack([network.log_joint(x, each.expand(len(x), -1), base, weights) for each in h], dim=1)
    exact = -(log_q.exp() * (log_p - log_q)).sum(dim=1)
    (slopes,) = torch.autograd.grad(exact.sum(), network.E, retain_graph=True)
    many = x.repeat(3000, 1)
    for through in (False, True):
        loss = network.loss(many, weights, torch.Generator().manual_seed(0), through=through)
        assert loss.reshape(3000, -1).mean(dim=0).tolist() == pytest.approx(exact.tolist(), abs=0.05)
        (found,) = torch.autograd.grad(loss.sum() / 3000, network.E)
        assert torch.allclose(found, slopes, atol=0.1 * slopes.abs().max().item())
    alone = network.loss(x, weights, torch.Generator().manual_seed(0), through=True, alone=True).sum()
    assert torch.autograd.grad(alone, network.A, allow_unused=True) == (None,)


def test_the_own_connections_of_darn_wait() -> None:
    model = DARN(4, through=True, wait=1.0, max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    assert not model.network_.A.any()
    late = DARN(4, through=True, wait=0.5, max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    assert late.network_.A.any()
    shares = (TRAIN.mean(axis=0) * 0.98 + 0.01).clip(0.01, 0.99)
    independent = (np.log(shares) * VALID + np.log1p(-shares) * (1 - VALID)).sum(axis=1).mean()
    assert late.log_prob(VALID).mean() > independent + 0.1


def test_adaptive_noise_is_paid_for_and_asked_without() -> None:
    model = DARN(4, noise=True, max_epochs=30, learning_rate=0.03).fit(TRAIN, VALID)
    network = model.network_
    assert set(network.b_noise) == {"U", "V", "A", "E"}
    assert model.size == SMALL["darn"]().fit(TRAIN, VALID).size  # noise is in training only
    with torch.no_grad():
        network.eval()
        h = states(4).float()
        assert torch.equal(network.weights().apply("V", h), F.linear(h, network.V))
        network.train()
        # What a row sums up has the distribution that it has with weights drawn anew for each row.
        found = network.weights(torch.Generator().manual_seed(0)).apply("V", h.repeat(4000, 1)).unflatten(0, (4000, -1))
        noise = torch.randn(4000, *network.V.shape, generator=torch.Generator().manual_seed(1))
        drawn = torch.stack([F.linear(h, network.V + each * network.b_noise["V"].exp()) for each in noise])
        assert torch.allclose(found.mean(dim=0), drawn.mean(dim=0), atol=0.1 * drawn.std(dim=0).max().item())
        assert torch.allclose(found.std(dim=0), drawn.std(dim=0), rtol=0.1, atol=2e-4)
        # By numbers: KL of each from N(m, r^2), at the m and r that are best.
        total = 0.0
        for name in ("U", "V", "A", "E"):
            mean, log_s = getattr(network, name), network.b_noise[name]
            if name in ("U", "A"):
                below = torch.ones_like(mean, dtype=torch.bool).tril(-1)
                mean, log_s = mean[below], log_s[below]
            m, s = mean.mean(), log_s.exp()
            r = (s**2 + (mean - m) ** 2).mean().sqrt()
            normal = torch.distributions.Normal
            total += float(torch.distributions.kl_divergence(normal(mean, s), normal(m, r)).sum())
        assert float(network.noise_cost(network.weights())) == pytest.approx(total, rel=1e-5)


def test_adaptive_noise_of_one_hidden_unit() -> None:
    model = DARN(1, noise=True, max_epochs=2).fit(TRAIN, VALID)
    assert np.isfinite(model.log_prob(VALID).mean())


@pytest.mark.parametrize("make", [lambda: DBN(()), lambda: DBN((1, 2, 3)), lambda: DBM((4,)), lambda: DBM((0, 2))])
def test_sizes_that_make_no_sense(make) -> None:
    with pytest.raises(ValueError, match="hidden_sizes"):
        make()


@pytest.mark.parametrize("wrong", [DBN((4,), upper={"rate": 1}), DBM((4, 3), together={"rate": 1})])
def test_training_that_makes_no_sense_is_refused_before_anything_learns(wrong) -> None:
    wrong.report = lambda *epoch: pytest.fail("an epoch was learned")
    with pytest.raises(TypeError, match="rate"):
        wrong.fit(TRAIN, VALID)
