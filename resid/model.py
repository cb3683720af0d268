"""A GPT-2 under the field's names: the one place that knows how Hugging Face spells its parts."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import torch

from resid.errors import ResidError
from resid.forward_pass import as_written, evaluating, padded
from resid.results import Source
from resid.tokens import Vocabulary, check_ids

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
        """Wrap a model in memory; `resid.load` is the way in.

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

    @property
    def ln_final_bias(self) -> torch.Tensor:
        """[d_model] the final LayerNorm's bias, in the dtype that readings compute in."""
        bias: torch.Tensor = self._base.ln_f.bias
        return bias.detach().to(self.reading_dtype)

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

        Prompts of unequal length are padded on the right, where nothing of it can reach them.

        Args:
            ids: one sequence of ids a prompt.
            logits_at: positions at which to compute logits; None: all.
        """
        batch, options = padded(ids, self.device)
        self._need_head()
        # Passed only where it saves something: the plain call stays the plain call.
        keeps = "logits_to_keep" in inspect.signature(self.hf.forward).parameters
        everywhere = logits_at is None or list(logits_at) == list(range(batch.shape[1]))
        wanted = None if everywhere else torch.tensor(list(logits_at or ()), device=self.device)
        if wanted is not None and keeps:
            options["logits_to_keep"] = wanted
        with as_written():
            logits: torch.Tensor = self.hf(batch, **options).logits
        return logits if wanted is None or keeps else logits[:, wanted]

    def run_blocks(self, ids: Sequence[Sequence[int]]) -> None:
        """One forward pass through embeddings, blocks and final norm, without the unembedding."""
        batch, options = padded(ids, self.device)
        with as_written():
            self._base(batch, **options)

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
