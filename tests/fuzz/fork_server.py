"""Real processes by the hundred: one has imported everything, and forks for every command line.

A child has descriptors, signals and an end of its own, as `resid` in a shell has; only the seconds
of importing are saved. `python -m tests.fuzz.fork_server` is the server, `Server` its client.
"""

import atexit
import base64
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

WRITERS = ("write_whole", "save", "_write")
"""What puts files in their places, in resid."""
SECONDS = 60
"""After which a process is said to hang; it computes for a fraction of one."""


@dataclass(frozen=True)
class Left:
    """What a process left behind."""

    status: int
    """Minus the signal's number where it was killed."""
    out: bytes
    told: str
    events: int
    """Calls and returns that it made, where these were counted, else 0."""
    writes: list
    """The first and the last of them for every file that it wrote."""
    seconds: float
    """That it took."""
    hung: bool


class Server:
    """Runs command lines in processes of their own."""

    def __init__(self):
        command = [sys.executable, "-m", "tests.fuzz.fork_server"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, env=environment, text=True, **pipes)

    def close(self):
        self._process.communicate()

    def run(self, words, folder, **request):
        """The process that such a command line was.

        Args:
            words: behind `resid`.
            folder: to run in.
            request: `streams`, by number of descriptor one of the names in `_open`, "capture" for
                both outputs if not given; `environment`; `signal`, the number of one that is sent
                at the `event`th call or return, `after` so many seconds, or `at_exit`; `count`,
                whether events are counted.
        """
        # Whatever bytes a word has survive in ASCII.
        request |= {"words": words, "folder": str(folder)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        reply["out"] = base64.b64decode(reply["out"])
        return Left(**reply)


def _open(name, number, captured):
    """A descriptor for a stream, or None for a closed one."""
    if name == "capture":
        return os.open(captured, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if name == "null":
        return os.open(os.devnull, os.O_RDWR)
    if name == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if name == "wrong way":
        return os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
    if name == "nobody":
        read, write = os.pipe()
        os.close(read)
        return write
    assert name == "closed"
    return None


def _become(request, captured):
    """In the child: what a shell and Python's start would have set up."""
    streams = {"0": "null", "1": "capture", "2": "capture"} | request.get("streams", {})
    opened = {int(n): _open(name, int(n), captured[int(n)]) for n, name in streams.items()}
    for number, descriptor in opened.items():
        if descriptor is None:
            os.close(number)
        else:
            os.dup2(descriptor, number)
    sys.stdin = None if opened[0] is None else os.fdopen(0, encoding="utf-8")
    sys.stdout = None if opened[1] is None else os.fdopen(1, "w", encoding="utf-8")
    plain = {"encoding": "utf-8", "errors": "backslashreplace"}
    sys.stderr = None if opened[2] is None else os.fdopen(2, "w", **plain)
    os.chdir(request["folder"])
    os.environ.update(request.get("environment", {}))
    sys.argv = ["resid", *request["words"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Events:
    """Sends this process a signal at one of its calls and returns."""

    def __init__(self, last, number):
        self.seen, self.last, self.number = 0, last, number
        self.writes = []

    def __call__(self, frame, event, _):
        self.seen += 1
        code = frame.f_code
        if code.co_name in WRITERS and "resid" in code.co_filename:
            if event == "call":
                self.writes.append([self.seen, self.seen])
            elif event == "return":
                self.writes[-1][1] = self.seen
        if self.seen == self.last:
            os.kill(os.getpid(), self.number)


def _play(request, events_file, ready):
    """In the child: the command line, to its end."""
    main = sys.modules["resid.__main__"].main
    number = request.get("signal")
    events = _Events(request.get("event"), number)
    if request.get("at_exit"):
        atexit.register(os.kill, os.getpid(), number)
    try:
        if request.get("count") or request.get("event"):
            sys.setprofile(events)
        os.close(ready)
        main()
        status = 0
    except KeyboardInterrupt as ended:
        if ended.__traceback__.tb_next is not None:
            raise
        status = 130  # It came here before it was in `main`.
    except SystemExit as ended:
        status = ended.code
    finally:
        sys.setprofile(None)
        if request.get("count"):
            Path(events_file).write_text(json.dumps([events.seen, events.writes]))
    if request.get("at_exit"):
        sys.exit(status)
    # To take all modules apart takes seconds; but what Python has not written yet, it writes now.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            status = 120
    os._exit(status)


def _wait(child, request, ready):
    """The child's status, and how long it took, once it is ready."""
    os.read(ready, 1)
    os.close(ready)
    done = threading.Event()

    def disturb():
        if "after" in request and not done.wait(request["after"]):
            os.kill(child, request["signal"])
        if not done.wait(SECONDS):
            os.kill(child, signal.SIGKILL)

    thread = threading.Thread(target=disturb, daemon=True)
    start = time.monotonic()
    thread.start()
    # It is not reaped before nobody sends it anything any more.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    done.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - start


def _serve():
    """Fork for every request; in a child, the request that it is for and where to count."""
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for line in requests:
        request = json.loads(line)
        folder = tempfile.mkdtemp()
        captured = [f"{folder}/{n}" for n in range(4)]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            requests.close()
            replies.close()
            _become(request, captured)
            return request, captured[3], writing
        os.close(writing)
        status, seconds = _wait(child, request, reading)
        out, told, events = (
            Path(name).read_bytes() if Path(name).exists() else b"" for name in captured[1:]
        )
        shutil.rmtree(folder)
        reply = {"status": status, "out": base64.b64encode(out).decode()}
        seen, writes = json.loads(events or b"[0, []]")
        reply |= {"told": told.decode("utf-8"), "events": seen, "writes": writes}
        reply |= {"seconds": seconds, "hung": seconds >= SECONDS}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    return None


def _import_everything():
    """All that commands import while they run."""
    import importlib
    import pkgutil

    import torch

    import resid

    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(resid.__path__, "resid."):
        importlib.import_module(module.name)
    # Once through, for what libraries import and prepare at their first use.
    from click.testing import CliRunner

    from resid.commands import cli

    with tempfile.TemporaryDirectory() as folder:
        for name in ("x.png", "x.html", "x.json"):
            CliRunner().invoke(cli, ["lens", "a", "-m", "mini", "-o", f"{folder}/{name}"])
    gc.freeze()  # Or each child would make a copy of all that it looks through.


if __name__ == "__main__":
    _import_everything()
    forked = _serve()
    if forked is not None:
        _play(*forked)
