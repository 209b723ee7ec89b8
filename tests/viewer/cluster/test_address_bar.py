"""The fields of a connection, without a cluster."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from viewer.cluster.access import AccessFiles
from viewer.cluster.address_bar import USUAL_NAME_SERVER, AddressBar
from viewer.runtime.settings import Settings


@pytest.fixture
def bar(settings: Settings, shown) -> AddressBar:
    address_bar = AddressBar()
    address_bar.use(settings)
    shown(address_bar, width=1200)
    return address_bar


def test_without_earlier_clusters_it_offers_a_name_server_of_this_machine(bar):
    assert bar.address.text() == USUAL_NAME_SERVER
    assert not bar.recent_action.isVisible()


def test_a_cluster_comes_back_with_its_files(bar, settings):
    files = AccessFiles("/conf/tools.yml", "/conf/tls.properties")
    bar.remember("10.0.0.1:9876", files)
    assert bar.earlier_addresses == ["10.0.0.1:9876"]
    assert bar.saved_access("10.0.0.1:9876") == files
    assert bar.saved_access("no address") == AccessFiles()
    bar.show_cluster("10.0.0.1:9876", files)
    assert bar.access_files() == files
    assert bar.secured.isChecked()


def test_down_opens_the_earlier_clusters_and_one_of_them_is_chosen(bar):
    bar.remember("10.0.0.1:9876", AccessFiles())
    chosen: list[str] = []
    bar.earlierChosen.connect(chosen.append)
    QTest.keyClick(bar.address, Qt.Key.Key_Down)
    menu = bar.address.findChild(QMenu, "cluster.known")
    menu.actions()[0].trigger()
    menu.close()
    QApplication.processEvents()
    assert chosen == ["10.0.0.1:9876"]


def test_a_wrong_address_is_described_at_its_field(bar):
    bar.show_fault("Expected HOST:PORT")
    assert bar.address.accessibleDescription() == "Expected HOST:PORT"
    bar.show_fault("")
    assert bar.address.toolTip() == ""


def test_return_connects_and_the_button_names_what_it_does(bar):
    requests: list[str] = []
    bar.connectRequested.connect(lambda: requests.append("connect"))
    QTest.keyClick(bar.address, Qt.Key.Key_Return)
    assert requests == ["connect"]
    bar.show_connection(running=True, can_read=True)
    assert (bar.go.text(), bar.again.isEnabled()) == ("Disconnect", True)
    bar.show_connection(running=False, can_read=False)
    assert (bar.go.text(), bar.again.isEnabled()) == ("Connect", False)
