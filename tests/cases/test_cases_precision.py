"""Rows A1 to A6, E2 and I5 of the cases: precision at any length and dtype, and nothing shared between modules."""

import resource
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
import torch
from specimens import VOCABULARY, WIDTH, assert_same_bits, build, draw_sample, phase_of, route_of, small_model
from torch import Tensor

from longroute.attention import Route, attend, parse_encoding
from longroute.attention.encoding import step_inputs
from longroute.control import Charge
from longroute.model import Decoder
from longroute.transport import LayerShape, StepInputs
from longroute.transport.phase import accumulate, to_radians, to_turns

PHASE_TOLERANCE = 1e-6
"""Radians, of every phase (rows A1 and A3)."""
OUTPUT_TOLERANCE = 1e-5
"""Of float32 outputs against float64 at any length (row E2)."""
TWO_PI = Fraction(Decimal("6.2831853071795864769252867665590057683943387987502116419498891846"))


def assert_phases(found: Tensor, expected: Tensor) -> None:
    """Raises unless the phases agree as angles: differences are taken modulo a whole turn."""
    error = torch.remainder(found.double() - expected.double() + torch.pi, 2 * torch.pi) - torch.pi
    assert error.abs().max() <= PHASE_TOLERANCE


@pytest.mark.parametrize("time", [2048, 65_536])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["rope", "random", "random:by=position", "learned"])
def test_a1_phases_do_not_depend_on_the_models_dtype(name: str, dtype: torch.dtype, time: int) -> None:
    position = build(parse_encoding(name), dtype=dtype)
    sample = draw_sample(time, batch=1, heads=1, kv_heads=1).to(dtype)
    steps = position.steps(step_inputs(sample.hidden, sample.token_ids, None))
    angles = to_radians(steps, torch.float64) if steps.dtype == torch.int64 else steps.double()
    phase = phase_of(route_of(position, sample))
    assert phase.dtype == torch.float32
    assert_phases(phase, angles.cumsum(2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a1_rope_phases_are_position_times_frequency(dtype: torch.dtype) -> None:
    hidden = torch.zeros(1, 65_536, WIDTH, dtype=dtype)
    position = build(parse_encoding("rope"), dtype=dtype)
    phase = phase_of(position(hidden, torch.zeros(1, 65_536, dtype=torch.int64)))
    frequencies = torch.tensor([1.0, 0.01], dtype=torch.float64)
    assert_phases(phase[0, 0], -torch.arange(1, 65_537)[:, None] * frequencies)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a1_frozen_angles_survive_a_cast(dtype: torch.dtype) -> None:
    sample = draw_sample(64)
    for name in ("rope", "random", "random:by=position"):
        wide, cast = build(parse_encoding(name)), build(parse_encoding(name), dtype=dtype)
        assert_same_bits(phase_of(route_of(cast, sample.to(dtype))), phase_of(route_of(wide, sample)), name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a1_learned_steps_and_gates_are_float32_of_what_they_are_given(dtype: torch.dtype) -> None:
    """In a cast module and under autocast alike: no step or log-decay is rounded to the model's dtype."""
    sample = draw_sample(64).to(dtype)
    cast = build(parse_encoding("learned+forget"), dtype=dtype)
    wide = build(parse_encoding("learned+forget"), dtype=dtype).float()
    expected = route_of(wide, sample.to(torch.float32))
    with torch.autocast("cpu", dtype=dtype):
        routes = [route_of(wide, sample), route_of(wide, sample.to(torch.float32))]
    for route in (route_of(cast, sample), *routes):
        assert_same_bits(phase_of(route), phase_of(expected), "phases")
        assert route.charge is not None
        assert expected.charge is not None
        assert_same_bits(route.charge.log_decay, expected.charge.log_decay, "log-decays")


@pytest.mark.parametrize("name", ["rope", "random:by=position", "learned"])
def test_a2_positions_256_and_257_are_distinct_in_bfloat16(name: str) -> None:
    sample = draw_sample(300).to(torch.bfloat16)
    frame = route_of(build(parse_encoding(name), dtype=torch.bfloat16), sample).frame
    ones = torch.ones(1, 2, 300, 4, dtype=torch.bfloat16)
    pulled = frame.pull(ones)
    assert (pulled[:, :, 256] != pulled[:, :, 257]).any()


@pytest.mark.parametrize("mean", [0.0, 1.0], ids=["zero-mean", "positive"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a3_a_million_steps_against_exact_arithmetic(mean: float, dtype: torch.dtype) -> None:
    count = 1_000_000
    angles = torch.rand(count, generator=torch.Generator().manual_seed(0)) - 0.5 + mean
    phases = accumulate(angles.to(dtype)[None, None, :, None])[0][0, 0, :, 0]
    exact, checked = 0, 0
    units = (angles.double() * 2.0**60).to(torch.int64).tolist()  # exact: 24 bits, none below 2^-60
    for t, unit in enumerate(units):
        exact += unit
        if t % 9973 == 0 or t == count - 1:
            turns = Fraction(exact, 2**60) / TWO_PI
            expected = float((turns - round(turns)) * TWO_PI)
            assert_phases(phases[t : t + 1], torch.tensor([expected], dtype=torch.float64))
            checked += 1
    assert checked == 102


def test_a3_binary_angles_of_special_angles() -> None:
    angles = torch.tensor([0.0, torch.pi, -torch.pi, torch.pi / 2, 7 * torch.pi, 1e4], dtype=torch.float64)
    assert_phases(to_radians(to_turns(angles), torch.float64), angles)


@pytest.mark.usefixtures("threads_restored")
def test_a4_sums_have_the_same_bits_on_any_number_of_threads() -> None:
    steps = torch.randn(2, 2, 20_000, 8, generator=torch.Generator().manual_seed(0))
    decays = -steps[..., 0].abs()
    results = []
    for threads in (1, 2, 2):
        torch.set_num_threads(threads)
        columns = Charge(decays, torch.ones(2, dtype=torch.float64), None).columns(torch.float32)
        results.append([*accumulate(steps), *columns])
    for again in results[1:]:
        for found, expected in zip(again, results[0], strict=True):
            assert_same_bits(found, expected, "sums")


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("gates", ["open", "shut", "alternating"])
def test_a5_gates_at_their_extremes_stay_finite(gates: str, dtype: torch.dtype) -> None:
    time = 8192
    sample = draw_sample(time, batch=1, heads=1, kv_heads=1).to(dtype)
    position = build(parse_encoding("learned-qkv+forget"), heads=1, kv_heads=1)
    sign = {
        "open": torch.ones(time),
        "shut": -torch.ones(time),
        "alternating": 1 - torch.arange(time) % 2 * 2.0,
    }
    hidden = sample.hidden.clone()
    hidden[..., 0] = sign[gates] * 1e4
    with torch.no_grad():
        position.get_parameter("control.weight").copy_(torch.eye(1, WIDTH))
        position.get_parameter("control.bias").zero_()
    leaves = [sample.query, sample.key, sample.value, hidden, *position.parameters()]
    for x in leaves:
        x.requires_grad_()
    route = position(hidden, sample.token_ids)
    assert route.charge is not None
    assert route.charge.log_decay.min() < -9e3 or gates == "open"
    output = attend(sample.query, sample.key, sample.value, route)
    for tensor in [output, *torch.autograd.grad(output.float().square().sum(), leaves)]:
        assert tensor.isfinite().all()


def test_a6_a_first_call_in_bfloat16_leaves_no_trace() -> None:
    sample = draw_sample(50)
    for name in ("rope", "random:by=position", "learned"):
        used, fresh = build(parse_encoding(name)), build(parse_encoding(name))
        route_of(used, sample.to(torch.bfloat16))
        assert_same_bits(phase_of(route_of(used, sample)), phase_of(route_of(fresh, sample)), name)


def test_a6_two_bases_are_independent() -> None:
    sample = draw_sample(50)
    slow, fast = build(parse_encoding("rope:theta=10000.0")), build(parse_encoding("rope:theta=100.0"))
    phases = [phase_of(route_of(position, sample)) for position in (slow, fast, slow)]
    assert_same_bits(phases[2], phases[0], "the first base, again")
    assert_phases(phases[0][0, 0, 9], torch.tensor([-10.0, -0.1]))
    assert_phases(phases[1][0, 0, 9], torch.tensor([-10.0, -1.0]))


def rows_in_float64(sample_rows: list[int], query: Tensor, key: Tensor, value: Tensor, charge: Charge) -> Tensor:
    """Rows of one head in float64, biases from a sum of the log-decays alone."""
    total = charge.log_decay.double().flatten().cumsum(0)
    outputs = []
    for i in sample_rows:
        bias = charge.slope[0].double() * (total[i] - total[: i + 1])
        scores = key[0, 0, : i + 1].double() @ query[0, 0, i].double() / query.shape[-1] ** 0.5 + bias
        outputs.append(scores.softmax(0) @ value[0, 0, : i + 1].double())
    return torch.stack(outputs)


def constant_charge(time: int, nats: float) -> Charge:
    """One head that forgets `nats` a token."""
    return Charge(torch.full((1, 1, time), -nats), torch.ones(1, dtype=torch.float64), None)


def long_sample(time: int, head_dim: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    sample = draw_sample(time, batch=1, heads=1, kv_heads=1, head_dim=head_dim)
    return sample.query, sample.key, sample.value


def assert_exact(output: Tensor, query: Tensor, key: Tensor, value: Tensor, charge: Charge) -> None:
    """Raises unless rows at the beginning, in the middle and at the end agree with float64."""
    time = query.shape[2]
    rows = [0, 1, time // 16 - 1, time // 2, time - 2, time - 1]
    error = output[0, 0, rows].double() - rows_in_float64(rows, query, key, value, charge)
    assert error.abs().max() <= OUTPUT_TOLERANCE


@pytest.mark.parametrize(("slope", "time"), [(2.0**-0.5, 65_536), (2.0**-8, 16_384)])
def test_e2_alibi_at_65536_tokens_is_exact_and_takes_little_memory(slope: float, time: int) -> None:
    query, key, value = long_sample(time)
    position = parse_encoding("alibi").build(LayerShape(1, 1, 1, 64, 1))
    route = position(torch.zeros(1, time, 1), torch.zeros(1, time, dtype=torch.int64))
    assert route.charge is not None
    charge = replace(route.charge, slope=torch.tensor([slope], dtype=torch.float64))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = attend(query, key, value, replace(route, charge=charge))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 2**30, f"{grown / 2**30:.1f} GiB; a bias of 65,536 × 65,536 takes 16"
    assert_exact(output, query, key, value, charge)


@pytest.mark.parametrize(("nats", "time"), [(0.3, 65_536), (1e-4, 16_384), (1e-2, 16_384), (1.0, 16_384)])
def test_e2_forget_gate_at_65536_tokens_is_exact(nats: float, time: int) -> None:
    query, key, value = long_sample(time, 16)
    charge = constant_charge(time, nats)
    assert_exact(attend(query, key, value, Route(charge=charge)), query, key, value, charge)


@pytest.mark.parametrize("nats", [1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0])
def test_e2_bfloat16_columns_cost_no_more_than_bfloat16_itself(nats: float) -> None:
    """At 4,096 tokens the error is within twice what rounding the inputs to bfloat16 alone makes of it."""
    time = 4096
    exact = long_sample(time)
    query, key, value = (x.bfloat16() for x in exact)
    charge = constant_charge(time, nats)
    rows = [*range(0, time, 97), time - 1]
    expected = rows_in_float64(rows, *exact, charge)
    floor = (rows_in_float64(rows, query, key, value, charge) - expected).norm()
    found = attend(query, key, value, Route(charge=charge))[0, 0, rows].double()
    assert (found - expected).norm() <= 2 * floor


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_i5_random_positions_go_on_beyond_what_was_seen(distribution: str) -> None:
    encoding = parse_encoding(f"random:by=position,distribution={distribution}")
    grown, fresh = build(encoding, head_dim=12), build(encoding, head_dim=12)
    route_of(grown, draw_sample(3000))
    phase_of(route_of(grown, draw_sample(9)))
    sample = draw_sample(12_000, batch=1)
    assert_same_bits(phase_of(route_of(grown, sample)), phase_of(route_of(fresh, sample)), "phases")


def test_i5_a_decoder_goes_four_times_beyond_the_longest_seen() -> None:
    for name in ("random-qkv:by=position", "random-qkv", "rope", "learned-qkv+forget", "alibi"):
        grown, fresh = (Decoder(small_model(), parse_encoding(name), seed=1) for _ in range(2))
        token_ids = torch.randint(VOCABULARY, (1, 256), generator=torch.Generator().manual_seed(0))
        short = grown(token_ids[:, :64])
        assert_same_bits(grown(token_ids), fresh(token_ids), name)
        assert short.isfinite().all()


@pytest.mark.parametrize("name", ["householder", "householder:reflections=2"])
def test_a3_a_million_tokens_stay_orthogonal(name: str) -> None:
    """Orthogonality error of the frame after 10⁶ tokens ≤ 1e-4, for steps that aren't added up as integers."""
    position = parse_encoding(name).build(LayerShape(WIDTH, 1, 1, 16, VOCABULARY))
    frame, identity = None, torch.eye(16, dtype=torch.float64)
    with torch.no_grad():
        for seed in range(8):
            hidden = torch.randn(1, 125_000, WIDTH, generator=torch.Generator().manual_seed(seed))
            inputs = StepInputs(hidden, torch.zeros(1, 125_000, dtype=torch.int64), torch.zeros(1, 125_000), 125_000)
            before = None if frame is None else frame.end
            frame = position.steps.frame(position.steps(inputs), torch.float32, before=before)
    assert frame is not None
    (last,) = frame.at(torch.tensor([124_999]))[0, 0]  # type: ignore[index]  # reflections have a frame
    assert (last @ last.mT - identity).abs().max() <= 1e-4
