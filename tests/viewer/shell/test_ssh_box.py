"""The box that asks for the address of a store on another machine."""

from __future__ import annotations

from handmade_stores import healthy
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from ssh_stand_in import install_stand_in, on_machine

from viewer.shell.error_page import ErrorPage
from viewer.shell.ssh_box import SshBox


def box_of(window):
    window.actions_by_id["store.openOverSsh"].trigger()
    return window.findChild(SshBox, "ssh.box")


def test_enter_opens_the_store_that_is_read_through_ssh(run, window, tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    store = healthy().write(tmp_path / "store")
    box = box_of(window)
    box.address.setText(f"someone@elsewhere:{store}")
    opened = []
    monkeypatch.setattr(window, "ask_open", opened.append)
    QTest.keyClick(box.address, Qt.Key.Key_Return)
    assert opened == [on_machine(store)]
    assert run(window.open(opened[0]))
    assert window.session.path == on_machine(store)
    assert window.session.snapshot.log.end_offset
    window.close_store()


def test_what_is_no_address_stays_in_the_box_with_the_form_of_one(window):
    box = box_of(window)
    box.address.setText("/data/store")
    box.open_button.click()
    assert box.isVisible()
    assert "ssh://USER@HOST/path/of/the/store" in box.problem.text()
    box.address.setText("ssh://ops@broker-a/data")
    assert not box.problem.isVisible()
    box.reject()


def test_without_a_connection_the_page_says_what_ssh_said(run, window, tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch, before="echo 'ops@elsewhere: Permission denied (publickey).' >&2; exit 255")
    assert not run(window.open(on_machine(tmp_path / "store")))
    page = window.findChild(ErrorPage, "error.page")
    texts = " ".join(label.text() for label in page.findChildren(QLabel))
    assert "Permission denied (publickey)" in texts
    assert "in a terminal" in texts
