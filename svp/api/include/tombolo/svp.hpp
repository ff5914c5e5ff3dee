// SPDX-License-Identifier: Apache-2.0
// Purpose: the C++ interface of families: SVP's create, sync, kill and break, channels and places
// (002 chapter 3).
//
//   #include "svp/api/include/tombolo/svp.hpp"
//   namespace svp = tombolo::svp;
//
//   long fibonacci(long n) {
//     if (n < 2) return n;
//     long one = 0;
//     auto family = svp::create([&] { one = fibonacci(n - 1); });
//     const long two = fibonacci(n - 2);
//     family.sync().rethrow();
//     return one + two;
//   }
//
// Thread safety: as the parts say.
#pragma once

#include "svp/channels/global.h"  // IWYU pragma: export
#include "svp/channels/shared.h"  // IWYU pragma: export
#include "svp/exit.h"             // IWYU pragma: export
#include "svp/family/family.h"    // IWYU pragma: export
#include "svp/places/place.h"     // IWYU pragma: export
#include "svp/range.h"            // IWYU pragma: export
#include "svp/remote/job.h"       // IWYU pragma: export
