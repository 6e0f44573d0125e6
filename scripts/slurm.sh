#!/usr/bin/env bash
# Makes SLURM available for the tests of batch systems: one node, this machine, as root.
#
# Installs it where it is missing, root may install and apt offers it. Exit status: 0 if it is there, 3 if
# not, with the reason on standard error: the tests then run on a stand-in that ignores options.
set -uo pipefail

there() { command -v munged >/dev/null && command -v slurmctld >/dev/null && command -v slurmd >/dev/null; }
sorry() {
    echo "$1" >&2
    exit 3
}

[ "$(id -u)" = 0 ] || sorry "SLURM's daemons are started by root, and this is user $(id -un)."
there && exit 0
command -v apt-get >/dev/null || sorry "SLURM is not installed, and there is no apt-get to install it with."
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
echo "Installing slurm-wlm and munge ..." >&2
for words in "update -q" "install -q -y --no-install-recommends slurm-wlm munge"; do
    # shellcheck disable=SC2086
    timeout 300 apt-get $words >"$log" 2>&1 || sorry "apt-get $words failed: $(tail -n 3 "$log")"
done
there || sorry "slurm-wlm and munge are installed, but their daemons are not on PATH."
