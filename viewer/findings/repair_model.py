"""The repairs of a store: which are offered, which the user takes, and what the store would be with those. No Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.files.layout import parse_file_name
from engine.patching.patches import MoveFile, Patch, RemoveFile, ResizeFile, WriteBytes, WriteFile
from engine.rules import mendable
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number, plain
from viewer.pane.finding_facts import is_in_log, place_in_file
from viewer.pane.plan_words import messages_in_words, release_name
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column, number_column, text_column

if TYPE_CHECKING:
    from engine.repair.repair import Repair
    from engine.repair.repair_plan import RepairPlan, State
    from engine.rules.findings import Finding
    from engine.store.recovery.plan import RecoveryPlan

MAX_SHOWN_RULES = 12


def can_mend(findings: Sequence[Finding]) -> bool:
    """Return True if there is a finding that a repair may mend."""
    return any(finding.id in mendable.ALL for finding in findings)


class RepairModel:
    """The offered repairs and the user's choice. A plan is made for each choice once.

    ``running`` are the repairs whose plan is being made; None while none is. ``error`` says why the last one failed.
    """

    def __init__(self) -> None:
        self.offered: tuple[Repair, ...] | None = None
        self.running: frozenset[str] | None = None
        self.error = ""
        self._left: set[str] = set()
        self._is_dropped = False
        self._plans: dict[frozenset[str], RepairPlan] = {}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the chosen repairs in their order."""
        names = dict.fromkeys(repair.name for repair in self.offered or ())
        return tuple(name for name in names if name not in self._left)

    @property
    def plan(self) -> RepairPlan | None:
        """The plan of the choice; None if there is none yet, or nothing is chosen."""
        return self._plans.get(frozenset(self.chosen))

    @property
    def is_everything_chosen(self) -> bool:
        """True if no repair is left out."""
        return not self._left

    def take(self, name: str, *, taken: bool) -> None:
        """Take a repair or leave it out."""
        (self._left.discard if taken else self._left.add)(name)
        self.error = ""

    def forget(self) -> None:
        """Forget everything: the store was changed. A plan that is being made is dropped."""
        self.offered, self.error = None, ""
        self._left.clear()
        self._plans.clear()
        self._is_dropped = self.running is not None

    def begin(self) -> tuple[str, ...] | None:
        """Return the names for the plan to be made now, none of them for all; None if no plan is missing."""
        if self.running is not None or self.error or self.plan is not None or (self.offered and not self.chosen):
            return None
        self.running = frozenset(self.chosen)
        return self.chosen

    def end(self, plan: RepairPlan | None, error: str = "") -> None:
        """Take the plan, or why there is none. An error of a choice that has changed since is forgotten."""
        asked, self.running = self.running, None
        if self._is_dropped:
            self._is_dropped = False
        elif plan is None:
            self.error = error if asked == frozenset(self.chosen) else ""
        elif self.offered is None:
            self.offered = plan.repairs
            self._plans[frozenset(self.chosen)] = plan
        elif asked is not None:
            self._plans[asked] = plan

    def fits(self, repair: Repair) -> bool:
        """Return False if a chosen repair does not fit without those that were left out."""
        plan = self.plan
        return plan is None or repair.name in self._left or repair.name in {taken.name for taken in plan.repairs}

    def command(self, store: str) -> list[str]:
        """Return the words of the command that makes these changes in the store itself."""
        names = () if self.is_everything_chosen else self.chosen
        return ["storescope", "repair", store, "--apply", *(word for name in names for word in ("--finding", name))]


