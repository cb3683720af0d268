"""Recording: what passes is what is stored, and the model stays as it was."""

import gc
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import transformers

import resid
from resid.errors import ResidError
from resid.points import KINDS, resolve, stream_points
from resid.recording import recording, watching
from tests.conftest import D_MLP, D_MODEL, D_VOCAB, IDS, N_LAYERS, tiny_config, tiny_hf
from tests.oracle import Oracle

READINGS = {
    "logit_lens": resid.logit_lens,
    "stream_norms": resid.stream_norms,
    "mlp_memory": resid.mlp_memory,
    "attribution": partial(resid.attribution, target="id:7"),
}

VARIANTS = [
    {},
    {"attn_implementation": "eager"},
    {"attn_implementation": "sdpa"},
    # Under sdpa, transformers 4.57 does not scale as these two ask for.
    {"scale_attn_by_inverse_layer_idx": True, "attn_implementation": "eager"},
    {"scale_attn_weights": False, "attn_implementation": "eager"},
    {"reorder_and_upcast_attn": True},
    {"reorder_and_upcast_attn": True, "attn_implementation": "eager"},
    {"activation_function": "relu"},
    {"activation_function": "gelu"},
    {"n_inner": D_MODEL},
    {"tie_word_embeddings": False},
    {"layer_norm_epsilon": 0.1},
]
# The rounding of float32 in a stream whose entries are around 5; measured at 3e-6.
CLOSE = 1e-4


def assert_records_the_oracle(hf, recorded, oracle=None):
    oracle = oracle or Oracle(hf, IDS)
    assert set(recorded) == set(oracle.at)
    for name, expected in oracle.at.items():
        np.testing.assert_allclose(recorded[name].numpy(), expected, atol=CLOSE, err_msg=name)
    np.testing.assert_allclose(recorded.logits.numpy(), oracle.logits, atol=CLOSE)


def hook_counts(hf):
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return {name: [len(getattr(m, k)) for k in kinds] for name, m in hf.named_modules()}


def attributes(hf):
    return {name: set(vars(module)) for name, module in hf.named_modules()}


def modes(hf):
    return {name: module.training for name, module in hf.named_modules()}


def make_blocks_return(hf, *rest):
    """Blocks that return (hidden, *rest), below a forward pass that unpacks them."""
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

    base = hf.transformer

    def patch(block):
        whole = block.forward

        def forward(hidden, *args, **named):
            out = whole(hidden, *args, **named)
            return (out[0] if isinstance(out, tuple) else out, *rest)

        block.forward = forward

    def forward(input_ids, **_):
        hidden = base.wte(input_ids) + base.wpe.weight[: input_ids.shape[1]]
        for block in base.h:
            hidden, *_ = block(hidden)
        hidden = base.ln_f(hidden)
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=hidden)

    for block in base.h:
        patch(block)
    base.forward = forward


def break_block(block, error):
    def forward(*_, **__):
        raise error

    block.forward = forward


def test_everything_has_its_name_and_shape(tiny):
    recorded = resid.record(tiny, IDS)
    assert len(recorded) == 1 + len(KINDS) * N_LAYERS == 1 + 7 * N_LAYERS
    for name, value in recorded.items():
        width = D_MLP if "mlp_p" in name else D_MODEL
        assert value.shape == (len(IDS), width), name
    assert recorded.logits.shape == (len(IDS), D_VOCAB)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_everything_equals_the_oracle(changes):
    hf = tiny_hf(**changes)
    for name, value in changes.items():
        assert getattr(hf.config, name.replace("attn_impl", "_attn_impl")) == value
    assert_records_the_oracle(hf, resid.record(resid.load(hf), IDS))


def test_embed_is_the_embeddings_exactly(tiny):
    weights = tiny.hf.transformer
    expected = weights.wte.weight[IDS] + weights.wpe.weight[: len(IDS)]
    assert torch.equal(resid.record(tiny, IDS)["embed"], expected)


def test_a_point_is_the_one_before_it_and_what_was_added(tiny):
    recorded = resid.record(tiny, IDS)
    before = recorded["embed"]
    for layer in range(N_LAYERS):
        mid = before + recorded[f"{layer}.attn_out"]
        assert torch.equal(mid, recorded[f"{layer}.mid"])
        before = mid + recorded[f"{layer}.mlp_out"]
        assert torch.equal(before, recorded[f"{layer}.post"])


