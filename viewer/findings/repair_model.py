"""The repairs of a store: which are offered, which the user takes, and what the store would be with those. No Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.files.layout import parse_file_name
from engine.patching.patches import MoveFile, Patch, RemoveFile, ResizeFile, WriteBytes, WriteFile
from engine.rules import mendable
from engine.rules.catalogue import RULES
from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import number, plain
from viewer.pane.finding_facts import is_in_log, place_in_file, title
from viewer.pane.plan_words import messages_in_words, release_name
from viewer.runtime import places
from viewer.runtime.patch_bench import PatchBench
from viewer.runtime.places import Place
from viewer.widgets.columns import Chip, Column, RecordKind, RowAppearance, chip_column, number_column, text_column

if TYPE_CHECKING:
    from engine.repair.repair import Repair
    from engine.repair.repair_plan import RepairPlan, State
    from engine.rules.findings import Finding
    from engine.store.recovery.plan import RecoveryPlan

MAX_SHOWN_RULES = 12
MAX_SHOWN_BYTES = 4
"""Bytes of a patch up to which old and new ones are shown in the list."""


@dataclass(frozen=True, slots=True)
class TogglePatch:
    """Request of a click on the mark of a patch: take it, or leave it out."""

    n: int


def can_mend(findings: Sequence[Finding]) -> bool:
    """Return True if there is a finding that a repair may mend."""
    return any(finding.id in mendable.ALL for finding in findings)


class RepairModel:
    """The offered repairs, and the store as it is and as the staged patches of ``bench`` would leave it.

    A plan is made for each choice of repairs once, and each list of patches is judged once. ``running`` are the repairs
    whose plan is being made, ``judging`` the patches that are being judged; None while none is. ``error`` says why the
    last one failed.
    """

    def __init__(self, bench: PatchBench | None = None) -> None:
        self.bench = PatchBench() if bench is None else bench
        self.offered: tuple[Repair, ...] | None = None
        self.current: State | None = None
        """The store as it is."""
        self.running: frozenset[str] | None = None
        self.judging: tuple[Patch, ...] | None = None
        self.error = ""
        self.saved: tuple[tuple[Patch, ...], str] = (), ""
        """The patches that were saved last, and the file that they are in."""
        self._is_dropped = False
        self._plans: dict[frozenset[str], RepairPlan] = {}
        self._judged: dict[tuple[Patch, ...], State] = {}
        self._misfits: dict[tuple[Patch, ...], str] = {}

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the chosen repairs in their order."""
        names = dict.fromkeys(repair.name for repair in self.offered or ())
        return tuple(name for name in names if name not in self.bench.state.left_repairs)

    @property
    def plan(self) -> RepairPlan | None:
        """The plan of the choice; None if there is none yet, or nothing is chosen."""
        return self._plans.get(frozenset(self.chosen))

    @property
    def is_planned(self) -> bool:
        """True if no plan is missing."""
        return self.plan is not None or (self.offered is not None and not self.chosen)

    @property
    def patches(self) -> tuple[Patch, ...]:
        """All patches of the list: those of the chosen repairs, then the user's."""
        return (*(self.plan.patches if self.plan is not None else ()), *self.bench.edits)

    @property
    def taken_patches(self) -> tuple[Patch, ...]:
        """The patches that are not left out."""
        return self.bench.taken_patches(self.plan.patches if self.plan is not None else ())

    @property
    def patched(self) -> State | None:
        """The store as the taken patches would leave it; None if that is not known."""
        patches = self.taken_patches
        if not self.is_planned:
            return None
        if not patches:
            return self.current
        if self.plan is not None and patches == self.plan.patches:
            return self.plan.mended
        return self._judged.get(patches)

    @property
    def misfit(self) -> str:
        """The reason why the taken patches do not fit to the store together; "" if they do."""
        return self._misfits.get(self.taken_patches, "")

    def take(self, name: str, *, is_taken: bool) -> None:
        """Take a repair or leave it out."""
        title = next((plain(engine_words(repair.title)) for repair in self.offered or () if repair.name == name), name)
        step = tr("take {what}", what=title) if is_taken else tr("leave out {what}", what=title)
        self.bench.take_repair(name, step, is_taken=is_taken)

    def take_patch(self, number: int, *, is_taken: bool) -> None:
        """Take patch ``number`` of the list, from 1, or leave it out."""
        patch = self.patches[number - 1]
        patch_words = tr("patch {n}", n=number)
        step = tr("take {what}", what=patch_words) if is_taken else tr("leave out {what}", what=patch_words)
        self.bench.take_patch(patch, step, is_taken=is_taken)

    def add(self, patches: Sequence[Patch], title: str) -> None:
        """Add patches to the user's; those that are in the list already are taken."""
        bench, listed_patches = self.bench, self.patches
        bench.add([patch for patch in patches if patch not in listed_patches], title)
        for patch in patches:
            bench.take_patch(patch, title, is_taken=True)

    def forget(self) -> None:
        """Forget everything: the store was changed. What is being worked out is dropped."""
        self.offered = self.current = None
        self.error = ""
        self._plans.clear()
        self._judged.clear()
        self._misfits.clear()
        self._is_dropped = self.running is not None or self.judging is not None

    def begin(self) -> tuple[str, ...] | None:
        """Return the names for the plan to be made now, none of them for all; None if no plan is missing."""
        if self.running is not None or self.judging is not None or self.error or self.is_planned:
            return None
        self.running = frozenset(self.chosen)
        return self.chosen

    def begin_judging(self) -> tuple[Patch, ...] | None:
        """Return the patches to be judged now; None if what they do is known, or a plan is missing first."""
        if self.running is not None or self.judging is not None or self.error or not self.is_planned:
            return None
        if self.patched is not None or self.misfit:
            return None
        self.judging = self.taken_patches
        return self.judging

    def end(self, plan: RepairPlan | None, error: str = "") -> None:
        """Take the plan, or why there is none. An error of a choice that has changed since is forgotten."""
        planned_names, self.running = self.running, None
        if self._is_dropped:
            self._is_dropped = False
        elif plan is None:
            self.error = error if planned_names == frozenset(self.chosen) else ""
        else:
            self.current = plan.current
            if self.offered is None:
                self.offered = plan.repairs
                self._plans[frozenset(repair.name for repair in plan.repairs)] = plan
            elif planned_names is not None:
                self._plans[planned_names] = plan

    def end_judging(self, state: State | None, error: str = "", *, is_misfit: bool = False) -> None:
        """Take what was judged, or why it could not be. An error of patches that have changed since is forgotten."""
        judged, self.judging = self.judging, None
        if self._is_dropped or judged is None:
            self._is_dropped = False
        elif state is not None:
            self._judged[judged] = state
        elif is_misfit:
            self._misfits[judged] = error
        else:
            self.error = error if judged == self.taken_patches else ""

    @property
    def is_stale(self) -> bool:
        """True if what is being worked out belongs to an earlier choice."""
        if self.running is not None:
            return self.running != frozenset(self.chosen)
        return self.judging is not None and self.judging != self.taken_patches

    def left_lines(self) -> list[str]:
        """Return a sentence for each rule whose findings no repair mends: why not."""
        names = frozenset(repair.name for repair in self.offered or ())
        plan = self._plans.get(names)
        reasons = plan.left if plan is not None else {}
        return [f"{rule} · {tr(RULES[rule].title)}: {plain(engine_words(why))}" for rule, why in reasons.items()]

    def fits(self, repair: Repair) -> bool:
        """Return False if a chosen repair does not fit without those that were left out."""
        plan = self.plan
        is_left_out = repair.name in self.bench.state.left_repairs
        return plan is None or is_left_out or any(repair.name == planned.name for planned in plan.repairs)

    def command(self, store: str) -> list[str]:
        """Return the words of the command that makes these changes in the store itself; none if it needs a file with
        the patches that is not written yet.
        """
        if self.plan is None or self.taken_patches != self.plan.patches:
            patches, file = self.saved
            return (
                ["storescope", "repair", store, "--apply", "--patches", file] if patches == self.taken_patches else []
            )
        names = self.chosen if self.bench.state.left_repairs else ()
        return ["storescope", "repair", store, "--apply", *(word for name in names for word in ("--finding", name))]

    def rows(self) -> list[PatchRow]:
        """Return the list of patches, each with what it gains and costs."""
        repairs = {repair.name: repair for repair in self.offered or ()}
        count = len(self.patches) - len(self.bench.edits)
        return [
            PatchRow(number, patch, self.bench.is_taken(patch), repairs.get(patch.name) if number <= count else None)
            for number, patch in enumerate(self.patches, 1)
        ]


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
    """A fact of the store as it is and as patched."""

    fact: str
    current: str
    patched: str
    is_worse: bool = False

    @property
    def is_changed(self) -> bool:
        return self.patched not in {self.current, "…"}


