"""The form of a new pipeline job: kind, stores, Spark master and output, with a preview."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QComboBox, QFileDialog, QVBoxLayout, QWidget

from viewer.look.assets import tr
from viewer.look.theme import follow, ui
from viewer.pipeline.preview import JobPreview, look, missing
from viewer.pipeline.request import FORMATS, JOBS, LOCAL, JobRequest, join_places, split_places
from viewer.pipeline.words import INSTALL, look_fault, reads_words, writes_words
from viewer.widgets.basics import Button, Field, Label, Link, PaneHead, ThemedPanel
from viewer.widgets.boxes import column, row
from viewer.widgets.choices import ChoiceField, TickBox
from viewer.widgets.stepwise import Runner, run_here

LOOK_AFTER_MS = 250
NARROW = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon


class JobForm(ThemedPanel):
    """``runRequested(job_request)``, ``copyRequested(job_request)`` as the buttons are pressed."""

    runRequested = Signal(object)
    copyRequested = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("pipeline.form")
        self.runner: Runner = run_here
        self._preview = JobPreview()
        self._lacking: tuple[str, ...] = ()
        self._asked = 0
        self._later = QTimer(self, interval=LOOK_AFTER_MS, singleShot=True)
        self._later.timeout.connect(self._look)
        self._build()
        self._retheme()
        follow(self, self._retheme)

    # ---- building ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self.job = ChoiceField()
        self._name(self.job, "pipeline.job", tr("Job"))
        self.job.setSizeAdjustPolicy(NARROW)
        for kind in JOBS:
            self.job.addItem(tr(kind.words), kind.name)
        self.places = Field("", code=True)
        self._name(self.places, "pipeline.stores", tr("Stores"))
        self._places_head = Label(tr("Stores"), 12, "text2")
        self.add = Link(tr("Add…"))
        self.add.setObjectName("pipeline.stores.add")
        self.add.clicked.connect(self._pick_place)
        self.reads = Label("", 12, "text3", wrap=True)
        self.reads.setObjectName("pipeline.reads")
        self.out = Field("", code=True)
        self._name(self.out, "pipeline.out", tr("Write into"))
        self.pick_out = Link(tr("Choose…"))
        self.pick_out.setObjectName("pipeline.out.choose")
        self.pick_out.clicked.connect(self._pick_out)
        self.format = ChoiceField()
        self._name(self.format, "pipeline.format", tr("Format"))
        self.format.setSizeAdjustPolicy(NARROW)
        for key, label in FORMATS:
            self.format.addItem(tr(label), key)
        self.compare = TickBox(tr("Then compare with the existing ones"))
        self._name(self.compare, "pipeline.compare", tr("Then compare with the existing ones"))
        self.compare.setChecked(True)
        self.keys = Field(tr("keys, separated by spaces"), code=True)
        self._name(self.keys, "pipeline.keys", tr("Keys"))
        self.keys_file = Link(tr("From a file…"))
        self.keys_file.setObjectName("pipeline.keys.file")
        self.keys_file.clicked.connect(self._pick_keys)
        self._keys_path = ""
        self.master = Field("", code=True)
        self.master.setText(LOCAL)
        self._name(self.master, "pipeline.master", tr("Run on"))
        self.writes = Label("", 12, "text2", wrap=True)
        self.writes.setObjectName("pipeline.writes")
        self.fault = Label("", 12, "error", wrap=True)
        self.fault.setObjectName("pipeline.fault")
        self.lacks = Label("", 12, "warn", wrap=True, select=True)
        self.lacks.setObjectName("pipeline.lacks")
        self.run = Button(tr("Run"), "primary")
        self.run.setObjectName("pipeline.run.button")
        self.run.clicked.connect(self.run_now)
        self.copy = Button(tr("As command"))
        self.copy.setObjectName("pipeline.command")
        self.copy.setToolTip(tr("Copy the command line that does the same"))
        self.copy.clicked.connect(lambda: self.copyRequested.emit(self.job_request()))
        self._out_part = column(row(Label(tr("Write into"), 12, "text2"), None, self.pick_out), self.out, gap=4)
        self._format_part = column(Label(tr("Format"), 12, "text2"), self.format, gap=4)
        self._keys_part = column(row(Label(tr("Keys"), 12, "text2"), None, self.keys_file), self.keys, gap=4)
        inner = column(
            column(Label(tr("Job"), 12, "text2"), self.job, gap=4),
            column(row(self._places_head, None, self.add), self.places, self.reads, gap=4),
            self._keys_part,
            self._out_part,
            self._format_part,
            self.compare,
            column(Label(tr("Run on"), 12, "text2"), self.master, gap=4),
            self.writes,
            self.lacks,
            self.fault,
            row(self.run, self.copy, None, gap=8),
            gap=8,
            margins=(12, 10, 12, 12),
        )
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(0)
        box.addWidget(PaneHead(tr("New job")))
        box.addWidget(inner)
        box.addStretch(1)
        self.job.currentIndexChanged.connect(lambda _at: self._job_chosen())
        for field in (self.places, self.out, self.keys, self.master):
            field.textChanged.connect(lambda _text: self._changed())
            field.returnPressed.connect(self.run_now)
        self.format.currentIndexChanged.connect(lambda _at: self._changed())
        self.compare.toggled.connect(lambda _on: self._changed())
        self._stores_text = self._export_text = ""
        self._source = "stores"
        self._job_chosen()

    def _name(self, part: QWidget, name: str, label: str) -> None:
        part.setObjectName(name)
        part.setAccessibleName(label)

    def _retheme(self) -> None:
        for part in (self.job, self.format, self.compare):
            part.setFont(ui(13))

    # ---- what is asked for -------------------------------------------------------------------------------------------

    def job_request(self) -> JobRequest:
        """Return the job that the form describes."""
        keys = split_places(self.keys.text())
        places = tuple(_home(place) for place in split_places(self.places.text()) or ())
        return JobRequest(
            job=str(self.job.currentData()),
            places=places,
            master=self.master.text().strip(),
            out=_home(self.out.text().strip()),
            format=str(self.format.currentData()),
            compare=self.compare.isChecked(),
            keys=keys if keys is not None else (self.keys.text(),),
            keys_file=self._keys_path,
        )

    def set_store(self, path: str) -> None:
        """Set the open store; a job reads it unless the form names another."""
        self._stores_text = join_places((path,)) if path else ""
        if self._source == "stores":
            self.places.setText(self._stores_text)
            self.places.setCursorPosition(0)
        self._look()

    def choose_job(self, name: str) -> None:
        """Choose another job; an unknown name changes nothing."""
        index = self.job.findData(name)
        if index >= 0:
            self.job.setCurrentIndex(index)

    def run_now(self) -> None:
        """Run the job if nothing is missing."""
        if self.run.isEnabled():
            self.runRequested.emit(self.job_request())

    def _job_chosen(self) -> None:
        kind = self.job_request().kind
        if kind.source != self._source:
            if self._source == "stores":
                self._stores_text = self.places.text()
            else:
                self._export_text = self.places.text()
            self._source = kind.source
            self.places.setText(self._export_text if kind.source == "export" else self._stores_text)
        name = tr("Export") if kind.source == "export" else tr("Stores")
        self._places_head.setText(name)
        self.places.setAccessibleName(name)
        self.places.setPlaceholderText(
            tr("a folder that an export wrote")
            if kind.source == "export"
            else tr("store directories, or patterns: fleet/*/store")
        )
        self.add.setText(tr("Choose…") if kind.source == "export" else tr("Add…"))
        self._out_part.setVisible(kind.writes)
        self._format_part.setVisible(kind.name == "export")
        self.compare.setVisible(kind.name == "rebuild")
        self._keys_part.setVisible(kind.name == "trace")
        self._changed()

    def _changed(self) -> None:
        self._show()
        self._later.start()

    # ---- what that would do ------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._later.stop()
        self._asked += 1
        turn, job_request = self._asked, self.job_request()

        def done(result: tuple[JobPreview, tuple[str, ...]]) -> None:
            if turn == self._asked:
                self._preview, self._lacking = result
                self._show()

        self.runner(lambda: (look(job_request), missing()), done, lambda _error: None)

    def _show(self) -> None:
        job_request, preview = self.job_request(), self._preview
        fault = job_request.fault() or look_fault(job_request, preview)
        if split_places(self.places.text()) is None:
            fault = tr("A quote is not closed.")
        self._say(self.reads, reads_words(job_request, preview))
        self._say(self.writes, "" if fault else writes_words(job_request, preview))
        self._say(self.fault, fault)
        lacking = ", ".join(self._lacking)
        text = (
            tr(
                "Not installed here: {names}. Install them with {command}, and Java 17 or 21.",
                names=lacking,
                command=INSTALL,
            )
            if lacking
            else ""
        )
        self._say(self.lacks, text)
        self.run.setEnabled(not fault and not lacking)
        self.copy.setEnabled(not fault)

    @staticmethod
    def _say(label: Label, text: str) -> None:
        label.setText(text)
        label.setVisible(bool(text))

    # ---- dialogs -----------------------------------------------------------------------------------------------------

    def _ask(self, title: str, name: str, *, folder: bool) -> QFileDialog:
        dialog = QFileDialog(self, title, str(self._begin()))
        dialog.setObjectName(name)
        if folder:
            dialog.setFileMode(QFileDialog.FileMode.Directory)
            dialog.setOption(QFileDialog.Option.ShowDirsOnly, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def _begin(self) -> Path:
        places = split_places(self._stores_text) or ()
        return Path(places[0]).parent if places else Path.home()

    def _pick_place(self) -> None:
        export = self._source == "export"
        dialog = self._ask(
            tr("Choose an export") if export else tr("Add a store"), "pipeline.stores.dialog", folder=True
        )

        def chosen(path: str) -> None:
            old = () if export else split_places(self.places.text()) or ()
            self.places.setText(join_places((*(place for place in old if place != path), path)))

        dialog.fileSelected.connect(chosen)
        dialog.open()

    def _pick_out(self) -> None:
        dialog = self._ask(tr("The folder in which a new one is made"), "pipeline.out.dialog", folder=True)
        dialog.fileSelected.connect(lambda path: self.out.setText(str(Path(path) / self._new_name())))
        dialog.open()

    def _new_name(self) -> str:
        return {"rebuild": "rebuilt", "export": "exported", "import": "imported"}.get(self.job_request().job, "new")

    def _pick_keys(self) -> None:
        dialog = self._ask(tr("A file of keys, one per line"), "pipeline.keys.dialog", folder=False)
        dialog.fileSelected.connect(self.set_keys_file)
        dialog.open()

    def set_keys_file(self, path: str) -> None:
        """Trace the keys of a file too; empty for none."""
        self._keys_path = path
        self.keys_file.setText(Path(path).name if path else tr("From a file…"))
        self.keys_file.setAccessibleName(self.keys_file.text())
        self._changed()


def _home(place: str) -> str:
    """Return ``place`` with ``~`` replaced by the home folder. Addresses of other file systems stay unchanged."""
    return str(Path(place).expanduser()) if place.startswith("~") else place
