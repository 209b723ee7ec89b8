"""The lab's commands and dialogs in the window, and opening and closing lab stores."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QFileDialog

from engine.errors import StoreError
from engine.releases import NEWEST
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.pane import Pane
from viewer.runtime.lab_session import LabFeed, LabSession
from viewer.shell.end_question import ask_end
from viewer.shell.windows import open_beside

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.lab.samples import PositionSample
    from engine.releases import Release
    from viewer.lab.pane import LabPane
    from viewer.runtime.jobs import Job
    from viewer.runtime.store_session import StoreSession
    from viewer.shell.main_window import MainWindow


class WindowLab(QObject):
    """The lab of one window: its commands and dialogs, and its session with the lab process.

    It lives longer than the panes, which are created again when the language changes.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._pane: LabPane | None = None
        self._is_reopening = False
        self.session = LabSession()
        self._load_job: Job | None = None
        self._recovery_job: Job | None = None
        self.session.changed.connect(self.show_state)
        self.session.sampled.connect(self._show_rate)
        self.session.died.connect(self._report_death)

    # ---- the pane ----------------------------------------------------------------------------------------------------

    def connect_pane(self, pane: Pane) -> None:
        """Connect a new pane: the lab's commands, or the button that opens a recovered copy beside it."""
        if pane.view_id == "findings":
            from viewer.findings.pane import FindingsPane

            assert isinstance(pane, FindingsPane)
            pane.recovery.openRequested.connect(lambda path: open_beside(self._window, path, "findings"))
            pane.recovery.commandsChanged.connect(self._window.enable)
        if pane.view_id != "lab":
            return
        from viewer.lab.pane import LabPane

        assert isinstance(pane, LabPane)
        self._end_comparison()
        self._pane = pane
        pane.lab_folder = self._window.settings.lab_folder
        pane.createRequested.connect(self.create)
        pane.writeRequested.connect(self.open_for_writing)
        pane.powerLossRequested.connect(self.ask_to_cut_power)
        pane.recoverRequested.connect(self.recover)
        pane.recoverAgainRequested.connect(self.recover_again)
        pane.compareRequested.connect(self.compare)
        pane.commandsChanged.connect(self.show_state)
        pane.comparisonLeft.connect(self._end_comparison)
        pane.set_lab(self.session)

    def pane(self) -> LabPane:
        """Return the lab's view. It is created if it was not opened yet."""
        self._window.awake("lab")
        assert self._pane is not None
        return self._pane

    def feed(self) -> LabFeed | None:
        """Return the frames of the lab's broker. None if the lab serves no store."""
        return LabFeed(self.session) if self.session.serving is not None else None

    def serve(self) -> None:
        """Show the page on which the lab serves its store."""
        self._window.show_view("lab")
        self.pane().show_serving()

    # ---- what can be done now ----------------------------------------------------------------------------------------

    def enabled_commands(self) -> dict[str, bool]:
        """Return for each command whether it can run now."""
        lab = self.session
        alive = lab.alive and not lab.without_power
        running = lab.load is not None
        return {
            "lab.put": alive,
            "lab.again": alive and bool(lab.done),
            "lab.flush": alive,
            "lab.commit": alive and bool(getattr(lab.config, "transient_store_pool_enable", False)),
            "lab.start": alive and not running,
            "lab.pause": alive and running,
            "lab.stop": alive and running,
            "lab.serve.show": lab.there,
            "lab.plug": lab.can_cut_power and not lab.without_power,
            "lab.recover": lab.without_power and not lab.busy,
            "lab.recoverAgain": lab.again_possible,
            "lab.close": lab.there and not lab.busy,
            "lab.write": self._window.session is not None and not lab.open_here,
        }

    def show_access(self) -> None:
        """Show at the top right whether the store is open for writing or only for reading."""
        window, shown = self._window, self.session.open_here and self._window_shows_lab()
        window.strip.set_writing(shown, users_store=self.session.folder is None)
        window.top.show_writing(shown and window.view == "lab")

    def show_state(self) -> None:
        """Update the words at the top right and the greyed commands."""
        if not self._window.closed:
            self._window.enable()
            self._list_background_work()

    def _list_background_work(self) -> None:
        """List a running load and a recovery among the jobs; a load can be stopped there."""
        jobs, running = self._window.jobs, self.session.load is not None
        if self.session.busy == "recover" and self._recovery_job is None:
            self._recovery_job = jobs.announce(
                tr("Recovery"), lambda: self._window.say(tr("A recovery cannot be stopped halfway."))
            )
            jobs.tell(self._recovery_job, tr("the log is read and dispatched again"))
        elif self.session.busy != "recover" and self._recovery_job is not None:
            jobs.retire(self._recovery_job)
            self._recovery_job = None
        if running and self._load_job is None:
            self._load_job = jobs.announce(tr("Load"), self.stop)
        elif not running and self._load_job is not None:
            jobs.retire(self._load_job)
            self._load_job = None

    def _show_rate(self, sample: PositionSample) -> None:
        if self._load_job is not None:
            rate_text = tr("paused") if self.session.load_paused else f"{sample.rates.messages:,.0f} /s"
            self._window.jobs.tell(self._load_job, rate_text)

    def _window_shows_lab(self) -> bool:
        session = self._window.session
        return session is not None and session.path.absolute() == self.session.store

    # ---- commands ----------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Ask what kind of store to make."""
        folder = self._window.settings.lab_folder

        def ask(name: str) -> None:
            from viewer.lab.create import CreateDialog

            dialog = CreateDialog(self._window, folder, name, self._window.jobs.read)
            if self._window.session is not None:
                dialog.say_replaced(self._window.session.shown_path)
            dialog.createRequested.connect(self.create_store)
            dialog.open()

        self._window.jobs.read(lambda: free_name(folder), ask)

    def open_folder(self) -> None:
        """Ask which lab store to open again."""
        window = self._window
        dialog = QFileDialog(window, tr("Open a lab store"), str(window.settings.lab_folder))
        dialog.setObjectName("lab.open.dialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda path: window.jobs.start(self.reopen(Path(path))))
        dialog.open()

    async def reopen(self, folder: Path) -> bool:
        """Open the lab store in ``folder``, which may also be its ``store`` folder."""
        lab_folder = await self._window.jobs.quick(lambda: lab_of_folder(folder))
        return await self.open_lab(lab_folder or folder, None, NEWEST)

    def create_store(self, folder: Path, config: MessageStoreConfig, release: Release) -> None:
        """Make a lab store in ``folder`` and show it."""
        self.ask_leave(lambda: self._window.jobs.start(self.open_lab(folder, config, release)))

    def ask_leave(self, on_confirm: Callable[[], object]) -> None:
        """Call ``on_confirm``, which closes the lab's store. If it serves clients or runs a load, ask first."""
        running = running_in_words(self.session)
        if not ask_end(self._window, running, on_confirm, tr("Close the lab's store?"), tr("Stop and close it")):
            on_confirm()

    async def open_lab(self, folder: Path, config: MessageStoreConfig | None, release: Release) -> bool:
        """Make or open the lab store in ``folder`` and show it in the lab."""
        window = self._window
        window.close_store()
        message = (
            tr("Making {path}", path=str(folder)) if config is not None else tr("Opening {path}", path=str(folder))
        )
        window.say(message)
        job = window.jobs.announce(message, lambda: window.say(tr("This cannot be stopped halfway.")))
        pane = self._pane
        if pane is not None:
            pane.set_making(message)
        try:
            await self.session.open(folder, config, release)
        except (StoreError, OSError, EOFError) as error:
            window.show_error(folder, engine_words(str(error)))
            return False
        finally:
            window.jobs.retire(job)
            if pane is not None:
                pane.set_making("")
        window.settings.lab_folder = folder.parent
        assert self.session.store is not None
        return await self._open_window(self.session.store)

    def _config_of(self, store: Path) -> MessageStoreConfig | None:
        """Return the configuration of ``store`` if the window shows it, otherwise None."""
        session = self._window.session
        return session.config if session is not None and session.path == store else None

    async def _open_window(self, store: Path, config: MessageStoreConfig | None = None) -> bool:
        """Open the directory read-only in the window and follow its end."""
        window = self._window
        self._is_reopening = True
        try:
            opened = await window.open(store, "lab", config)
        finally:
            self._is_reopening = False
        if opened and window.session is not None:
            window.session.follow(True)
        self.show_state()
        return opened

    def open_for_writing(self) -> None:
        """Show who holds the store and the recovery plan, then ask."""
        session = self._window.session
        if session is None or self.session.open_here:
            return
        self._window.jobs.start(self._ask_to_write(session))

    async def _ask_to_write(self, session: StoreSession) -> None:
        """Open a store that the lab made for writing. Ask before opening any other."""
        from viewer.lab.confirmations import WriteConfirmation

        lab_folder = await self._window.jobs.quick(lambda: lab_of_folder(session.path))
        if lab_folder is not None:
            await self.open_lab(lab_folder, None, NEWEST)
        elif session.writing_refusal:
            self._window.say(session.writing_refusal)
        elif session is self._window.session:
            dialog = WriteConfirmation(self._window, session)
            dialog.confirmed.connect(lambda: self._window.jobs.start(self._open_users_store(session.path)))
            dialog.open()

    async def _open_users_store(self, store: Path) -> None:
        window = self._window
        config = self._config_of(store)
        try:
            await self.session.open_store(store, config)
        except (StoreError, OSError, EOFError) as error:
            window.say(engine_words(str(error)))
            if self._pane is not None:
                self._pane.say_why(engine_words(str(error)))
            return
        await self._open_window(store, config)
        opened = self.session.client.opened if self.session.client is not None else None
        if opened is not None and opened.kept is not None:
            window.say(
                tr("Opening saved what it changed in {folder}; recover --undo restores it.", folder=str(opened.kept))
            )

    def put(self) -> None:
        """Put the message that the form holds."""
        self.pane().put.put_now()

    def put_again(self) -> None:
        """Put the last message once more."""
        self.pane().put.put_again()

    def load(self) -> None:
        """Start the load that the sliders set."""
        if self.session.load is None:
            self.pane().load.toggle()

    def pause(self) -> None:
        """Pause or continue the load."""
        self.session.begin(self.session.pause_load(not self.session.load_paused))

    def stop(self) -> None:
        """Stop the load."""
        self.session.begin(self.session.set_load(None))

    def flush(self) -> None:
        """Flush everything put so far to disk."""
        self.session.begin(self.session.flush())

    def commit(self) -> None:
        """Write the pool's buffers to the page cache."""
        self.session.begin(self.session.commit())

    def ask_to_cut_power(self) -> None:
        """Show what a power loss would destroy, and ask."""
        if not self.session.can_cut_power:
            return
        from viewer.lab.confirmations import PowerLossDialog

        dialog = PowerLossDialog(self._window, self.session)
        dialog.confirmed.connect(lambda: self._window.jobs.start(self.cut_power()))
        dialog.open()

    async def cut_power(self, seed: int | None = None) -> None:
        """Stop the engine as a power loss would, and show the directory that remains on disk."""
        store = self.session.store
        self._window.say(tr("Cutting the power"))
        await self.session.cut_power(random.SystemRandom().randrange(1 << 31) if seed is None else seed)
        if store is not None:
            await self._open_window(store)

    def recover(self) -> None:
        """Open the store again, as its next start would."""
        self._window.jobs.start(self.recover_now())

    async def recover_now(self) -> None:
        """Recover, and show the resulting directory."""
        store = self.session.store
        self._window.say(tr("Recovering"))
        await self.session.recover()
        if store is not None:
            await self._open_window(store)

    def recover_again(self) -> None:
        """Recover the surviving files once more, beside the store, and compare."""
        if self.session.again_possible:
            self._window.say(tr("Recovering the kept disk once more"))
            self.session.begin(self.session.recover_again())

    def close(self) -> None:
        """Close the store cleanly. The window still shows it, read-only."""
        if self.session.there:
            self._window.jobs.start(self._close())

    async def _close(self) -> None:
        await self.session.close()
        self._window.say(tr("The store is closed cleanly: it is only read from now on."))
        session = self._window.session
        if session is not None:
            session.look(anyway=True)

    def compare(self) -> None:
        """Show the page that runs the same load on two lab stores."""
        self._window.show_view("lab")
        self.pane().lab_folder = self._window.settings.lab_folder
        self.pane().show_two_ways()

    # ---- the end -----------------------------------------------------------------------------------------------------

    def close_in_background(self) -> None:
        """Close the lab engine cleanly in the background, because the window leaves its store."""
        if self._is_reopening:
            return
        self._end_comparison()
        if self.session.there:
            self._window.jobs.finish(self.session.close())

    def _end_comparison(self) -> None:
        """Close the stores of a comparison when its page goes away."""
        page = self._pane.two if self._pane is not None else None
        if page is not None and page.folder_made is not None:
            self._window.jobs.finish(page.end())

    def _report_death(self, words: str) -> None:
        self._window.say(tr("The lab's engine has ended: {why}", why=engine_words(words)))


def running_in_words(lab: LabSession) -> list[str]:
    """Return a sentence for each thing that ends with a lab store: the clients that it serves, and its load."""
    sentences = []
    if lab.serving is not None:
        clients = tr_plural("{n:,} connection", "{n:,} connections", n=lab.serving.connections)
        address = lab.serving.broker
        sentences.append(tr("The lab serves its store at {address}: {clients}.", address=address, clients=clients))
    if lab.load is not None:
        sentences.append(tr("The lab's load runs."))
    return sentences


def free_name(folder: Path) -> str:
    """Return ``lab-1`` or the next free name in ``folder``. Reads the disk."""
    number = 1
    while (folder / f"lab-{number}").exists():
        number += 1
    return f"lab-{number}"


def lab_of_folder(folder: Path) -> Path | None:
    """Return the lab store's folder if ``folder`` is one or is its ``store`` folder, otherwise None. Reads the disk."""
    from engine.lab.lab_store import is_lab

    if folder.name == "store" and is_lab(folder.parent):
        return folder.parent
    return folder if is_lab(folder) else None  # also a lab store that is itself called ``store``
