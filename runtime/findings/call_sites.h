// SPDX-License-Identifier: Apache-2.0
// Purpose: places in a program's code as numbers that mean the same in every process of a job, and
// as text for people.
//
//   core.set_site(call_site(__builtin_return_address(0)));
//   ...
//   for (const std::string& place : places_of({site, other})) ...     // "work_queue.c:44"
//
// Invariants: CS1 a number is 16 bits of the name of the module (the program or a shared library)
//                 and 32 bits of the distance from its start: addresses differ from process to
//                 process, those do not. 0 stands for no place.
//             CS2 a module that this process does not have is named as unknown, and so is a place
//                 that could be in two: never a wrong one.
// Thread safety: yes. call_site() is for every call of a program: it takes a lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tombolo::runtime {

// The call that returns to `address`.
std::uint64_t call_site(const void* address);

// The place of a function, or of any other code, and its address in this process. 0 is for code
// that lies in no module, and null for a module that this process does not have, or a place in two.
std::uint64_t code_place(const void* address);
const void* address_of(std::uint64_t place);

// "FILE:LINE" where the module has debug information and `addr2line` is on this host, else
// "MODULE+0xOFFSET", which `addr2line -e MODULE 0xOFFSET` takes; "" for 0. Starts a process for
// each module.
std::vector<std::string> places_of(std::span<const std::uint64_t> sites);

}  // namespace tombolo::runtime
