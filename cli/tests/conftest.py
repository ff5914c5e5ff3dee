# SPDX-License-Identifier: Apache-2.0
"""The tests send signals to themselves and to programs that they start. Where they were started with some of them
ignored, by nohup say or behind `&` in a script, children would inherit that, and never end."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
for each in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(each, signal.SIG_DFL)
