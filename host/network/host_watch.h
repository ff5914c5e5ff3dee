// SPDX-License-Identifier: Apache-2.0
// Purpose: notices that another host of a job is gone, or a process there, by a connection to it
// over which nothing is sent: the kernel there answers the probes of this one, however long the
// process waits for a processor, for a lock or in a debugger. A host that is cut off or without
// power answers none.
//
//   one process (the center)                    each member, on another host
//   invite(invitation)          ------------>   join(invitation, 3)
//   serve() meanwhile           <----------->
//   take(members)               ------------>   (told whether it was taken, else leave())
//   begin(lost)                                 begin(lost)
//   end()                                       end()
//
// The invitation travels by a way that strangers do not read, as the host MPI's. Seen from a
// member, an address of it may be a stranger's: private addresses are given more than once. So both
// ends prove that they know its secret (host/network/secret_proof.h), which is not sent:
//
//   member:  its nonce and number
//   center:  its nonce, and the center's proof
//   member:  the member's proof
//
// Invariants: HWT1 a host that answers no probe is told within the limit, and a process whose
//                  kernel answers is not.
//             HWT2 a process that has not said goodbye and whose connection its kernel has closed
//                  has ended.
//             HWT3 end() waits for the goodbyes of all that are still there: a connection that is
//                  closed with a goodbye unread may take its own along.
//             HWT4 a connection counts once its other end has proven itself: for a member the
//                  center, for the center the member. One that lies between them and hands on
//                  the messages of both passes both proofs: it can cut the connection or say a
//                  goodbye, as on any way through a network, and learns no secret.
//             HWT5 strangers that say nothing keep neither end from others, however many they are,
//                  and hold each up for its patience at most. The center keeps `most_guests` that
//                  are not proven, and fewer where it has no more descriptors. A further one takes
//                  the place of the oldest that is mute, or else of the oldest.
// Costs: a descriptor for each member, and a thread that sleeps.
// Thread safety: one thread; `lost` is called by the watch's own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "host/descriptor.h"
#include "host/network/addresses.h"
#include "host/network/secret_proof.h"

namespace tombolo::host {

class HostWatch {
 public:
  static constexpr std::chrono::seconds usual_limit{4};

  // Trivially copyable, so that processes can tell it to each other.
  struct Invitation {
    static constexpr std::size_t most = 32;
    Secret secret{};
    std::array<NetworkAddress, most> addresses{};  // an unused one has family 0
    std::uint16_t port = 0;
  };
  enum class Loss : std::uint8_t { silence, end };
  using Lost = std::function<void(int member, Loss how)>;

  // A host that is silent for `limit`, of 2 seconds at least, is lost.
  explicit HostWatch(std::chrono::seconds limit = usual_limit) : limit_(limit) {}
  ~HostWatch() { end(); }
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  // Errors: io.
  Status invite(Invitation& out);
  static constexpr std::chrono::milliseconds usual_patience{3000};
  static constexpr std::size_t most_guests = 256;  // far more than members that say hello at once
  // Answers members, for so long at most; call it again until all have returned from join().
  void serve(std::chrono::milliseconds time);
  // Those of `members` whose connections come; each has returned from join() ok.
  std::vector<int> take(std::span<const int> members,
                        std::chrono::milliseconds patience = usual_patience);

  // Waits for the center's proof for `patience` at most. Errors: io (no address can be reached, or
  // strangers alone).
  Status join(const Invitation& invitation, int member,
              std::chrono::milliseconds patience = usual_patience);
  // It was not taken.
  void leave() { peers_.clear(); }

  // For the center, members; for a member, the number `center`.
  static constexpr int center = -1;
  // Errors: io (the host has no thread): nothing is told, and end() is called all the same.
  Status begin(Lost lost);
  // By all together. Nothing is told any more.
  void end();

 private:
  struct Peer {
    int member = center;
    Descriptor socket;
    bool has_left = false;
  };
  struct Hello {
    Nonce nonce{};
    std::int32_t member = 0;
  };
  struct Answer {
    Nonce nonce{};
    Proof proof{};
  };
  // The center's record of a connection that may be a member's.
  struct Guest {
    struct Words {
      Hello hello;
      Proof proof{};
    };
    Descriptor socket;
    Nonce nonce{};  // the center's
    Words words;
    std::size_t bytes = 0;
  };
  // A member's record of a connection that may be the center's.
  struct Candidate {
    Descriptor socket;
    Nonce nonce{};  // the member's
    bool has_said_hello = false;
    Answer answer;
    std::size_t bytes = 0;
  };
  void be_watched(int socket) const;
  bool serve_once(std::chrono::milliseconds time);
  void greet(Guest& guest);
  bool accept_guest();
  bool send_guest_away();
  Challenge challenge_of(const Guest& guest) const;
  static std::vector<Candidate> begin_to_connect(const Invitation& invitation);
  static bool meet(Candidate& candidate, const Invitation& invitation, int member);
  void watch();
  void look(Peer& peer);

  std::chrono::seconds limit_;
  Descriptor listener_;
  Invitation invitation_;
  std::vector<Guest> guests_;
  std::vector<Peer> peers_;
  Lost lost_;
  bool has_begun_ = false;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace tombolo::host
