// Chooses the method of a collective, from the costs of messages in the route table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/setting.h"
#include "collective/schedule.h"

namespace pw::settings {

enum class MethodSetting : uint8_t { automatic, one_shot, two_shot, tree, ring, hierarchical };
extern const ChoiceSetting<MethodSetting> collective_method;

}  // namespace pw::settings

namespace pw::collective {

/// The cost in microseconds of sending a message of so many bytes to a member of the same host, or of another
/// one; infinite if it is not known.
using MessageCost = std::function<double(bool same_host, uint64_t bytes)>;

/// What estimates are made from.
struct CollectiveCosts {
  MessageCost message;
  double memory_bytes_per_us = 0;  ///< that a GPU reads and writes when it combines; 0 if not known
};

/// A method, and its estimated time in microseconds; infinite if it is not known.
struct Estimate {
  CollectiveMethod method{};
  double us = 0;
};

/// Estimates all methods, the cheapest first. If costs are not known, that method is first in which members
/// send the fewest bytes one after another to other hosts, and, among equal ones, to their own host. Among
/// equal methods the order stays.
///
/// The time of a method is, summed over its rounds, that of the member that takes longest. A CPU sends its
/// messages one after another, and reads operands as fast as it copies messages. A GPU sends all messages of
/// a round together, and combines as fast as its memory allows. Pure.
std::vector<Estimate> estimates_of(const CollectiveRequest& request, const Placement& placement,
                                   std::span<const CollectiveMethod> methods, const CollectiveCosts& costs);

/// Returns "one-shot 12.3 us, ring 15 us"; empty if costs are not known.
std::string text_of(std::span<const Estimate> estimates);

}  // namespace pw::collective
