"""Names of places in a model: points of the residual stream and activations, and positions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from resid.errors import ResidError

# What a block contributes, in the order in which the forward pass reaches it.
KINDS = ("z", "attn_out", "mid", "mlp_pre", "mlp_post", "mlp_out", "post")
# TransformerLens' names for the same places.
_ALIASES = {
    "hook_resid_mid": "mid",
    "hook_resid_post": "post",
    "attn.hook_z": "z",
    "hook_attn_out": "attn_out",
    "hook_mlp_out": "mlp_out",
    "mlp.hook_pre": "mlp_pre",
    "mlp.hook_post": "mlp_post",
}


def stream_points(n_layers: int, mids: bool = False) -> tuple[str, ...]:
    """The points of the residual stream in order: embed, every L.post, and every L.mid if asked."""
    kinds = ("mid", "post") if mids else ("post",)
    return ("embed", *(f"{layer}.{kind}" for layer in range(n_layers) for kind in kinds))


def resolve(what: str | Sequence[str], n_layers: int) -> tuple[str, ...]:
    """The names that a request stands for, each once, in the order of the forward pass.

    Args:
        what: "post" (embed and every L.post), "all" (every L.mid too), "everything" (the
            sublayers' writes and the neurons as well), the kind of an activation ("attn_out": in
            every layer), one name ("embed", "3.mid", "blocks.3.hook_resid_mid"), or a sequence of
            such; commas separate them too.
        n_layers: of the model.

    Raises:
        ResidError: a name is not a place in this model.
    """
    requests = what.split(",") if isinstance(what, str) else what
    wanted: set[str] = set()
    for request in requests:
        wanted.update(_expand(request.strip(), n_layers))
    order = ("embed", *(f"{layer}.{kind}" for layer in range(n_layers) for kind in KINDS))
    return tuple(name for name in order if name in wanted)


def _expand(request: str, n_layers: int) -> tuple[str, ...]:
    if request in ("post", "all"):
        return stream_points(n_layers, mids=request == "all")
    if request == "everything":
        return ("embed", *(f"{layer}.{kind}" for layer in range(n_layers) for kind in KINDS))
    if request in KINDS:
        return tuple(f"{layer}.{request}" for layer in range(n_layers))
    if request == "embed":
        return ("embed",)
    found = re.fullmatch(r"(?:blocks\.)?(\d{1,6})\.(.+)", request)
    layer, kind = (int(found[1]), found[2]) if found else (-1, "")
    enters = kind == "hook_resid_pre"  # What enters a block is what left the one before it.
    kind = "post" if enters else _ALIASES.get(kind, kind)
    if kind not in KINDS:
        raise ResidError(
            f"there is no point '{request}'; points are embed, L.mid and L.post with L from 0 to "
            f"{n_layers - 1},\nand post, all, or a list of them separated by commas"
        )
    if not 0 <= layer < n_layers:
        raise ResidError(f"'{request}': the model has layers 0 to {n_layers - 1}")
    if enters:
        return (f"{layer - 1}.post",) if layer else ("embed",)
    return (f"{layer}.{kind}",)


def resolve_points(what: str | Sequence[str], n_layers: int) -> tuple[str, ...]:
    """The points of the residual stream that a request stands for, as `resolve` gives them.

    Raises:
        ResidError: a name is not on the stream, or none is asked for.
    """
    names = resolve(what, n_layers)
    if not names:
        raise ResidError("no points were asked for; give post, all or a list of points")
    for name in names:
        if name != "embed" and not name.endswith((".mid", ".post")):
            raise ResidError(f"{name} is not on the residual stream; ask for embed, L.mid, L.post")
    return names


def resolve_positions(positions: Sequence[int] | None, n: int) -> list[int]:
    """Positions in order, each once, negative ones counted from the end; None: all of them.

    Raises:
        ResidError: one is outside of the prompt's n tokens, or none is asked for.
    """
    if positions is None:
        return list(range(n))
    for position in positions:
        if not -n <= position < n:
            raise ResidError(f"there is no position {position}; the prompt has 0 to {n - 1}")
    if len(positions) == 0:
        raise ResidError(f"no positions were asked for; the prompt has 0 to {n - 1}")
    return sorted({int(position) % n for position in positions})