def test_the_stream_adds_up(tiny):
    recorded = resid.record(tiny, IDS)
    writes = [recorded[f"{i}.{kind}"] for i in range(N_LAYERS) for kind in ("attn_out", "mlp_out")]
    total, last = recorded["embed"] + sum(writes), recorded[f"{N_LAYERS - 1}.post"]
    assert (total - last).norm() <= 1e-6 * last.norm()


def test_the_last_point_is_not_normed(tiny):
    # A model of its own: asked for its states, transformers leaves hooks on it.
    states = tiny_hf()(torch.tensor([IDS]), output_hidden_states=True).hidden_states
    recorded = resid.record(tiny, IDS)
    assert len(states) == N_LAYERS + 1
    for point, state in zip(recorded.points[::2][:-1], states[:-1], strict=True):
        assert torch.equal(recorded[point], state[0])
    last = recorded[f"{N_LAYERS - 1}.post"]
    assert (last - states[-1][0]).abs().max() > 1
    torch.testing.assert_close(tiny.ln_final(last), states[-1][0])


def test_logits_are_bit_identical_to_those_without_recording(tiny):
    plain = tiny.hf(torch.tensor([IDS])).logits
    assert torch.equal(resid.record(tiny, IDS).logits, plain[0])
    with recording(tiny, "everything"):
        assert torch.equal(tiny.hf(torch.tensor([IDS])).logits, plain)


@pytest.mark.parametrize("rest", [(None,), ("present", "attention"), ()], ids=str)
def test_blocks_that_return_tuples_record_the_same(rest):
    hf = tiny_hf()
    oracle = Oracle(hf, IDS)
    make_blocks_return(hf, *rest)
    assert_records_the_oracle(hf, resid.record(resid.load(hf), IDS), oracle)


def test_unequal_prompts_in_a_batch_equal_their_single_runs(tiny):
    prompts = [IDS[:4], IDS, [9], IDS[::-1]]
    batch = resid.record(tiny, prompts)
    assert [recorded.ids for recorded in batch] == [tuple(ids) for ids in prompts]
    for ids, recorded in zip(prompts, batch, strict=True):
        single = resid.record(tiny, ids)
        assert set(recorded) == set(single)
        for name in single:
            assert recorded[name].shape == single[name].shape
            torch.testing.assert_close(recorded[name], single[name], atol=1e-5, rtol=1e-5)
        assert recorded.logits_at == single.logits_at
        torch.testing.assert_close(recorded.logits, single.logits, atol=1e-5, rtol=1e-5)


def test_a_prompt_that_holds_the_padding_id_keeps_it(tiny):
    short, _ = resid.record(tiny, [[0, 0], IDS])
    torch.testing.assert_close(short["2.post"], resid.record(tiny, [0, 0])["2.post"])


def test_one_recording_of_a_batch_does_not_keep_the_others_alive(tiny):
    first = resid.record(tiny, [IDS, IDS])[0]["1.post"]
    assert first.untyped_storage().nbytes() == first.nbytes


@pytest.mark.parametrize(
    "as_given", [torch.tensor, np.array, tuple, lambda ids: list(torch.tensor(ids))]
)
def test_ids_may_be_any_row_of_numbers(tiny, as_given):
    assert resid.record(tiny, as_given(IDS), points="embed").ids == tuple(IDS)


def test_a_matrix_of_ids_is_a_batch(tiny):
    assert len(resid.record(tiny, torch.tensor([IDS, IDS]), points="embed")) == 2


def test_later_positions_do_not_reach_earlier_ones(tiny):
    whole, start = resid.record(tiny, IDS), resid.record(tiny, IDS[:4])
    for name in whole:
        torch.testing.assert_close(start[name], whole[name][:4], atol=1e-5, rtol=1e-5)


def test_a_model_that_writes_nothing_leaves_the_embedding_bitwise():
    hf = tiny_hf()
    with torch.no_grad():
        for name, parameter in hf.named_parameters():
            if "c_proj" in name:
                parameter.zero_()
    recorded = resid.record(resid.load(hf), IDS)
    assert len(recorded.points) == 2 * N_LAYERS + 1
    for point in recorded.points:
        assert torch.equal(recorded[point], recorded["embed"]), point


