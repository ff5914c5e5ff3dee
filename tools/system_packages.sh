#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the missing ones of the listed Debian packages; asks for root only if there are any.
#
#   tools/system_packages.sh LIST...     files with one package a line, # starts a comment
set -euo pipefail

packages=$(sed 's/#.*//' "$@" | tr -s '[:space:]' '\n' | sed '/^$/d')
if ! command -v dpkg-query >/dev/null; then
  echo "No dpkg here: install the contents of these Debian packages in your own way, then run" >&2
  echo "make again with SYSTEM_PACKAGES=skip:" $packages >&2
  exit 1
fi
missing=()
for package in $packages; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  root=(sudo)
fi
echo "installing ${missing[*]}"
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install \
  --no-install-recommends "${missing[@]}" >/dev/null
