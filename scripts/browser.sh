#!/usr/bin/env bash
# Prints the path of a Chromium for the browser tests.
#
# It takes the first that runs of: $LOCALFIELDS_BROWSER, chromium, chromium-browser, google-chrome. Where
# there is none, on a Debian on which we may install packages, it installs Debian's own.
#
# Exit status: 0 found, 2 $LOCALFIELDS_BROWSER is no browser, 3 there is none (one line on stderr says why).
set -euo pipefail

runs() { "$1" --version >/dev/null 2>&1; } # some systems put a stub on PATH that only says "install me"

find_browser() {
    local name path
    for name in chromium chromium-browser google-chrome; do
        if path=$(command -v "$name") && runs "$path"; then
            echo "$path"
            return 0
        fi
    done
    return 1
}

give_up() {
    echo "browser tests are skipped: no Chromium on PATH, and $1;" \
        "to run them, install Chromium or Chrome, or set LOCALFIELDS_BROWSER to its executable" >&2
    exit 3
}

if [ -n "${LOCALFIELDS_BROWSER:-}" ]; then
    if path=$(command -v "$LOCALFIELDS_BROWSER") && runs "$path"; then
        echo "$path"
        exit 0
    fi
    echo "LOCALFIELDS_BROWSER is '$LOCALFIELDS_BROWSER', which is no browser that runs" >&2
    exit 2
fi

if find_browser; then exit 0; fi

# Elsewhere the package of that name may be a stub for another package manager.
grep -qsx 'ID=debian' /etc/os-release || give_up "this is no Debian, where one could be installed here"
command -v apt-get >/dev/null || give_up "there is no apt-get"
if [ "$(id -u)" = 0 ]; then
    as_root=(env)
elif sudo -n true >/dev/null 2>&1; then
    as_root=(sudo -n env)
else
    give_up "only root may install one (apt-get install chromium)"
fi

echo "Installing Chromium with apt-get (once) ..." >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
if "${apt[@]}" update >>"$log" 2>&1 </dev/null &&
    "${apt[@]}" install --no-install-recommends chromium >>"$log" 2>&1 </dev/null; then
    find_browser || give_up "the one apt-get installed does not run"
else
    cat "$log" >&2
    give_up "apt-get could not install one (its output is above)"
fi
