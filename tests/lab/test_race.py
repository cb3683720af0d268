"""The race itself: what it finds, that it is the same every time, and that it can go on."""

import json
import math

import numpy as np
import pytest
import torch

from resid.errors import ResidError
from resid.lab import race as racing
from resid.lab import race_training
from resid.lab.race_folder import Folder
from resid.lab.race_models import logits
from resid.lab.race_training import advance, begin
from resid.lab.race_variants import Sizes, Variant, line_up

from .race_plans import small_plan, small_text


@pytest.fixture(scope="module")
def text():
    return small_text()


@pytest.fixture(scope="module")
def found(text):
    """Base, base once more, no residual: long enough to tell the third from the first."""
    plan = small_plan(
        text, steps=40, d_model=24, layers=2, batch=8, context=24, held_out=480,
        learning_rate=0.02, measured_at=(0, 20, 40),
    )  # fmt: skip
    return racing.race(line_up(["base", "base", "no-residual"], 3, 0), plan, text)


def test_without_a_residual_is_worse_and_that_is_a_finding(found):
    _, without = found.verdicts
    assert found.variants[found.second[1]] == "no-residual"
    assert without == "worse"
    assert found.low[1] > 0.2


def test_the_same_variant_under_other_seeds_is_noise(found):
    assert found.verdicts[0] == "noise"
    assert found.low[0] < 0 < found.high[0]
    # Other seeds, other losses.
    assert not np.isin(found.final[0], found.final[1]).any()


def test_the_finding_is_said_with_its_size(found):
    assert found.finding == (
        f"no-residual is worse than base by {found.difference[1]:.2f} nats a byte; "
        "1 pair cannot be told from noise."
    )


def test_it_carries_its_checks(found):
    assert [check.name for check in found.checks] == ["finite", "causal"]
    assert found.failures == ()


def test_all_pairs_are_judged_with_wider_intervals(text):
    plan, entries = small_plan(text), line_up(["base", "relu", "linear"], 2, 0)
    first = racing.race(entries, plan, text)
    every = racing.race(entries, plan, text, pairs="all")
    assert list(zip(first.first, first.second, strict=True)) == [(0, 1), (0, 2)]
    assert list(zip(every.first, every.second, strict=True)) == [(0, 1), (0, 2), (1, 2)]
    assert np.array_equal(first.difference, every.difference[:2])
    assert (every.high - every.low)[:2] == pytest.approx(1.5 * (first.high - first.low), rel=1e-3)


def test_differences_are_of_runs_that_share_a_seed(text):
    result = racing.race(line_up(["base", "swiglu"], 3, 5), small_plan(text), text)
    assert result.seeds.tolist() == [[5, 6, 7]] * 2
    by_seed = result.final[1] - result.final[0]
    assert result.difference[0] == pytest.approx(by_seed.mean())
    half = 4.302653 * by_seed.std(ddof=1) / math.sqrt(3)
    assert result.high[0] - result.difference[0] == pytest.approx(half)


def test_a_run_depends_on_nothing_but_its_seed(text):
    plan = small_plan(text)
    alone = racing.race(line_up(["relu"], 1, 1), plan, text, jobs=1)
    among = racing.race(line_up(["base", "relu", "no-norm"], 3, 0), plan, text, jobs=3)
    assert np.array_equal(alone.loss[0, 0], among.loss[1, 1])
    assert not np.array_equal(among.loss[1, 0], among.loss[1, 1])


def test_threads_are_given_back(text):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        racing.race(line_up(["base"], 1, 0), small_plan(text, steps=2), text)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_one_seed_gives_no_verdict(text):
    result = racing.race(line_up(["base", "linear"], 1, 0), small_plan(text), text)
    assert result.verdicts == ("none",)
    assert result.finding == "No verdict on 1 pair: one seed gives no interval."
    assert json.loads(result.to_json())["data"]["pairs"][0]["low"] is None


def test_one_variant_has_nothing_to_be_held_against(text):
    result = racing.race(line_up(["base"], 2, 0), small_plan(text), text)
    assert result.first == ()
    assert result.finding == "No verdict on 0 pairs: there is no other variant."


def test_a_run_that_is_not_finite_is_told(text):
    plan = small_plan(text, learning_rate=1e30)
    result = racing.race(line_up(["base", "no-norm"], 2, 0), plan, text)
    (finite,) = [check for check in result.checks if check.name == "finite"]
    assert not finite.passed
    assert "seed 0, step 3" in finite.where
    assert "none" in result.verdicts
    assert "NaN" not in result.to_json()


def test_the_held_out_loss_is_the_mean_over_the_held_out_bytes(text):
    plan, variant = small_plan(text), Variant()
    state = begin(variant, plan, seed=0)
    race_training._measure(state, variant, plan, text)
    context = plan.sizes.context
    total = 0.0
    for start in range(0, 160, context):
        ids = torch.tensor(text.held_out[start : start + context + 1])
        log_p = logits(state.parameters, variant, plan.sizes, ids[None, :-1])[0].log_softmax(-1)
        total -= float(log_p[torch.arange(context), ids[1:]].sum().detach())
    assert state.losses == [pytest.approx(total / 160, rel=1e-6)]


