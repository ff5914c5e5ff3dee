// SPDX-License-Identifier: Apache-2.0
// Purpose: the sequence of 002 section 5.2.2, on any link: a site creates two families at another
// one, whose first ends first, and syncs the second first. Each thread takes messages of its own
// channel alone, so that a link on which one channel holds up another comes to no end.
// Thread safety: each site has a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "svp/remote/call.h"
#include "svp/remote/service.h"

namespace tombolo::svp::testing {

inline void count(Index i, In<int> by, InArray<std::int32_t> from, OutArray<std::int32_t> to) {
  const auto n = static_cast<std::size_t>(i);
  to[n] = from[n] * by;
}

// The site that runs families, whose first one ends first. Its channels take their messages each.
template <class L>
void serve(L& link, unsigned families) {
  NoReach reach;
  std::map<std::uint32_t, Service> services;
  unsigned closed = 0;
  while (closed < families) {
    bool moved = link.poll([&](const Message& message) {
      auto& service = services.try_emplace(message.channel.number, message.channel).first->second;
      const bool taken = service.take(message);
      service.expect(link);
      return taken;
    });
    for (auto at = services.begin(); at != services.end();) {
      Service& service = at->second;
      if (service.ready() && !service.ended()) {
        ASSERT_TRUE(service.fetch(reach).ok());
        for (std::uint64_t n = 0; n < service.range().count(); ++n)
          service.frame().call(service.range().index(n));
        service.end(reach, {});
        moved = true;
      }
      const bool over = service.advance(link) && !is_moving(link, service.channel());
      closed += over ? 1 : 0;
      at = over ? services.erase(at) : std::next(at);
    }
    if (!moved && closed < families) {
      EXPECT_TRUE(link.wait().ok());
    }
  }
}

// Takes messages of its own channel alone, as the thread of a virtual channel does.
template <class L>
void sync(L& link, Call& call) {
  NoReach reach;
  call.ask_sync();
  while (!call.ended() || is_moving(link, call.channel())) {
    const bool sent = call.advance(link);
    const bool took = link.poll([&](const Message& m) {
      const bool taken = call.take(m, reach);
      call.expect(link);
      return taken;
    });
    if (!took && sent && !call.ended()) {
      EXPECT_TRUE(link.wait().ok());
    }
  }
}

template <class L>
void create_two_and_sync_the_second_first(L& link, Transport transport, std::size_t elements) {
  NoReach reach;
  std::array<std::vector<std::int32_t>, 2> from;
  std::array<std::vector<std::int32_t>, 2> to;
  std::vector<std::unique_ptr<Call>> calls;
  for (unsigned f = 0; f < 2; ++f) {
    for (std::size_t i = 0; i < elements; ++i)
      from[f].push_back(static_cast<std::int32_t>(i + std::size_t{7} * f));
    to[f].resize(elements);
    In<int> by(static_cast<int>(f) + 2);
    InArray<std::int32_t> in(from[f]);
    OutArray<std::int32_t> out(to[f]);
    const std::array<Piece, 3> pieces{Parameter<In<int>>::piece(by),
                                      Parameter<InArray<std::int32_t>>::piece(in),
                                      Parameter<OutArray<std::int32_t>>::piece(out)};
    calls.push_back(
        std::make_unique<Call>(VirtualChannel{.opener = 0, .peer = 1, .number = f},
                               CallPlan{.function = &remote<&count>.entry(),
                                        .range = {.limit = static_cast<Index>(elements)},
                                        .transport = transport},
                               pieces));
    calls.back()->open(reach);
    while (!calls.back()->advance(link)) EXPECT_TRUE(link.wait().ok());
  }
  sync(link, *calls[1]);
  sync(link, *calls[0]);
  for (unsigned f = 0; f < 2; ++f)
    for (std::size_t i = 0; i < elements; ++i)
      EXPECT_EQ(to[f][i], from[f][i] * (static_cast<int>(f) + 2));
}

}  // namespace tombolo::svp::testing
