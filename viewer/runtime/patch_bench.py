"""The patches that are staged for an open store: which repairs and patches are taken, and the user's own. No Qt.

Nothing of it is in the store until it is applied. Each step can be undone and redone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.patching.patches import Patch

MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class BenchState:
    """The staged changes: the repairs and patches that are left out, and the patches that the user made or opened."""

    left_repairs: frozenset[str] = frozenset()
    left_patches: frozenset[Patch] = frozenset()
    edits: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A step that can be undone: its words, and the state before it or, when it is undone, after it."""

    title: str
    state: BenchState


class PatchBench:
    """The staged patches of one store, with undo and redo. ``on_change`` is called after each change."""

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        self.state = BenchState()
        self._on_change = on_change
        self._done: list[_Step] = []
        self._undone: list[_Step] = []
        self._saved: tuple[Patch, ...] = ()

    @property
    def undo_title(self) -> str:
        """The words of the step that :meth:`undo` takes back; "" if there is none."""
        return self._done[-1].title if self._done else ""

    @property
    def redo_title(self) -> str:
        """The words of the step that :meth:`redo` makes again; "" if there is none."""
        return self._undone[-1].title if self._undone else ""

    @property
    def edits(self) -> tuple[Patch, ...]:
        """The patches that the user made or opened, in their order."""
        return self.state.edits

    def is_taken(self, patch: Patch) -> bool:
        """Return False for a patch that was left out."""
        left_out = self.state.left_patches
        return not left_out or patch not in left_out  # hashing a patch takes longer than that

    def taken_patches(self, patches: Iterable[Patch]) -> tuple[Patch, ...]:
        """Return the patches of these, of repairs and then the user's, that are not left out."""
        left_out = self.state.left_patches
        all_patches = (*patches, *self.state.edits)
        return tuple(patch for patch in all_patches if patch not in left_out) if left_out else all_patches

    def take_repair(self, name: str, title: str, *, is_taken: bool) -> None:
        """Take a repair with all its patches, or leave it out."""
        left_out = self.state.left_repairs
        self._go(title, replace(self.state, left_repairs=left_out - {name} if is_taken else left_out | {name}))

    def take_patch(self, patch: Patch, title: str, *, is_taken: bool) -> None:
        """Take one patch or leave it out."""
        left_out = self.state.left_patches
        self._go(title, replace(self.state, left_patches=left_out - {patch} if is_taken else left_out | {patch}))

    def add(self, patches: Sequence[Patch], title: str) -> None:
        """Add patches behind the others. A patch that is there already is taken instead."""
        new = tuple(patch for patch in dict.fromkeys(patches) if patch not in self.state.edits)
        left_out = self.state.left_patches - set(patches)
        self._go(title, replace(self.state, edits=(*self.state.edits, *new), left_patches=left_out))

    def drop(self, patch: Patch, title: str) -> None:
        """Remove one of the user's patches."""
        edits = tuple(edit for edit in self.state.edits if edit != patch)
        self._go(title, replace(self.state, edits=edits))

    def put(self, state: BenchState, title: str) -> None:
        """Go to a state that was taken before: what the undo of a window does."""
        self._go(title, state)

    @property
    def is_unsaved(self) -> bool:
        """True if the user's patches are in no file: not saved, nor opened from one, since they changed."""
        return bool(self.state.edits) and self.state.edits != self._saved

    def note_saved(self) -> None:
        """The user's patches are in a file now."""
        self._saved = self.state.edits

    def undo(self) -> None:
        """Take the last step back, if there is one."""
        self._move(self._done, self._undone)

    def redo(self) -> None:
        """Make the step again that was undone last, if there is one."""
        self._move(self._undone, self._done)

    def forget(self) -> None:
        """Forget everything: the store was changed."""
        self.state = BenchState()
        self._done.clear()
        self._undone.clear()
        self._on_change()

    def _go(self, title: str, state: BenchState) -> None:
        if state == self.state:
            return
        self._done = [*self._done[-MAX_STEPS + 1 :], _Step(title, self.state)]
        self._undone.clear()
        self.state = state
        self._on_change()

    def _move(self, source: list[_Step], target: list[_Step]) -> None:
        if not source:
            return
        step = source.pop()
        target.append(_Step(step.title, self.state))
        self.state = step.state
        self._on_change()
