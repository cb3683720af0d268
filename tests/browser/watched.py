"""A page under watch: what it asked for, complained of and tried, and its faults to the eye."""

from pathlib import Path

SCRIPT = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")


class Watched:
    """One page in one window.

    `told` collects everything that a good page never does; `refused` those requests among them that
    the page's own policy stopped before they were made.
    """

    def __init__(self, context, file=None):
        self.told = []
        self.refused = []
        self.url = file and Path(file).resolve().as_uri()
        self.page = context.new_page()
        context.on("page", lambda page: self.told.append(f"opened {page.url}"))
        context.on("request", self._request)
        context.on("requestfailed", self._failed)
        page = self.page
        page.set_default_timeout(5000)  # How long to look for what is not there; all is at once.
        page.on("websocket", lambda socket: self.told.append(f"socket {socket.url}"))
        page.on("pageerror", lambda error: self.told.append(f"error {error}"))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("crash", lambda _: self.told.append("crashed"))
        if self.url:
            page.goto(self.url)

    def _request(self, request):
        # What is inside the page already asks nothing of anybody.
        if request.url.split("#")[0] != self.url and not request.url.startswith(("data:", "blob:")):
            self.told.append(f"request {request.url}")

    def _failed(self, request):
        # Not begun at all: the page's policy forbids it.
        if request.failure == "csp":
            self.refused.append(f"request {request.url}")

    def _console(self, message):
        if message.type in ("error", "warning", "assert"):
            self.told.append(f"{message.type} {message.text}")

    def _dialog(self, dialog):
        self.told.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def settle(self):
        """Wait until what the page does at once is done, drawn and told.

        A second frame, as what is drawn in one may change the height of what is around it.
        """
        self.page.evaluate(
            """() => new Promise((done) =>
                 requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"""
        )

    def take(self):
        """What was told so far, and begin anew: for tests that provoke it."""
        self.settle()
        told, self.told[:] = list(self.told), []
        return told

    def faults(self):
        """What is wrong to the eye, all down the page: text that is cut, covered, tiny or pale."""
        self.settle()  # Panels take the height of their new content in the next frame.
        return self.page.evaluate(f"({SCRIPT})()")
