#!/usr/bin/env bash
# Writes generated and golden files anew and fails if that changed anything. What was changed in the tree before, and not
# by this, does not count.
set -euo pipefail
cd "$(dirname "$0")/.."

# state prints all that differs from the last commit, untracked files included.
state() {
	git diff --binary HEAD
	git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum
}

before=$(state | sha256sum)
make golden
after=$(state | sha256sum)
if [ "$before" != "$after" ]; then
	git status --short >&2
	git --no-pager diff >&2
	echo "check-golden: the files above were not current: look at the changes and commit them" >&2
	exit 1
fi
echo "check-golden: generated and golden files are current"
