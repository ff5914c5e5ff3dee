# SPDX-License-Identifier: Apache-2.0
"""The language of families (002 section 3.1): translates its programs into C and C++ over tombolo/svp.hpp.

Only here libclang is imported, which takes a while: other commands do not import this package.
"""
