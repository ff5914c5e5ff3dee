#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment, if there is none yet, and installs the listed requirements into it.
#
#   tools/python_env.sh FOLDER REQUIREMENTS.txt...
set -euo pipefail

folder=$1
shift
if [ ! -x "$folder/bin/python" ]; then
  "${PYTHON:-python3}" -m venv "$folder"
fi
arguments=()
for file in "$@"; do
  arguments+=(-r "$file")
done
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${arguments[@]}"