def repair_lines(repair: Repair) -> list[tuple[str, str]]:
    """Return (colour role, sentence) of what a repair gains, costs and changes."""
    count = tr_plural("{n:,} place is changed", "{n:,} places are changed", n=len(repair.patches))
    if repair.certainty == "certain":
        sure = tr("the other bytes of the store prove the new ones")
    else:
        sure = tr("the new bytes are likely, not proven")
    costs = plain(engine_words(repair.costs))
    return [
        ("text", tr("Gains: {what}", what=plain(engine_words(repair.gains)))),
        ("warn" if costs else "text2", tr("Costs: {what}", what=costs or tr("nothing"))),
        ("text2" if repair.certainty == "certain" else "warn", f"{count} · {sure}"),
    ]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A fact of the store as it is and as mended."""

    what: str
    current: str
    mended: str

    @property
    def is_changed(self) -> bool:
        return self.current != self.mended


def compared_rows(plan: RepairPlan) -> list[ComparedRow]:
    """Return what check and the next starts say of the store before and after."""
    rows = [ComparedRow(tr("Findings of the check"), findings_text(plan.current), findings_text(plan.mended))]
    for current, mended in zip(plan.current.starts, plan.mended.starts, strict=True):
        release = release_name(current)
        rows += [
            ComparedRow(
                tr("The next start of {release} loses", release=release), lost_text(current), lost_text(mended)
            ),
            ComparedRow(tr("{release} starts", release=release), _yes(current.will_start), _yes(mended.will_start)),
            ComparedRow(
                tr("{release}: the log ends at", release=release),
                number(current.end_offset),
                number(mended.end_offset),
            ),
        ]
    return rows


def findings_text(state: State) -> str:
    """Return the rules of the findings with their counts; "none" without findings."""
    counts = sorted(Counter(finding.id for finding in state.findings).items())
    shown = [f"{rule} {count:,}×" if count > 1 else rule for rule, count in counts[:MAX_SHOWN_RULES]]
    return ", ".join([*shown, *(["…"] if len(counts) > MAX_SHOWN_RULES else [])]) or tr("none")


def lost_text(start: RecoveryPlan) -> str:
    """Return what a start loses; "no message" if nothing."""
    messages = sum(loss.messages for loss in (start.undispatched, start.dropped) if loss is not None)
    parts = [messages_in_words(messages)] if messages else []
    if start.misnumbered:
        parts.append(
            tr_plural(
                "{n:,} message gets a wrong queue offset",
                "{n:,} messages get wrong queue offsets",
                n=start.misnumbered,
            )
        )
    if start.loses_new_messages:
        parts.append(tr("every message that it acknowledges from then on"))
    return ", ".join(parts) or tr("no message")


def _yes(answer: bool) -> str:
    return tr("yes") if answer else tr("no")


def compared_kind() -> RecordKind:
    """Return the table of the store as it is beside the mended one."""
    return RecordKind(
        "repairEffect",
        (
            text_column("what", words("What"), 230),
            text_column("current", words("As it is"), 190, tip=lambda row: row.current),
            chip_column("mark", "", 28, lambda row: Chip("ok") if row.is_changed else None, filterable=False),
            text_column("mended", words("Mended"), 190, tip=lambda row: row.mended),
        ),
        verdict=lambda row: tr("changes") if row.is_changed else "",
        record=lambda row: {"what": row.what, "current": row.current, "mended": row.mended},
    )


@dataclass(frozen=True, slots=True)
class PatchRow:
    """A patch with its number in the list."""

    n: int
    patch: Patch

    @property
    def file(self) -> str:
        return self.patch.file

    @property
    def offset(self) -> int | None:
        return self.patch.offset if isinstance(self.patch, WriteBytes) else None

    @property
    def bytes(self) -> int:
        match self.patch:
            case WriteBytes() | WriteFile():
                return len(self.patch.new)
            case RemoveFile() | MoveFile():
                return self.patch.size
            case ResizeFile():
                return abs(self.patch.new_size - self.patch.size)
            case _:
                return 0

    @property
    def change(self) -> str:
        match self.patch:
            case WriteBytes():
                return tr("write bytes")
            case RemoveFile():
                return tr("remove the file")
            case MoveFile():
                return tr("rename to {name}", name=plain(self.patch.target))
            case ResizeFile():
                return tr("make it {size:,} bytes long", size=self.patch.new_size)
            case _:
                return tr("write the file")

    @property
    def why(self) -> str:
        return engine_words(self.patch.why)

    @property
    def place(self) -> Place | None:
        """The place that shows what is there now."""
        file = Path(self.patch.file)
        if not isinstance(self.patch, WriteBytes):
            return place_in_file(file, None) if isinstance(self.patch, WriteFile) else None
        start = parse_file_name(file.name)
        if start is not None and is_in_log(file):
            return places.log(start + self.patch.offset)
        return place_in_file(file, self.patch.offset)


def patch_kind() -> RecordKind:
    """Return the table of patches. A file leads to its place."""
    return RecordKind(
        "patch",
        (
            number_column("n", words("Patch"), 56, filterable=False),
            text_column("file", words("File"), 230, mono=True, elide="middle", jump=lambda row: row.place),
            number_column("offset", words("Offset"), 110, filterable=False),
            number_column("bytes", words("Bytes"), 84, filterable=False),
            text_column("change", words("Change"), 110, tip=lambda row: row.change),
            Column(
                "why",
                words("Why"),
                260,
                lambda row: plain(row.why),
                lambda row: row.why,
                filterable=False,
                tip=lambda row: plain(row.why),
            ),
        ),
        verdict=lambda row: row.change,
        record=lambda row: row.patch.record(row.n),
    )
