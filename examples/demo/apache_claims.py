# SPDX-License-Identifier: MIT
"""What the demo claims of Apache besides what claims.py and near_claims.py check. Pure: no processes, no clock."""

from dataclasses import replace

import claims
import near_claims
from claims import Claim, percentile


def restarted(run, wanted):
    """That no request failed meanwhile is claims.nothing_failed's."""
    return Claim(
        "servers are restarted gracefully under load", f"{len(run.restarts)} times", f"{wanted}", len(run.restarts) >= wanted
    )


def nothing_left(processes, keys):
    """After the end of all servers."""
    return Claim(
        "the servers leave no process, and no lock",
        f"{len(processes)} processes, {len(keys)} locks",
        "none",
        not processes and not keys,
    )


def no_slower(pairs, bound):
    """pairs: CPU time of a request for a page that is never kept, with the module and without, measured in turns."""
    with_it, without, upper = 0, 0, 0
    if pairs:
        with_it, without = (percentile(costs, 0.25) * 1e6 for costs in zip(*pairs))
        upper = percentile([cost for _, cost in pairs], 0.75) * 1e6
    ratio = with_it / without if without else float("inf")
    moved = upper / without if without else 0  # by itself, between the turns
    return Claim(
        "a page that may not be kept costs what it costs without the module",
        f"{ratio:.3f} times the CPU, {with_it:.1f} us against {without:.1f}, lower quartiles of {len(pairs)} turns; "
        f"without, these are a factor of {moved:.3f} apart",
        f"{bound}",
        ratio <= bound,
        void=bool(pairs) and bound < ratio <= moved,
    )


def check(with_module, without, setup, wanted, bound_ms, commands=near_claims.COMMANDS):
    common = claims.of_fetch(with_module, setup) + [claims.clean_exits([with_module, without])]
    more = [near_claims.fast(with_module, bound_ms), near_claims.few_commands(with_module, commands), restarted(with_module, wanted)]
    bursts = claims.stampede(without, setup)
    return common + more + [replace(bursts, text=bursts.text.replace("--no-lock", "without the module"))]