def in_float64(parameters):
    return {
        name: value.detach().to(torch.float64, copy=True).requires_grad_()
        for name, value in parameters.items()
    }


def test_a_run_is_torchs_adam(text):
    plan = small_plan(text, steps=5, measured_at=(0, 5))
    variant, seed = Variant(), 2
    state = begin(variant, plan, seed)
    # What divides by the size of the gradient magnifies rounding: all of it in float64.
    for name in ("parameters", "first_moments", "second_moments"):
        setattr(state, name, in_float64(getattr(state, name)))
    for moments in (state.first_moments, state.second_moments):
        for value in moments.values():
            value.requires_grad_(False)
    same = in_float64(state.parameters)
    start = {name: value.detach().clone() for name, value in same.items()}
    advance(
        state, variant, plan, text, seed,
        after_step=lambda: None, after_measurement=lambda state: None,
    )  # fmt: skip
    optimizer = torch.optim.Adam(same.values(), betas=(0.9, 0.99), eps=1e-8)
    order = torch.randint(
        len(text.train) - plan.sizes.context, (plan.steps, plan.batch),
        generator=race_training.generator(seed, "order"),
    )  # fmt: skip
    train = torch.tensor(text.train)
    for step in range(plan.steps):
        optimizer.param_groups[0]["lr"] = plan.rate(step)
        windows = torch.stack([train[i : i + plan.sizes.context + 1] for i in order[step]])
        optimizer.zero_grad()
        predicted = logits(same, variant, plan.sizes, windows[:, :-1])
        nll = -predicted.log_softmax(-1).gather(-1, windows[:, 1:, None]).mean()
        nll.backward()
        torch.nn.utils.clip_grad_norm_(same.values(), 1.0)
        optimizer.step()
    assert all(not torch.equal(same[name], value) for name, value in start.items())
    for name, value in state.parameters.items():
        # The two add 1e-8 and 1e-6 at other places of the same formulas.
        assert torch.allclose(value, same[name], rtol=0, atol=1e-6), name


def test_the_rate_rises_and_falls(text):
    plan = small_plan(text, steps=100, learning_rate=1.0)
    rates = [plan.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == rates[10] == 1.0 == max(rates)
    assert sorted(rates[10:], reverse=True) == rates[10:]
    assert rates[-1] == pytest.approx(0.1, abs=1e-3)


# Going on


class KilledError(Exception):
    pass


def kill_after(steps):
    done = []

    def progress(more):
        done.append(more)
        if sum(done) >= steps:
            raise KilledError

    return progress


def test_a_killed_race_goes_on_as_if_it_had_not_been(text, tmp_path):
    plan, entries = small_plan(text, steps=8), line_up(["base", "post-ln"], 2, 0)
    undisturbed = racing.race(entries, plan, text)
    path = tmp_path / "race"
    for steps in (6, 3, 9, 5):  # In the middle of a run, and of another.
        folder = Folder.open(path, plan, text)
        with pytest.raises(KilledError):
            racing.race(entries, plan, text, folder=folder, jobs=1, progress=kill_after(steps))
    kept = {file.name for file in path.iterdir()}
    assert "base.seed0.json" in kept
    assert any(name.endswith(".safetensors") for name in kept)
    steps = []
    folder = Folder.open(path, plan, text)
    result = racing.race(entries, plan, text, folder=folder, progress=steps.append)
    assert result.to_json() == undisturbed.to_json()
    assert sum(steps) == 4 * 8
    assert {file.suffix for file in path.iterdir()} == {".json"}


def test_what_is_done_is_not_done_again(text, tmp_path, monkeypatch):
    plan, entries = small_plan(text), line_up(["base", "relu"], 2, 0)
    first = racing.race(entries, plan, text, folder=Folder.open(tmp_path, plan, text))
    monkeypatch.setattr(racing, "advance", pytest.fail)
    again = racing.race(entries, plan, text, folder=Folder.open(tmp_path, plan, text))
    assert again.to_json() == first.to_json()


def test_more_seeds_and_variants_may_join(text, tmp_path):
    plan = small_plan(text)
    racing.race(line_up(["base"], 1, 0), plan, text, folder=Folder.open(tmp_path, plan, text))
    entries = line_up(["relu", "base"], 2, 0)
    joined = racing.race(entries, plan, text, folder=Folder.open(tmp_path, plan, text))
    assert np.array_equal(joined.loss, racing.race(entries, plan, text).loss)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 7}, "holds a race with steps 6; this one has 7"),
        ({"learning_rate": 0.5}, "with learning rate 0.006; this one has 0.5"),
        ({"sizes": Sizes(3, 12, 2, 16, 49)}, "with layers 2; this one has 3"),
    ],
)
def test_another_setting_is_refused_and_named(text, tmp_path, change, message):
    Folder.open(tmp_path, small_plan(text), text)
    with pytest.raises(ResidError, match=message):
        Folder.open(tmp_path, small_plan(text, **change), text)


