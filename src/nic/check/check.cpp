#include "nic/check/check.h"

#include <optional>

#include "nic/check/laws.h"

namespace pw::nic::check {
namespace {

Verdict look(const Law& law, NearEnd& near) {
  try {
    std::string found = law.look(near);
    const bool absent = found.empty();
    return {law.name, absent ? Outcome::absent : Outcome::right, std::move(found)};
  } catch (const Broken& broken) {
    return {law.name, Outcome::wrong, broken.what()};
  }
}

}  // namespace

void check(const std::string& plugin, uint64_t job, const std::string& configuration, int socket,
           const std::function<void()>& kill_far_end, const std::function<void(const Verdict&)>& tell) {
  std::optional<NearEnd> near;
  try {
    near.emplace(Plugin::load(plugin), job, configuration, socket);
  } catch (const Broken& broken) {
    tell({"open, register, connect", Outcome::wrong, broken.what()});
    return;
  }
  tell({"open, register, connect", Outcome::right, "two processes are connected"});
  for (const auto laws : {laws_of_setup(), laws_of_data(), laws_of_order(), laws_of_extras()})
    for (const Law& law : laws) tell(look(law, *near));
  tell(look({"memory that was deregistered", memory_withdrawn}, *near));
  near->renew_far_memory();
  kill_far_end();
  tell(look({"a peer that dies", peer_dies}, *near));
}

}  // namespace pw::nic::check
