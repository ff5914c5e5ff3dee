// SPDX-License-Identifier: Apache-2.0
// Purpose: virtual time. `Time` is a point, `Duration` a length, both whole ticks; a `Clock` turns
// cycles of one frequency into a Duration.
//
// The tick. Chips mix clocks (cores at 533 MHz, a mesh at 800 MHz), and a period that is rounded is
// wrong by a little more with each cycle; floating point would round by the size of the number. So
// a tick divides every period that we use: there are 533 * 840 * 10^9 of them in a second. Whole
// ticks are then
//   a cycle of  533 MHz   840,000 ticks       of  533 1/3 MHz (1600/3)  839,475 ticks
//               800 MHz   559,650 ticks       of 1600/n MHz, every n    n * 279,825 ticks
//   a nanosecond          447,720 ticks
// and the periods of all frequencies that divide 447,720,000 MHz: 100 to 800 MHz in steps of 100,
// 1, 1.2, 1.25, 1.4, 1.5, 1.6, 2, 2.4, 2.5, 2.8 and 3 GHz, 1066 and 2132 MHz. 63 bits hold 5.7
// hours of virtual time.
//
// Invariants: TI1 no operation here rounds; only whole numbers of ticks can be made.
// Thread safety: values.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/status.h"

namespace tombolo::simulator {

inline constexpr std::int64_t ticks_per_nanosecond = std::int64_t{533} * 840;
inline constexpr std::int64_t ticks_per_second = ticks_per_nanosecond * 1'000'000'000;

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration ticks(std::int64_t n) { return Duration(n); }
  static constexpr Duration nanoseconds(std::int64_t n) {
    return Duration(n * ticks_per_nanosecond);
  }
  static constexpr Duration microseconds(std::int64_t n) { return nanoseconds(n * 1'000); }
  static constexpr Duration milliseconds(std::int64_t n) { return nanoseconds(n * 1'000'000); }
  static constexpr Duration seconds(std::int64_t n) { return nanoseconds(n * 1'000'000'000); }

  constexpr std::int64_t in_ticks() const { return ticks_; }
  // For reports only: it rounds.
  constexpr double in_nanoseconds() const {
    return static_cast<double>(ticks_) / static_cast<double>(ticks_per_nanosecond);
  }

  constexpr bool operator==(const Duration&) const = default;
  constexpr auto operator<=>(const Duration& other) const { return ticks_ <=> other.ticks_; }
  constexpr Duration operator+(Duration other) const { return Duration(ticks_ + other.ticks_); }
  constexpr Duration operator-(Duration other) const { return Duration(ticks_ - other.ticks_); }
  constexpr Duration operator*(std::int64_t n) const { return Duration(ticks_ * n); }
  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }

 private:
  constexpr explicit Duration(std::int64_t n) : ticks_(n) {}
  std::int64_t ticks_ = 0;
};

class Time {
 public:
  constexpr Time() = default;  // when the run starts
  static constexpr Time after_start(Duration d) { return Time(d.in_ticks()); }
  // Later than all others.
  static constexpr Time never() { return Time(std::numeric_limits<std::int64_t>::max()); }

  constexpr Duration since_start() const { return Duration::ticks(ticks_); }

  constexpr bool operator==(const Time&) const = default;
  constexpr auto operator<=>(const Time& other) const { return ticks_ <=> other.ticks_; }
  constexpr Time operator+(Duration d) const { return Time(ticks_ + d.in_ticks()); }
  constexpr Time operator-(Duration d) const { return Time(ticks_ - d.in_ticks()); }
  constexpr Duration operator-(Time other) const { return Duration::ticks(ticks_ - other.ticks_); }
  constexpr Time& operator+=(Duration d) { return *this = *this + d; }

 private:
  constexpr explicit Time(std::int64_t n) : ticks_(n) {}
  std::int64_t ticks_ = 0;
};

// "12.345678 us", cut to whole picoseconds; the same text on every host.
inline std::string to_string(Duration d) {
  const auto whole = static_cast<__int128>(d.in_ticks()) * 1000 / ticks_per_nanosecond;
  const auto picoseconds = static_cast<std::int64_t>(whole);
  const char* sign = picoseconds < 0 ? "-" : "";
  const std::int64_t size = picoseconds < 0 ? -picoseconds : picoseconds;
  return fmt::format("{}{}.{:06} us", sign, size / 1'000'000, size % 1'000'000);
}
inline std::string to_string(Time t) {
  return t == Time::never() ? "never" : to_string(t.since_start());
}

class Clock {
 public:
  // A clock of hertz / divisor; the divisor is for frequencies such as 1600/3 MHz.
  static Status make(std::int64_t hertz, std::int64_t divisor, Clock* clock) {
    if (hertz <= 0 || divisor <= 0) {
      return Status::bad_configuration(
          fmt::format("a clock of {}/{} Hz: both numbers must be positive", hertz, divisor));
    }
    const auto product = static_cast<__int128>(ticks_per_second) * divisor;
    if (product % hertz != 0) {
      return Status::bad_configuration(
          fmt::format("a clock of {}/{} Hz: its period is not a whole number of ticks (1/{} s); "
                      "simulator/kernel/time.h lists the frequencies whose period is",
                      hertz, divisor, ticks_per_second));
    }
    const __int128 period = product / hertz;
    if (period > ticks_per_second) {
      return Status::bad_configuration(
          fmt::format("a clock of {}/{} Hz: slower than 1 Hz", hertz, divisor));
    }
    *clock = Clock(Duration::ticks(static_cast<std::int64_t>(period)));
    return {};
  }
  static Clock megahertz(std::int64_t n) {
    Clock clock{Duration()};
    const Status made = make(n * 1'000'000, 1, &clock);
    TOMBOLO_CHECK(made.ok(), "{}", made.message());
    return clock;
  }

  constexpr Duration period() const { return period_; }
  constexpr Duration cycles(std::int64_t n) const { return period_ * n; }
  // Cycles that have begun and ended within `d`.
  constexpr std::int64_t whole_cycles(Duration d) const {
    return d.in_ticks() / period_.in_ticks();
  }
  // The first edge of this clock at or after `t`: where a signal from another clock is seen.
  constexpr Time next_edge(Time t) const {
    const std::int64_t late = t.since_start().in_ticks() % period_.in_ticks();
    return late == 0 ? t : t + (period_ - Duration::ticks(late));
  }

 private:
  constexpr explicit Clock(Duration period) : period_(period) {}
  Duration period_;
};

}  // namespace tombolo::simulator
