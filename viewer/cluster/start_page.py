"""The page of the Cluster view before a cluster is connected: what to enter, and the clusters used before."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout

from viewer.look.assets import tr
from viewer.look.theme import px
from viewer.widgets.basics import Glyph, Label, Link, ThemedPanel
from viewer.widgets.boxes import column, row

MAX_ADDRESSES = 4


class StartPage(ThemedPanel):
    """Says what to enter, and offers the addresses used before."""

    addressChosen = Signal(str)

    def __init__(self) -> None:
        super().__init__("window")
        self.title = Label("", 18, "text", 600)
        self._words = Label("", 13, "text2", wrap=True, select=True)
        self._words.setObjectName("cluster.empty")
        self._addresses = column(gap=6)
        inner = column(
            row(Glyph("cluster", "accent", 28), self.title, None, gap=12), self._words, self._addresses, gap=12
        )
        inner.setFixedWidth(px(480))
        box = QVBoxLayout(self)
        box.setContentsMargins(px(24), px(48), px(24), px(24))
        box.addWidget(inner, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)

    def show_addresses(self, addresses: Sequence[str]) -> None:
        """Offer these addresses."""
        while (item := self._addresses.box.takeAt(0)) is not None:
            link = item.widget()
            if link is not None:
                link.hide()
                link.deleteLater()
        for address in addresses[:MAX_ADDRESSES]:
            link = Link(address, 13, code=True)
            link.clicked.connect(lambda address=address: self.addressChosen.emit(address))
            self._addresses.box.addWidget(link)

    def show_connecting(self, address: str) -> None:
        """Say which address is being asked; "" for none."""
        self.title.setText(tr("Asking {address} …", address=address) if address else tr("No cluster is connected"))
        self._words.setText(
            tr(
                "Enter the address of a name server, of a real cluster or of this program. Storescope reads "
                "the cluster every second with admin requests and changes nothing: brokers, queues, "
                "producers, consumers, queue owners and lag. Serve in the lab starts a broker with a name "
                "server on this machine, and so does `storescope serve STORE`."
            )
        )
        self._addresses.setVisible(not address)