@pytest.mark.parametrize("points", ["everything", "post"])
def test_hooks_are_gone_afterwards(points):
    model = resid.load(tiny_hf())
    before = hook_counts(model.hf)
    with recording(model, points):
        during = hook_counts(model.hf)
        model.own_logits(IDS, [0])
    assert during != before
    assert hook_counts(model.hf) == before


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()], ids=repr)
def test_hooks_are_gone_after_a_block_raised(error):
    model = resid.load(tiny_hf().train())
    before = hook_counts(model.hf), modes(model.hf)
    break_block(model.hf.transformer.h[1], error)
    with pytest.raises(type(error)):
        resid.record(model, IDS)
    assert (hook_counts(model.hf), modes(model.hf)) == before


def test_hooks_are_gone_after_registering_failed_half_way(monkeypatch):
    model = resid.load(tiny_hf())
    before, site = hook_counts(model.hf), model.site

    def fails_late(name):
        if name == "2.post":
            assert hook_counts(model.hf) != before
            raise AttributeError("no such part")
        return site(name)

    monkeypatch.setattr(model, "site", fails_late)
    with pytest.raises(AttributeError, match="no such part"), recording(model):
        pass
    assert hook_counts(model.hf) == before


def test_a_hook_of_the_users_fires_once_and_stays():
    model, fired = resid.load(tiny_hf()), []
    handle = model.hf.transformer.h[1].register_forward_hook(lambda *_: fired.append(1))
    resid.record(model, IDS)
    assert len(fired) == 1
    assert handle.id in model.hf.transformer.h[1]._forward_hooks


def test_what_a_hook_of_the_users_changes_is_recorded():
    model = resid.load(tiny_hf())
    plain = resid.record(model, IDS)

    def add_one(_module, _inputs, out):
        return (out[0] + 1, *out[1:]) if isinstance(out, tuple) else out + 1

    model.hf.transformer.h[1].register_forward_hook(add_one)
    changed = resid.record(model, IDS)
    assert torch.equal(changed["1.post"], plain["1.post"] + 1)
    assert torch.equal(changed["2.mid"], changed["1.post"] + changed["2.attn_out"])


def test_nothing_is_left_on_the_model():
    model = resid.load(tiny_hf())
    before = attributes(model.hf), {k: v.clone() for k, v in model.hf.state_dict().items()}
    resid.logit_lens(model, resid.record(model, IDS), target="id:3")
    assert attributes(model.hf) == before[0]
    assert all(torch.equal(v, before[1][k]) for k, v in model.hf.state_dict().items())


def test_training_mode_is_set_aside_and_given_back_by_module():
    hf = tiny_hf(resid_pdrop=0.5, embd_pdrop=0.5, attn_pdrop=0.5).train()
    hf.transformer.h[1].eval()
    before = modes(hf)
    model = resid.load(hf)
    one, two = resid.record(model, IDS), resid.record(model, IDS)
    assert modes(hf) == before
    assert len(set(before.values())) == 2
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert_records_the_oracle(hf, one)


def test_a_later_change_in_place_does_not_reach_what_was_stored():
    hf = tiny_hf()
    oracle = Oracle(hf, IDS)

    def patch(block):
        whole = block.forward

        def forward(hidden, *args, **named):
            out = whole(hidden.clone(), *args, **named)
            hidden.add_(1000)
            return out

        block.forward = forward

    for block in hf.transformer.h:
        patch(block)
    assert_records_the_oracle(hf, resid.record(resid.load(hf), IDS), oracle)


def test_a_change_of_a_recording_does_not_reach_the_next(tiny):
    first = resid.record(tiny, IDS)
    expected = first["1.post"].clone()
    for value in first.values():
        value.zero_()
    assert torch.equal(resid.record(tiny, IDS)["1.post"], expected)


def test_a_second_forward_pass_inside_one_recording_is_refused(tiny):
    before = hook_counts(tiny.hf)
    with pytest.raises(ResidError, match="reached embed"), recording(tiny):
        tiny.own_logits(IDS, [0])
        tiny.own_logits(IDS, [0])
    assert hook_counts(tiny.hf) == before