def test_another_text_is_refused_and_named(text, tmp_path):
    from resid.lab.race_text import read_text, write_sample

    folder = tmp_path / "race"
    Folder.open(folder, small_plan(text), text)
    other = tmp_path / "other.txt"
    other.write_text(write_sample(399_999), encoding="utf-8")
    with pytest.raises(ResidError, match=r"holds a race with text [0-9a-f]{16} \(sha256\)"):
        Folder.open(folder, small_plan(text), read_text(other, 16))


def test_another_torch_is_refused_and_named(text, tmp_path, monkeypatch):
    Folder.open(tmp_path, small_plan(text), text)
    monkeypatch.setattr(torch, "__version__", "9.9")
    with pytest.raises(ResidError, match=r"with torch .*; this one has 9\.9"):
        Folder.open(tmp_path, small_plan(text), text)


def test_a_folder_of_other_things_is_left_alone(text, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious", encoding="utf-8")
    with pytest.raises(ResidError, match=r"holds other files and no race\.json"):
        Folder.open(tmp_path, small_plan(text), text)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_refused(text, tmp_path):
    with pytest.raises(ResidError, match=r"cannot use .*: No such file"):
        Folder.open(tmp_path / "absent" / "race", small_plan(text), text)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ResidError, match=r"cannot use .*file"):
        Folder.open(file, small_plan(text), text)


def test_what_an_interruption_left_of_the_first_file_does_not_stand_in_the_way(text, tmp_path):
    (tmp_path / "race.json.part").write_bytes(b'{"vers')
    plan, entries = small_plan(text), line_up(["base"], 1, 0)
    found = racing.race(entries, plan, text, folder=Folder.open(tmp_path, plan, text))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["base.seed0.json", "race.json"]
    assert found.to_json() == racing.race(entries, plan, text).to_json()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("base.seed0.json", b'{"loss": [1.'),
        ("base.seed0.json", b'{"loss": 3}'),
        ("base.seed0.safetensors", b"\x10\x00\x00\x00"),
        ("race.json", b"[]"),
    ],
)
def test_a_broken_file_is_named(text, tmp_path, name, content):
    plan = small_plan(text)
    Folder.open(tmp_path, plan, text)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ResidError, match=rf"{name}' cannot be read: [^\n]+\nremove it"):
        racing.race(line_up(["base"], 1, 0), plan, text, folder=Folder.open(tmp_path, plan, text))


def test_a_loss_that_was_not_finite_is_kept_as_such(text, tmp_path):
    plan = small_plan(text, learning_rate=1e30)
    entries = line_up(["no-norm"], 1, 0)
    results = [
        racing.race(entries, plan, text, folder=Folder.open(tmp_path, plan, text)) for _ in range(2)
    ]
    assert np.isnan(results[0].loss).any()
    assert results[0].to_json() == results[1].to_json()


@pytest.mark.parametrize("name", ["base.seed0.json", "base.seed1.safetensors"])
def test_a_run_that_is_not_what_was_written_is_refused(text, tmp_path, name):
    plan = small_plan(text, steps=4)

    def go(seeds=2, progress=lambda steps: None):
        entries = line_up(["base"], seeds, 0)
        folder = Folder.open(tmp_path, plan, text)
        return racing.race(entries, plan, text, folder=folder, jobs=1, progress=progress)

    with pytest.raises(KilledError):
        go(progress=kill_after(7))
    file = tmp_path / name
    content = file.read_bytes()
    for at in (-20, len(content) // 2):
        changed = bytearray(content)
        changed[at] ^= 1
        file.write_bytes(bytes(changed))
        with pytest.raises(ResidError, match=rf"{name}' cannot be read: .*\nremove it"):
            go()
    file.rename(tmp_path / f"base.seed2{file.suffix}")
    (tmp_path / f"base.seed2{file.suffix}").write_bytes(content)
    with pytest.raises(ResidError, match="of another race or another run"):
        go(seeds=3)


@pytest.mark.parametrize("losses", [[1.0], [1.0, "x", 2.0], [1.0, [], 2.0], [1.0, 2.0, True]])
def test_losses_that_are_none_are_refused(text, tmp_path, losses):
    plan = small_plan(text)
    Folder.open(tmp_path, plan, text)
    (tmp_path / "base.seed0.json").write_text(json.dumps({"loss": losses}))
    with pytest.raises(ResidError, match=r"does not have 3 losses|a loss is no number"):
        racing.race(line_up(["base"], 1, 0), plan, text, folder=Folder.open(tmp_path, plan, text))
