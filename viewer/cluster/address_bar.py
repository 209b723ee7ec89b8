"""The line of the Cluster view with the name servers to connect to, account and TLS files, and the interval."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QMenu, QVBoxLayout, QWidget

from viewer.cluster.access import AccessFiles
from viewer.cluster.cluster_model import INTERVALS_S, NoAddress, addresses_in
from viewer.look.assets import tr
from viewer.widgets.basics import Button, Field, Label, ThemedPanel, ToolButton, icon
from viewer.widgets.boxes import wrapped_row
from viewer.widgets.choices import ChoiceField

if TYPE_CHECKING:
    from viewer.runtime.settings import Settings

USUAL_NAME_SERVER = "127.0.0.1:9876"
"""Address in the field before any cluster was used: a name server on this machine."""


class AddressBar(ThemedPanel):
    """Fields and buttons of a connection; it connects nothing itself. ``trailing`` stands at the end of the line."""

    connectRequested = Signal()
    """Connect to the name servers in the field, with the files in the fields."""
    earlierChosen = Signal(str)
    """Connect to these name servers, with the files that were used with them before."""
    goClicked = Signal()
    """Connect, or disconnect."""
    addressEdited = Signal()
    readRequested = Signal()
    intervalChosen = Signal(float)
    """Seconds between two readings."""

    def __init__(self, *trailing: QWidget | int | None) -> None:
        super().__init__("pane", ("bottom",))
        self._settings: Settings | None = None
        self._build_address()
        self.access_fields = self._make_access_fields()
        self.secured = ToolButton("lock", tr("Account and TLS of this cluster"), checkable=True)
        self.secured.setObjectName("cluster.secured")
        self.secured.toggled.connect(self.access_fields.setVisible)
        self.again = ToolButton("refresh", tr("Read now"))
        self.again.setObjectName("cluster.again.tool")
        self.again.clicked.connect(self.readRequested)
        self.interval_choice = ChoiceField()
        self.interval_choice.setObjectName("cluster.every")
        self.interval_choice.setAccessibleName(tr("Seconds between two readings"))
        for seconds in INTERVALS_S:
            self.interval_choice.addItem(tr("every {n} s", n=f"{seconds:g}"), seconds)
        self.interval_choice.activated.connect(
            lambda _index: self.intervalChosen.emit(float(self.interval_choice.currentData()))
        )
        line = wrapped_row(
            self.address,
            self.go,
            self.secured,
            self.again,
            self.interval_choice,
            None,
            *trailing,
            margins=(12, 6, 10, 6),
        )
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 1)
        box.addWidget(line)
        box.addWidget(self.access_fields)

    def _build_address(self) -> None:
        self.address = Field(tr("Name server, HOST:9876"), code=True, width=270)
        self.address.setObjectName("cluster.address")
        self.address.setAccessibleName(tr("Name servers"))
        self.address.returnPressed.connect(self.connectRequested)
        self.address.textEdited.connect(lambda _text: self.addressEdited.emit())
        self.recent_action = self.address.addAction(icon("chevron-down"), QLineEdit.ActionPosition.TrailingPosition)
        self.recent_action.setToolTip(tr("Earlier clusters (Down)"))
        self.recent_action.triggered.connect(lambda _on: self._show_earlier())
        self.address.installEventFilter(self)
        self.go = Button(tr("Connect"), "primary")
        self.go.setObjectName("cluster.go")
        self.go.clicked.connect(self.goClicked)

    def _make_access_fields(self) -> QWidget:
        self.account_file = Field(tr("Account file, as mqadmin's tools.yml (empty: no account)"), code=True, width=480)
        self.tls_file = Field(tr("TLS file, tls.properties (empty: no TLS)"), code=True, width=330)
        for name, field in (("account", self.account_file), ("tls", self.tls_file)):
            field.setObjectName(f"cluster.{name}")
            field.returnPressed.connect(self.connectRequested)
        note = Label(tr("Only the paths are saved."), 12, "text3")
        fields = wrapped_row(self.account_file, self.tls_file, note, None, margins=(12, 0, 10, 6))
        fields.setVisible(False)
        return fields

    def use(self, settings: Settings) -> None:
        """Offer the addresses that were used before."""
        self._settings = settings
        self.show_earlier_addresses()

    @property
    def earlier_addresses(self) -> list[str]:
        """Addresses that were used before, the newest first."""
        return list(self._settings.clusters) if self._settings is not None else []

    def access_files(self) -> AccessFiles:
        """Return the files that the fields name."""
        return AccessFiles(self.account_file.text().strip(), self.tls_file.text().strip())

    def saved_access(self, text: str) -> AccessFiles:
        """Return the files that were used with the name servers in ``text`` before."""
        try:
            address = ";".join(addresses_in(text))
        except NoAddress:
            return AccessFiles()
        return AccessFiles(*self._settings.cluster_access(address)) if self._settings is not None else AccessFiles()

    def show_cluster(self, address: str, files: AccessFiles) -> None:
        """Fill the fields."""
        self.address.setText(address)
        self.account_file.setText(files.account)
        self.tls_file.setText(files.tls)
        self.secured.setChecked(bool(files.account or files.tls))

    def remember(self, address: str, files: AccessFiles) -> None:
        """Save a cluster among those that were used."""
        if self._settings is not None:
            self._settings.remember_cluster(address)
            self._settings.set_cluster_access(address, files.account, files.tls)
            self.show_earlier_addresses()

    def show_earlier_addresses(self) -> None:
        """Offer the earlier addresses; an empty field gets the newest of them."""
        addresses = self.earlier_addresses
        self.recent_action.setVisible(bool(addresses))
        if not self.address.text():
            address = addresses[0] if addresses else USUAL_NAME_SERVER
            self.show_cluster(address, self.saved_access(address))

    def show_interval(self, seconds: float) -> None:
        """Show the seconds between two readings."""
        self.interval_choice.setCurrentIndex(max(self.interval_choice.findData(seconds), 0))

    def show_connection(self, *, running: bool, can_read: bool) -> None:
        """Show whether the view is connected, and whether it can be read now."""
        self.go.setText(tr("Disconnect") if running else tr("Connect"))
        self.go.setAccessibleName(self.go.text())
        if (self.go.property("kind") == "") != running:
            self.go.setProperty("kind", "" if running else "primary")
            self.go.style().polish(self.go)
            self.go.retheme()
        self.again.setEnabled(can_read)

    def show_fault(self, reason: str) -> None:
        """Mark the address as wrong, or as right ("")."""
        field = self.address
        field.setProperty("state", "error" if reason else "")
        field.style().polish(field)
        field.setToolTip(reason)
        field.setAccessibleDescription(reason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the earlier addresses on Down."""
        is_down = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Down
        if is_down and watched is self.address and self.recent_action.isVisible():
            if event.type() == QEvent.Type.KeyPress:
                self._show_earlier()
            return True
        return False

    def _show_earlier(self) -> None:
        """Open a menu of the clusters used before."""
        menu = QMenu(self.address)
        menu.setObjectName("cluster.known")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for address in self.earlier_addresses:
            menu.addAction(address).triggered.connect(partial(self._choose_earlier, address))
        menu.popup(self.address.mapToGlobal(QPoint(0, self.address.height())))

    def _choose_earlier(self, address: str, _on: bool = False) -> None:
        self.earlierChosen.emit(address)
