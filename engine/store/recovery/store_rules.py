"""The rules by which a release checks the units of a store: when it starts, while its recovery walks, and when it
dispatches.
"""

from __future__ import annotations

from engine.releases import Release, rules_of
from engine.rules.unit_check import Rules
from engine.store.recovery.source import RecoverySource


def unit_rules(source: RecoverySource, release: Release) -> Rules:
    """Return the rules by which release ``release`` checks the units of this store."""
    config = source.config
    return Rules(
        release,
        config.check_crc_on_recover,
        config.force_verify_prop_crc and rules_of(release).property_crc,
        config.duplication_enable and rules_of(release).verifies_duplicates,
        config.delay_levels(),
    )


def walk_rules(rules: Rules, source: RecoverySource) -> Rules:
    """The rules of recovery's own walk: 4.9 reads its delay levels after it, so a unit of the schedule topic that it
    dispatches gets the code of its tags and not the time of delivery. After a crash 5.5 may check a unit's own offset.
    """
    release = rules_of(rules.release)
    own_offset = source.abort and release.checks_unit_offset and source.config.check_commit_log_offset_on_recover
    levels = rules.delay_levels if release.knows_delays_in_recovery else ()
    return rules._replace(delay_levels=levels, own_offset=own_offset)


def dispatch_rules(rules: Rules) -> Rules:
    """The rules of the dispatch thread, which checks no CRC."""
    return rules._replace(crc=False, property_crc=False, dup_info=False)