def test_who_watches_sees_what_is_recorded_in_the_order_in_which_it_passes(tiny):
    passed, lasting = {}, []

    def see(name, tensor):
        passed[name] = tensor.clone()
        lasting.append(weakref.ref(tensor))

    with watching(tiny, "everything", see), torch.no_grad():
        tiny.run_blocks([IDS])
    gc.collect()
    assert [alive for alive in lasting if alive() is not None] == []
    with recording(tiny) as captured, torch.no_grad():
        tiny.run_blocks([IDS])
    assert list(passed) == list(captured)
    assert all(torch.equal(passed[name], captured[name]) for name in captured)


def test_who_watches_is_told_of_no_second_pass_and_of_none(tiny):
    with (
        pytest.raises(ResidError, match="a second forward pass"),
        watching(tiny, "post", lambda *_: None),
    ):
        tiny.run_blocks([IDS])
        tiny.run_blocks([IDS])
    with (
        pytest.raises(ResidError, match="nothing passed through embed"),
        watching(tiny, "post", lambda *_: None),
    ):
        pass


def test_no_forward_pass_inside_a_recording_is_refused(tiny):
    with pytest.raises(ResidError, match="nothing passed through embed"), recording(tiny):
        pass


def test_a_compiled_model_is_unwrapped():
    hf = tiny_hf()
    model = resid.load(torch.compile(hf, backend="eager"))
    assert model.hf is hf
    assert_records_the_oracle(hf, resid.record(model, IDS))


def test_gradient_checkpointing_changes_nothing():
    hf = tiny_hf().train()
    enable = getattr(hf, "activation_checkpointing_enable", hf.gradient_checkpointing_enable)
    enable()
    assert_records_the_oracle(hf, resid.record(resid.load(hf), IDS))
    assert hf.transformer.gradient_checkpointing


@pytest.mark.parametrize(
    "setting",
    [
        ("output_hidden_states", True),
        ("use_cache", False),
        pytest.param(
            ("return_dict", False),
            marks=pytest.mark.skipif(
                transformers.__version__ >= "5", reason="transformers 5 cannot run such a model"
            ),
        ),
    ],
    ids=str,
)
def test_settings_of_the_configuration_change_nothing(setting):
    hf = tiny_hf()
    setattr(hf.config, *setting)
    before = hook_counts(hf)
    recorded = resid.record(resid.load(hf), IDS)
    assert_records_the_oracle(hf, recorded)
    assert hook_counts(hf) == before
    assert getattr(hf.config, setting[0]) == setting[1]


def test_what_is_recorded_needs_no_gradient(tiny):
    assert all(p.requires_grad for p in tiny.hf.parameters())
    recorded = resid.record(tiny, IDS)
    with recording(tiny, "post") as captured:
        tiny.hf(torch.tensor([IDS]))
    tensors = [*recorded.values(), recorded.logits, *captured.values()]
    assert not any(tensor.requires_grad for tensor in tensors)


def test_a_gradient_still_flows_through_a_model_that_is_recorded():
    model = resid.load(tiny_hf())
    with recording(model):
        model.hf(torch.tensor([IDS])).logits.sum().backward()
    assert model.hf.transformer.wte.weight.grad is not None


def test_a_recording_does_not_keep_the_model_alive():
    model = resid.load(tiny_hf())
    gone = weakref.ref(model.hf)
    recorded = resid.record(model, IDS)
    del model
    gc.collect()
    assert gone() is None
    assert len(recorded["1.post"]) == len(IDS)


def test_a_model_without_a_head_records_and_has_no_logits():
    hf = tiny_hf()
    recorded = resid.record(resid.load(hf.transformer), IDS)
    assert recorded.logits is None
    whole = resid.record(resid.load(hf), IDS)
    assert all(torch.equal(recorded[name], whole[name]) for name in whole)


def test_the_lens_refuses_a_model_without_a_head():
    model = resid.load(tiny_hf().transformer)
    with pytest.raises(ResidError, match="GPT2Model: it has no language-model head"):
        resid.logit_lens(model, resid.record(model, IDS))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("upcast", [False, True])
def test_half_precision_is_recorded_as_it_is(dtype, upcast):
    hf = tiny_hf(reorder_and_upcast_attn=upcast).to(dtype)
    recorded, oracle = resid.record(resid.load(hf), IDS), Oracle(hf, IDS)
    for name, expected in oracle.at.items():
        assert recorded[name].dtype == dtype
        error = np.linalg.norm(recorded[name].double().numpy() - expected)
        # Each of the three blocks rounds to 8 bits; measured at 0.9 % in bfloat16.
        assert error <= 0.05 * np.linalg.norm(expected), name


