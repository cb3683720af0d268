"""A GPT-2 under the field's names: the one place that knows how Hugging Face spells its parts."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import torch

from resid import checkpoint, hub
from resid.configuration import read_config
from resid.errors import ResidError
from resid.results import Source
from resid.tokens import Vocabulary, check_ids

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
# Where a module's recording is taken from: what it returns, or what it is given.
Side = Literal["input", "output"]


class Model:
    """A GPT-2 and its vocabulary, read only.

    Attributes:
        hf: the Hugging Face model, never changed.
        vocabulary: display strings and ids of its tokens.
        name: how it was asked for.
        revision: the commit of a model from the hub.
        notices: what a user should know about how it was loaded, one line each.
        n_layers, n_heads, d_model, d_vocab, n_ctx: counts, read from the weights themselves.
        n_embeddings: how many ids it can read; `d_vocab` is how many it can predict.
    """

    def __init__(
        self,
        hf: Any,
        tokenizer: Any | None = None,
        *,
        name: str = "in memory",
        revision: str | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        """Wrap a model in memory; `load` is the way in.

        Raises:
            ResidError: it is not a GPT-2, it lacks a part, or its weights are not here.
        """
        self.hf = getattr(hf, "_orig_mod", hf)  # torch.compile hides modules from hooks.
        kind = getattr(getattr(self.hf, "config", None), "model_type", type(hf).__name__)
        if kind != "gpt2":
            raise ResidError(f"resid reads gpt2 models; got {kind}")
        self.name, self.revision, self.notices = name, revision, tuple(notices)
        self.vocabulary = Vocabulary(tokenizer, absent=f"the model '{name}' has no tokenizer files")
        self._base = _find_base(self.hf)
        head = (
            self.hf.get_output_embeddings() if hasattr(self.hf, "get_output_embeddings") else None
        )
        self._head = head if hasattr(head, "weight") else None
        self._refuse_absent_weights()
        self.n_embeddings, self.d_model = self._base.wte.weight.shape
        self.n_ctx = self._base.wpe.weight.shape[0]
        self.n_layers = len(self._base.h)
        self.n_heads = int(self.hf.config.n_head)
        self.d_vocab = self.n_embeddings if self._head is None else self._head.weight.shape[0]

    def _refuse_absent_weights(self) -> None:
        for name, parameter in self.hf.named_parameters():
            if parameter.is_meta:
                raise ResidError(f"the weights are offloaded: {name} is on the meta device")
        embedding = self._base.wte.weight
        if not embedding.is_floating_point():
            raise ResidError(f"the weights are packed: wte holds {embedding.dtype} numbers")

    @property
    def device(self) -> torch.device:
        """Where the embedding lies, and so where ids go."""
        device: torch.device = self._base.wte.weight.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """Of the embedding, and so of the stream."""
        dtype: torch.dtype = self._base.wte.weight.dtype
        return dtype

    @property
    def reading_dtype(self) -> torch.dtype:
        """In which readings compute: float32 at least, so that reading never rounds to half."""
        return torch.promote_types(self.dtype, torch.float32)

    @property
    def has_head(self) -> bool:
        """Whether the model has an unembedding, and so can be read by a lens."""
        return self._head is not None

    @property
    def W_U(self) -> torch.Tensor:
        """[d_model, d_vocab] the unembedding, as a view.

        Raises:
            ResidError: the model has no language-model head.
        """
        weight: torch.Tensor = self._need_head().weight
        return weight.detach().T

    @property
    def b_U(self) -> torch.Tensor | None:
        """[d_vocab] the unembedding's bias, which GPT-2 itself does not have."""
        bias = getattr(self._need_head(), "bias", None)
        return None if bias is None else bias.detach()

    def _need_head(self) -> Any:
        if self._head is None:
            raise ResidError(
                f"'{self.name}' is a {type(self.hf).__name__}: it has no language-model head\n"
                "to read tokens there must be one; load the model as GPT2LMHeadModel"
            )
        return self._head

    def ln_final(self, stream: torch.Tensor) -> torch.Tensor:
        """[..., d_model] the final LayerNorm of a stream, its statistics taken from that stream.

        Written out instead of calling the module, so that no hook of the user's fires.
        """
        return _layer_norm(self._base.ln_f, stream)

    @property
    def ln_final_gain(self) -> torch.Tensor:
        """[d_model] the final LayerNorm's gain, in the dtype that readings compute in."""
        gain: torch.Tensor = self._base.ln_f.weight
        return gain.detach().to(self.reading_dtype)

    def ln_final_scale(self, stream: torch.Tensor) -> torch.Tensor:
        """[...] what the final LayerNorm divides a stream [..., d_model] by."""
        variance = stream.var(-1, unbiased=False)
        return torch.sqrt(variance + float(self._base.ln_f.eps))

    @property
    def W_E(self) -> torch.Tensor:
        """[token, d_model] the token embedding; `n_embeddings` tokens."""
        embedding: torch.Tensor = self._base.wte.weight
        return embedding.detach()

    @property
    def W_pos(self) -> torch.Tensor:
        """[n_ctx, d_model] the position embedding."""
        embedding: torch.Tensor = self._base.wpe.weight
        return embedding.detach()

    @property
    def ln_final_bias(self) -> torch.Tensor:
        """[d_model] the final LayerNorm's bias, in the dtype that readings compute in."""
        bias: torch.Tensor = self._base.ln_f.bias
        return bias.detach().to(self.reading_dtype)

    def ln2(self, layer: int, stream: torch.Tensor) -> torch.Tensor:
        """[..., d_model] the LayerNorm before a block's MLP, without any hook of the user's."""
        return _layer_norm(self._base.h[layer].ln_2, stream)

    def ln2_gain(self, layer: int) -> torch.Tensor:
        """[d_model] that LayerNorm's gain, in the dtype that readings compute in."""
        gain: torch.Tensor = self._base.h[layer].ln_2.weight
        return gain.detach().to(self.reading_dtype)

    def norm_parameters(self, name: str) -> tuple[torch.Tensor, torch.Tensor, float]:
        """A LayerNorm's gain [d_model], its bias [d_model] and its epsilon.

        Args:
            name: "ln_final", or "3.ln1" and "3.ln2", before block 3's attention and its MLP.
        """
        layer, _, which = name.rpartition(".")
        norm = self._base.ln_f
        if layer:
            block = self._base.h[int(layer)]
            norm = {"ln1": block.ln_1, "ln2": block.ln_2}[which]
        return norm.weight.detach(), norm.bias.detach(), float(norm.eps)

    def W_QKV(self, layer: int) -> torch.Tensor:
        """[d_model, 3 x d_model] what makes queries, keys and values, side by side."""
        return self._plain(layer, "attn", "c_attn")[0]

    def b_QKV(self, layer: int) -> torch.Tensor:
        """[3 x d_model] their biases."""
        return self._plain(layer, "attn", "c_attn")[1]

    def attention_scale(self, layer: int) -> float:
        """What attention multiplies a query's product with a key by."""
        config = self.hf.config
        scale = (self.d_model // self.n_heads) ** -0.5 if config.scale_attn_weights else 1.0
        return scale / (layer + 1) if config.scale_attn_by_inverse_layer_idx else scale

    @property
    def activation(self) -> str:
        """The name that the configuration has for the MLP's activation function: "gelu_new"."""
        return str(self.hf.config.activation_function)

    def W_in(self, layer: int) -> torch.Tensor:
        """[d_model, d_mlp] the MLP's keys: column i is neuron i's."""
        return self._plain(layer, "mlp", "c_fc")[0]

    def b_in(self, layer: int) -> torch.Tensor:
        """[d_mlp] the keys' biases."""
        return self._plain(layer, "mlp", "c_fc")[1]

    def W_out(self, layer: int) -> torch.Tensor:
        """[d_mlp, d_model] the MLP's values: row i is neuron i's."""
        return self._plain(layer, "mlp", "c_proj")[0]

    def b_out(self, layer: int) -> torch.Tensor:
        """[d_model] what the MLP adds whatever its neurons do."""
        return self._plain(layer, "mlp", "c_proj")[1]

    def W_O(self, layer: int) -> torch.Tensor:
        """[d_model, d_model] what attention's heads write: rows of head h begin at h x d_head."""
        return self._plain(layer, "attn", "c_proj")[0]

    def b_O(self, layer: int) -> torch.Tensor:
        """[d_model] what attention adds whatever its heads do."""
        return self._plain(layer, "attn", "c_proj")[1]

    def _plain(self, layer: int, part: str, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Weight and bias of a sublayer's projection, refused where they are wrapped or packed."""
        module = getattr(getattr(self._base.h[layer], part), name)
        weight = getattr(module, "weight", None)
        # Conv1D stores [in, out], as the words above have it; anything else is somebody's wrapper.
        if type(module).__name__ != "Conv1D" or weight is None or not weight.is_floating_point():
            raise ResidError(
                f"{layer}.{part}.{name} is a {type(module).__name__}: its weights are wrapped or "
                "packed\nmerge adapters, or load the model unquantized, to read it"
            )
        return weight.detach(), module.bias.detach()

    def site(self, name: str) -> tuple[torch.nn.Module, Side]:
        """The module, and the side of it, where a point or activation can be picked up.

        Args:
            name: "embed", or "L.KIND" with KIND one of z, attn_out, mid, mlp_pre, mlp_post,
                mlp_out, post.
        """
        if name == "embed":
            return self._base.h[0], "input"
        layer, kind = name.split(".")
        block = self._base.h[int(layer)]
        sites: dict[str, tuple[Any, Side]] = {
            "mid": (block.ln_2, "input"),
            "post": (block, "output"),
            "z": (block.attn.c_proj, "input"),  # What the heads mixed, side by side.
            "attn_out": (block.attn, "output"),
            "mlp_out": (block.mlp, "output"),
            "mlp_pre": (block.mlp.c_fc, "output"),
            "mlp_post": (block.mlp.c_proj, "input"),  # What the activation function returned.
        }
        return sites[kind]

    def encode(self, prompt: str | Sequence[int], bos: bool = False) -> list[int]:
        """The ids of a prompt, checked against what the model can read.

        Args:
            prompt: text, taken as it is, or ids.
            bos: put one beginning-of-sequence token in front.

        Raises:
            ResidError: there are no ids, too many for the context, or one without an embedding.
        """
        if isinstance(prompt, str):
            ids = self.vocabulary.encode(prompt, bos=bos)
        else:
            ids = ([self.bos_id()] if bos else []) + [int(i) for i in prompt]
        if not ids:
            raise ResidError("the prompt is empty; give at least one token")
        if len(ids) > self.n_ctx:
            raise ResidError(
                f"the prompt has {len(ids)} tokens; {self.name} reads at most {self.n_ctx}"
            )
        check_ids(ids, self.n_embeddings)
        return ids

    def bos_id(self) -> int:
        """The id of the beginning-of-sequence token.

        Raises:
            ResidError: neither tokenizer nor configuration has one.
        """
        for owner in (self.vocabulary.tokenizer, self.hf.config):
            token_id = getattr(owner, "bos_token_id", None)
            if token_id is not None:
                return int(token_id)
        raise ResidError(f"the model '{self.name}' has no beginning-of-sequence token")

    def own_logits(self, ids: Sequence[int], positions: Sequence[int]) -> torch.Tensor:
        """[pos, d_vocab] what the model itself predicts at some positions, with no hook of ours."""
        with evaluating(self.hf), torch.no_grad():
            return self.forward([ids], positions)[0]

    def forward(
        self, ids: Sequence[Sequence[int]], logits_at: Sequence[int] | None = None
    ) -> torch.Tensor:
        """[batch, pos, d_vocab] the logits of one forward pass of the unmodified model.

        Prompts of unequal length are padded on the right: under the causal mask, and with positions
        counted from the left, what follows a prompt cannot reach it.

        Args:
            ids: one sequence of ids a prompt.
            logits_at: positions at which to compute logits; None: all.
        """
        batch, options = self._pad(ids)
        self._need_head()
        # Passed only where it saves something: the plain call stays the plain call.
        keeps = "logits_to_keep" in inspect.signature(self.hf.forward).parameters
        everywhere = logits_at is None or list(logits_at) == list(range(batch.shape[1]))
        wanted = None if everywhere else torch.tensor(list(logits_at or ()), device=self.device)
        if wanted is not None and keeps:
            options["logits_to_keep"] = wanted
        with _as_written():
            logits: torch.Tensor = self.hf(batch, **options).logits
        return logits if wanted is None or keeps else logits[:, wanted]

    def run_blocks(self, ids: Sequence[Sequence[int]]) -> None:
        """One forward pass through embeddings, blocks and final norm, without the unembedding."""
        batch, options = self._pad(ids)
        with _as_written():
            self._base(batch, **options)

    def _pad(self, ids: Sequence[Sequence[int]]) -> tuple[torch.Tensor, dict[str, Any]]:
        longest = max(len(row) for row in ids)
        padded = [[*row, *[0] * (longest - len(row))] for row in ids]
        # Whatever the model's own configuration asks for: to collect states or attentions would
        # leave hooks of transformers' own on the user's model.
        options: dict[str, Any] = {
            "use_cache": False,
            "return_dict": True,
            "output_hidden_states": False,
            "output_attentions": False,
        }
        if any(len(row) < longest for row in ids):
            lengths = torch.tensor([len(row) for row in ids], device=self.device)
            columns = torch.arange(longest, device=self.device)
            options["attention_mask"] = (columns < lengths[:, None]).long()
        return torch.tensor(padded, device=self.device), options

    def source(self, prompt: str | None, ids: Sequence[int]) -> Source:
        """Where a result read from this model comes from."""
        import numpy
        import transformers

        from resid import __version__

        return Source(
            model=self.name,
            revision=self.revision,
            n_layers=self.n_layers,
            d_model=self.d_model,
            d_vocab=self.d_vocab,
            dtype=str(self.dtype).removeprefix("torch."),
            device=str(self.device),
            prompt=prompt,
            ids=tuple(ids),
            tokens=self.vocabulary.show_all(ids),
            versions={
                "resid": __version__,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "numpy": numpy.__version__,
            },
        )


def load(
    model: Any = None,
    *,
    tokenizer: Any | None = None,
    revision: str | None = None,
    device: str = "auto",
    dtype: str | torch.dtype = "float32",
) -> Model:
    """A GPT-2 ready to be read: evaluation mode, float32 unless told, its weights complete.

    Args:
        model: a hub name ("gpt2"), a folder, "mini" (the bundled model), a Hugging Face model in
            memory (or a pair of it and its tokenizer), or None: gpt2 from the local cache, else
            from the hub, else mini, and `notices` says which and why.
        tokenizer: a tokenizer in memory, or the folder of one; None: the model's own.
        revision: of a model from the hub, a branch, tag or commit.
        device: "auto" (CUDA where there is one, else the CPU), "cpu", "cuda", "mps". A model in
            memory stays where it is.
        dtype: "float32", "bfloat16", "float16" or "float64". A model in memory keeps its own.

    Raises:
        ResidError: the model is not to be had, is not a GPT-2, or its checkpoint is not whole.
    """
    if isinstance(model, tuple):
        model, tokenizer = model
    if model is not None and not isinstance(model, (str, os.PathLike)):
        name = getattr(getattr(model, "config", None), "_name_or_path", "") or "in memory"
        return Model(model, _read_tokenizer(tokenizer), name=name)
    found = hub.locate(None if model is None else os.fspath(model), revision)
    return open_found(found, tokenizer=tokenizer, device=device, dtype=dtype)


def open_found(
    found: hub.Found, *, tokenizer: Any | None, device: str, dtype: str | torch.dtype
) -> Model:
    """The second half of `load`, for whoever has looked for the model before torch was there."""
    tokenizer = _read_tokenizer(tokenizer)
    where, wanted = _pick_device(device), _pick_dtype(dtype)
    folder = found.folder
    config = read_config(folder)
    if tokenizer is None:
        tokenizer = checkpoint.read_tokenizer(folder, config)
    hf, told = checkpoint.build(config, checkpoint.read_weights(folder), folder, wanted)
    notices = [*found.notices, *told, *_compare_sizes(tokenizer, config.vocab_size)]
    return Model(hf.to(where), tokenizer, name=found.name, revision=found.revision, notices=notices)


def _compare_sizes(tokenizer: Any | None, n_embeddings: int) -> list[str]:
    """A notice where a tokenizer is so large, or so small, that it may be another model's."""
    n_tokens = n_embeddings if tokenizer is None else len(tokenizer)
    if n_embeddings / 2 <= n_tokens <= n_embeddings:
        return []
    return [
        f"the tokenizer has {n_tokens:,} tokens and the model {n_embeddings:,}; is it this model's?"
    ]


def _read_tokenizer(given: Any) -> Any:
    """The tokenizer that was given: one in memory as it is, or read from its folder."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    folder = hub.BUNDLED_FOLDER if given == hub.BUNDLED else Path(given).expanduser()
    if not folder.is_dir():
        raise ResidError(f"the tokenizer folder '{folder}' does not exist")
    tokenizer = checkpoint.read_tokenizer(folder)
    if tokenizer is None:
        raise ResidError(f"the folder '{folder}' has no tokenizer files")
    return tokenizer


def _pick_device(device: str) -> torch.device:
    if device == "auto":
        # Apple's MPS is never picked unasked: some torch versions compute wrong numbers on it.
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # What torch raises differs by device: no such name, built without it, no driver.
        raise ResidError(f"the device '{device}' is not to be had on this machine") from error
    return chosen


def _pick_dtype(dtype: str | torch.dtype) -> torch.dtype:
    if isinstance(dtype, torch.dtype):
        dtype = str(dtype).removeprefix("torch.")
    if dtype not in _DTYPES:
        raise ResidError(f"the dtype is '{dtype}'; choose one of {', '.join(_DTYPES)}")
    return _DTYPES[dtype]


def _layer_norm(norm: Any, stream: torch.Tensor) -> torch.Tensor:
    weight, bias = norm.weight.detach().to(stream.dtype), norm.bias.detach().to(stream.dtype)
    return torch.nn.functional.layer_norm(stream, stream.shape[-1:], weight, bias, norm.eps)


def _find_base(hf: Any) -> Any:
    """The module that holds embeddings, blocks and final norm, however deeply it is wrapped."""
    parts = ("wte", "wpe", "h", "ln_f")
    best: tuple[str, ...] = ()
    for module in hf.modules():
        has = tuple(part for part in parts if hasattr(module, part))
        if len(has) == len(parts):
            if len(module.h) == 0:
                raise ResidError("the model has no blocks")
            return module
        best = max(best, has, key=len)
    missing = ", ".join(part for part in parts if part not in best)
    raise ResidError(f"the model lacks {missing}; a GPT-2 has wte, wpe, h and ln_f")


@contextmanager
def _as_written() -> Iterator[None]:
    """What was compiled runs as it was written: compiled, it passes by the hooks inside of it."""
    # Unless something was compiled this module is not there, and importing it takes a second.
    compiler = sys.modules.get("torch._dynamo")
    set_stance = getattr(torch.compiler, "set_stance", None)  # From torch 2.6 on.
    with nullcontext() if compiler is None or set_stance is None else set_stance("force_eager"):
        yield


@contextmanager
def evaluating(hf: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode for the time of the block; every module gets its own mode back."""
    training = [module for module in hf.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True