def loss_headline(current: State, patched: State | None) -> str:
    """Return what the next start loses of the store as it is, and as patched if that is known."""
    from engine.repair.repair_plan import lost_by  # its imports would delay the view

    release = release_name(current.start)
    today = lost_by(current.start)
    if patched is None:
        return tr_plural(
            "The next start of {release} loses {n:,} message",
            "The next start of {release} loses {n:,} messages",
            n=today,
            release=release,
        )
    return tr_plural(
        "The next start of {release} loses {lost} → {n:,} message",
        "The next start of {release} loses {lost} → {n:,} messages",
        n=lost_by(patched.start),
        release=release,
        lost=number(today),
    )


def compared_rows(current: State, patched: State | None) -> list[ComparedRow]:
    """Return what check and the next starts say of the store as it is and as patched; "…" where that is not known."""
    unknown = "…"
    rows = [
        ComparedRow(
            tr("Findings of the check"),
            findings_text(current),
            findings_text(patched) if patched is not None else unknown,
        )
    ]
    for number_, start in enumerate(current.starts):
        patched_start = patched.starts[number_] if patched is not None else None
        release = release_name(start)
        rows += [
            ComparedRow(
                tr("{release} loses", release=release),
                lost_text(start),
                lost_text(patched_start) if patched_start else unknown,
            ),
            ComparedRow(
                tr("{release} starts", release=release),
                _yes(start.will_start),
                _yes(patched_start.will_start) if patched_start else unknown,
            ),
            ComparedRow(
                tr("{release}: the log ends at", release=release),
                number(start.end_offset),
                number(patched_start.end_offset) if patched_start else unknown,
            ),
        ]
    return rows + _finding_rows(current, patched)


