#!/usr/bin/env bash
# Writes requirements/dev.lock and requirements/reproduce.lock from pyproject.toml.
#
#   requirements/lock.sh            keep the versions already locked, where they still fit
#   requirements/lock.sh --upgrade  move everything to the newest versions allowed
#
# Arguments go to `uv pip compile`. It uses $UV, else uv on PATH, else a throwaway copy installed with pip.
#
# One resolution serves every supported Python and platform: environment markers say where a package is
# needed, and `--fork-strategy fewest` picks one version for all of them wherever there is one, so that two
# machines with different Pythons compute with the same jax, numpy and scipy.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

uv=${UV:-$(command -v uv || true)}
if [ -z "$uv" ]; then
    python3 -m venv "$work/uv"
    "$work/uv/bin/python" -m pip install --quiet uv
    uv=$work/uv/bin/uv
fi

# Only the registry counts: no local wheel folder, no second index, no configuration file.
unset UV_FIND_LINKS UV_INDEX UV_EXTRA_INDEX_URL UV_CONSTRAINT UV_OVERRIDE

# What `pip install --no-build-isolation --editable .` needs, besides the dependencies: the build backend, and
# the installer itself, since `python -m venv` brings one as old as the interpreter.
printf '%s\n' hatchling editables pip setuptools >"$work/build.in"

compile() {
    "$uv" pip compile --no-config --quiet --universal --python-version 3.11 --fork-strategy fewest \
        --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
        pyproject.toml "$work/build.in" "$@" >/dev/null
}

# A lock holds names, versions, markers and hashes, and nothing else.
check() {
    if grep -nEv '^[a-z0-9._-]+==[^ /@+]+( ; [^/@]+)? \\$|^    --hash=sha256:[0-9a-f]{64}( \\)?$' "$1"; then
        echo "$1: these lines are no plain pinned requirement" >&2
        exit 1
    fi
    if grep -nE '^(torch|nvidia|cuda|jax-cuda)' "$1"; then
        echo "$1: these packages do not belong to localfields" >&2
        exit 1
    fi
    echo "$(basename "$1"): $(grep -c == "$1") packages"
}

# The locks are written beside the old ones and put in place together, once both are good. The dev lock
# comes first and constrains the other, so that the two never disagree about a version.
for kind in dev reproduce; do
    if [ -f requirements/$kind.lock ]; then cp requirements/$kind.lock "$work/"; fi
done
compile --all-extras --output-file "$work/dev.lock" "$@"
compile --constraints "$work/dev.lock" --output-file "$work/reproduce.lock" "$@"
check "$work/dev.lock"
check "$work/reproduce.lock"
cp "$work/dev.lock" "$work/reproduce.lock" requirements/
