#include "plan/lowering/lowering.h"

#include "base/format.h"
#include "base/status.h"
#include "plan/negotiation/methods.h"

namespace pw {

void Lowering::complete() {
  if (on_host()) add_wakes();
  add_triggers();
}

std::vector<ProgramStep>& Lowering::steps_of(uint32_t round, bool sends) {
  if (round > 0) return plan_.program.rounds.at(round - 1).steps;
  return sends ? plan_.program.start : plan_.program.finish;
}

const char* Lowering::method_name(SendMethod method) const {
  return name_of_method(method, static_cast<uint8_t>(device_.id().kind));
}

void Lowering::add_description(const std::string& line) {
  if (!plan_.description.empty()) plan_.description += '\n';
  plan_.description += line;
}

// The text by which a trace says how a step moves bytes. In a plan of the host each step is a copy by the CPU
// with a time of its own. The text then also names the path that copies in the same way, because the route
// table has measured times of that path to compare with. A GPU's trace has only the time of the whole start.
std::string_view Lowering::method_text(std::string_view step) {
  const std::string_view path = on_host() ? context_.resolver().cpu_copy_path() : std::string_view();
  return path.empty() ? step : std::string_view(*plan_.methods.insert(format("{}, {}", step, path)).first);
}

void Lowering::reserve_signal(const Notification& notification, bool by_device) {
  context_.notifications().reserve(*notification.signal);
  plan_.owned.push_back({notification, by_device});
}

GrowingWords Lowering::words_of(const Notification& notification) {
  uint64_t* word = notification.signal->word_on(device_);
  reserve_signal(notification, true);
  return {word, notification.signal->sender()->notified, notification.by, 0, 1};
}

GrowingWords Lowering::words_of(const PlannedWait& wait) {
  uint32_t count = 0;
  uint64_t* words = wait.signal->words_on(device_, count);
  if (count != 1)
    throw Error(PW_INVALID_ARGUMENT,
                "a plan waits for signals of one sender; name it when the signal is made");
  return {words, wait.signal->planned, wait.by, wait.lead, 1};
}

}  // namespace pw
