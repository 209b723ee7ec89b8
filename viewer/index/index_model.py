"""The state of the index view: its files, the trace that is shown, the chosen slot and the pages in front. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.rules.findings import Finding
from viewer.index.facts import FileRow, with_health
from viewer.index.trace_lanes import StepRow, TraceResult
from viewer.index.trace_words import sentence
from viewer.look.assets import tr, tr_plural
from viewer.runtime.places import Place
from viewer.widgets.table_state import TableState

FILES, CHAIN = 0, 1
"""Pages above: the files, or the chains of the trace."""
STEPS, SLOT = 0, 1
"""Pages below: the steps of the trace, or the chosen slot."""
_PROBLEMS = frozenset({"gone", "loop", "beyondCount", "collision"})


@dataclass(frozen=True, slots=True)
class SlotOfFile:
    """A slot to show in the map. ``length`` counts the entries of its chain."""

    file: FileRow
    slot: int
    length: int


@dataclass
class IndexModel:
    """Index files of one store, and one trace through them."""

    files: list[FileRow] = field(default_factory=list)
    """Newest first, as a query walks them."""
    answer: TraceResult | None = None
    """The trace that is shown."""
    slot: tuple[str, int] | None = None
    """File and number of the slot whose chain is shown."""
    top_page: int = FILES
    low_page: int = SLOT
    pending_place: Place | None = None
    """A place that is shown as soon as the files are known."""
    is_stale: bool = False
    """True if the store has grown while the view was hidden."""
    _trace_generation: int = 0
    _chain_generation: int = 0

    def forget_store(self) -> None:
        """Forget everything but the pending place, for another store. Answers under way are dropped."""
        self._trace_generation += 1
        self._chain_generation += 1
        self.files, self.answer, self.slot = [], None, None
        self.is_stale = False
        self.top_page, self.low_page = FILES, SLOT

    def show_page(self, top: int | None = None, low: int | None = None) -> None:
        """Bring a page above or below to the front."""
        self.top_page = self.top_page if top is None else top
        self.low_page = self.low_page if low is None else low

    # ---- files -------------------------------------------------------------------------------------------------------

    def grow(self, *, visible: bool) -> bool:
        """Note that the store has grown. Return True if the files are to be read now."""
        self.is_stale = not visible
        return visible

    def take_files(self, rows: Sequence[FileRow], findings: Iterable[Finding] | None) -> bool:
        """Take a newer list of the files, with what a check found in them. Return False if it is the same list."""
        marked = list(rows) if findings is None else with_health(rows, findings)
        if marked and marked == self.files:
            return False
        self.files = marked
        return True

    def take_pending_place(self) -> Place | None:
        """Return the place that waits for the files, once."""
        place, self.pending_place = self.pending_place, None
        return place

    def index_of_file(self, name: str) -> int | None:
        """Return the row of a file. None if the store has no file of that name."""
        return next((number for number, row in enumerate(self.files) if row.name == name), None)

    def files_state(self) -> TableState | None:
        """Return the message of the table of files: loading, error, empty. None if its rows need no message."""
        return None if self.files else TableState("empty", tr("This store has no index files."))

    # ---- one slot ----------------------------------------------------------------------------------------------------

    def begin_chain(self, name: str, slot: int) -> int:
        """Choose a slot. Return the generation that the result must carry, see :meth:`is_current_chain`."""
        self._chain_generation += 1
        self.slot = (name, slot)
        self.low_page = SLOT
        return self._chain_generation

    def is_current_chain(self, generation: int) -> bool:
        """Return True if no other slot has been chosen since."""
        return generation == self._chain_generation

    # ---- the trace ---------------------------------------------------------------------------------------------------

    def begin_trace(self) -> int:
        """Begin a trace; results of an older one are dropped. Return the generation, see :meth:`is_current_trace`."""
        self._trace_generation += 1
        return self._trace_generation

    def is_current_trace(self, generation: int) -> bool:
        """Return True if no other trace has begun since."""
        return generation == self._trace_generation

    def take_answer(self, answer: TraceResult) -> None:
        """Show a trace: its chains above, its steps below."""
        self.answer = answer
        self.show_page(CHAIN, STEPS)

    def steps_state(self) -> TableState | None:
        """Return the message of the table of steps. None if its rows need no message."""
        if self.answer is None:
            text = tr("Type a topic and a key, then Trace: every step of the query is shown here.")
            return TableState("hint", text)
        if not self.answer.files:
            return TableState("empty", tr("This store has no index files, so no key can be found through them."))
        if self.answer.cut:
            return TableState(
                "cut", tr_plural("Cut off after {n:,} step.", "Cut off after {n:,} steps.", n=len(self.answer.steps))
            )
        return None

    def first_step(self) -> StepRow | None:
        """Return the step that is chosen first: the match that was looked for, the first match, or the first step."""
        if self.answer is None:
            return None
        near = self.answer.question.near
        matches = [step for step in self.answer.steps if step.verdict == "match" and step.kind == "entry"]
        matching_steps = (step for step in matches if near is not None and step.phy_offset == near[0])
        return next(matching_steps, None) or next(iter(matches or self.answer.steps), None)

    def step(self, number: int) -> StepRow | None:
        """Return the step with that number."""
        steps = self.answer.steps if self.answer is not None else ()
        return next((step for step in steps if step.step == number), None)

    def slot_of_step(self, step: StepRow) -> SlotOfFile | None:
        """Return the slot to which a step of the trace belongs. None if its file is not known."""
        index = self.index_of_file(step.file)
        if index is None or self.answer is None:
            return None
        entries = [
            entry_step
            for entry_step in self.answer.steps
            if entry_step.file == step.file and entry_step.kind == "entry" and entry_step.verdict != "loop"
        ]
        return SlotOfFile(self.files[index], step.slot, len(entries))

    def next_step(self, current: StepRow | None, way: int, *, problem: bool = False) -> int | None:
        """Return the number of the next (−1: previous) match, or with ``problem`` of the next step that is wrong."""
        if self.answer is None:
            return None
        number = current.step if current is not None else 0
        verdicts = _PROBLEMS if problem else {"match"}
        ahead = [
            step.step
            for step in self.answer.steps
            if step.kind == "entry" and step.verdict in verdicts and (step.step - number) * way > 0
        ]
        return None if not ahead else ahead[0] if way > 0 else ahead[-1]

    # ---- words -------------------------------------------------------------------------------------------------------

    def top_head(self) -> tuple[str, str]:
        """Return title and note of the head above."""
        if self.top_page == FILES:
            return tr("Files"), tr_plural(
                "{n:,} file, newest first, as a query walks them",
                "{n:,} files, newest first, as a query walks them",
                n=len(self.files),
            )
        return tr("Chain"), tr("newest file first, as the broker walks")

    def low_head(self) -> tuple[str, str]:
        """Return title and note of the head below."""
        if self.low_page == STEPS:
            return tr("Steps"), tr("as trace --json gives them")
        if self.slot is None:
            return tr("Slot"), tr("choose one in the map")
        file, slot = self.slot
        return tr("Slot {slot:,}", slot=slot), tr("in {file}, newest entry first", file=file)

    def status(self) -> str:
        """Return the result of the trace, or how many files and entries there are, for the status bar."""
        if self.answer is not None:
            return sentence(self.answer)
        if not self.files:
            return ""
        entries = sum(row.used or 0 for row in self.files)
        files = tr_plural("{n:,} index file", "{n:,} index files", n=len(self.files))
        return f"{files} · {tr_plural('{n:,} entry', '{n:,} entries', n=entries)}"