@pytest.mark.parametrize(("asked", "at"), [([-1], (6,)), ([0, 3, -1, 6], (0, 3, 6))])
def test_logits_are_kept_where_they_are_asked_for(tiny, asked, at):
    recorded, whole = resid.record(tiny, IDS, logits=asked), resid.record(tiny, IDS)
    assert recorded.logits_at == at
    torch.testing.assert_close(recorded.logits, whole.logits[list(at)], atol=1e-5, rtol=1e-5)


def test_logits_are_left_out_on_request(tiny):
    recorded, whole = resid.record(tiny, IDS, logits=False), resid.record(tiny, IDS)
    assert recorded.logits is None
    assert all(torch.equal(recorded[name], whole[name]) for name in whole)


def test_a_position_for_logits_outside_of_the_prompt_is_refused(tiny):
    with pytest.raises(ResidError, match="no position 7; the prompt has 0 to 6"):
        resid.record(tiny, IDS, logits=[7])


def test_positions_for_logits_of_several_prompts_are_refused(tiny):
    with pytest.raises(ResidError, match="single prompt"):
        resid.record(tiny, [IDS, IDS], logits=[-1])


def test_no_prompts_are_refused(tiny):
    with pytest.raises(ResidError, match="list of prompts is empty"):
        resid.record(tiny, [])


def test_a_prompt_past_the_context_is_refused_before_the_model_runs():
    model = resid.load(tiny_hf())
    break_block(model.hf.transformer.h[0], AssertionError("the model ran"))
    with pytest.raises(ResidError, match=r"33 tokens; .* at most 32"):
        resid.record(model, [IDS, [1] * 33])


def test_a_prompt_that_fills_the_context_is_recorded(tiny):
    assert resid.record(tiny, [1] * 32)["2.post"].shape == (32, D_MODEL)


def test_default_points_are_embed_and_every_post():
    assert resolve("post", 3) == stream_points(3) == ("embed", "0.post", "1.post", "2.post")


def test_names_come_in_the_order_of_the_forward_pass_and_once():
    asked = ["2.post", "1.mlp_out", " 0.mid", "2.post", "mlp_pre", "embed"]
    expected = ("embed", "0.mid", "0.mlp_pre", "1.mlp_pre", "1.mlp_out", "2.mlp_pre", "2.post")
    assert resolve(asked, 3) == resolve(",".join(asked), 3) == expected


def test_the_order_of_names_is_that_in_which_the_forward_pass_reaches_them(tiny):
    with recording(tiny) as captured:
        tiny.own_logits(IDS, [0])
    assert tuple(captured) == resolve("everything", N_LAYERS)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("blocks.0.hook_resid_pre", "embed"),
        ("blocks.2.hook_resid_pre", "1.post"),
        ("blocks.1.hook_resid_mid", "1.mid"),
        ("blocks.1.hook_resid_post", "1.post"),
        ("blocks.1.attn.hook_z", "1.z"),
        ("blocks.1.hook_attn_out", "1.attn_out"),
        ("blocks.1.hook_mlp_out", "1.mlp_out"),
        ("blocks.1.mlp.hook_pre", "1.mlp_pre"),
        ("blocks.1.mlp.hook_post", "1.mlp_post"),
    ],
)
def test_transformer_lens_names_are_aliases(tiny, alias, name):
    recorded = resid.record(tiny, IDS, points=[alias])
    assert tuple(recorded) == (name,)
    assert recorded[alias] is recorded[name]


@pytest.mark.parametrize("name", ["3.post", "blocks.3.hook_resid_pre", "99.mid", "000099.mid"])
def test_a_layer_past_the_last_is_refused_with_the_range(name):
    with pytest.raises(ResidError, match=f"'{name}': the model has layers 0 to 2"):
        resolve(name, 3)


@pytest.mark.parametrize("name", ["", "posts", "1.pre", "-1.post", "1", "x.post", "1.post.2"])
def test_a_name_that_is_no_point_is_refused_with_the_range(name):
    with pytest.raises(ResidError, match=f"no point '{name}'; .* L from 0 to 2"):
        resolve(name, 3)


def test_what_was_not_recorded_is_refused(tiny):
    recorded = resid.record(tiny, IDS, points="post")
    with pytest.raises(ResidError, match=r"1\.mid was not recorded; record it"):
        recorded["1.mid"]


