// Chooses the method of a collective, from the costs of messages in the route table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/setting.h"
#include "collective/schedule.h"

namespace pw::settings {

enum class MethodSetting : uint8_t { automatic, one_shot, two_shot };
extern const ChoiceSetting<MethodSetting> collective_method;

}  // namespace pw::settings

namespace pw::collective {

/// The cost in microseconds of sending a message of so many bytes to one member; infinite if it is not known.
using MessageCost = std::function<double(uint64_t bytes)>;

/// The estimated time of a method in microseconds: of each round, that of the member that takes longest. A
/// CPU sends its messages one after another, and reads operands as fast as it copies messages. A GPU sends
/// all messages of a round together, and combines so much faster than its links carry the operands that sums
/// are not counted. Pure.
double estimate(const CollectiveRequest& request, CollectiveMethod method, const MessageCost& cost);

/// Returns the cheapest method. If a cost is not known, it is the method in which members send the fewest
/// bytes one after another. Among equal methods the first is chosen. Pure.
CollectiveMethod choose(const CollectiveRequest& request, std::span<const CollectiveMethod> methods,
                        const MessageCost& cost);

}  // namespace pw::collective