def _finding_rows(current: State, patched: State | None) -> list[ComparedRow]:
    """Return a row for each rule that check finds broken, today or as patched."""
    patched_counts = Counter(finding.id for finding in patched.findings) if patched is not None else None
    current_counts = Counter(finding.id for finding in current.findings)
    titles = {
        finding.id: title(finding)
        for finding in (*(patched.findings if patched is not None else ()), *current.findings)
    }
    return [
        ComparedRow(
            f"{rule} · {words_of_rule}",
            number(current_counts[rule]) if current_counts[rule] else tr("none"),
            _patched_count_text(patched_counts, rule),
            is_worse=patched_counts is not None and patched_counts[rule] > current_counts[rule],
        )
        for rule, words_of_rule in sorted(titles.items())
    ]


def _patched_count_text(counts: Counter[str] | None, rule: str) -> str:
    if counts is None:
        return "…"
    return number(counts[rule]) if counts[rule] else tr("gone")


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


def _change_chip(row: ComparedRow) -> Chip | None:
    return Chip("error" if row.is_worse else "ok") if row.is_changed else None


def compared_kind() -> RecordKind:
    """Return the table of the store as it is beside the patched one."""
    return RecordKind(
        "repairEffect",
        (
            text_column("fact", words("What"), 230, tip=lambda row: row.fact),
            text_column("current", words("As it is"), 190, tip=lambda row: row.current),
            chip_column("mark", "", 28, _change_chip, filterable=False),
            text_column("patched", words("As patched"), 190, tip=lambda row: row.patched),
        ),
        verdict=lambda row: tr("changes") if row.is_changed else "",
        record=lambda row: {"fact": row.fact, "current": row.current, "patched": row.patched},
    )