def test_a_name_for_several_is_not_one_tensor(tiny):
    with pytest.raises(ResidError, match="'post' stands for several names"):
        resid.record(tiny, IDS)["post"]


def test_the_stream_is_stacked_in_order(tiny):
    recorded = resid.record(tiny, IDS)
    stream = recorded.stream("all")
    assert stream.shape == (2 * N_LAYERS + 1, len(IDS), D_MODEL)
    for vectors, point in zip(stream, recorded.points, strict=True):
        assert torch.equal(vectors, recorded[point])


def test_an_activation_off_the_stream_is_not_stacked(tiny):
    with pytest.raises(ResidError, match=r"0\.attn_out is not on the residual stream"):
        resid.record(tiny, IDS).stream(["attn_out"])


def test_the_source_tells_what_was_read(tiny):
    source = resid.record(tiny, "the is", points="embed").source
    assert (source.prompt, source.ids, source.tokens) == ("the is", (257, 260), ("the", " is"))
    assert (source.n_layers, source.d_model, source.d_vocab) == (N_LAYERS, D_MODEL, D_VOCAB)
    assert (source.dtype, source.device) == ("float32", "cpu")


def test_the_tiny_configuration_is_not_square():
    assert len({N_LAYERS, D_MODEL, D_MLP, D_VOCAB, tiny_config().n_head}) == 5


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize(
    ("change", "ids", "told"),
    [
        ({"n_layer": N_LAYERS + 1}, IDS, f"n_layers is {N_LAYERS}, but of .* is {N_LAYERS + 1}"),
        ({"n_embd": 2 * D_MODEL}, IDS, f"d_model is {D_MODEL}, but of .* is {2 * D_MODEL}"),
        ({"n_positions": 40}, [5] * 40, "has 40 positions; .* reads 32"),
        ({"vocab_size": D_VOCAB + 1}, [5, D_VOCAB], f"has the id {D_VOCAB}; .* has ids 0 to 299"),
    ],
    ids=["layers", "width", "context", "vocabulary"],
)
def test_a_recording_that_another_model_made_is_refused(tiny, name, change, ids, told):
    recorded = resid.record(resid.load(tiny_hf(**change)), ids, points="everything")
    with pytest.raises(ResidError, match=told):
        READINGS[name](tiny, recorded)


@pytest.mark.parametrize("name", ["mlp_memory", "attribution"])
def test_coefficients_of_more_neurons_than_there_are_values_are_refused(tiny, name):
    other = resid.load(tiny_hf(n_inner=D_MLP + 1))
    recorded = resid.record(other, IDS, points="everything")
    neurons = {"neurons": 3} if name == "attribution" else {}
    with pytest.raises(ResidError, match=f"d_mlp is {D_MLP}, but of .* is {D_MLP + 1}"):
        READINGS[name](tiny, recorded, **neurons)


def test_a_model_that_got_more_tokens_reads_its_old_recordings_but_not_their_logits(fresh):
    recorded = resid.record(fresh, IDS, points="everything")
    norms = resid.stream_norms(fresh, recorded)
    fresh.hf.resize_token_embeddings(D_VOCAB + 3, mean_resizing=False)
    larger = resid.load(fresh.hf)
    np.testing.assert_array_equal(resid.stream_norms(larger, recorded).l2, norms.l2)
    with pytest.raises(ResidError, match=f"d_vocab is {D_VOCAB + 3}, but of .* is {D_VOCAB}"):
        resid.logit_lens(larger, recorded)
    lens = resid.logit_lens(larger, replace(recorded, logits=None, logits_at=()))
    assert not lens.failures


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("wrong", [D_VOCAB, -1])
def test_a_recording_of_ids_that_the_model_lacks_is_refused(tiny, name, wrong):
    recorded = resid.record(tiny, IDS, points="everything")
    source = replace(recorded.source, ids=(wrong, *recorded.source.ids[1:]))
    with pytest.raises(ResidError, match=f"has the id {wrong}; .* has ids 0 to 299"):
        READINGS[name](tiny, replace(recorded, source=source))


@pytest.mark.parametrize("name", READINGS)
def test_a_prompt_is_no_recording(tiny, name):
    with pytest.raises(ResidError, match=r"not a str: resid.record\(model, prompt\) makes one"):
        READINGS[name](tiny, "the is")
