"""Several processes, as torchrun starts them: who reads what, and how the parts come together."""

from __future__ import annotations

import datetime
import hashlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from torch import distributed

from resid.corpus.world import World
from resid.errors import ResidError, first_line

# A process may wait for the slowest; that one has died is for torchrun to find out.
_PATIENCE = datetime.timedelta(days=7)


def own_gpu(world: World, device: str) -> bool:
    """Whether this process takes a GPU of its own, which then is torch's current one.

    Args:
        world: from `find_world`.
        device: that was asked for: auto, cuda, or anything else.

    Raises:
        ResidError: there are fewer GPUs here than processes.
    """
    if world.size == 1 or device not in ("auto", "cuda") or not torch.cuda.is_available():
        return False
    if world.local_rank >= torch.cuda.device_count():
        raise ResidError(
            f"process {world.rank} has no GPU: this machine has {torch.cuda.device_count()}\n"
            "start as many processes on it as it has GPUs, or give --device cpu"
        )
    torch.cuda.set_device(world.local_rank)
    return True


class Group:
    """The processes connected; every method is called by all of them."""

    def __init__(self, world: World, device: torch.device, folder: Path | None) -> None:
        """Name the processes; `connected` connects them.

        Args:
            world: from `find_world`.
            device: of the model; on GPUs the parts travel by NCCL, else by gloo.
            folder: with the saved state, to be named if another process dies.
        """
        self.world, self.device, self.folder = world, device, folder

    @contextmanager
    def connected(self) -> Iterator[None]:
        """The processes connected, for the time of the block.

        Raises:
            ResidError: another process ended before its time.
        """
        if self.world.size == 1:
            yield
            return
        # torchrun ends the others by this signal when one has died.
        in_charge = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, self._stop) if in_charge else None
        try:
            with self._others_needed():
                backend = "nccl" if self.device.type == "cuda" else "gloo"
                distributed.init_process_group(backend, timeout=_PATIENCE)
            yield
            self.wait()
        finally:
            if distributed.is_initialized():
                distributed.destroy_process_group()
            if in_charge:
                signal.signal(signal.SIGTERM, before)

    def agree(self, content: bytes) -> None:
        """Make sure that all processes are about to do the same.

        Raises:
            ResidError: their contents differ.
        """
        if self.world.size == 1:
            return
        hashed = list(hashlib.sha256(content).digest())
        digest = torch.tensor(hashed, dtype=torch.uint8, device=self.device)
        every = [torch.empty_like(digest) for _ in range(self.world.size)]
        with self._others_needed():
            distributed.all_gather(every, digest)
        for rank, other in enumerate(every):
            if not torch.equal(other, every[0]):
                raise ResidError(
                    f"processes 0 and {rank} are about to read different things\n"
                    "give all the same model, text, settings and saved state"
                )

    def wait(self) -> None:
        """Go on when all have come to here."""
        if self.world.size > 1:
            with self._others_needed():
                distributed.barrier()

    def gathered(self, content: bytes) -> Iterator[bytes]:
        """In the first process, what every other one sends, one after the other; else nothing."""
        if not self.world.is_first:
            with self._others_needed():
                distributed.send(torch.tensor([len(content)], device=self.device), 0)
                sent = torch.frombuffer(bytearray(content), dtype=torch.uint8)
                distributed.send(sent.to(self.device), 0)
            return
        for rank in range(1, self.world.size):
            with self._others_needed():
                length = torch.zeros(1, dtype=torch.long, device=self.device)
                distributed.recv(length, rank)
                received = torch.empty(int(length), dtype=torch.uint8, device=self.device)
                distributed.recv(received, rank)
            yield received.cpu().numpy().tobytes()

    @property
    def _gone(self) -> str:
        told = f"process {self.world.rank} of {self.world.size} ends: another process has ended"
        if self.folder is None:
            return told
        return f"{told}\nwhat was saved in '{self.folder}' is good: go on with --resume"

    def _stop(self, number: int, frame: FrameType | None) -> None:
        raise ResidError(self._gone)

    @contextmanager
    def _others_needed(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise ResidError(f"{self._gone}\n{first_line(error)}") from error
