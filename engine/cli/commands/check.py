"""``check``: the whole store against the rules, finding by finding."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_masking, add_release, add_store, common_options, open_named_store
from engine.cli.output import Output, Progress
from engine.ssh.address import is_ssh_address

SEVERITIES = ("chat", "note", "warn", "error")


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        "check ~/store",
        "check ~/store --only CL01,CQ04 --json",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="error",
        help="exit with 1 if a finding has at least this severity (default: %(default)s)",
    )
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    parser.add_argument("--only", metavar="IDS", help="apply only these rules (separated by commas)")
    parser.add_argument("--all", action="store_true", help="also list each finding that is a consequence of another")
    parser.add_argument(
        "--here",
        action="store_true",
        help="read a store on another machine through ssh even if storescope could check it there",
    )
    add_masking(parser)
    parser.set_defaults(run=run, tells_undecoded=True)


def run(args: argparse.Namespace, out: Output) -> int:
    if is_ssh_address(args.store) and not (args.here or args.config or args.patched or args.upload):
        from engine.cli.far_command import run_there

        code = run_there(args.store, args.arguments, out)
        if code is not None:
            return code
    from engine.cli.finding_text import print_findings
    from engine.inspection.findings import check
    from engine.rules.findings import Finding

    only = frozenset(args.only.replace(" ", "").split(",")) if args.only else None
    limit = SEVERITIES.index(args.fail_on)
    with open_named_store(args, out) as store, Progress("check", store.log.sequence.total_size, out.quiet) as progress:
        findings = list(check(store, only=only, progress=lambda done, _: progress.update(done)))
    print_findings(
        [finding.record() for finding in findings],
        out,
        str(store.path),
        with_consequences=args.all,
        config=store.config_words,
    )
    return int(
        any(isinstance(finding, Finding) and SEVERITIES.index(finding.severity) >= limit for finding in findings)
    )
