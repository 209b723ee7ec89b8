"""The form that puts a message."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.lab.samples import PutAnswer
from viewer.lab.put import PutPanel
from viewer.runtime.lab_session import ManualPut
from viewer.runtime.put_form import FormFault, PutForm

TIME_MS = 1_700_000_000_000


def test_the_form_keeps_its_message_and_can_put_it_again(qapp: QApplication) -> None:
    panel = PutPanel()
    forms: list[PutForm] = []
    panel.putRequested.connect(forms.append)
    panel.topic.setText("Orders")
    panel.put_now()
    assert not forms  # putting is not possible yet
    panel.set_enabled(True)
    QTest.keyClick(panel.topic, Qt.Key.Key_Return)
    assert forms[-1].topic == "Orders"
    done = ManualPut(PutForm("Orders", "2", keys="k"), TIME_MS, PutAnswer("PUT_OK", 2048, 219, 41))
    panel.show_done([done])
    panel.set_enabled(True)
    assert panel.answer.text() == "2,048 · Orders/2/41"
    assert "PUT_OK" in panel.answer.accessibleDescription()
    panel.topic.setText("Other")
    panel.put_again()
    assert forms[-1] == done.form
    panel.set_form(done.form)
    assert panel.form() == done.form
    refused = ManualPut(PutForm(), TIME_MS, PutAnswer("OS_PAGE_CACHE_BUSY"))
    panel.show_done([done, refused])
    assert refused.offset is None
    assert panel.answer.accessibleDescription() == "OS_PAGE_CACHE_BUSY"
    panel.deleteLater()


def test_an_invalid_field_is_marked_with_a_message(qapp: QApplication) -> None:
    panel = PutPanel()
    panel.show_fault(FormFault("queue", "queue: a number is expected"))
    assert panel.queue.property("state") == "error"
    assert panel.answer.text() == "queue: a number is expected"
    panel.kind.setCurrentIndex(panel.kind.findData("delay"))
    assert not panel.extra.isHidden()
    assert panel.extra.accessibleName() == "Level"
    panel.deleteLater()