@dataclass(frozen=True, slots=True)
class PatchRow:
    """A patch with its number in the list, and the repair to which it belongs; None for the user's own."""

    n: int
    patch: Patch
    is_taken: bool = True
    repair: Repair | None = None

    @property
    def title(self) -> str:
        """The repair to which the patch belongs."""
        return plain(engine_words(self.repair.title)) if self.repair is not None else tr("own patch")

    @property
    def gains(self) -> str:
        return engine_words(self.patch.gains or (self.repair.gains if self.repair is not None else ""))

    @property
    def costs(self) -> str:
        """The cost of the patch; "" for a patch of the user's that does not say it."""
        if self.repair is None:
            return engine_words(self.patch.costs)
        return engine_words(self.patch.costs or self.repair.costs) or tr("nothing")

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
            case WriteBytes(old=old, new=new) if len(new) <= MAX_SHOWN_BYTES:
                return f"{old.hex(' ').upper()} → {new.hex(' ').upper()}"
            case WriteBytes():
                return tr("write bytes")
            case RemoveFile():
                return tr("remove the file")
            case MoveFile():
                return tr("rename to {name}", name=plain(self.patch.target))
            case ResizeFile():
                return tr_plural("make it {n:,} byte long", "make it {n:,} bytes long", n=self.patch.new_size)
            case _:
                return tr("write the file")

    @property
    def why(self) -> str:
        return engine_words(self.patch.why)

    @property
    def place(self) -> Place | None:
        """The place that shows what is there now."""
        file = Path(self.patch.file)
        if file.parent.name == "index":
            return places.index(file.name)
        if not isinstance(self.patch, WriteBytes):
            return place_in_file(file, None) if isinstance(self.patch, WriteFile) else None
        start = parse_file_name(file.name)
        if start is not None and is_in_log(file):
            return places.log(start + self.patch.offset)
        return place_in_file(file, self.patch.offset)


def patch_text(row: PatchRow) -> str:
    """Return why a patch is made, what it gains and what it costs, in a line."""
    parts = [
        plain(row.why),
        tr("Gains: {what}", what=plain(row.gains)) if row.gains else "",
        tr("Costs: {what}", what=plain(row.costs)) if row.costs else "",
    ]
    return " · ".join(filter(None, parts))


def _taken_chip(row: PatchRow) -> Chip:
    return Chip("ok", tr("yes")) if row.is_taken else Chip("out", tr("no"))


def patch_kind() -> RecordKind:
    """Return the table of patches. A file leads to its place."""
    return RecordKind(
        "patch",
        (
            replace(
                chip_column("isTaken", words("Taken"), 64, _taken_chip, filterable=False),
                jump=lambda row: TogglePatch(row.n),
            ),
            number_column("n", words("Patch"), 56, filterable=False),
            text_column("title", words("Repair"), 170, tip=lambda row: row.title),
            text_column("file", words("File"), 200, mono=True, elide="middle", jump=lambda row: row.place),
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
            text_column("gains", words("Gains"), 150, tip=lambda row: plain(row.gains)),
            text_column("costs", words("Costs"), 150, tip=lambda row: plain(row.costs)),
        ),
        look=lambda row: None if row.is_taken else RowAppearance(tone="text3"),
        verdict=lambda row: tr("taken") if row.is_taken else tr("left out"),
        record=lambda row: row.patch.record(row.n),
    )
