# SPDX-License-Identifier: Apache-2.0
from tombolo.app import main

main()
